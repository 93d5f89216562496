"""A node of own_driver.py: its pool, volumed as a service of the host, and the kubelet with its runtime."""

import glob
import json
import os
import re
import signal
import urllib.request

from driver import loop_devices
from tools import Failed, Process, free_port, listens, run
from tree import mount_lines

DRIVER = "pool.volumed.io"
ROOT = "/var/lib/kubelet"
HERE = os.path.dirname(os.path.abspath(__file__))
DEPLOY = os.path.join(HERE, "../../../deploy/kubernetes")


class Pool:
    """A filesystem with room for the volumes, in a sparse file."""

    def __init__(self, directory, size, name="pool", mkfs=("mkfs.xfs", "-q", "-m", "reflink=1")):
        self.name, self.image, self.place = name, os.path.join(directory, name + ".img"), os.path.join(directory, name)
        with open(self.image, "wb") as file:
            file.truncate(size)
        run(*mkfs, self.image)
        os.makedirs(self.place)
        run("mount", "-o", "loop", self.image, self.place)

    def artefacts(self):
        """Of volumes and of cuts."""
        return [f"{kind}/{name}" for kind in ("volumes", "cuts") if os.path.exists(os.path.join(self.place, kind))
                for name in sorted(os.listdir(os.path.join(self.place, kind)))]

    def devices(self):
        """By the filesystem of their files: once the container is gone that has made one, the file has no path."""
        pool = os.stat(self.place).st_dev
        lines = run("losetup", "--list", "--noheadings", "--output", "NAME,BACK-MAJ:MIN").splitlines()
        return [line.split()[0] for line in lines if line.split()[1:] == [f"{os.major(pool)}:{os.minor(pool)}"]]

    def end(self):
        for device in self.devices():
            run("losetup", "--detach", device, check=False)
        run("umount", self.place, check=False)


class Agent:
    """The service of the host, with the configuration that deploy/kubernetes shows but for the pool's place."""

    def __init__(self, binaries, directory, pool, cluster, kubelets, driver=DRIVER, more=""):
        """KUBELETS is /var/lib/kubelet of its node, as it is seen from here; MORE, lines of the configuration."""
        self.binaries, self.dir, self.cluster, self.kubelets, self.process = binaries, directory, cluster, kubelets, None
        self.socket = f"{kubelets}/plugins/{driver}/csi.sock"
        with open(os.path.join(DEPLOY, "config.yaml")) as file:
            config = more + file.read().replace("/srv/volumed", pool.place).replace(DRIVER, driver)
        self.metrics = f"127.0.0.1:{free_port()}"
        config += f"node-name: {cluster.node}\nroot: {directory}/volumed\nsocket: {directory}/volumed.sock\n" \
                  f"socket-group: root\nmetrics-address: {self.metrics}\n"
        self.config = os.path.join(directory, "config.yaml")
        with open(self.config, "w") as file:
            file.write(config)

    def add_pool(self, pool):
        """To be there when the agent is started: another one, of its own name."""
        with open(self.config) as file:
            config = file.read()
        with open(self.config, "w") as file:
            file.write(re.sub("^(pool: {.*)}", rf"\1, {pool.name}: {pool.place}}}", config, flags=re.MULTILINE))

    def start(self):
        for path in (os.path.dirname(self.socket), self.kubelets + "/plugins_registry", self.dir + "/volumed"):
            os.makedirs(path, 0o750, exist_ok=True)
        self.process = Process(self.dir, "volumed", *self.cluster.inside, self.binaries["volumed"], "run", "--config",
                               self.config)
        self.process.ready(lambda: listens(self.socket))

    def ctl(self, *words):
        return run(self.binaries["volumectl"], "--socket", self.dir + "/volumed.sock", *words)

    def answered(self, method):
        """How many calls of the driver, since it was started, were OK."""
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        with opener.open(f"http://{self.metrics}/metrics", timeout=10) as answer:
            lines = answer.read().decode().splitlines()
        return sum(float(line.split()[-1]) for line in lines if line.startswith("csi_plugin_operations_seconds_count{") and
                   f'/{method}"' in line and '"OK"' in line)

    def refused(self, words):
        """How many failed calls of the driver its log has with these words, of all its lives."""
        with open(os.path.join(self.dir, "volumed.log"), errors="replace") as log:
            return sum("CSI call failed" in line and words in line for line in log)

    def promised(self):
        """How many volumes and snapshots the agent itself knows, and what it has promised to them."""
        pools = json.loads(self.ctl("get", "pools", "-o", "json"))["pools"]
        return {(number, key): int(pool[key]) for number, pool in enumerate(pools)
                for key in ("volumes", "snapshots", "promised_bytes") if int(pool.get(key, 0)) != 0}

    def end(self, how=signal.SIGTERM):
        if self.process:
            self.process.end(how)
            self.process = None

    def remove_sockets(self):
        """What the unit runs after a volumed that was killed (ExecStopPost)."""
        run(*self.cluster.inside, self.binaries["volumed"], "remove-sockets", "--config", self.config)


class Node:
    """A kubelet with its runtime, volumed and a pool. Its directory is of its own; the first one's cluster has the control
    plane."""

    def __init__(self, cluster, binaries, directory, pool_bytes):
        self.cluster, self.binaries, self.dir = cluster, binaries, directory
        self.name, self.kubelets = cluster.node, ROOT
        self.pools = [Pool(directory, pool_bytes)]
        self.agent = self.make_agent()
        cluster.have_network()

    def make_agent(self):
        return Agent(self.binaries, self.dir, self.pools[0], self.cluster, self.kubelets)

    def add_pool(self, *words):
        self.pools.append(Pool(self.dir, *words))
        self.agent.add_pool(self.pools[-1])

    def start(self):
        self.cluster.start_containerd()
        self.agent.start()
        self.cluster.start_kubelet()
        self.import_images()

    def import_images(self):
        """Under just the names that the manifest has; there is no registry."""
        for name in images_of("sidecars.yaml"):
            program = name.rsplit("/", 1)[-1].split(":")[0]
            tar = self.cluster.path(program + ".tar")
            run(os.path.join(HERE, "image.sh"), tar, name, self.cluster.peers[program])
            run(*self.cluster.ctr, "images", "import", tar)
            os.unlink(tar)

    def mounts(self):
        return mount_lines(ROOT)

    def left(self):
        """What there is of volumes on the node and in its pool, as paths and numbers."""
        found = [thing for pool in self.pools for thing in pool.artefacts() + pool.devices()]
        found += [place for _, place, *_ in self.mounts() if DRIVER in place or "kubernetes.io~csi" in place]
        for pattern in ("plugins/kubernetes.io/csi/" + DRIVER, "plugins/kubernetes.io/csi/volumeDevices",
                        "plugins/kubernetes.io/csi/volumeDevices/*", "pods/*/volumes/kubernetes.io~csi",
                        "pods/*/volumeDevices/kubernetes.io~csi"):
            # Two directories the kubelet keeps: they are no volume's.
            found += [path for path in glob.glob(f"{self.kubelets}/{pattern}/*")
                      if not path.endswith(("/volumeDevices/staging", "/volumeDevices/publish"))]
        try:
            promised = self.agent.promised()
        except Failed as failure:
            promised = failure  # it was killed just now
        return found + ([str(promised)] if promised else [])

    def end(self):
        try:
            self.cluster.end()
        finally:
            self.agent.end()
            # After a failure: a kubelet's own loop devices, over nodes below its root, hold the volumes'. Without their
            # mounts they have no name.
            for device, behind in loop_devices().items():
                if behind.startswith(ROOT + "/"):
                    run("losetup", "--detach", device, check=False)
            # The volumes first: the pool that they are files of goes last.
            self.end_mounts()
            for pool in self.pools:
                pool.end()
            # Of containers that were ended without their runtime.
            unmount(self.dir, "--recursive", "--lazy")

    def end_mounts(self):
        for root in (ROOT, self.dir + "/volumed"):
            unmount(root)


def images_of(manifest):
    with open(os.path.join(DEPLOY, manifest)) as file:
        return [line.split()[-1] for line in file if line.strip().startswith("image:")]


def unmount(root, *words):
    for place in sorted({place for _, place, *_ in mount_lines(root)}, reverse=True):
        run("umount", *words, place, check=False)
