"""scripts/interop storage-suite runs this: Kubernetes' own suite for the storage drivers of others (tests/interop/e2e-storage),
on volumed as deploy/kubernetes puts it beside a real kubelet. It runs in namespaces of its own, for what the suite does on a
node it does by that node's first process."""

import collections
import json
import os
import re

from own_driver import OwnDriver
from own_node import DRIVER, HERE
from tools import Failed, Process, run, say, wait_for

SUITE = os.path.join(HERE, "../e2e-storage")
DRIVERS = ("image", "subvolume", "directory")
# Of drivers whose class deploy/kubernetes does not show; each is named by its driver.
CLASSES = {"subvolume": {"pool": "trees", "backend": "subvolume"}, "directory": {"backend": "directory", "quota": "best-effort"}}
# Programs of the suite that run at once: it waits most of the time.
RUNS = 6
POOL_BYTES, TREES_BYTES = 40 << 30, 20 << 30
# Of the images that it has names for: what they run, a peer. Of nginx only the shell is used.
IMAGES = {"busybox": (None,), "agnhost": ("agnhost", "pause"), "pause": (None,), "nginx": (None,)}
# Specs with these words take minutes each, or the node for themselves.
LONG = re.compile(r"\[Slow\]|\[Disruptive\]|\[Serial\]")
ALONE = re.compile(r"\[Disruptive\]|\[Serial\]")
GOOD, BAD = "passed", ("failed", "panicked", "timedout", "interrupted", "aborted")


class Spec:
    def __init__(self, report):
        # As ginkgo joins them, for its focus.
        texts = [*(report.get("ContainerHierarchyTexts") or []), report["LeafNodeText"]]
        self.name = " ".join(text for text in texts if text)
        self.state, self.seconds = report["State"], report["RunTime"] / 1e9
        self.message = (report.get("Failure") or {}).get("Message", "")


class Suite:
    def __init__(self, lab, driver):
        self.lab, self.file = lab, os.path.join(SUITE, driver + ".yaml")
        self.dir = os.path.join(lab.dir, "suite-" + driver)
        os.makedirs(self.dir)
        self.skips = read_skips(driver)

    def start(self, name, *words):
        report = os.path.join(self.dir, name + ".json")
        process = Process(self.dir, name, self.lab.peers["e2e-storage"], "-kubectl-path", self.lab.peers["kubectl"],
                          "-kubeconfig", self.lab.cluster.path("admin.kubeconfig"), "-storage.testdriver", self.file,
                          "-ginkgo.no-color", "-ginkgo.timeout", "6h", "-ginkgo.json-report", report, *words)
        return process, report

    def run(self, name, seconds, *words):
        process, report = self.start(name, *words)
        wait_for(f"{name} has ended", lambda: not process.runs(), seconds)
        return read_report(process, report)

    def all(self):
        """Of the driver: the framework brings specs of its own."""
        return [spec for spec in self.run("list", 300, "-ginkgo.dry-run") if spec.name.startswith("External Storage ")]

    def reason(self, spec, whole):
        """Why it is not run; None if it is."""
        if LONG.search(spec.name) and not whole:
            return "[Slow], [Disruptive] or [Serial]: with --all"
        return next((reason for words, reason in self.skips if words.search(spec.name)), None)

    def run_specs(self, specs):
        """Several at a time, and those that want the node alone after them."""
        together = [spec for spec in specs if not ALONE.search(spec.name)]
        alone = [spec for spec in specs if ALONE.search(spec.name)]
        found = []
        for name, parts in (("run", [together[first::RUNS] for first in range(RUNS)]), ("alone", [alone])):
            started = [self.start(f"{name}-{number}", "-ginkgo.v", *focus(part)) for number, part in enumerate(parts) if part]
            for process, report in started:
                wait_for(f"{process.name} has ended", lambda: not process.runs(), 6 * 3600)
                found += read_report(process, report)
        # Those that are not in focus are reported as skipped, without a message.
        return [spec for spec in found if spec.state != "skipped" or spec.message]


def read_report(process, report):
    if not os.path.exists(report):
        raise Failed(f"{process.name}: {process.last_words()}")
    with open(report) as file:
        return [Spec(spec) for suite in json.load(file) for spec in suite["SpecReports"] or []
                if spec["LeafNodeType"] == "It"]


def read_skips(driver):
    """Of each line: what is in the names of specs, and why they cannot be run."""
    found = []
    for name in ("lab", driver):
        path = os.path.join(SUITE, name + ".skips")
        if os.path.exists(path):
            with open(path) as file:
                lines = [line.strip() for line in file if line.strip() and not line.startswith("#")]
            found += [(re.compile(words.strip()), reason.strip()) for words, reason in
                      (line.rsplit(" -- ", 1) for line in lines)]
    return found


def focus(specs):
    return [word for spec in specs for word in ("-ginkgo.focus", re.escape(spec.name) + "$")]


def import_images(lab):
    """Under just the names that the suite has, of all versions; there is no registry."""
    names = run(lab.peers["e2e-storage"], "-list-images").split()
    for kind, (program, *words) in IMAGES.items():
        first, *others = [name for name in names if name.rsplit("/", 1)[-1].split(":")[0] == kind]
        tar = lab.cluster.path("image-of-suite.tar")
        run(os.path.join(HERE, "image.sh"), tar, first, *([lab.peers[program]] if program else []), *words)
        run(*lab.cluster.ctr, "images", "import", tar)
        os.unlink(tar)
        for name in others:
            run(*lab.cluster.ctr, "images", "tag", first, name)


def class_of(driver, parameters):
    return {"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": {"name": "volumed-" + driver},
            "provisioner": DRIVER, "allowVolumeExpansion": True, "volumeBindingMode": "WaitForFirstConsumer",
            "parameters": parameters}


def storage_suite(scratch, peers, binaries, drivers, whole, only):
    """The specs that failed."""
    lab = OwnDriver(scratch, peers, binaries, POOL_BYTES)
    try:
        lab.cluster.connect_pods()
        if "subvolume" in drivers:
            lab.nodes[0].add_pool(TREES_BYTES, "trees", ("mkfs.btrfs", "-q"))
        lab.start()
        lab.cluster.apply([class_of(*words) for words in CLASSES.items()])
        import_images(lab)
        return [name for driver in drivers for name in of_driver(lab, driver, whole, only)]
    finally:
        lab.end()


def of_driver(lab, driver, whole, only):
    suite = Suite(lab, driver)
    specs = suite.all()
    say(f"{driver}: {len(specs)} specs")
    reasons = {spec.name: suite.reason(spec, whole) for spec in specs}
    wanted = [spec for spec in specs if (re.search(only, spec.name) if only else reasons[spec.name] is None)]
    if not wanted:
        raise Failed(f"{driver}: no spec is to run")
    done = suite.run_specs(wanted)
    if len(done) != len(wanted):
        raise Failed(f"{len(wanted)} specs were to run, and {len(done)} have")
    bad = [spec for spec in done if spec.state in BAD]
    skipped = collections.Counter(short(spec.message) for spec in done if spec.state == "skipped")
    skipped.update(reason for spec, reason in reasons.items() if reason and not only)
    good = [spec for spec in done if spec.state == GOOD]
    for spec in sorted(done, key=lambda spec: spec.name):
        say(f"  {spec.state} {round(spec.seconds)} s: {spec.name}")
    for spec in bad:
        say(f"failed: {spec.name}\n    {spec.message[:1500]}")
    for reason, count in skipped.most_common():
        say(f"  skipped {count}: {reason}")
    say(f"{driver}: {len(good)} passed, {len(bad)} failed, {sum(skipped.values())} skipped")
    lab.nothing_left(300)
    return [spec.name for spec in bad]


def short(message):
    """A reason without what is of one spec."""
    return re.sub(r"\s+", " ", message.replace(DRIVER, "the driver")).strip()[:160]
