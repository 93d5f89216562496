"""One run after the other on one cluster: each has a root of the same path, new disks and the objects that are made for it."""

import json
import os
import shutil
import signal

from cluster import NODE, Cluster
from driver import Driver, loop_devices
from objects import BLOCK, GROWING, VOLUMES, shared_objects
from tools import Failed, run, say, wait_for
from tree import mount_lines


class Lab:
    """The cluster, and one run after the other: each has a root of the same path, and new disks."""

    def __init__(self, scratch, peers, binaries):
        self.scratch, self.peers, self.binaries = scratch, peers, binaries
        self.root = os.path.join(scratch, "root")
        self.cluster = Cluster(peers, os.path.join(scratch, "cluster"), self.root)
        self.driver = self.volumed = self.writers = None
        self.runs = 0

    # Runs.

    def begin(self, name, controllers=True):
        """With new disks, their controller, and who calls it for the API server."""
        self.runs += 1
        self.dir = os.path.join(self.scratch, f"{self.runs}-{name}")
        os.makedirs(self.dir)
        os.makedirs(self.root, 0o750)
        self.driver = Driver(self.peers["pd"], os.path.join(self.dir, "pd"), self.root, NODE)
        tree = os.path.join(self.dir, "tree")
        fill(tree)
        self.driver.add_disks([volume.name for volume in VOLUMES], {"filled": tree, "locked": tree})
        self.driver.start_cloud()
        if controllers:
            self.cluster.start_sidecars(self.driver.cloud_socket)

    def start_node_driver(self):
        self.driver.start_node()
        self.driver.start_registrar()

    def end_node_driver(self):
        self.driver.servers.pop("registrar").end()
        self.driver.servers.pop("node").end(signal.SIGKILL)

    def finish(self):
        """Of a run that has succeeded nothing is left but its root, and what is in that."""
        self.end_agents()
        self.cluster.end_sidecars()
        self.driver.end()
        # The agents' own: both mount their root on itself, and leave it so.
        for place in (os.path.join(self.root, "volumed/keys"), self.root):
            if any(at == place for _, at, *_ in mount_lines(self.root)):
                run("umount", place)
        left = [place for _, place, *_ in mount_lines(self.root)]
        if left:
            raise Failed(f"mounts are left: {left}")
        shutil.rmtree(self.root)

    def end_agents(self):
        if self.writers:
            self.writers.end(signal.SIGKILL)
            self.writers = None
        if self.cluster.kubelet:
            self.cluster.end_kubelet()
        if self.volumed:
            self.volumed.end()
            self.volumed = None

    def end(self):
        """After a failure too: only what this run has made is below its directories."""
        for act in (self.end_agents, self.cluster.end, self.driver.end if self.driver else None):
            try:
                if act:
                    act()
            except (Failed, OSError) as failure:
                say(f"left over: {failure}")
        # A kubelet's own loop devices, over nodes below its root, hold the driver's; without their mounts they have no name.
        for device, behind in loop_devices().items():
            if behind.startswith(self.root + "/"):
                run("losetup", "--detach", device, check=False)
        for place in sorted({place for _, place, *_ in mount_lines(self.scratch)}, reverse=True):
            run("umount", "--recursive", "--lazy", place, check=False)
        if self.driver:
            self.driver.end()

    # Objects.

    def make_volumes(self):
        self.cluster.apply(shared_objects() + [thing for volume in VOLUMES for thing in volume.objects()])
        wait_for("claims bound", lambda: all(claim.get("status", {}).get("phase") == "Bound"
                                             for claim in self.cluster.all("pvc")))

    def make_pod(self, pod):
        self.cluster.kubectl("create", "-f", "-", text=json.dumps(pod))

    def wait_running(self, names, seconds=240):
        def look():
            running = {pod["metadata"]["name"] for pod in self.cluster.all("pods")
                       if pod["status"].get("phase") == "Running" and
                       all(part.get("ready") for part in pod["status"].get("containerStatuses", [{}]))}
            return set(names) <= running
        try:
            wait_for(f"pods {' '.join(names)} running", look, seconds)
        except Failed:
            say(self.cluster.kubectl("get", "pods,pvc,volumeattachments", "-o", "wide", check=False))
            say(self.cluster.kubectl("get", "events", "--sort-by=.lastTimestamp", check=False)[-4000:])
            raise

    def delete_pods(self, names):
        """One after the other, so that two runs have one order."""
        for name in names:
            self.cluster.kubectl("delete", "pod", name, "--wait=true", "--timeout=120s")

    def wait_detached(self):
        wait_for("volumes detached", lambda: not self.cluster.all("volumeattachments") and
                 not self.driver.devices(), 240)

    def wait_answered(self, method):
        """Of each disk."""
        wait_for(f"{method} of each disk", lambda: {call.disk for call in self.driver.calls() if call.method == method and
                                                    call.code == "OK"} == {volume.name for volume in VOLUMES})

    def delete_volumes(self):
        self.cluster.kubectl("delete", "pvc,pv", "--all", "--wait=true", "--timeout=60s")

    def objects(self, *kinds):
        """As manifests: what the API server has, without what only it needs."""
        found = []
        for kind in kinds:
            for thing in self.cluster.all(kind):
                meta = thing["metadata"]
                if meta["name"] == "kube-root-ca.crt" or thing["kind"] == "Secret" and thing["type"] != "Opaque":
                    continue
                kept = ("name", "namespace", "uid", "labels", "annotations")
                thing["metadata"] = {key: meta[key] for key in kept if key in meta}
                if thing["kind"] != "VolumeAttachment":
                    thing.pop("status", None)
                found.append(thing)
        return found


def fill(tree):
    """Files of several owners and modes: what an agent makes of them is compared."""
    os.makedirs(os.path.join(tree, "directory/inner"))
    for name, owner, mode in (("file", 0, 0o644), ("private", 1234, 0o600), ("directory/program", 0, 0o4755),
                              ("directory/inner/file", 1234, 0o640)):
        path = os.path.join(tree, name)
        with open(path, "w") as file:
            file.write(name)
        os.chown(path, owner, owner)
        os.chmod(path, mode)
    os.chmod(os.path.join(tree, "directory/inner"), 0o700)
    os.symlink("file", os.path.join(tree, "link"))


def wait_pods_gone(lab):
    """A kubelet's housekeeping comes later than the end of a pod."""
    wait_for("directories of pods gone", lambda: not os.listdir(os.path.join(lab.root, "pods")))


def expanded(driver):
    done = {call.disk for call in driver.calls() if call.method == "NodeExpandVolume" and call.code == "OK"}
    return set(GROWING) <= done


def measured(driver, since, disks):
    done = {call.disk for call in driver.calls(since) if call.method == "NodeGetVolumeStats" and call.code == "OK"}
    return set(disks) <= done


MOUNTED = [volume.name for volume in VOLUMES if volume.name not in BLOCK]
