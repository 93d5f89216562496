"""scripts/interop own-driver --daemonset runs this: volumed in a privileged container of a DaemonSet, with deploy/kubernetes as
it is. Beside a claim's life, what becomes of pods and their volumes when the container goes, and another one comes."""

import json
import os
import signal
import time

from own_driver import OwnDriver, say_times
from own_kills import kill_kubelet, started
from own_life import BIGGER, SIZE, Life
from own_node import DEPLOY, DRIVER, HERE, ROOT, Agent, Node, images_of, unmount
from own_objects import snapshot_of
from tools import Failed, listens, run, say, wait_for

MANIFESTS = os.path.join(DEPLOY, "daemonset")
IMAGE, = images_of("daemonset/volumed.yaml")
NEXT_IMAGE = IMAGE + "-next"
# Both write without a pause for longer, and count what has failed.
STEADY = ("(n=0; while n=$((n+1)); do echo \"$n $(cut -d' ' -f1 /proc/uptime)\" | "
          "dd of=/v/log oflag=append conv=notrunc,fsync 2>/err || echo $n >>/failed; usleep 20000; done) & true")
RAW = ("(n=0; while n=$((n+1)); do echo $n | dd of=/dev/v bs=512 seek=$((n % 1000)) conv=sync,notrunc,fsync 2>/err || "
       "echo $n >>/failed; usleep 20000; done) & true")
PATIENCE = 180
# What the manifests have of the host, beside the kubelet's directory, by what is there in this run.
PLACES = {"/srv/volumed": "pool", "/var/lib/volumed": "state", "/run/volumed": "run"}


class Container(Agent):
    """volumed, as the DaemonSet runs it. volumectl is the host's."""

    def __init__(self, binaries, cluster):
        self.binaries, self.cluster, self.kubelets = binaries, cluster, ROOT
        self.dir, self.metrics = "/run/volumed", "127.0.0.1:9788"
        self.socket = f"{ROOT}/plugins/{DRIVER}/csi.sock"

    def start(self):
        check_configuration()
        self.cluster.kubectl("apply", "-f", MANIFESTS)
        wait_for("volumed serves in its container", lambda: listens(self.socket), PATIENCE)

    def pod(self):
        """The one that runs, or is to run."""
        pods = json.loads(self.cluster.kubectl("get", "pods", "-n", "kube-system", "-l", "app=volumed", "-o", "json"))["items"]
        return next((pod for pod in pods if "deletionTimestamp" not in pod["metadata"]), None)

    def container(self):
        """The id of its container, once it serves; None until then."""
        status = ((self.pod() or {}).get("status", {}).get("containerStatuses") or [{}])[0]
        return status["containerID"].split("//")[1] if status.get("ready") and listens(self.socket) else None

    def number(self):
        """Of its process."""
        return number_of(self.cluster, self.container())

    def end(self, how=None):
        """Its containers end with the node's."""


class DaemonSetNode(Node):
    def make_agent(self):
        self.made = []
        for place, name in PLACES.items():
            if not os.path.exists(place):
                os.makedirs(place)
                self.made.append(place)
            os.makedirs(os.path.join(self.dir, name), exist_ok=True)
            run("mount", "--bind", os.path.join(self.dir, name), place)
        return Container(self.binaries, self.cluster)

    def start(self):
        self.cluster.start_containerd()
        self.cluster.start_kubelet()
        self.import_images()
        tar, name = self.cluster.path("volumed.tar"), "docker.io/library/" + IMAGE
        run(os.path.join(HERE, "../../../scripts/image"), self.binaries["build"], tar, name)
        run(*self.cluster.ctr, "images", "import", tar)
        os.unlink(tar)
        run(*self.cluster.ctr, "images", "tag", name, "docker.io/library/" + NEXT_IMAGE)
        self.agent.start()

    def end_mounts(self):
        super().end_mounts()
        for place in PLACES:
            unmount(place)
        for place in self.made:
            os.rmdir(place)


class Watched:
    """Pods that write all the time, and all that must not change for them while an agent goes and another one comes."""

    def __init__(self, lab, life):
        self.lab, self.life = lab, life
        lab.claim("steady", SIZE)
        lab.claim("raw", "64Mi", mode="Block")
        self.begin("claim")

    def begin(self, what):
        self.lab.pod("steady", "steady", "rm -f /v/log; " + STEADY)
        self.lab.pod("raw", "raw", RAW, block=True)
        self.life.runs("steady", f"{what} to pod running")
        self.life.runs("raw", f"{what} of raw block to pod running")
        wait_for("the pods write", lambda: self.lab.exec("steady", "test -s /v/log && echo yes", check=False) == "yes", 20)

    def facts(self):
        """The mounts of volumes on the node by their ids, the volume in its container, the containers."""
        lab, found = self.lab, {}
        found["mounts"] = sorted((place, number) for number, place, *_ in lab.nodes[0].mounts() if "csi" in place)
        for pod in ("steady", "raw"):
            found[pod] = started(lab, pod)
        number = number_of(lab.cluster, found["steady"].split("//")[1])
        with open(f"/proc/{number}/mountinfo") as file:
            found["in the pod"] = [line for line in file if " /v " in line]
        return found

    def longest_wait(self):
        """Of a write, in milliseconds. None was lost, none has failed."""
        lines = [line.split() for line in self.lab.exec("steady", "cat /v/log").splitlines()]
        if [int(number) for number, _ in lines] != list(range(1, len(lines) + 1)):
            raise Failed(f"writes are missing: {lines[-3:]}")
        for pod in ("steady", "raw"):
            if failed := self.lab.exec(pod, "cat /failed", check=False):
                raise Failed(f"writes of {pod} have failed: {failed[:100]}")
        times = [float(at) for _, at in lines]
        return round(max(after - before for before, after in zip(times, times[1:])) * 1000)

    def unharmed(self, what, act, comes=True):
        """ACT ends the agent; COMES: another one follows."""
        agent, before = self.lab.agent, self.facts()
        container = agent.container()
        begun = time.monotonic()
        act()
        if comes:
            wait_for(f"another agent, {what}", lambda: (agent.container() or container) != container, PATIENCE)
        took = round((time.monotonic() - begun) * 1000)
        time.sleep(2)
        if (after := self.facts()) != before:
            raise Failed(f"{what}: {before} has become {after}")
        say(f"  {what}: {took} ms; the longest wait of a write so far: {self.longest_wait()} ms")


def check_configuration():
    """The container's is that of the service, but for the group of its socket."""
    with open(os.path.join(DEPLOY, "config.yaml")) as file:
        service = [line.strip() for line in file if not line.startswith("#")]
    with open(os.path.join(MANIFESTS, "config.yaml")) as file:
        container = [line.strip() for line in file.read().split("config.yaml: |\n")[1].splitlines()]
    if container != service + ["socket-group: root"]:
        raise Failed(f"the configurations differ: {service}, {container}")


def number_of(cluster, container):
    lines = [line.split() for line in run(*cluster.ctr, "tasks", "ls").splitlines()]
    return next(int(words[1]) for words in lines if words[0] == container)


def over_the_agents_end(lab):
    say("the agent goes, and another one comes, while pods write")
    life = Life(lab, PATIENCE)
    watched, agent, kubectl = Watched(lab, life), lab.agent, lab.cluster.kubectl
    delete = lambda: kubectl("delete", "pod", "-n", "kube-system", agent.pod()["metadata"]["name"])
    watched.unharmed("its pod is deleted", delete)
    life.enlarge("steady", BIGGER, "claim grown in use, which an agent before has staged")
    life.enlarge("raw", "128Mi", "raw block grown in use, likewise")
    watched.unharmed("its image is another", lambda: upgrade(lab))
    life.cut("snap", "steady")
    lab.claim("restored", BIGGER, source=snapshot_of("snap"))
    lab.pod("reader", "restored")
    life.runs("reader", "restore to pod running")
    life.finds("reader", "awk 'NR != $1 {print \"lost\"} END {print (NR > 0)}' /v/log", "1")
    watched.unharmed("its process is killed", lambda: os.kill(agent.number(), signal.SIGKILL))
    watched.unharmed("the kubelet is killed", lambda: kill_kubelet(lab, 0), comes=False)
    say("the agent's pod and all pods are deleted at once")
    kubectl("delete", "pod", "-n", "kube-system", agent.pod()["metadata"]["name"], "--wait=false")
    lab.delete_pods()
    watched.begin("the volume again")
    life.delete()


def upgrade(lab):
    lab.cluster.kubectl("set", "image", "-n", "kube-system", "daemonset/volumed", "volumed=" + NEXT_IMAGE)
    lab.cluster.kubectl("rollout", "status", "-n", "kube-system", "daemonset/volumed", f"--timeout={PATIENCE}s")
    image = lab.agent.pod()["spec"]["containers"][0]["image"]
    if image != NEXT_IMAGE:
        raise Failed(f"the agent's image is {image}")


def own_daemonset(scratch, peers, binaries, rounds):
    lab = OwnDriver(scratch, peers, binaries, DaemonSetNode)
    try:
        lab.start()
        times = []
        for number in range(rounds):
            say(f"a claim's life, {number + 1} of {rounds}")
            times.append(Life(lab).whole())
        over_the_agents_end(lab)
        say_times(times)
    finally:
        lab.end()
