"""A second CSIDriver on the node: a volumed of csi-profile central, with a pool of its own. The sidecars attach, grow and
modify by its controller, and snapshots are cut in groups."""

import json
import os

from own_life import BIG, BIGGER, SIZE, Life
from own_node import ROOT, Agent, Pool
from own_objects import snapshot_of
from tools import Failed, run, say, wait_for

NAME = "central.volumed.io"
POOL_BYTES = 6 << 30
GROUP = "groupsnapshot.storage.k8s.io/v1"


class Central:
    def __init__(self, lab, pool_bytes=POOL_BYTES):
        self.lab, self.cluster = lab, lab.cluster
        directory = os.path.join(lab.dir, "central")
        os.makedirs(directory)
        self.pool = Pool(directory, pool_bytes)
        self.agent = Agent(lab.binaries, directory, self.pool, lab.cluster, ROOT, NAME,
                           f"csi-driver-name: {NAME}\ncsi-profile: central\n")

    def start(self):
        self.agent.start()
        for name, *words in (("csi-provisioner", "--extra-create-metadata"), ("csi-attacher",), ("csi-resizer",),
                             ("csi-snapshotter", "--feature-gates=CSIVolumeGroupSnapshot=true")):
            self.cluster.start("central-" + name, self.lab.peers[name], "--csi-address", self.agent.socket, "--kubeconfig",
                               self.cluster.path("admin.kubeconfig"), "--v", "4", *words)
        self.cluster.apply(objects())
        wait_for("the kubelet has registered the driver", lambda: NAME in json.dumps(
            self.cluster.get("csinode", self.cluster.node)))

    def end(self):
        for process in [process for process in self.cluster.processes if process.name.startswith("central-")]:
            process.end()
            self.cluster.processes.remove(process)
        self.agent.end()
        self.pool.end()


def objects():
    return [
        {"apiVersion": "storage.k8s.io/v1", "kind": "CSIDriver", "metadata": {"name": NAME},
         "spec": {"attachRequired": True, "fsGroupPolicy": "ReadWriteOnceWithFSType"}},
        {"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": {"name": "central"}, "provisioner": NAME,
         "allowVolumeExpansion": True, "volumeBindingMode": "WaitForFirstConsumer",
         "parameters": {"csi.storage.k8s.io/fstype": "xfs"}},
        {"apiVersion": "storage.k8s.io/v1", "kind": "VolumeAttributesClass", "metadata": {"name": "cached"},
         "driverName": NAME, "parameters": {"directIO": "false"}},
        {"apiVersion": GROUP, "kind": "VolumeGroupSnapshotClass", "metadata": {"name": "central"}, "driver": NAME,
         "deletionPolicy": "Delete"},
        {"apiVersion": "snapshot.storage.k8s.io/v1", "kind": "VolumeSnapshotClass", "metadata": {"name": "central"},
         "driver": NAME, "deletionPolicy": "Delete"}]


def central(lab):
    say("a second driver, of csi-profile central")
    second = Central(lab)
    try:
        second.start()
        life_of(lab, second, Life(lab))
    finally:
        second.end()


def life_of(lab, second, life):
    for name in ("a", "b"):
        lab.claim(name, SIZE, storage_class="central", labels={"group": "one"})
        lab.pod(name, name, f"echo one >/v/file; {BIG}")
        life.runs(name, f"claim {name}, attached, to pod running")
        life.finds(name, "test -s /v/sum && cat /v/file", "one")
    if len(lab.cluster.all("volumeattachments")) != 2:
        raise Failed("the volumes are not attached")
    life.enlarge("a", BIGGER, "claim grown in use by controller and node")
    life.finds("a", "df -k /v | awk 'END {print ($2 > 900 * 1024)}'", "1")
    modify(lab, life, second)
    cut_group(lab, life)
    lab.delete_pods()
    for kind in ("volumegroupsnapshots", "pvc"):
        lab.cluster.kubectl("delete", kind, "--all", "--wait=false")
    life.step("all deleted and detached", lambda: not any(lab.cluster.all(kind) for kind in (
        "pv", "volumesnapshotcontents", "volumegroupsnapshotcontents", "volumeattachments")))
    if second.pool.artefacts() or second.pool.devices() or second.agent.promised():
        raise Failed(f"left: {second.pool.artefacts()} {second.pool.devices()} {second.agent.promised()}")


def modify(lab, life, second):
    """What the class says is read back from the volume's loop device."""
    if flags(second.pool) != ["1", "1"]:
        raise Failed(f"the devices have direct I/O as {flags(second.pool)}")
    lab.cluster.kubectl("patch", "pvc", "a", "--type=merge", "-p", json.dumps(
        {"spec": {"volumeAttributesClassName": "cached"}}))
    life.step("VolumeAttributesClass changed", lambda: lab.cluster.get("pvc", "a")["status"].get(
        "currentVolumeAttributesClassName") == "cached")
    wait_for("one device without direct I/O", lambda: sorted(flags(second.pool)) == ["0", "1"], 20)


def flags(pool):
    return [run("losetup", "--list", "--noheadings", "--output", "DIO", device).strip() for device in pool.devices()]


def cut_group(lab, life):
    lab.cluster.apply([{"apiVersion": GROUP, "kind": "VolumeGroupSnapshot",
                        "metadata": {"name": "both", "namespace": "default"},
                        "spec": {"volumeGroupSnapshotClassName": "central",
                                 "source": {"selector": {"matchLabels": {"group": "one"}}}}}])
    life.step("group of two volumes ready", lambda: (lab.cluster.get("volumegroupsnapshot", "both") or {}).get(
        "status", {}).get("readyToUse"))
    life.step("each of its members ready", lambda: len(members_ready(lab)) == 2)
    of_a = next(thing for thing in members_ready(lab) if thing["spec"]["source"]["persistentVolumeClaimName"] == "a")
    lab.claim("again", BIGGER, storage_class="central", source=snapshot_of(of_a["metadata"]["name"]))
    lab.pod("again", "again")
    life.runs("again", "restored member of a group, attached, to pod running")
    life.is_whole("again", lab.exec("again", "cat /v/sum"))


def members_ready(lab):
    return [thing for thing in lab.cluster.all("volumesnapshots") if thing.get("status", {}).get("readyToUse")]
