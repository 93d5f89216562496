"""The drivers of storage_suite.py, each with what it needs beside the volumed that deploy/kubernetes puts on the node."""

import os

from driver import NAME as DISKS, Driver
from own_central import Central
from own_node import DRIVER, ROOT
from tools import wait_for

POOL_BYTES, TREES_BYTES, CENTRAL_BYTES = 40 << 30, 20 << 30, 40 << 30
# Of drivers whose class deploy/kubernetes does not show; each is named by its driver.
CLASSES = {"subvolume": {"pool": "trees", "backend": "subvolume"}, "directory": {"backend": "directory", "quota": "best-effort"}}
MANAGED_BY = "snapshot.storage.kubernetes.io/managed-by"


def class_of(name, provisioner, parameters):
    return {"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": {"name": name}, "provisioner": provisioner,
            "allowVolumeExpansion": True, "volumeBindingMode": "WaitForFirstConsumer", "parameters": parameters}


class OnNode:
    """The one that is there already."""

    def __init__(self, lab):
        self.lab = lab

    def start(self):
        pass

    def left(self):
        return []

    def end(self):
        pass


class OfAllNodes(OnNode):
    """Another volumed, of csi-profile central: its sidecars attach, grow and modify by its controller, and cut groups."""

    second = None

    def start(self):
        # What cuts groups asks for claims of 1 MiB, whatever the driver says of its sizes, and for restores that are as small; the
        # volumes are of 300 MiB, which csi-provisioner refuses to restore into less.
        self.lab.cluster.apply(change_of_new(
            "claims-of-groups", "", "persistentvolumeclaims", "object.spec.resources.requests['storage'] == '1Mi'",
            '[JSONPatch{op: "replace", path: "/spec/resources/requests/storage", value: "320Mi"}]'))
        self.second = Central(self.lab, CENTRAL_BYTES)
        self.second.start()

    def left(self):
        promised = self.second.agent.promised()
        return self.second.pool.artefacts() + self.second.pool.devices() + ([str(promised)] if promised else [])

    def end(self):
        if self.second:
            self.second.end()


class Disks(OnNode):
    """The persistent disk driver over files and loop devices, with its sidecars as its own deployment has them. Only the
    compute API is not the real one."""

    driver = None
    SIDECARS = {"csi-provisioner": ("--timeout=250s", "--extra-create-metadata", "--default-fstype=ext4",
                                    "--controller-publish-readonly=true"),
                "csi-attacher": ("--timeout=250s",), "csi-resizer": ("--handle-volume-inuse-error=false",),
                "csi-snapshotter": ("--timeout=300s", "--retry-interval-max=60s")}

    def start(self):
        cluster = self.lab.cluster
        self.driver = Driver(self.lab.peers["pd"], os.path.join(self.lab.dir, "pd"), ROOT, cluster.node)
        self.driver.add_disks(())
        self.driver.start_cloud()
        self.driver.start_node()
        self.driver.start_registrar()
        cluster.apply([
            {"apiVersion": "storage.k8s.io/v1", "kind": "CSIDriver", "metadata": {"name": DISKS},
             "spec": {"attachRequired": True, "podInfoOnMount": False}},
            # xfs as with the class of volumed: an ext4 grows in use only for who has CAP_SYS_RESOURCE.
            class_of("disks", DISKS, {"type": "pd-balanced", "csi.storage.k8s.io/fstype": "xfs"}),
            {"apiVersion": "snapshot.storage.k8s.io/v1", "kind": "VolumeSnapshotClass", "metadata": {"name": "disks"},
             "driver": DISKS, "deletionPolicy": "Delete"}])
        for name, words in self.SIDECARS.items():
            cluster.start("pd-" + name, self.lab.peers[name], "--csi-address", self.driver.cloud_socket, "--kubeconfig",
                          cluster.path("admin.kubeconfig"), "--v", "4", *words)
        wait_for("the kubelet has registered the driver", lambda: DISKS in str(cluster.get("csinode", cluster.node)))

    def left(self):
        """Of disks and snapshots the cloud's files."""
        found = [os.path.join(place, name) for kind in ("disks", "snapshots")
                 for place, _, names in os.walk(os.path.join(self.driver.dir, "data", kind)) for name in names]
        return found + list(self.driver.devices())

    def end(self):
        cluster = self.lab.cluster
        for process in [process for process in cluster.processes if process.name.startswith("pd-")]:
            process.end()
            cluster.processes.remove(process)
        if self.driver:
            self.driver.end()


DRIVERS = {"image": OnNode, "subvolume": OnNode, "directory": OnNode, "central": OfAllNodes, "pd": Disks}


def prepare(lab):
    """For all of them, once the first one runs."""
    lab.cluster.apply([class_of("volumed-" + name, DRIVER, words) for name, words in CLASSES.items()] + changes(lab))
    allow_inline_volumes(lab)


def change_of_new(name, group, resource, condition, patch):
    """What the API server does to each object of the kind that is made and that the condition holds for."""
    version = "admissionregistration.k8s.io/v1"
    return [
        {"apiVersion": version, "kind": "MutatingAdmissionPolicy", "metadata": {"name": name},
         "spec": {"matchConstraints": {"resourceRules": [{"apiGroups": [group], "apiVersions": ["v1"],
                                                          "operations": ["CREATE"], "resources": [resource]}]},
                  "matchConditions": [{"name": "it", "expression": condition}],
                  "failurePolicy": "Fail", "reinvocationPolicy": "Never",
                  "mutations": [{"patchType": "JSONPatch", "jsonPatch": {"expression": patch}}]}},
        {"apiVersion": version, "kind": "MutatingAdmissionPolicyBinding", "metadata": {"name": name},
         "spec": {"policyName": name}}]


def changes(lab):
    """A VolumeSnapshotContent that is made by hand has to name the node whose csi-snapshotter is to look for it
    (deploy/kubernetes/README.md); the suite makes some, and knows of no nodes. And it gives the deletion policy of a class of groups to
    the driver too, as a parameter."""
    return change_of_new(
        "contents-by-hand", "snapshot.storage.k8s.io", "volumesnapshotcontents",
        "has(object.spec.source.snapshotHandle) && !has(object.metadata.labels)",
        f'[JSONPatch{{op: "add", path: "/metadata/labels", value: {{"{MANAGED_BY}": "{lab.cluster.node}"}}}}]'
    ) + change_of_new(
        "classes-of-groups", "groupsnapshot.storage.k8s.io", "volumegroupsnapshotclasses",
        "has(object.parameters) && 'deletionPolicy' in object.parameters",
        '[JSONPatch{op: "remove", path: "/parameters/deletionPolicy"}]')


def allow_inline_volumes(lab):
    """As docs/OPERATIONS.md says it; the modes of a CSIDriver cannot be changed."""
    found = lab.cluster.get("csidriver", DRIVER)
    found["metadata"] = {"name": DRIVER}
    found["spec"] |= {"podInfoOnMount": True, "volumeLifecycleModes": ["Persistent", "Ephemeral"]}
    lab.cluster.kubectl("delete", "csidriver", DRIVER)
    lab.cluster.apply([found])
