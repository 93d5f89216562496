"""scripts/interop storage-suite runs this: Kubernetes' own suite for the storage drivers of others (tests/interop/e2e-storage),
on volumed as deploy/kubernetes puts it beside a real kubelet. It runs in namespaces of its own, for what the suite does on a
node it does by that node's first process."""

import collections
import json
import os
import re

from own_driver import OwnDriver
from own_node import HERE
from suite_drivers import DRIVERS, POOL_BYTES, TREES_BYTES, prepare
from tools import Failed, Process, run, say, wait_for

SUITE = os.path.join(HERE, "../e2e-storage")
# Programs of the suite that run at once, as it waits most of the time, and specs of each.
RUNS, PART = 8, 4
# Of the images that it has names for: what they run, a peer or programs of the machine. Of nginx only the shell is used. The last one is
# taken for a dd with more flags than busybox's, whose shell would prefer its own.
IMAGES = {"busybox": (None,), "agnhost": ("agnhost", "pause"), "pause": (None,), "nginx": (None,), "glibc-dns-testing": ("/bin/sh,/bin/dd",)}
# Specs with these words take minutes each, or the node for themselves.
LONG = re.compile(r"\[Slow\]|\[Disruptive\]|\[Serial\]")
ALONE = re.compile(r"\[Disruptive\]|\[Serial\]")
GOOD = "passed"


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
        count = -(-len(together) // PART)
        found = self.run_parts("run", [together[first::count] for first in range(count)]) + self.run_parts("alone", [alone])
        # Those that are not in focus are reported as skipped, without a message.
        return [spec for spec in found if spec.state != "skipped" or spec.message]

    def run_parts(self, name, parts):
        """Each by a program of its own, RUNS of them at once."""
        waiting = [(f"{name}-{number}", part) for number, part in enumerate(parts) if part]
        running, found = [], []
        while waiting or running:
            while waiting and len(running) < RUNS:
                part_name, part = waiting.pop(0)
                running.append(self.start(part_name, "-ginkgo.v", *focus(part)))
            wait_for("a program of the suite has ended", lambda: any(not process.runs() for process, _ in running), 6 * 3600)
            ended = [one for one in running if not one[0].runs()]
            found += [spec for one in ended for spec in read_report(*one)]
            running = [one for one in running if one not in ended]
        return found


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
        run(os.path.join(HERE, "image.sh"), tar, first, *([lab.peers.get(program, program)] if program else []), *words)
        run(*lab.cluster.ctr, "images", "import", tar)
        os.unlink(tar)
        for name in others:
            run(*lab.cluster.ctr, "images", "tag", first, name)


def storage_suite(scratch, peers, binaries, drivers, whole, only):
    """The specs that failed."""
    lab = OwnDriver(scratch, peers, binaries, pool_bytes=POOL_BYTES)
    try:
        lab.cluster.connect_pods()
        if "subvolume" in drivers:
            lab.nodes[0].add_pool(TREES_BYTES, "trees", ("mkfs.btrfs", "-q"))
        lab.start()
        prepare(lab)
        import_images(lab)
        outcomes = [of_driver(lab, driver, whole, only) for driver in drivers]
    finally:
        lab.end()
    for outcome in outcomes:
        say(str(outcome))
    return [name for outcome in outcomes for name in outcome.bad]


class Outcome:
    """Of all specs of a driver: each is in one of the numbers."""

    def __init__(self, driver):
        self.driver, self.good, self.bad, self.skipped = driver, [], [], collections.Counter()

    def __str__(self):
        return f"{self.driver}: {len(self.good)} passed, {len(self.bad)} failed, {sum(self.skipped.values())} skipped"

    def take(self, spec):
        say(f"  {spec.state} {round(spec.seconds)} s: {spec.name}")
        if spec.state == GOOD:
            self.good.append(spec.name)
        elif spec.state == "skipped":
            self.skipped[short(spec.message)] += 1
        else:
            self.fail(spec.name, spec.message)

    def fail(self, name, why):
        self.bad.append(f"{self.driver}: {name}")
        say(f"failed: {name}\n    {why[:1500]}")


def of_driver(lab, driver, whole, only):
    suite, outcome, beside = Suite(lab, driver), Outcome(driver), DRIVERS[driver](lab)
    specs = suite.all()
    say(f"{driver}: {len(specs)} specs")
    reasons = {spec.name: suite.reason(spec, whole) for spec in specs}
    wanted = [spec for spec in specs if (re.search(only, spec.name) if only else reasons[spec.name] is None)]
    if not wanted:
        raise Failed(f"{driver}: no spec is to run")
    outcome.skipped.update(reason for reason in reasons.values() if reason and not only)
    try:
        beside.start()
        done = suite.run_specs(wanted)
        for spec in sorted(done, key=lambda spec: spec.name):
            outcome.take(spec)
        for name in {spec.name for spec in wanted} - {spec.name for spec in done}:
            outcome.fail(name, "it was to run, and has not")
        nothing_left(lab, beside, outcome)
    finally:
        beside.end()
    for reason, count in outcome.skipped.most_common():
        say(f"  skipped {count}: {reason}")
    say(str(outcome))
    return outcome


def nothing_left(lab, beside, outcome):
    """On the node, in the pools, in the API; the next driver is run in spite of it."""
    try:
        lab.nothing_left(300)
        wait_for("nothing left of the driver", lambda: not beside.left(), 60)
    except Failed as failure:
        outcome.fail("nothing is left", f"{failure}: {beside.left()}")


def short(message):
    """A reason without what is of one spec: its driver."""
    return re.sub(r"\s+", " ", re.sub(r'"?(pool|central)\.volumed\.io"?|"?pd\.csi\.storage\.gke\.io"?', "of this name", message)
                  ).strip()[:160]
