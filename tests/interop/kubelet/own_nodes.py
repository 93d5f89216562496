"""Two nodes on one machine, each with a pool of its own: where claims, snapshots and clones come to lie."""

import json
import os

from cluster import Cluster
from own_life import BIG, SIZE, Life
from own_node import ROOT, Node
from own_objects import snapshot_of
from tools import Failed, Process, say, wait_for
from tree import mount_lines

SMALL_POOL = 4 << 30
TOO_LARGE_FOR_IT = "5Gi"
# The provisioner of the node that was chosen has to give a claim back, and the scheduler may choose that node again.
PATIENCE = 300


class SecondNode(Node):
    """In a mount namespace in which /var/lib/kubelet is another directory."""

    def __init__(self, lab):
        first, directory = lab.cluster, os.path.join(lab.dir, "second")
        os.makedirs(directory)
        cluster = Cluster(first.peers, os.path.join(directory, "cluster"), ROOT, "it-node2", "10.245.0.2")
        cluster.api_port, cluster.pki = first.api_port, first.pki
        cluster.make_node_keys()
        super().__init__(cluster, lab.binaries, directory, SMALL_POOL)
        self.kubelets = self.agent.kubelets = os.path.join(directory, "kubelet")
        self.agent.socket = self.agent.socket.replace(ROOT, self.kubelets)
        os.makedirs(self.kubelets, 0o750)
        self.space = Process(directory, "space", "unshare", "--mount", "--propagation", "private", "sh", "-c",
                             f"mount --bind {self.kubelets} {ROOT} && mount --make-shared {ROOT} && exec sleep infinity")
        self.space.ready(lambda: any(place == ROOT and inner.endswith("/second/kubelet") for _, place, inner, *_ in
                                     self.mounts()))
        cluster.inside = ("nsenter", f"--mount=/proc/{self.space.child.pid}/ns/mnt", "--wd=/")

    def mounts(self):
        return mount_lines(ROOT, self.space.child.pid)

    def end_mounts(self):
        """They go with the namespace."""
        self.space.end()


def two_nodes(lab):
    say("a second node")
    second = SecondNode(lab)
    lab.nodes.append(second)
    second.start()
    lab.wait_for_node(second)
    life = Life(lab, PATIENCE)
    lab.claim("large", TOO_LARGE_FOR_IT)
    lab.pod("large", "large")
    life.runs("large", "a claim that one node alone has room for, to pod running")
    is_on(lab, "large", lab.nodes[0])
    after_a_wrong_choice(lab, life, "full", second, lab.nodes[0], size=TOO_LARGE_FOR_IT)
    lab.delete_pods()
    lab.cluster.kubectl("delete", "pvc", "--all", "--wait=false")
    lab.claim("data", SIZE)
    lab.pod("writer", "data", f"echo one >/v/file; {BIG}", node=second)
    life.runs("writer", "a claim on the second node to pod running")
    life.finds("writer", "test -s /v/sum && cat /v/file", "one")
    wanted = lab.exec("writer", "cat /v/sum")
    lab.delete_pods("writer")
    lab.pod("writer", "data")
    life.runs("writer", "the pod again, and nobody says where")
    is_on(lab, "writer", second)
    life.cut("snap", "data")
    for name, source in (("copy", {"kind": "PersistentVolumeClaim", "name": "data"}),
                         ("restored", snapshot_of("snap"))):
        after_a_wrong_choice(lab, life, name, lab.nodes[0], second, source=source)
        life.is_whole(name, wanted)
    life.delete()


def after_a_wrong_choice(lab, life, name, wrong, right, size=SIZE, source=None):
    """A node without room, or without the source, is written down for the provisioners, as the scheduler does: it gives the
    claim back, so that another one is chosen. Of room the scheduler knows; where a source is it does not, and may choose the
    same node for ever: the pod says it."""
    lab.claim(name, size, source=source, chosen=wrong.name)
    wait_for(f"{wrong.name} gives {name} back", lambda: "ResourceExhausted" in refusals(lab, name), PATIENCE)
    lab.pod(name, name, node=right if source else None)
    life.runs(name, f"{name}, after a wrong choice of its node, to pod running")
    is_on(lab, name, right)


def refusals(lab, claim):
    return json.dumps([event["message"] for event in lab.cluster.all("events")
                       if event["involvedObject"]["name"] == claim and event["reason"] == "ProvisioningFailed"])


def is_on(lab, pod, node):
    name = lab.cluster.get("pod", pod)["spec"]["nodeName"]
    if name != node.name:
        raise Failed(f"pod {pod} is on {name} instead of {node.name}")
