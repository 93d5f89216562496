"""volumed on the root, with objects as files of a manifest directory."""

import json
import os
import signal

from cluster import NODE, answers
from driver import NAME
from tools import Process, free_port, run, wait_for


class Volumed:
    def __init__(self, binaries, directory, root, attach, endpoint, logs, adopt=False):
        self.dir, self.binaries, self.process = directory, binaries, None
        self.manifests = os.path.join(directory, "manifests")
        self.socket = os.path.join(directory, "volumed.sock")
        self.metrics = f"127.0.0.1:{free_port()}"
        os.makedirs(self.manifests)
        config = {"root": root, "manifest-dir": [self.manifests], "socket": self.socket, "socket-group": "root",
                  "metrics-address": self.metrics, "node-name": NODE, "removal-settle": "500ms",
                  "volume-stats-period": "5s", "csi-attach": attach, "adopt-root": adopt, "pod-logs-dir": logs,
                  "volume-plugin-dir": os.path.join(directory, "flexvolume")}
        if attach == "controller":
            config["csi-controller-endpoints"] = {NAME: endpoint}
        with open(os.path.join(directory, "config.yaml"), "w") as file:
            json.dump(config, file)

    def start(self):
        self.process = Process(self.dir, "volumed", self.binaries["volumed"], "run", "--config",
                               os.path.join(self.dir, "config.yaml"))
        self.process.ready(lambda: answers(f"http://{self.metrics}/readyz"))

    def end(self, how=signal.SIGTERM):
        if self.process:
            self.process.end(how)
            self.process = None

    def ctl(self, *words, check=True):
        return run(self.binaries["volumectl"], "--socket", self.socket, *words, check=check)

    def file_of(self, thing):
        return os.path.join(self.manifests, f"{thing['kind'].lower()}-{thing['metadata']['name']}.json")

    def put(self, *things):
        for thing in things:
            with open(os.path.join(self.manifests, ".new"), "w") as file:
                json.dump(thing, file)
            os.rename(file.name, self.file_of(thing))

    def remove(self, *things):
        for thing in things:
            os.unlink(self.file_of(thing))

    def pods(self):
        return json.loads(self.ctl("get", "pods", "-o", "json")).get("pods", [])

    def wait_ready(self, name, seconds=90):
        try:
            wait_for(f"pod {name} ready", lambda: any(pod.get("name") == name and pod["phase"] == "Ready" for pod in self.pods()),
                     seconds)
        except Exception:
            print(self.ctl("explain", name, check=False), self.ctl("sources", check=False))
            raise

    def wait_gone(self, name, seconds=90):
        try:
            wait_for(f"pod {name} gone", lambda: all(pod.get("name") != name for pod in self.pods()), seconds)
        except Exception:
            print(self.ctl("explain", name, check=False))
            raise
