"""The objects of the comparison: volumes of every kind that the driver has, and pods that use each in another way."""

from cluster import IMAGE, NODE
from driver import NAME, ZONE, handle_of

CLASS = "disks"
SECRETS = {key: {"name": "disk-secret", "namespace": "default"}
           for key in ("controllerPublishSecretRef", "nodeStageSecretRef", "nodePublishSecretRef", "nodeExpandSecretRef",
                       "controllerExpandSecretRef")}
# Pods with it get the disk as their volume's own group.
GROUP = {"fsGroup": 2000}


class Volume:
    """A disk, its PersistentVolume and its claim; all have its name. fs None: a block volume."""

    def __init__(self, name, fs="xfs", modes=("ReadWriteOnce",), options=(), secrets=False, attributes=None, zone=False,
                 in_tree=False):
        self.name, self.fs, self.modes, self.options = name, fs, list(modes), list(options)
        self.secrets, self.attributes, self.zone, self.in_tree = secrets, attributes, zone, in_tree

    def source(self):
        if self.in_tree:
            return {"gcePersistentDisk": {"pdName": self.name, "fsType": self.fs}}
        csi = {"driver": NAME, "volumeHandle": handle_of(self.name)}
        if self.fs:
            csi["fsType"] = self.fs
        if self.attributes:
            csi["volumeAttributes"] = self.attributes
        return {"csi": csi | (SECRETS if self.secrets else {})}

    def objects(self):
        mode = "Filesystem" if self.fs is not None else "Block"
        size = {"storage": "1Gi"}
        volume = {"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": self.name},
                  "spec": {"capacity": size, "accessModes": self.modes, "volumeMode": mode, "storageClassName": CLASS,
                           "persistentVolumeReclaimPolicy": "Retain",
                           "claimRef": {"namespace": "default", "name": self.name}} | self.source()}
        if self.options:
            volume["spec"]["mountOptions"] = self.options
        if self.in_tree:
            volume["metadata"]["labels"] = {"topology.kubernetes.io/zone": ZONE}
        if self.zone:
            here = {"key": "topology.gke.io/zone", "operator": "In", "values": [ZONE]}
            volume["spec"]["nodeAffinity"] = {"required": {"nodeSelectorTerms": [{"matchExpressions": [here]}]}}
        claim = {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": self.name, "namespace": "default"},
                 "spec": {"accessModes": self.modes, "volumeMode": mode, "storageClassName": CLASS, "volumeName": self.name,
                          "resources": {"requests": size}}}
        return [volume, claim]


VOLUMES = [
    Volume("plain", options=["noatime"], secrets=True, attributes={"storage.kubernetes.io/csiProvisionerIdentity": "it"},
           zone=True),
    Volume("filled", fs="ext4"),
    Volume("shared"),
    Volume("locked", fs="ext4"),
    Volume("parts", fs=""),
    Volume("grows", secrets=True),
    Volume("single", modes=["ReadWriteOncePod"]),
    Volume("old", fs="ext4", in_tree=True),
    Volume("raw", fs=None),
    Volume("rawgrows", fs=None),
]
GROWING = ("grows", "rawgrows")
BLOCK = tuple(volume.name for volume in VOLUMES if volume.fs is None)
READ_ONLY = ("locked",)


def pod(name, volume, security=None, mounts=None, read_only=False, command="sleep 100000"):
    block = volume in BLOCK
    container = {"name": "main", "image": IMAGE, "imagePullPolicy": "Never",
                 "command": ["sh", "-c", f"trap exit TERM; {command} & wait"],
                 "env": [{"name": "POD", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}]}
    if block:
        container["volumeDevices"] = [{"name": "v", "devicePath": "/dev/v"}]
    else:
        container["volumeMounts"] = mounts or [{"name": "v", "mountPath": "/v"}]
    claim = {"claimName": volume} | ({"readOnly": True} if read_only else {})
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": "default"},
            "spec": {"nodeName": NODE, "hostNetwork": True, "automountServiceAccountToken": False,
                     "enableServiceLinks": False, "terminationGracePeriodSeconds": 1,
                     # No pause of the kubelet evicts it.
                     "tolerations": [{"operator": "Exists"}], "securityContext": security or {},
                     "containers": [container], "volumes": [{"name": "v", "persistentVolumeClaim": claim}]}}


def pods(commands=False):
    """In the order in which they come. With commands each container writes to its volume, or reads from it."""
    writes = "i=0; while echo $i >>/v/by-$POD; do i=$((i+1)); sleep 0.02; done" if commands else "sleep 100000"
    reads = "while cat /v/file >/dev/null; do sleep 0.02; done; echo ended" if commands else "sleep 100000"
    parts = [{"name": "v", "mountPath": "/a", "subPath": "one/two"},
             {"name": "v", "mountPath": "/b", "subPathExpr": "of-$(POD)"},
             {"name": "v", "mountPath": "/c", "subPath": "one", "readOnly": True}]
    return [
        pod("plain", "plain", GROUP, command=writes),
        pod("filled", "filled", GROUP, command=writes),
        pod("shared-a", "shared", GROUP, command=writes),
        pod("shared-b", "shared", command=writes),
        pod("locked", "locked", GROUP, read_only=True, command=reads),
        pod("parts", "parts", GROUP, mounts=parts, command=writes.replace("/v/", "/a/")),
        pod("grows", "grows", GROUP | {"fsGroupChangePolicy": "OnRootMismatch"}, command=writes),
        pod("single", "single", command=writes),
        pod("old", "old", command=writes),
        pod("raw", "raw"),
        pod("rawgrows", "rawgrows"),
    ]


def shared_objects():
    return [
        {"apiVersion": "storage.k8s.io/v1", "kind": "CSIDriver", "metadata": {"name": NAME},
         "spec": {"attachRequired": True, "podInfoOnMount": True, "fsGroupPolicy": "ReadWriteOnceWithFSType",
                  "tokenRequests": [{"audience": "interop", "expirationSeconds": 3600}]}},
        {"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": {"name": CLASS}, "provisioner": NAME,
         "reclaimPolicy": "Retain", "volumeBindingMode": "Immediate", "allowVolumeExpansion": True},
        {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "disk-secret", "namespace": "default"},
         "stringData": {"user": "interop", "key": "known to a test"}},
    ]


def grown(claim):
    return claim | {"spec": claim["spec"] | {"resources": {"requests": {"storage": "2Gi"}}}}
