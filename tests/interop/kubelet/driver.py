"""The persistent disk driver (tests/interop/pd) as two processes and its registrar, its disks, and what it was asked."""

import json
import os
import signal

from tools import Process, listens, run

NAME = "pd.csi.storage.gke.io"
ZONE = "country-region-zone"
GIB = 1 << 30


def handle_of(disk):
    return f"projects/test-project/zones/{ZONE}/disks/{disk}"


class Call:
    """One that was answered. The time is that of its arrival, in nanoseconds."""

    def __init__(self, server, line):
        words, _, rest = line.rstrip("\n").partition("\t")
        self.server = server
        self.method, self.code = words.split(" ")[:2]
        came, _, request = rest.split(" ", 2)
        self.came, self.request = int(came), json.loads(request)
        self.disk = self.request.get("volumeId", "").rsplit("/", 1)[-1]

    def __str__(self):
        target = self.request.get("targetPath") or self.request.get("volumePath") or self.request.get("stagingTargetPath")
        return " ".join(word for word in (self.method, self.code, self.disk, target) if word)


class Driver:
    def __init__(self, program, directory, root, node):
        self.program, self.dir, self.root, self.node = program, directory, root, node
        self.cloud_socket = os.path.join(directory, "cloud.sock")
        self.node_socket = os.path.join(root, "plugins", NAME, "csi.sock")
        self.servers = {}
        os.makedirs(directory)

    def add_disks(self, names, filled=()):
        """Blank ones of 1 GiB; of those in `filled` there is an ext4 with the tree that is its value."""
        folder = os.path.join(self.dir, "data", "disks", ZONE)
        os.makedirs(folder, 0o700)
        place = f"https://www.googleapis.com/compute/v1/projects/test-project/zones/{ZONE}"
        disks = {}
        for name in names:
            image = os.path.join(folder, name)
            with open(image, "wb") as file:
                file.truncate(GIB)
            if name in filled:
                run("mkfs.ext4", "-q", "-m", "0", "-d", filled[name], image)
            disks[f"{ZONE}/{name}"] = {"name": name, "zone": ZONE, "sizeGb": "1", "status": "READY",
                                       "type": place + "/diskTypes/pd-balanced", "selfLink": f"{place}/disks/{name}"}
        with open(os.path.join(self.dir, "data", "state.json"), "w") as file:
            json.dump({"disks": disks, "attached": {}, "snapshots": {}}, file)

    def start_role(self, role, socket, *words):
        self.servers[role] = Process(
            self.dir, role, self.program, "--role", role, "--dir", os.path.join(self.dir, "data"), "--socket", socket,
            "--node", self.node, "--driver-name", NAME, "--zone", ZONE, "--requests", "--logtostderr", "--v", "4", *words,
            output=os.path.join(self.dir, role + ".calls"))
        return self.servers[role]

    def start_cloud(self):
        self.start_role("cloud", self.cloud_socket).ready(lambda: listens(self.cloud_socket))

    def start_node(self):
        os.makedirs(os.path.dirname(self.node_socket), exist_ok=True)
        self.start_role("node", self.node_socket).ready(lambda: listens(self.node_socket))

    def start_registrar(self):
        registry = os.path.join(self.root, "plugins_registry")
        os.makedirs(registry, exist_ok=True)
        socket = os.path.join(registry, NAME + "-reg.sock")
        self.start_role("registrar", self.node_socket, "--registry", registry).ready(lambda: listens(socket))

    def end(self):
        for role in ("registrar", "node", "cloud"):
            if role in self.servers:
                self.servers.pop(role).end(signal.SIGTERM if role == "registrar" else signal.SIGKILL)
        for device in self.devices():
            run("losetup", "--detach", device, check=False)

    def devices(self):
        """The loop devices over its disks, each with its disk."""
        prefix, found = os.path.join(os.path.realpath(self.dir), "data", "disks", ZONE) + "/", {}
        for device, image in loop_devices().items():
            if image.startswith(prefix):
                found[device] = image[len(prefix):]
        return found

    def calls(self, since=0):
        """Of both servers, in the order in which they came."""
        found = []
        for server in ("cloud", "node"):
            path = os.path.join(self.dir, server + ".calls")
            if os.path.exists(path):
                with open(path) as file:
                    # Disks that were detached in use are lines without a request.
                    found += [Call(server, line) for line in file if "\t" in line]
        return sorted((call for call in found if call.came >= since), key=lambda call: call.came)

    def detached_in_use(self):
        with open(os.path.join(self.dir, "cloud.calls")) as file:
            return sum(line.startswith("DetachedInUse") for line in file)


def loop_devices():
    """/dev/loopN: the file or device behind it, as the kernel names it."""
    found = {}
    for name in os.listdir("/sys/block"):
        try:
            with open(f"/sys/block/{name}/loop/backing_file") as file:
                found["/dev/" + name] = file.read().rstrip("\n")
        except OSError:
            pass
    return found
