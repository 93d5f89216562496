"""scripts/interop own-driver runs this: volumed as the CSI driver of a real kubelet, put there with deploy/kubernetes as it
is. What a claim can go through is in own_life.py, and the same over the death of volumed and the kubelet in own_kills.py."""

import glob
import json
import os
import shutil
import signal
import subprocess
import time

from cluster import IMAGE, NODE, Cluster
from driver import loop_devices
from own_kills import lives_over_kills, over_the_kubelets_death
from own_life import Life, refused_for_want_of_room
from tools import Failed, Process, listens, run, say, wait_for
from tree import mount_lines

DRIVER = "pool.volumed.io"
ROOT = "/var/lib/kubelet"
HERE = os.path.dirname(os.path.abspath(__file__))
DEPLOY = os.path.join(HERE, "../../../deploy/kubernetes")
SERVICE_ADDRESS = "10.96.0.1"
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

    def artefacts(self):
        """Of volumes and of cuts."""
        return [f"{kind}/{name}" for kind in ("volumes", "cuts") if os.path.exists(os.path.join(self.place, kind))
                for name in sorted(os.listdir(os.path.join(self.place, kind)))]

    def devices(self):
        return [device for device, image in loop_devices().items() if image.startswith(self.place + "/")]

    def end(self):
        for device in self.devices():
            run("losetup", "--detach", device, check=False)
        run("umount", self.place, check=False)


class Agent:
    """The service of the host, with the configuration that deploy/kubernetes shows but for the pool's place."""

    def __init__(self, binaries, directory, pool):
        self.binaries, self.dir, self.process = binaries, directory, None
        self.socket = f"{ROOT}/plugins/{DRIVER}/csi.sock"
        with open(os.path.join(DEPLOY, "config.yaml")) as file:
            config = file.read().replace("/srv/volumed", pool.place)
        config += f"node-name: {NODE}\nroot: {directory}/volumed\nsocket: {directory}/volumed.sock\nsocket-group: root\n" \
                  "metrics-address: 127.0.0.1:0\n"
        self.config = os.path.join(directory, "config.yaml")
        with open(self.config, "w") as file:
            file.write(config)

    def start(self):
        for path in (os.path.dirname(self.socket), ROOT + "/plugins_registry", self.dir + "/volumed"):
            os.makedirs(path, 0o750, exist_ok=True)
        self.process = Process(self.dir, "volumed", self.binaries["volumed"], "run", "--config", self.config)
        self.process.ready(lambda: listens(self.socket))

    def ctl(self, *words):
        return run(self.binaries["volumectl"], "--socket", self.dir + "/volumed.sock", *words)

    def promised(self):
        """How many volumes and snapshots the agent itself knows, and what it has promised to them."""
        pool, = json.loads(self.ctl("get", "pools", "-o", "json"))["pools"]
        return {key: int(pool[key]) for key in ("volumes", "snapshots", "promised_bytes") if int(pool.get(key, 0)) != 0}

    def end(self, how=signal.SIGTERM):
        if self.process:
            self.process.end(how)
            self.process = None

    def remove_sockets(self):
        """What the unit runs after a volumed that was killed (ExecStopPost)."""
        run(self.binaries["volumed"], "remove-sockets", "--config", self.config)


class OwnDriver:
    def __init__(self, scratch, peers, binaries):
        if os.path.exists(ROOT) and os.listdir(ROOT):
            raise Failed(f"{ROOT} is in use: this needs a machine without a kubelet")
        self.dir, self.peers, self.driver, self.root = scratch, peers, DRIVER, ROOT
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
        self.agent.start()
        self.cluster.start_kubelet()
        self.import_images()
        for name in ("csidriver", "storageclass", "rbac", "sidecars"):
            self.cluster.kubectl("apply", "-f", os.path.join(DEPLOY, name + ".yaml"))
        self.step("the kubelet has registered the driver", lambda: self.topology_keys())
        self.step("the sidecars run", self.sidecars_run, 180)
        self.step("the node's capacity is published", self.capacity)

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

    def topology_keys(self):
        node = self.cluster.get("csinode", NODE)
        for driver in (node or {}).get("spec", {}).get("drivers") or []:
            if driver["name"] == DRIVER:
                return driver["topologyKeys"]
        return None

    def sidecars_run(self):
        pods = json.loads(self.cluster.kubectl("get", "pods", "-n", "kube-system", "-o", "json"))["items"]
        return bool(pods) and all(part.get("ready") for pod in pods
                                  for part in pod["status"].get("containerStatuses", [{}]))

    def capacity(self):
        found = json.loads(self.cluster.kubectl("get", "csistoragecapacities", "-n", "kube-system", "-o", "json"))["items"]
        return any(part["storageClassName"] == "volumed" and part.get("capacity", "0") != "0" for part in found)

    def end(self):
        try:
            self.cluster.end()
        finally:
            self.agent.end()
            # The volumes first: the pool that they are files of goes last.
            for root in (ROOT, self.dir + "/volumed"):
                for place in sorted({place for _, place, *_ in mount_lines(root)}, reverse=True):
                    run("umount", place, check=False)
            self.pool.end()
            # Of containers that were ended without their runtime.
            for place in sorted({place for _, place, *_ in mount_lines(self.dir)}, reverse=True):
                run("umount", "--recursive", "--lazy", place, check=False)
            run("ip", "address", "del", SERVICE_ADDRESS + "/32", "dev", "lo", check=False)
            if not list(mount_lines(ROOT)):
                shutil.rmtree(ROOT, ignore_errors=True)

    # Objects.

    def claim(self, name, size, mode="Filesystem", source=None, access="ReadWriteOnce", storage_class="volumed"):
        spec = {"accessModes": [access], "volumeMode": mode, "storageClassName": storage_class,
                "resources": {"requests": {"storage": size}}}
        if source:
            spec["dataSource"] = source
        self.cluster.apply([{"apiVersion": "v1", "kind": "PersistentVolumeClaim",
                             "metadata": {"name": name, "namespace": "default"}, "spec": spec}])

    def pod(self, name, claim, command="true", block=False, read_only=False, mounts=None, security=None):
        container = {"name": "main", "image": IMAGE, "imagePullPolicy": "Never",
                     "command": ["sh", "-c", f"trap exit TERM; {command}; sleep 100000 & wait"]}
        if block:
            container["volumeDevices"] = [{"name": "v", "devicePath": "/dev/v"}]
        else:
            container["volumeMounts"] = [{"name": "v", **mount} for mount in mounts or [{"mountPath": "/v"}]]
        self.cluster.apply([{
            "apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": "default"},
            "spec": {"hostNetwork": True, "automountServiceAccountToken": False, "terminationGracePeriodSeconds": 1,
                     "containers": [container], "securityContext": security or {},
                     "volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": claim, "readOnly": read_only}}]}}])

    def delete_pods(self, *names):
        self.cluster.kubectl("delete", "pods", *(names or ["--all"]), "--wait=true", "--timeout=180s")

    def is_running(self, name):
        pod = self.cluster.get("pod", name)
        return pod is not None and pod["status"].get("phase") == "Running" and \
            all(part.get("ready") for part in pod["status"].get("containerStatuses", [{}]))

    def exec(self, pod, command, check=True):
        """By the runtime, which needs no certificate of the kubelet's."""
        container = self.cluster.get("pod", pod)["status"]["containerStatuses"][0]["containerID"].split("//")[1]
        return run(*self.cluster.ctr, "tasks", "exec", "--exec-id", f"x{time.monotonic_ns()}", container, "sh", "-c",
                   command, check=check).strip()

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
        found = self.pool.artefacts() + self.pool.devices()
        for kind in ("pv", "volumesnapshotcontents", "volumeattachments"):
            found += [f"{kind}/{thing['metadata']['name']}" for thing in self.cluster.all(kind)]
        found += [place for _, place, *_ in mount_lines(ROOT) if DRIVER in place or "kubernetes.io~csi" in place]
        for pattern in ("plugins/kubernetes.io/csi/" + DRIVER, "plugins/kubernetes.io/csi/volumeDevices",
                        "plugins/kubernetes.io/csi/volumeDevices/*", "pods/*/volumes/kubernetes.io~csi",
                        "pods/*/volumeDevices/kubernetes.io~csi"):
            # Two directories the kubelet keeps: they are no volume's.
            found += [path for path in glob.glob(f"{ROOT}/{pattern}/*")
                      if not path.endswith(("/volumeDevices/staging", "/volumeDevices/publish"))]
        try:
            promised = self.agent.promised()
        except Failed as failure:
            promised = failure  # it was killed just now
        return found + ([str(promised)] if promised else [])

    def nothing_left(self, seconds=60):
        try:
            self.step("nothing left on the node, in the pool, in the API", lambda: not self.left(), seconds)
        except Failed as failure:
            raise Failed(f"{failure}: {self.left()}") from None


def own_driver(scratch, peers, binaries, rounds):
    lab = OwnDriver(scratch, peers, binaries)
    try:
        lab.start()
        times = []
        for number in range(rounds):
            say(f"a claim's life, {number + 1} of {rounds}")
            times.append(Life(lab).whole())
        refused_for_want_of_room(lab)
        over_the_kubelets_death(lab)
        lives_over_kills(lab)
        say_times(times)
    finally:
        lab.end()


def say_times(times):
    say("milliseconds of each round")
    for what in times[0]:
        say(f"  {what}: {' '.join(str(round_[what]) for round_ in times)}")
