"""A claim's whole life with volumed as the kubelet's CSI driver: each step is waited for, timed, and what pods find in
their volumes is compared by checksum."""

import json

from own_objects import claim_of, pod_of, snapshot_of
from tools import Failed, say, wait_for

SIZE, BIGGER = "512Mi", "1Gi"
BIG = "head -c 33554432 /dev/urandom >/v/big; sync; sha256sum /v/big | cut -c1-64 >/v/sum; sync"
CLASSES = ("ext4", "btrfs")


class Life:
    def __init__(self, lab, seconds=90):
        self.lab, self.seconds, self.times = lab, seconds, {}

    def step(self, what, condition):
        """Times are of lives that are whole, so each word is said once in a life."""
        self.times[what] = self.lab.step(what, condition, self.seconds)

    def runs(self, pod, what):
        self.step(what, lambda: self.lab.is_running(pod))

    def finds(self, pod, command, wanted):
        """A command in a pod. A shell may be there before what it is to find."""
        found = []

        def look():
            found[:] = [self.lab.exec(pod, command, check=False)]
            return found[0] == wanted
        try:
            wait_for(f"{command} in {pod}", look, 20)
        except Failed:
            raise Failed(f"{command} in {pod}: {found[0]!r} instead of {wanted!r}") from None

    def is_whole(self, pod, wanted):
        """The file that the writer has made, read from the volume and not from memory alone."""
        self.finds(pod, "sha256sum /v/big | cut -c1-64", wanted)

    def whole(self):
        self.write()
        self.snapshot()
        self.grow()
        self.clone()
        self.raw()
        self.owners_and_places()
        self.one_pod_only()
        self.of_a_pod()
        self.other_filesystems()
        self.grow_ext()
        self.delete()
        return self.times

    def write(self):
        lab = self.lab
        lab.claim("data", SIZE)
        lab.pod("writer", "data", f"echo one >/v/file; {BIG}")
        self.runs("writer", "claim to pod running")
        self.finds("writer", "test -s /v/sum && cat /v/file", "one")
        self.sum = lab.exec("writer", "cat /v/sum")
        self.is_whole("writer", self.sum)
        lab.delete_pods("writer")
        lab.pod("writer", "data")
        self.runs("writer", "the volume again to pod running")
        self.is_whole("writer", self.sum)

        self.step("the kubelet measures the volume", self.is_measured)

    def is_measured(self):
        try:
            return self.lab.agent.answered("NodeGetVolumeStats")
        except OSError:
            return False  # volumed was killed just now

    def snapshot(self):
        lab = self.lab
        self.cut("snap", "data")
        lab.exec("writer", f"echo two >/v/file; {BIG}")
        self.second = lab.exec("writer", "cat /v/sum")
        lab.claim("restored", SIZE, source=snapshot_of("snap"))
        lab.pod("reader", "restored")
        self.runs("reader", "restore to pod running")
        self.finds("reader", "cat /v/file", "one")
        self.is_whole("reader", self.sum)

    def cut(self, name, claim, what="snapshot ready"):
        self.lab.cluster.apply([{"apiVersion": "snapshot.storage.k8s.io/v1", "kind": "VolumeSnapshot",
                                 "metadata": {"name": name, "namespace": "default"},
                                 "spec": {"volumeSnapshotClassName": "volumed",
                                          "source": {"persistentVolumeClaimName": claim}}}])
        self.step(what, lambda: (self.lab.cluster.get("volumesnapshot", name) or {}).get("status", {}).get("readyToUse"))

    def grow(self):
        self.enlarge("data", BIGGER, "claim grown in use")
        kib = int(self.lab.exec("writer", "df -k /v | tail -n 1 | awk '{print $2}'"))
        if kib < 900 << 10:
            raise Failed(f"the filesystem has {kib} KiB")
        self.is_whole("writer", self.second)

    def enlarge(self, claim, size, what):
        self.ask_for(claim, size)
        self.step(what, lambda: self.has(claim, size))

    def ask_for(self, claim, size):
        self.lab.cluster.kubectl("patch", "pvc", claim, "--type=merge", "-p",
                                 json.dumps({"spec": {"resources": {"requests": {"storage": size}}}}))

    def has(self, claim, size):
        return self.lab.cluster.get("pvc", claim)["status"].get("capacity", {}).get("storage") == size

    def clone(self):
        self.lab.claim("copy", BIGGER, source={"kind": "PersistentVolumeClaim", "name": "data"})
        self.lab.pod("copier", "copy")
        self.runs("copier", "clone to pod running")
        self.finds("copier", "cat /v/file", "two")
        self.is_whole("copier", self.second)

    def raw(self):
        lab, read = self.lab, "dd if=/dev/v bs=1M count=8 2>/dev/null | sha256sum | cut -c1-64"
        lab.claim("raw", "64Mi", mode="Block")
        lab.pod("blocker", "raw", "head -c 8388608 /dev/urandom >/made; dd if=/made of=/dev/v bs=1M conv=fsync; "
                "sha256sum /made | cut -c1-64 >/sum", block=True)
        self.runs("blocker", "raw block to pod running")
        wait_for("the block volume is written", lambda: len(lab.exec("blocker", "cat /sum", check=False)) == 64, 20)
        wanted = lab.exec("blocker", "cat /sum")
        self.finds("blocker", read, wanted)
        self.cut("rawsnap", "raw", "snapshot of raw block ready")
        self.enlarge("raw", "128Mi", "raw block grown in use")
        self.finds("blocker", "blockdev --getsize64 /dev/v", str(128 << 20))
        lab.claim("rawcopy", "64Mi", mode="Block", source=snapshot_of("rawsnap"))
        lab.pod("blockreader", "rawcopy", block=True)
        self.runs("blockreader", "restored raw block to pod running")
        self.finds("blockreader", read, wanted)

    def owners_and_places(self):
        """fsGroup, readOnly and subPath, of volumes that other pods have too."""
        lab = self.lab
        lab.claim("grouped", SIZE)
        lab.pod("grouped", "grouped", "touch /v/mine", security={"runAsUser": 1000, "runAsGroup": 1000, "fsGroup": 2000})
        self.runs("grouped", "fsGroup to pod running")
        self.finds("grouped", "stat -c '%u %g' /v/mine && stat -c %g /v", "1000 2000\n2000")
        lab.pod("readonly", "data", read_only=True)
        self.runs("readonly", "readOnly beside the writer to pod running")
        self.is_whole("readonly", self.second)
        self.finds("readonly", "touch /v/no 2>&1", "touch: /v/no: Read-only file system")
        self.finds("writer", "touch /v/yes && ls /v/yes", "/v/yes")
        lab.pod("subpath", "data", "echo below >/sub/file", mounts=[
            {"mountPath": "/sub", "subPath": "a/b"}, {"mountPath": "/v"}, {"mountPath": "/one", "subPath": "file"}])
        self.runs("subpath", "subPath to pod running")
        self.finds("subpath", "cat /v/a/b/file /one", "below\ntwo")

    def one_pod_only(self):
        lab = self.lab
        lab.claim("single", SIZE, access="ReadWriteOncePod")
        lab.pod("single", "single", "echo mine >/v/file; sync")
        self.runs("single", "ReadWriteOncePod to pod running")
        lab.pod("other", "single")
        wait_for("the second pod is refused", lambda: "ReadWriteOncePod" in json.dumps(
            (lab.cluster.get("pod", "other") or {}).get("status", {}).get("conditions", [])), 20)
        lab.delete_pods("single")
        self.runs("other", "ReadWriteOncePod, the second pod after the first one")
        self.finds("other", "cat /v/file", "mine")

    def of_a_pod(self):
        """A claim that comes and goes with its pod, and one that no node can have."""
        lab = self.lab
        lab.pod("scratch", None, "echo mine >/v/file", source={"ephemeral": {"volumeClaimTemplate": {"spec": {
            "accessModes": ["ReadWriteOnce"], "storageClassName": "volumed", "resources": {"requests": {"storage": SIZE}}}}}})
        self.runs("scratch", "generic ephemeral volume to pod running")
        self.finds("scratch", "cat /v/file", "mine")
        lab.delete_pods("scratch")
        self.step("its claim gone with the pod", lambda: lab.cluster.get("pvc", "scratch-v") is None)
        lab.claim("shared", SIZE, access="ReadWriteMany")
        lab.pod("sharer", "shared")
        self.step("ReadWriteMany refused", lambda: "is for several" in json.dumps(
            [event["message"] for event in lab.cluster.all("events") if event["involvedObject"]["name"] == "shared"]))
        lab.delete_pods("sharer")

    def other_filesystems(self):
        for kind in CLASSES:
            self.lab.cluster.apply([{
                "apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": {"name": "volumed-" + kind},
                "provisioner": self.lab.driver, "allowVolumeExpansion": True, "volumeBindingMode": "WaitForFirstConsumer",
                "parameters": {"csi.storage.k8s.io/fstype": kind}}])
            self.lab.claim(kind, SIZE, storage_class="volumed-" + kind)
            self.lab.pod(kind, kind, BIG)
            self.runs(kind, f"{kind} to pod running")
            self.finds(kind, "grep ' /v ' /proc/mounts | cut -d' ' -f3", kind)
            wait_for(f"{kind} is written", lambda: len(self.lab.exec(kind, "cat /v/sum", check=False)) == 64, 20)
            self.is_whole(kind, self.lab.exec(kind, "cat /v/sum"))

    def grow_ext(self):
        """An ext4 grows in use if volumed has CAP_SYS_RESOURCE, and with its next pod if not."""
        lab, wanted = self.lab, self.lab.exec("ext4", "cat /v/sum")
        before = lab.agent.refused("CAP_SYS_RESOURCE")
        self.ask_for("ext4", BIGGER)
        # A kubelet that is refused so asks no more while the volume is in use, and does not always say so in the claim.
        wait_for("ext4 has grown or cannot in use", lambda: self.has("ext4", BIGGER) or
                 lab.agent.refused("CAP_SYS_RESOURCE") > before, self.seconds)
        lab.delete_pods("ext4")
        lab.pod("ext4", "ext4")
        self.runs("ext4", "ext4 that has grown to pod running")
        self.step("claim with ext4 grown", lambda: self.has("ext4", BIGGER))
        self.finds("ext4", "df -k /v | awk 'END {print ($2 > 900 * 1024)}'", "1")
        self.is_whole("ext4", wanted)

    def delete(self):
        lab = self.lab
        lab.delete_pods()
        lab.cluster.kubectl("delete", "volumesnapshots", "--all", "--wait=false")
        lab.cluster.kubectl("delete", "pvc", "--all", "--wait=false")
        self.step("all deleted", lambda: not lab.cluster.all("pv") and not lab.cluster.all("volumesnapshotcontents"))
        lab.nothing_left(self.seconds)


def refused_for_want_of_room(lab):
    """The scheduler goes by what the node publishes: a claim that no node can hold has no node, and no volume is tried."""
    say("a claim that is too large")
    lab.claim("huge", "100Ti")
    lab.pod("huge", "huge")
    lab.step("the scheduler finds no room", lambda: "did not have enough free storage" in json.dumps(
        (lab.cluster.get("pod", "huge") or {}).get("status", {}).get("conditions", [])))
    lab.delete_pods("huge")
    lab.cluster.kubectl("delete", "pvc", "huge")
    lab.nothing_left()


def many_at_once(lab, count=20):
    """Claims and their pods, all told of together."""
    say(f"{count} claims and pods at once")
    names = [f"many-{number}" for number in range(count)]
    lab.cluster.apply([claim_of(name, "320Mi") for name in names] +
                      [pod_of(name, name, "echo one >/v/file") for name in names])
    lab.step("the first of them runs", lambda: any(running(lab, names)), 300)
    lab.step("all of them run", lambda: all(running(lab, names)), 300)
    lab.delete_pods()
    lab.cluster.kubectl("delete", "pvc", "--all", "--wait=false")
    lab.nothing_left(300)


def running(lab, names):
    phases = {pod["metadata"]["name"]: pod["status"].get("phase") for pod in lab.cluster.all("pods")}
    return [phases.get(name) == "Running" for name in names]
