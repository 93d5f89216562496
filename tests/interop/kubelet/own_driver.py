"""scripts/interop own-driver runs this: volumed as the CSI driver of a real kubelet, put there with deploy/kubernetes as it
is. A claim's whole life, with the milliseconds of each step: provisioned, written, snapshotted, restored, grown in use,
cloned, raw, deleted; and again while volumed is killed."""

import json
import os
import shutil
import signal
import subprocess
import time

from cluster import IMAGE, NODE, Cluster
from driver import loop_devices
from tools import Failed, Process, listens, run, say, wait_for
from tree import mount_lines

DRIVER = "pool.volumed.io"
ROOT = "/var/lib/kubelet"
HERE = os.path.dirname(os.path.abspath(__file__))
DEPLOY = os.path.join(HERE, "../../../deploy/kubernetes")
SERVICE_ADDRESS = "10.96.0.1"
SIZE, BIGGER = "512Mi", "1Gi"
POOL_BYTES = 12 << 30


class Pool:
    """A filesystem with room for the volumes, in a sparse file."""

    def __init__(self, directory):
        self.image, self.place = os.path.join(directory, "pool.img"), os.path.join(directory, "pool")
        with open(self.image, "wb") as file:
            file.truncate(POOL_BYTES)
        run("mkfs.xfs", "-q", "-m", "reflink=1", self.image)
        os.makedirs(self.place)
        run("mount", "-o", "loop", self.image, self.place)

    def volumes(self):
        return sorted(os.listdir(os.path.join(self.place, "volumes")))

    def cuts(self):
        path = os.path.join(self.place, "cuts")
        return sorted(os.listdir(path)) if os.path.exists(path) else []

    def end(self):
        for device, image in loop_devices().items():
            if image.startswith(self.place + "/"):
                run("losetup", "--detach", device, check=False)
        run("umount", self.place, check=False)


class Agent:
    """The service of the host, with the configuration that deploy/kubernetes shows but for the pool's place."""

    def __init__(self, binaries, directory, pool):
        self.binary, self.dir, self.process = binaries["volumed"], directory, None
        self.socket = f"{ROOT}/plugins/{DRIVER}/csi.sock"
        with open(os.path.join(DEPLOY, "config.yaml")) as file:
            config = file.read().replace("/srv/volumed", pool.place)
        config += f"node-name: {NODE}\nroot: {directory}/volumed\nsocket: {directory}/volumed.sock\nsocket-group: root\n" \
                  "metrics-address: 127.0.0.1:0\n"
        self.config = os.path.join(directory, "config.yaml")
        with open(self.config, "w") as file:
            file.write(config)
        for path in (os.path.dirname(self.socket), ROOT + "/plugins_registry", directory + "/volumed"):
            os.makedirs(path, 0o750, exist_ok=True)

    def start(self):
        self.process = Process(self.dir, "volumed", self.binary, "run", "--config", self.config)
        self.process.ready(lambda: listens(self.socket))

    def end(self, how=signal.SIGTERM):
        if self.process:
            self.process.end(how)
            self.process = None


class OwnDriver:
    def __init__(self, scratch, peers, binaries):
        if os.path.exists(ROOT) and os.listdir(ROOT):
            raise Failed(f"{ROOT} is in use: this needs a machine without a kubelet")
        self.dir, self.peers = scratch, peers
        self.cluster = Cluster(peers, os.path.join(scratch, "cluster"), ROOT)
        self.pool = Pool(scratch)
        self.agent = Agent(binaries, scratch, self.pool)

    # The cluster, and volumed in it.

    def start(self):
        self.cluster.start_control_plane()
        self.cluster.start_scheduler()
        self.cluster.start_containerd()
        run("ip", "address", "add", SERVICE_ADDRESS + "/32", "dev", "lo", check=False)
        self.cluster.start("forward", "python3", "-B", os.path.join(HERE, "forward.py"), SERVICE_ADDRESS,
                           str(self.cluster.api_port))
        self.apply_snapshot_kinds()
        self.cluster.start("snapshot-controller", self.peers["snapshot-controller"], "--kubeconfig",
                           self.cluster.path("admin.kubeconfig"), "--enable-distributed-snapshotting", "--v=4")
        os.makedirs(ROOT, 0o750, exist_ok=True)
        self.agent.start()
        self.cluster.start_kubelet()
        self.import_images()
        for name in ("csidriver", "storageclass", "rbac", "sidecars"):
            self.cluster.kubectl("apply", "-f", os.path.join(DEPLOY, name + ".yaml"))
        wait_for("the driver is registered", lambda: self.topology_key() is not None)
        wait_for("the sidecars run", self.sidecars_run, 180)

    def apply_snapshot_kinds(self):
        """All of them: without those of groups the snapshot controller waits half a minute."""
        module = "github.com/kubernetes-csi/external-snapshotter/client/v8"
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

    def import_images(self):
        """Under just the names that the manifest has; there is no registry."""
        with open(os.path.join(DEPLOY, "sidecars.yaml")) as file:
            names = [line.split()[-1] for line in file if line.strip().startswith("image:")]
        for name in names:
            program = name.rsplit("/", 1)[-1].split(":")[0]
            tar = self.cluster.path(program + ".tar")
            run(os.path.join(HERE, "image.sh"), tar, name, self.peers[program])
            run(*self.cluster.ctr, "images", "import", tar)
            os.unlink(tar)

    def topology_key(self):
        node = self.cluster.get("csinode", NODE)
        for driver in (node or {}).get("spec", {}).get("drivers") or []:
            if driver["name"] == DRIVER:
                return driver["topologyKeys"]
        return None

    def sidecars_run(self):
        pods = json.loads(self.cluster.kubectl("get", "pods", "-n", "kube-system", "-o", "json"))["items"]
        return bool(pods) and all(part.get("ready") for pod in pods
                                  for part in pod["status"].get("containerStatuses", [{}]))

    def end(self):
        try:
            self.cluster.end()
        finally:
            self.agent.end()
            for _, place, *_ in sorted(mount_lines(ROOT), key=lambda line: line[1], reverse=True):
                run("umount", place, check=False)
            self.pool.end()
            run("ip", "address", "del", SERVICE_ADDRESS + "/32", "dev", "lo", check=False)
            shutil.rmtree(ROOT, ignore_errors=True)

    # Objects.

    def claim(self, name, size=SIZE, mode="Filesystem", source=None):
        spec = {"accessModes": ["ReadWriteOnce"], "volumeMode": mode, "storageClassName": "volumed",
                "resources": {"requests": {"storage": size}}}
        if source:
            spec["dataSource"] = source
        self.cluster.apply([{"apiVersion": "v1", "kind": "PersistentVolumeClaim",
                             "metadata": {"name": name, "namespace": "default"}, "spec": spec}])

    def pod(self, name, claim, command, block=False):
        container = {"name": "main", "image": IMAGE, "imagePullPolicy": "Never",
                     "command": ["sh", "-c", f"trap exit TERM; {command}; sleep 100000 & wait"]}
        if block:
            container["volumeDevices"] = [{"name": "v", "devicePath": "/dev/v"}]
        else:
            container["volumeMounts"] = [{"name": "v", "mountPath": "/v"}]
        self.cluster.apply([{
            "apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": "default"},
            "spec": {"hostNetwork": True, "automountServiceAccountToken": False, "terminationGracePeriodSeconds": 1,
                     "containers": [container],
                     "volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": claim}}]}}])

    def is_running(self, name):
        pod = self.cluster.get("pod", name)
        return pod is not None and pod["status"].get("phase") == "Running"

    def exec(self, pod, command):
        """By the runtime, which needs no certificate of the kubelet's."""
        for container in self.cluster.containers():
            labels = run(*self.cluster.ctr, "containers", "info", container)
            info = json.loads(labels)["Labels"]
            if info.get("io.kubernetes.pod.name") == pod and info.get("io.cri-containerd.kind") == "container":
                return run(*self.cluster.ctr, "tasks", "exec", "--exec-id", f"x{time.monotonic_ns()}", container, "sh", "-c",
                           command)
        raise Failed(f"pod {pod} has no container")

    def step(self, what, condition, seconds=90):
        begun = time.monotonic()
        try:
            wait_for(what, condition, seconds)
        except Failed:
            self.show()
            raise
        say(f"  {what}: {round((time.monotonic() - begun) * 1000)} ms")

    def show(self):
        say(self.cluster.kubectl("get", "pods,pvc,pv,csistoragecapacities", "-A", "-o", "wide", check=False))
        say(self.cluster.kubectl("get", "volumesnapshots,volumesnapshotcontents", "-A", "-o", "yaml", check=False)[-3000:])
        say(self.cluster.kubectl("get", "events", "-A", "--sort-by=.lastTimestamp", check=False)[-5000:])

    # A claim's life.

    def life(self):
        self.claim("data")
        self.pod("writer", "data", "echo one >/v/file; sync")
        self.step("claim to pod running", lambda: self.is_running("writer"))
        self.expect("writer", "cat /v/file", "one")
        self.snapshot()
        self.grow()
        self.clone()
        self.raw()
        self.delete()
        return True

    def expect(self, pod, command, wanted):
        said = wait_for(f"{command} in {pod}", lambda: self.exec(pod, command).strip(), 20)
        if said != wanted:
            raise Failed(f"{command} in {pod}: {said!r} instead of {wanted!r}")

    def snapshot(self):
        self.cluster.apply([{"apiVersion": "snapshot.storage.k8s.io/v1", "kind": "VolumeSnapshot",
                             "metadata": {"name": "snap", "namespace": "default"},
                             "spec": {"volumeSnapshotClassName": "volumed",
                                      "source": {"persistentVolumeClaimName": "data"}}}])
        self.step("snapshot ready", lambda: (self.cluster.get("volumesnapshot", "snap") or {}).get(
            "status", {}).get("readyToUse"))
        self.exec("writer", "echo two >/v/file; sync")
        self.claim("restored", source={"apiGroup": "snapshot.storage.k8s.io", "kind": "VolumeSnapshot", "name": "snap"})
        self.pod("reader", "restored", "true")
        self.step("restore to pod running", lambda: self.is_running("reader"))
        self.expect("reader", "cat /v/file", "one")

    def grow(self):
        self.cluster.kubectl("patch", "pvc", "data", "--type=merge", "-p",
                             json.dumps({"spec": {"resources": {"requests": {"storage": BIGGER}}}}))
        self.step("claim grown in use", lambda: self.cluster.get("pvc", "data")["status"]["capacity"]["storage"] == BIGGER)
        kib = int(self.exec("writer", "df -k /v | tail -n 1 | awk '{print $2}'"))
        if kib < 900 << 10:
            raise Failed(f"the filesystem has {kib} KiB")

    def clone(self):
        self.claim("copy", BIGGER, source={"kind": "PersistentVolumeClaim", "name": "data"})
        self.pod("copier", "copy", "true")
        self.step("clone to pod running", lambda: self.is_running("copier"))
        self.expect("copier", "cat /v/file", "two")

    def raw(self):
        self.claim("raw", mode="Block")
        self.pod("blocker", "raw", "echo raw >/dev/v", block=True)
        self.step("raw block to pod running", lambda: self.is_running("blocker"))
        self.expect("blocker", "dd if=/dev/v bs=4 count=1 2>/dev/null", "raw")

    def delete(self):
        self.cluster.kubectl("delete", "pods", "--all", "--wait=true", "--timeout=120s")
        self.cluster.kubectl("delete", "volumesnapshots", "--all", "--wait=false")
        self.cluster.kubectl("delete", "pvc", "--all", "--wait=false")
        self.step("all deleted", lambda: not self.cluster.all("pv") and not self.cluster.all("volumesnapshotcontents"))
        self.nothing_left()

    def nothing_left(self):
        wait_for("nothing left in the pool", lambda: not self.pool.volumes() and not self.pool.cuts(), 30)
        devices = [device for device, image in loop_devices().items() if image.startswith(self.pool.place + "/")]
        mounts = [line for line in mount_lines(ROOT) if DRIVER in line[1]]
        if devices or mounts:
            raise Failed(f"left: {devices} {mounts}")


def own_driver(scratch, peers, binaries):
    lab = OwnDriver(scratch, peers, binaries)
    try:
        lab.start()
        return lab.life()
    finally:
        lab.end()
