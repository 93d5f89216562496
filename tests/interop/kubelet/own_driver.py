"""scripts/interop own-driver runs this: volumed as the CSI driver of a real kubelet, put there with deploy/kubernetes as it
is. What a claim can go through is in own_life.py, the same over the death of volumed and the kubelet in own_kills.py,
what takes two nodes in own_nodes.py, what takes a controller in own_central.py, and volumed in a container in
own_daemonset.py."""

import ctypes
import json
import os
import shutil
import subprocess
import time

from cluster import IMAGE, Cluster
from own_central import central
from own_kills import lives_over_kills, over_the_kubelets_death
from own_life import Life, many_at_once, refused_for_want_of_room
from own_node import DEPLOY, DRIVER, HERE, ROOT, Node, images_of
from own_nodes import two_nodes
from own_objects import claim_of, pod_of
from tools import Failed, run, say, wait_for
from tree import mount_lines

SERVICE_ADDRESS = "10.96.0.1"
POOL_BYTES = 12 << 30
CLONE_NEWNS = 0x20000


class OwnDriver:
    def __init__(self, scratch, peers, binaries, node=Node, pool_bytes=POOL_BYTES):
        if os.path.exists(ROOT) and os.listdir(ROOT):
            raise Failed(f"{ROOT} is in use: this needs a machine without a kubelet")
        take_mounts_apart()
        self.dir, self.peers, self.binaries, self.driver = scratch, peers, binaries, DRIVER
        self.cluster = Cluster(peers, os.path.join(scratch, "cluster"), ROOT)
        self.nodes = [node(self.cluster, binaries, scratch, pool_bytes)]
        self.agent = self.nodes[0].agent

    # The cluster, and volumed in it.

    def start(self):
        self.cluster.start_control_plane()
        self.cluster.start_scheduler()
        run("ip", "address", "add", SERVICE_ADDRESS + "/32", "dev", "lo", check=False)
        self.cluster.start("forward", "python3", "-B", os.path.join(HERE, "forward.py"), SERVICE_ADDRESS,
                           str(self.cluster.api_port))
        self.apply_snapshot_kinds()
        self.cluster.start("snapshot-controller", self.peers["snapshot-controller"], "--kubeconfig",
                           self.cluster.path("admin.kubeconfig"), "--enable-distributed-snapshotting",
                           "--feature-gates=CSIVolumeGroupSnapshot=true", "--v=4")
        self.nodes[0].start()
        for name in ("csidriver", "storageclass", "volumesnapshotclass", "rbac", "sidecars"):
            self.cluster.kubectl("apply", "-f", os.path.join(DEPLOY, name + ".yaml"))
        self.wait_for_node(self.nodes[0])

    def wait_for_node(self, node):
        self.step("the kubelet has registered the driver", lambda: self.topology_keys(node))
        self.step("the sidecars run", self.sidecars_run, 180)
        self.step("the node's capacity is published", lambda: self.capacity(node))

    def apply_snapshot_kinds(self):
        """All of them: without those of groups the snapshot controller waits half a minute."""
        module = "github.com/kubernetes-csi/external-snapshotter/client/v8"
        subprocess.run(("go", "mod", "download", module), cwd=os.path.join(HERE, "../sidecars"), check=True)
        found = subprocess.run(("go", "list", "-m", "-f", "{{.Dir}}", module), cwd=os.path.join(HERE, "../sidecars"),
                               capture_output=True, text=True, check=True).stdout.strip()
        crd = os.path.join(found, "config/crd")
        for name in sorted(os.listdir(crd)):
            if "snapshot" in name:
                self.cluster.kubectl("apply", "-f", os.path.join(crd, name))
        self.cluster.kubectl("wait", "--for=condition=Established", "--timeout=30s",
                             "crd/volumesnapshots.snapshot.storage.k8s.io",
                             "crd/volumesnapshotcontents.snapshot.storage.k8s.io",
                             "crd/volumesnapshotclasses.snapshot.storage.k8s.io")

    def topology_keys(self, node):
        found = self.cluster.get("csinode", node.name)
        for driver in (found or {}).get("spec", {}).get("drivers") or []:
            if driver["name"] == DRIVER:
                return driver["topologyKeys"]
        return None

    def sidecars_run(self):
        pods = json.loads(self.cluster.kubectl("get", "pods", "-n", "kube-system", "-l", "app=volumed-csi", "-o",
                                             "json"))["items"]
        return len(pods) == len(self.nodes) and all(part.get("ready") for pod in pods
                                  for part in pod["status"].get("containerStatuses", [{}]))

    def capacity(self, node):
        found = json.loads(self.cluster.kubectl("get", "csistoragecapacities", "-n", "kube-system", "-o", "json"))["items"]
        return any(part["storageClassName"] == "volumed" and part.get("capacity", "0") != "0" and
                   node.name in part["nodeTopology"]["matchLabels"].values() for part in found)

    def end(self):
        try:
            for node in reversed(self.nodes):
                node.end()
        finally:
            run("ip", "address", "del", SERVICE_ADDRESS + "/32", "dev", "lo", check=False)
            if not list(mount_lines(ROOT)):
                shutil.rmtree(ROOT, ignore_errors=True)

    # Objects.

    def claim(self, name, size, **more):
        self.cluster.apply([claim_of(name, size, **more)])

    def pod(self, name, claim, command="true", node=None, **more):
        self.cluster.apply([pod_of(name, claim, command, node=node.name if node else None, **more)])

    def delete_pods(self, *names):
        self.cluster.kubectl("delete", "pods", *(names or ["--all"]), "--wait=true", "--timeout=180s")

    def is_running(self, name):
        pod = self.cluster.get("pod", name)
        return pod is not None and pod["status"].get("phase") == "Running" and \
            all(part.get("ready") for part in pod["status"].get("containerStatuses", [{}]))

    def exec(self, pod, command, check=True):
        """By the runtime, which needs no certificate of the kubelet's."""
        thing = self.cluster.get("pod", pod)
        container = thing["status"]["containerStatuses"][0]["containerID"].split("//")[1]
        return run(*self.node_of(thing).cluster.ctr, "tasks", "exec", "--exec-id", f"x{time.monotonic_ns()}", container,
                   "sh", "-c", command, check=check).strip()

    def node_of(self, pod):
        return next(node for node in self.nodes if node.name == pod["spec"].get("nodeName"))

    def step(self, what, condition, seconds=90):
        """Says, and returns, how many milliseconds it took."""
        begun = time.monotonic()
        try:
            wait_for(what, condition, seconds)
        except Failed:
            self.show()
            raise
        took = round((time.monotonic() - begun) * 1000)
        say(f"  {what}: {took} ms")
        return took

    def show(self):
        say(self.cluster.kubectl("get", "pods,pvc,pv,csistoragecapacities", "-A", "-o", "wide", check=False))
        say(self.cluster.kubectl("get", "volumesnapshots,volumesnapshotcontents", "-A", "-o", "yaml", check=False)[-3000:])
        say(self.cluster.kubectl("get", "events", "-A", "--sort-by=.lastTimestamp", check=False)[-5000:])

    # What may be left when all claims are gone: nothing.

    def left(self):
        found = [f"{node.name}: {thing}" for node in self.nodes for thing in node.left()]
        for kind in ("pv", "volumesnapshotcontents", "volumeattachments"):
            found += [f"{kind}/{thing['metadata']['name']}" for thing in self.cluster.all(kind)]
        return found

    def nothing_left(self, seconds=60):
        try:
            self.step("nothing left on the node, in the pool, in the API", lambda: not self.left(), seconds)
        except Failed as failure:
            raise Failed(f"{failure}: {self.left()}") from None


def take_mounts_apart():
    """Into a mount namespace of this process and its children. A program that takes a copy of the machine's mounts, as every
    container does for a moment and a test in a namespace of its own for longer, would have devices of volumes in use."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(CLONE_NEWNS) != 0:
        raise Failed(f"unshare: {os.strerror(ctypes.get_errno())}")
    run("mount", "--make-rprivate", "/")
    run("mount", "--make-rshared", "/")


def own_driver(scratch, peers, binaries, rounds):
    lab = OwnDriver(scratch, peers, binaries)
    try:
        lab.start()
        the_example(lab)
        times = []
        for number in range(rounds):
            say(f"a claim's life, {number + 1} of {rounds}")
            times.append(Life(lab).whole())
        refused_for_want_of_room(lab)
        many_at_once(lab)
        over_the_kubelets_death(lab)
        lives_over_kills(lab)
        central(lab)
        two_nodes(lab)
        say_times(times)
    finally:
        lab.end()


def the_example(lab):
    """As the page says it, but that its image comes from no registry here, and that pods have no network of their own."""
    say("the example of deploy/kubernetes")
    image, = images_of("example.yaml")
    run(*lab.nodes[0].cluster.ctr, "images", "tag", IMAGE, "docker.io/library/" + image)
    example = os.path.join(lab.dir, "example.yaml")
    with open(os.path.join(DEPLOY, "example.yaml")) as shipped, open(example, "w") as file:
        file.write(shipped.read().replace("  containers:", "  hostNetwork: true\n  containers:"))
    lab.cluster.kubectl("apply", "-f", example)
    lab.step("the example's pod runs", lambda: lab.is_running("volumed-example"))
    wait_for("what it has written", lambda: lab.exec("volumed-example", "cat /data/hello", check=False) == "hello", 20)
    lab.cluster.kubectl("delete", "-f", example, "--timeout=60s")
    lab.nothing_left()


def say_times(times):
    say("milliseconds of each round")
    for what in times[0]:
        say(f"  {what}: {' '.join(str(round_[what]) for round_ in times)}")
