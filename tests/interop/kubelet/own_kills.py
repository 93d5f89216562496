"""The life of own_life.py while volumed is killed again and again, and pods that come and go over the kubelet's death."""

import os
import random
import shutil
import signal
import threading
import time

from own_life import BIG, SIZE, Life
from own_node import DRIVER
from tools import Failed, run, say, wait_for

LIVES = 2
KUBELETS = 4
# A machine that starts volumed and three sidecars anew each few seconds is slow.
PATIENCE = 300


class Killer:
    """Kills volumed at random moments, and starts it anew at once: each second time as its unit does, which takes its sockets
    away first, so that the kubelet forgets the driver meanwhile."""

    def __init__(self, lab, seed):
        self.lab, self.random, self.kills = lab, random.Random(seed), 0
        self.ending, self.failure = threading.Event(), None
        self.thread = threading.Thread(target=self.work)

    def __enter__(self):
        self.lab.agent.end(signal.SIGKILL)
        self.thread.start()
        return self

    def __exit__(self, *_):
        """What this thread has started ends with it, so another volumed follows."""
        self.ending.set()
        self.thread.join()
        self.lab.agent.end(signal.SIGKILL)
        self.lab.agent.start()

    def work(self):
        try:
            while not self.ending.is_set():
                self.lab.agent.start()
                if not self.ending.wait(self.random.uniform(0.5, 8)):
                    self.kills += 1
                self.lab.agent.end(signal.SIGKILL)
                if self.random.random() < 0.5:
                    self.lab.agent.remove_sockets()
        except (Failed, OSError) as failure:
            self.failure = failure


def lives_over_kills(lab):
    for number in range(LIVES):
        seed = random.randrange(1 << 32)
        say(f"a claim's life while volumed is killed, {number + 1} of {LIVES}, seed {seed}")
        with Killer(lab, seed) as killer:
            Life(lab, PATIENCE).whole()
        if killer.failure:
            raise Failed(f"volumed did not come back: {killer.failure}")
        say(f"  volumed was killed {killer.kills} times")
        lab.nothing_left()


def over_the_kubelets_death(lab):
    """It is killed while a pod's volume is made, while the pod runs, and while the pod goes; pods run on meanwhile."""
    for number in range(KUBELETS):
        say(f"the kubelet is killed, {number + 1} of {KUBELETS}")
        lab.claim("data", SIZE)
        lab.pod("writer", "data", BIG)
        kill_kubelet(lab, random.uniform(0, 3))
        lab.step("claim to pod running", lambda: lab.is_running("writer"), PATIENCE)
        wait_for("the file is written", lambda: len(lab.exec("writer", "cat /v/sum", check=False)) == 64, 30)
        begun = started(lab, "writer")
        kill_kubelet(lab, 0)
        lab.agent.end(signal.SIGKILL)
        lab.agent.start()
        time.sleep(3)
        if lab.exec("writer", "sha256sum /v/big | cut -c1-64") != lab.exec("writer", "cat /v/sum"):
            raise Failed("the pod's file has changed")
        if started(lab, "writer") != begun:
            raise Failed("the pod's container was started anew")
        lab.cluster.kubectl("delete", "pod", "writer", "--wait=false")
        kill_kubelet(lab, random.uniform(0, 2))
        lab.step("pod gone", lambda: lab.cluster.get("pod", "writer") is None, PATIENCE)
        lab.cluster.kubectl("delete", "pvc", "--all", "--wait=false")
        unmount_what_is_forgotten(lab)
        lab.nothing_left(PATIENCE)


def unmount_what_is_forgotten(lab):
    """A kubelet that is killed between NodeUnpublishVolume and NodeUnstageVolume never unstages (docs/OPERATIONS.md), and
    one that is killed while it waits for NodeUnstageVolume leaves its vol_data.json."""
    try:
        wait_for("nothing left", lambda: not lab.left(), 60)
    except Failed:
        places = [thing.split(": ")[1] for thing in lab.left()]
        for place in places:
            if place.endswith("/globalmount"):
                say(f"  the kubelet has forgotten {place}: it is unmounted by hand")
                run("umount", place)
        for place in places:
            if f"/kubernetes.io/csi/{DRIVER}/" in place and not os.path.ismount(f"{place}/globalmount"):
                say(f"  the kubelet has left {place}: it is removed by hand")
                shutil.rmtree(place, ignore_errors=True)  # what was unmounted is within another one of these


def started(lab, pod):
    return lab.cluster.get("pod", pod)["status"]["containerStatuses"][0]["containerID"]


def kill_kubelet(lab, after):
    time.sleep(after)
    lab.cluster.end_kubelet(signal.SIGKILL)
    lab.cluster.start_kubelet()
