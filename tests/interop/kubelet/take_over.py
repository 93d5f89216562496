"""One agent takes over what the other one has made, and takes it away."""

import glob
import json
import os
import re
import signal
import sys
import time

import differences
from cluster import NODE
from compare import QUESTIONS, Comparison, compare_repeated
from lab import MOUNTED, measured, wait_pods_gone
from objects import BLOCK, READ_ONLY, VOLUMES, pods
from tools import Failed, Process, say, wait_for
from tree import identities
from volumed import Volumed

HERE = os.path.dirname(os.path.abspath(__file__))
# What takes something away from a pod that is to stay.
TAKING_AWAY = ("NodeUnpublishVolume", "NodeUnstageVolume", "ControllerUnpublishVolume", "DeleteVolume")


def place_of(lab, pod, uid):
    """What a writer uses of a pod's volume."""
    volume = pod["spec"]["volumes"][0]["persistentVolumeClaim"]["claimName"]
    name = pod["metadata"]["name"]
    below = os.path.join(lab.root, "pods", uid)
    if volume in BLOCK:
        # What a container gets; the pod's link is only where the agent finds it.
        return f"device:{lab.root}/plugins/kubernetes.io/csi/volumeDevices/publish/{volume}/{uid}"
    mount = f"{below}/volumes/kubernetes.io~csi/{volume}/mount"
    return f"read:{mount}/file" if volume in READ_ONLY else f"write:{mount}/host-{name}"


class Writers:
    def __init__(self, lab, uids):
        places = [place_of(lab, pod, uids[pod["metadata"]["name"]]) for pod in pods()]
        self.output = os.path.join(lab.dir, "written.json")
        self.process = Process(lab.dir, "writers", sys.executable, os.path.join(HERE, "writers.py"), *places,
                               output=self.output)

    def end(self, how=signal.SIGTERM):
        self.process.end(how)

    def check(self):
        self.end()
        with open(self.output) as file:
            text = file.read()
        if not text:
            raise Failed(f"writers: {self.process.last_words()}")
        results, good = json.loads(text), True
        for result in results:
            if result["errors"] or result["count"] < 20:
                say(f"UNEXPECTED {result}")
                good = False
        say(f"{sum(result['count'] for result in results)} writes and reads of {len(results)} writers, "
            f"the slowest {max(result['slowest'] for result in results)} s; all there: {good}")
        return good


def compare_identities(before, after, successor):
    """All that there was is there, as it was."""
    moved = [key for key in before if before[key] != after.get(key)]
    # A kubelet makes a pod's link to its device anew each time that it maps it. Containers do not go by it.
    links = [key for key in moved if successor == "kubelet" and key.startswith("link ") and
             before[key][-1] == after.get(key, "?")[-1]]
    new = sorted(set(after) - set(before))
    say(f"{len(before)} mounts, files and directories of volumes; {len(before) - len(moved)} are the same, {len(links)} links "
        f"lead there anew, {len(new)} are new{': ' + ' '.join(new[:3])[:300] if new else ''}")
    moved = [key for key in moved if key not in links]
    for key in moved:
        say(f"UNEXPECTED moved: {key}: {before[key]} {after.get(key)}")
    return not moved


def compare_take_over(calls, successor):
    counts = {}
    for call in calls:
        if call.method not in ("Probe", "GetPluginInfo", "NodeGetVolumeStats"):
            key = f"{call.method} {call.code}"
            counts[key] = counts.get(key, 0) + 1
    say(f"calls of {successor}: {', '.join(f'{count} {key}' for key, count in sorted(counts.items())) or 'none'}")
    bad = [str(call) for call in calls if call.method in TAKING_AWAY or call.code != "OK"]
    for text in bad:
        say(f"UNEXPECTED {text}")
    return not bad


def compare_fields(kubelet, ours):
    """Of the calls that both have made, for the same objects and attachments."""
    comparison = Comparison(differences.calls())
    compare_repeated(comparison, kubelet, ours)
    say(f"fields of calls that both have made: {comparison.report()}")
    return not comparison.unknown and comparison.equal > 0


def uids_of(lab):
    return {pod["metadata"]["name"]: pod["metadata"]["uid"] for pod in lab.cluster.all("pods")}


def give_to_volumed(lab, name, adopt, pods_of_it, wait=True, started=lambda: None):
    """With all objects but the other pods, and what is theirs alone. `started` is called before its pods are waited for."""
    agent = lab.volumed = Volumed(lab.binaries, os.path.join(lab.dir, name), lab.root, "objects", "",
                                  lab.cluster.path("logs"), adopt)
    volumes = {pod["spec"]["volumes"][0]["persistentVolumeClaim"]["claimName"] for pod in pods()
               if pod["metadata"]["name"] in pods_of_it}
    for thing in lab.objects("csidriver", "storageclass", "secret", "pv", "pvc", "volumeattachments", "pods"):
        if thing["kind"] == "Pod":
            wanted = thing["metadata"]["name"] in pods_of_it
        elif thing["kind"] in ("PersistentVolume", "PersistentVolumeClaim"):
            wanted = thing["metadata"]["name"] in volumes
        else:
            wanted = True
        if wanted:
            agent.put(thing)
    agent.start()
    started()
    for name in pods_of_it if wait else ():
        agent.wait_ready(name)


def wait_kubelet_has_all(lab, since):
    lab.wait_running([pod["metadata"]["name"] for pod in pods()])
    wait_for("kubelet measures the volumes", lambda: measured(lab.driver, since, MOUNTED), 120)


def take_over_from_kubelet(lab):
    """kubelet, then volumed, then kubelet again, while its containers go on."""
    cluster, names = lab.cluster, [pod["metadata"]["name"] for pod in pods()]
    lab.begin("from-kubelet")
    cluster.start_kubelet()
    lab.start_node_driver()
    lab.make_volumes()
    for pod in pods(commands=True):
        lab.make_pod(pod)
    lab.wait_running(names)
    lab.writers = Writers(lab, uids_of(lab))
    time.sleep(2)
    good = compare_refused(lab)
    cluster.end_kubelet()
    before, start = identities(lab.root), time.time_ns()
    give_to_volumed(lab, "volumed", True, names)
    time.sleep(3)
    say("== volumed takes over a kubelet's root")
    good &= compare_identities(before, identities(lab.root), "volumed")
    good &= compare_take_over(lab.driver.calls(start), "volumed")
    good &= compare_fields([call for call in lab.driver.calls() if call.came < start], lab.driver.calls(start))
    lab.volumed.end(signal.SIGKILL)
    lab.volumed, before, start = None, identities(lab.root), time.time_ns()
    cluster.start_kubelet()
    wait_kubelet_has_all(lab, start)
    say("== and the kubelet takes it back")
    good &= compare_identities(before, identities(lab.root), "kubelet")
    good &= compare_take_over(lab.driver.calls(start), "kubelet")
    good &= lab.writers.check()
    lab.writers = None
    good &= check_containers(lab, names)
    lab.delete_pods(names)
    lab.wait_detached()
    lab.delete_volumes()
    lab.finish()
    return good


def compare_refused(lab):
    """A root on which a kubelet runs is taken from nobody."""
    agent = Volumed(lab.binaries, os.path.join(lab.dir, "too-early"), lab.root, "objects", "", lab.cluster.path("logs"), True)
    try:
        agent.start()
        agent.end()
        say("UNEXPECTED volumed took a root on which a kubelet runs")
        return False
    except Failed as failure:
        say(f"== volumed is refused a root on which a kubelet runs: {str(failure).strip().splitlines()[-1][-300:]}")
        return "kubelet" in str(failure)


def check_containers(lab, names):
    """None of them was started again, and those that write have written everything, and write on."""
    restarted = [pod["metadata"]["name"] for pod in lab.cluster.all("pods")
                 if any(part["restartCount"] for part in pod["status"]["containerStatuses"])]
    files, good = written_by_containers(lab), not restarted
    before = {path: os.path.getsize(path) for path in files}
    time.sleep(1)
    for path in files:
        with open(path) as file:
            # The last line may be one that is being written.
            lines = file.read().split("\n")[:-1]
        if os.path.getsize(path) <= before[path] or lines != [str(number) for number in range(len(lines))]:
            say(f"UNEXPECTED {path}: {len(lines)} lines, {lines[-1:]}")
            good = False
    say(f"{len(names)} containers went on, {len(restarted)} were started again {restarted or ''}; {len(files)} of them write")
    return good


def written_by_containers(lab):
    files = []
    for name, uid in uids_of(lab).items():
        for directory in ("", "one/two/"):
            files += glob.glob(f"{lab.root}/pods/{uid}/volumes/kubernetes.io~csi/*/mount/{directory}by-{name}")
    return files


# Every second pod, with its volume: they are deleted while no agent runs, so the next one knows them by files alone.
FORGOTTEN = [pod["metadata"]["name"] for pod in pods()][::2]


def take_over_and_end(lab):
    """volumed takes over a kubelet's root, and takes everything away: also what it is never told of."""
    cluster, names = lab.cluster, [pod["metadata"]["name"] for pod in pods()]
    lab.begin("ended-by-volumed")
    cluster.start_kubelet()
    lab.start_node_driver()
    lab.make_volumes()
    for pod in pods():
        lab.make_pod(pod)
    lab.wait_running(names)
    cluster.end_kubelet(signal.SIGKILL)
    cluster.end_containers()
    # The driver is away as well, and comes when volumed has looked at everything.
    lab.end_node_driver()
    start, kept = time.time_ns(), [name for name in names if name not in FORGOTTEN]

    def comes_later():
        time.sleep(3)
        lab.start_node_driver()
    give_to_volumed(lab, "volumed", True, kept, started=comes_later)
    wait_for("forgotten pods gone", lambda: len(os.listdir(os.path.join(lab.root, "pods"))) == len(kept))
    lab.volumed.remove(*[pod for pod in lab.objects("pods") if pod["metadata"]["name"] in kept])
    for name in kept:
        lab.volumed.wait_gone(name)
    say("== volumed takes away what a kubelet has made")
    good = compare_teardown(lab, lab.driver.calls(start))
    lab.cluster.kubectl("delete", "pods", "--all", "--force", "--grace-period=0")
    set_in_use(lab, [])
    lab.wait_detached()
    good &= compare_detach(lab)
    lab.delete_volumes()
    lab.finish()
    return good


def set_in_use(lab, names):
    """What a kubelet says of its node: what is in use is not detached."""
    lab.cluster.kubectl("patch", "node", NODE, "--subresource=status", "--type=merge", "-p",
                        json.dumps({"status": {"volumesInUse": names}}))


def compare_detach(lab):
    count = lab.driver.detached_in_use()
    if count:
        say(f"UNEXPECTED {count} disks were detached in use")
    return not count


# Of an agent or a driver, not of a volume.
STAYING = re.compile(r"^mounts at (\.|volumed/keys)$|/csi/(pd\.csi\.storage\.gke\.io|volumeDevices(/publish|/staging)?)$|/csi$")


def compare_teardown(lab, calls):
    """Each publish and each stage is taken back once, and nothing of a volume is left."""
    wanted = {"NodeUnpublishVolume OK": len(pods()), "NodeUnstageVolume OK": len(VOLUMES)}
    counts = {}
    for call in calls:
        if call.server == "node" and call.method not in QUESTIONS:
            counts[f"{call.method} {call.code}"] = counts.get(f"{call.method} {call.code}", 0) + 1
    left = [key for key in identities(lab.root) if not STAYING.search(key)]
    say(f"calls: {counts}; left of volumes: {left or 'nothing'}")
    taken = {key: counts.get(key) for key in wanted}
    if taken != wanted or any(not key.endswith(" OK") for key in counts):
        say(f"UNEXPECTED calls: wanted {wanted}")
    if left:
        say(f"UNEXPECTED left: {left}")
    return taken == wanted and not left


def take_over_from_volumed(lab):
    """A kubelet takes over a root that volumed has made, starts the containers, and takes everything away: also what is
    deleted before it comes."""
    cluster, names = lab.cluster, [pod["metadata"]["name"] for pod in pods()]
    lab.begin("from-volumed")
    lab.start_node_driver()
    lab.make_volumes()
    for pod in pods(commands=True):
        lab.make_pod(pod)
    attach_without_kubelet(lab)
    give_to_volumed(lab, "volumed", False, names)
    lab.writers = Writers(lab, uids_of(lab))
    time.sleep(2)
    lab.volumed.end()
    lab.volumed, before, start = None, identities(lab.root), time.time_ns()
    cluster.start_kubelet()
    wait_kubelet_has_all(lab, start)
    say("== the kubelet takes over volumed's root")
    good = compare_identities(before, identities(lab.root), "kubelet")
    good &= compare_take_over(lab.driver.calls(start), "kubelet")
    good &= compare_fields(lab.driver.calls(start), [call for call in lab.driver.calls() if call.came < start])
    good &= lab.writers.check()
    lab.writers = None
    good &= check_containers(lab, names)
    start = time.time_ns()
    lab.delete_pods(names)
    lab.wait_detached()
    wait_pods_gone(lab)
    say("== the kubelet takes away what volumed has made")
    good &= compare_teardown(lab, lab.driver.calls(start))
    good &= compare_detach(lab)
    lab.delete_volumes()
    lab.finish()
    return good


def attach_without_kubelet(lab):
    """By the controllers, for the pods that are there; it is said to be in use, for no kubelet says it."""
    def attached():
        return [thing for thing in lab.cluster.all("volumeattachments") if thing.get("status", {}).get("attached")]
    # A pod that its controller sees before the claim is looked at again within three minutes.
    wait_for("volumes attached", lambda: len(attached()) == len(VOLUMES), 240)
    node = lab.cluster.get("node", NODE)
    set_in_use(lab, [volume["name"] for volume in node["status"]["volumesAttached"]])


def end_what_volumed_made(lab):
    """The pods are deleted while no agent runs: a kubelet finds volumes by volumed's files alone."""
    cluster, names = lab.cluster, [pod["metadata"]["name"] for pod in pods()]
    lab.begin("ended-by-kubelet")
    lab.start_node_driver()
    lab.make_volumes()
    for pod in pods():
        lab.make_pod(pod)
    attach_without_kubelet(lab)
    give_to_volumed(lab, "volumed", False, names)
    lab.volumed.end(signal.SIGKILL)
    lab.volumed, start = None, time.time_ns()
    cluster.kubectl("delete", "pods", *FORGOTTEN, "--force", "--grace-period=0")
    cluster.start_kubelet()
    lab.delete_pods([name for name in names if name not in FORGOTTEN])
    lab.wait_detached()
    wait_pods_gone(lab)
    say("== the kubelet takes away what volumed has made, and nobody tells it of")
    good = compare_teardown(lab, lab.driver.calls(start))
    good &= compare_detach(lab)
    lab.delete_volumes()
    lab.finish()
    return good


# How many calls that change something the driver has answered, at least, when the first agent is killed.


# How many calls that change something the driver has answered, at least, when the first agent is killed.
MOMENTS = (1, 8, 15)


def answered(driver):
    return sum(call.server == "node" and call.method not in QUESTIONS for call in driver.calls())


def take_over_midway(lab):
    """The first agent is killed while it sets up; the other one goes on, and takes everything away."""
    good = True
    for count in MOMENTS:
        good &= from_kubelet_midway(lab, count)
        good &= from_volumed_midway(lab, count)
    return good


def from_kubelet_midway(lab, count):
    names = [pod["metadata"]["name"] for pod in pods()]
    lab.begin(f"kubelet-killed-{count}")
    lab.cluster.start_kubelet()
    lab.start_node_driver()
    lab.make_volumes()
    for pod in pods():
        lab.make_pod(pod)
    wait_for(f"{count} calls", lambda: answered(lab.driver) >= count)
    lab.cluster.end_kubelet(signal.SIGKILL)
    lab.cluster.end_containers()
    attach_without_kubelet(lab)
    before = answered(lab.driver)
    give_to_volumed(lab, "volumed", True, names)
    start = time.time_ns()
    lab.volumed.remove(*lab.objects("pods"))
    for name in names:
        lab.volumed.wait_gone(name)
    say(f"== a kubelet is killed after {before} calls; volumed goes on, and takes it all away")
    good = compare_teardown(lab, lab.driver.calls(start))
    lab.cluster.kubectl("delete", "pods", "--all", "--force", "--grace-period=0")
    set_in_use(lab, [])
    lab.wait_detached()
    good &= compare_detach(lab)
    lab.delete_volumes()
    lab.finish()
    return good


def from_volumed_midway(lab, count):
    names = [pod["metadata"]["name"] for pod in pods()]
    lab.begin(f"volumed-killed-{count}")
    lab.start_node_driver()
    lab.make_volumes()
    for pod in pods():
        lab.make_pod(pod)
    attach_without_kubelet(lab)
    give_to_volumed(lab, "volumed", False, names, wait=False)
    wait_for(f"{count} calls", lambda: answered(lab.driver) >= count)
    lab.volumed.end(signal.SIGKILL)
    lab.volumed, before = None, answered(lab.driver)
    lab.cluster.start_kubelet()
    lab.wait_running(names)
    start = time.time_ns()
    lab.delete_pods(names)
    lab.wait_detached()
    wait_pods_gone(lab)
    say(f"== volumed is killed after {before} calls; a kubelet goes on, and takes it all away")
    good = compare_teardown(lab, lab.driver.calls(start))
    good &= compare_detach(lab)
    lab.delete_volumes()
    lab.finish()
    return good
