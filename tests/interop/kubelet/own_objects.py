"""Claims and pods of own_driver.py, as the API server gets them."""

from cluster import IMAGE


def claim_of(name, size, mode="Filesystem", source=None, access="ReadWriteOnce", storage_class="volumed", chosen=None,
             labels=None):
    """CHOSEN: the node that a scheduler has chosen already."""
    spec = {"accessModes": [access], "volumeMode": mode, "storageClassName": storage_class,
            "resources": {"requests": {"storage": size}}}
    if source:
        spec["dataSource"] = source
    annotations = {"volume.kubernetes.io/selected-node": chosen} if chosen else {}
    return {"apiVersion": "v1", "kind": "PersistentVolumeClaim",
            "metadata": {"name": name, "namespace": "default", "annotations": annotations, "labels": labels or {}},
            "spec": spec}


def pod_of(name, claim, command="true", block=False, read_only=False, mounts=None, security=None, node=None, source=None):
    """SOURCE: of a volume that is no claim's."""
    container = {"name": "main", "image": IMAGE, "imagePullPolicy": "Never",
                 "command": ["sh", "-c", f"trap exit TERM; {command}; sleep 100000 & wait"]}
    if block:
        container["volumeDevices"] = [{"name": "v", "devicePath": "/dev/v"}]
    else:
        container["volumeMounts"] = [{"name": "v", **mount} for mount in mounts or [{"mountPath": "/v"}]]
    volume = source or {"persistentVolumeClaim": {"claimName": claim, "readOnly": read_only}}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": "default"},
            "spec": {"hostNetwork": True, "automountServiceAccountToken": False, "terminationGracePeriodSeconds": 1,
                     "containers": [container], "securityContext": security or {},
                     "nodeSelector": {"kubernetes.io/hostname": node} if node else {},
                     "volumes": [{"name": "v", **volume}]}}


def snapshot_of(name):
    """As the source of a claim."""
    return {"apiGroup": "snapshot.storage.k8s.io", "kind": "VolumeSnapshot", "name": name}
