"""What may differ between a kubelet's root, mounts and calls and ours, each with whose it is and why."""

from compare import Allowed


def tree():
    return [
        Allowed("kubelet's", r"^only kubelet: entries (actuated_pods_state|allocated_pods_state|checkpoints|cpu_manager_state|"
                r"dra_manager_state|image_manager|memory_manager_state|pod-resources)(/\S*)? ",
                "of its containers, images, processors and memory: no volume's"),
        Allowed("kubelet's", r"^only kubelet: entries pods/[^/ ]+/(containers|etc-hosts)(/\S*)? ", "of its containers"),
        Allowed("ours", r"^only ours: entries volumed(/\S*)? ", "records, keys and tokens; a kubelet keeps none"),
    ]


def mounts():
    return [Allowed("ours", r"^only ours: mounts volumed/keys ", "pages that workers share with their agent, in memory alone")]


def calls():
    published, mapped = (rf"asks: NodeGetVolumeStats .*/volumeDevices/{place}" for place in ("publish/", r"\w+/dev/"))
    return [
        Allowed("ours", r"^only kubelet: .*NodePublishVolume .*serviceAccount\.tokens\.interop\.kubernetes\.io\."
                r"(node\.(name|uid)|serviceaccount\.uid) ",
                "tokens that the node issues itself name the pod and its account: neither node nor account has a uid there"),
        Allowed("ours", "^only ours " + published, "a block volume is measured where the driver has published it"),
        Allowed("kubelet's", "^only kubelet " + mapped, "a block volume is measured at a bind of its own"),
        Allowed("kubelet's", r"^repeated by kubelet: ControllerPublishVolume OK",
                "csi-attacher attaches again before it has seen its own change of the VolumeAttachment"),
    ]
