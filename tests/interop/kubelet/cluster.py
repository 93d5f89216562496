"""A cluster of one node on loopback: etcd, API server, controller manager, the sidecars of one CSI driver, containerd and
a real kubelet. All state is below one directory; end() takes all of it away, and what they leave elsewhere."""

import glob
import json
import os
import signal
import urllib.request

from tools import Failed, Process, free_port, run, say, wait_for

NODE = "it-node"
# They end when their driver does.
SIDECARS = ("csi-attacher", "csi-resizer")
IMAGE = "volumed.local/busybox:1"
# The kubelet refuses 127.0.0.1. On the interface lo, so nothing listens outside.
NODE_ADDRESS = "10.245.0.1"


class Cluster:
    def __init__(self, peers, directory, root, node=NODE, address=NODE_ADDRESS):
        self.peers, self.dir, self.root, self.node, self.address = peers, directory, root, node, address
        self.inside = ()  # words before those of a program that runs on the node
        self.network_programs = self.path("cni-bin")
        self.pki = os.path.join(directory, "pki")
        self.processes = []
        self.kubelet = None
        self.api_port = free_port()
        self.ctr = ("ctr", "-a", self.path("containerd.sock"), "-n", "k8s.io")
        # What is there already is somebody else's.
        self.outside = [path for path in ("/var/lib/kubelet/device-plugins", "/var/lib/kubelet", "/run/containerd",
                                          "/var/lib/cni", "/var/log/containers") if not os.path.exists(path)]
        os.makedirs(self.pki, 0o700)

    def path(self, name):
        return os.path.join(self.dir, name)

    # Keys and certificates.

    def issue(self, name, subject, extensions):
        key, request, extra = (os.path.join(self.pki, name + end) for end in (".key", ".csr", ".ext"))
        run("openssl", "req", "-new", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-subj", subject,
            "-keyout", key, "-out", request)
        with open(extra, "w") as file:
            file.write(extensions + "\n")
        ca = os.path.join(self.pki, "ca")
        run("openssl", "x509", "-req", "-in", request, "-CA", ca + ".crt", "-CAkey", ca + ".key", "-CAcreateserial",
            "-days", "30", "-extfile", extra, "-out", os.path.join(self.pki, name + ".crt"))

    def make_keys(self):
        ca, sa = os.path.join(self.pki, "ca"), os.path.join(self.pki, "sa")
        run("openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "30",
            "-subj", "/CN=interop", "-keyout", ca + ".key", "-out", ca + ".crt")
        run("openssl", "genrsa", "-out", sa + ".key", "2048")
        run("openssl", "rsa", "-in", sa + ".key", "-pubout", "-out", sa + ".pub")
        client = "extendedKeyUsage=clientAuth"
        self.issue("apiserver", "/CN=kube-apiserver", "extendedKeyUsage=serverAuth\nsubjectAltName=DNS:kubernetes,"
                   "DNS:kubernetes.default,DNS:kubernetes.default.svc,IP:127.0.0.1,IP:10.96.0.1")
        self.issue("admin", "/O=system:masters/CN=admin", client)
        self.issue("kubelet-client", "/O=system:masters/CN=kubelet-client", client)
        self.issue("controller-manager", "/CN=system:kube-controller-manager", client)
        for who in ("admin", "controller-manager"):
            self.write_kubeconfig(who)
        self.make_node_keys()

    def make_node_keys(self):
        self.issue(self.node, f"/O=system:nodes/CN=system:node:{self.node}", "extendedKeyUsage=clientAuth")
        self.write_kubeconfig(self.node)

    def write_kubeconfig(self, who):
        config = {
            "apiVersion": "v1", "kind": "Config", "current-context": "it",
            "clusters": [{"name": "it", "cluster": {"server": f"https://127.0.0.1:{self.api_port}",
                                                    "certificate-authority": os.path.join(self.pki, "ca.crt")}}],
            "users": [{"name": who, "user": {"client-certificate": os.path.join(self.pki, who + ".crt"),
                                             "client-key": os.path.join(self.pki, who + ".key")}}],
            "contexts": [{"name": "it", "context": {"cluster": "it", "user": who}}]}
        with open(self.path(who + ".kubeconfig"), "w") as file:
            json.dump(config, file)

    # The control plane.

    def start(self, name, *words, output=None):
        process = Process(self.dir, name, *words, output=output)
        self.processes.append(process)
        return process

    def kubectl(self, *words, text="", check=True):
        return run(self.peers["kubectl"], "--kubeconfig", self.path("admin.kubeconfig"), *words, text=text, check=check)

    def get(self, *words):
        """An object; None if it is not there."""
        text = self.kubectl("get", *words, "-o", "json", "--ignore-not-found")
        return json.loads(text) if text.strip() else None

    def all(self, kind):
        return json.loads(self.kubectl("get", kind, "-o", "json"))["items"]

    def apply(self, objects):
        self.kubectl("apply", "-f", "-", text=json.dumps({"apiVersion": "v1", "kind": "List", "items": objects}))

    def start_control_plane(self):
        self.make_keys()
        client, peer = free_port(), free_port()
        etcd = f"http://127.0.0.1:{client}"
        self.start("etcd", self.peers["etcd"], "--name", "it", "--data-dir", self.path("etcd"), "--unsafe-no-fsync",
                   "--listen-client-urls", etcd, "--advertise-client-urls", etcd,
                   "--listen-peer-urls", f"http://127.0.0.1:{peer}",
                   "--initial-advertise-peer-urls", f"http://127.0.0.1:{peer}",
                   "--initial-cluster", f"it=http://127.0.0.1:{peer}", "--log-level", "warn"
                   ).ready(lambda: answers(etcd + "/health"))
        pki = lambda name: os.path.join(self.pki, name)
        self.start("kube-apiserver", self.peers["kube-apiserver"], "--etcd-servers", etcd, "--bind-address", "127.0.0.1",
                   "--advertise-address", "127.0.0.1", "--secure-port", str(self.api_port),
                   "--service-cluster-ip-range", "10.96.0.0/16", "--authorization-mode", "Node,RBAC",
                   "--enable-admission-plugins", "NodeRestriction", "--allow-privileged=true",
                   "--client-ca-file", pki("ca.crt"), "--tls-cert-file", pki("apiserver.crt"),
                   "--tls-private-key-file", pki("apiserver.key"), "--endpoint-reconciler-type", "none",
                   "--kubelet-client-certificate", pki("kubelet-client.crt"), "--kubelet-client-key",
                   pki("kubelet-client.key"), "--kubelet-preferred-address-types", "InternalIP",
                   "--service-account-issuer", "https://kubernetes.default.svc",
                   "--service-account-key-file", pki("sa.pub"), "--service-account-signing-key-file", pki("sa.key")
                   ).ready(lambda: "ok" in self.kubectl("get", "--raw", "/readyz", check=False))
        config = self.path("controller-manager.kubeconfig")
        # A node whose kubelet was ended for a while is still that node.
        self.start("kube-controller-manager", self.peers["kube-controller-manager"], "--kubeconfig", config,
                   "--authentication-kubeconfig", config, "--authorization-kubeconfig", config,
                   "--bind-address", "127.0.0.1", "--secure-port", str(free_port()), "--leader-elect=false",
                   "--use-service-account-credentials=true", "--service-account-private-key-file", pki("sa.key"),
                   "--root-ca-file", pki("ca.crt"), "--flex-volume-plugin-dir", self.path("flexvolume"),
                   "--node-monitor-grace-period", "1h"
                   ).ready(lambda: self.get("serviceaccount", "default"))

    def start_scheduler(self):
        """For claims that wait for their first consumer; other pods name their node."""
        config = self.path("admin.kubeconfig")
        self.start("kube-scheduler", self.peers["kube-scheduler"], "--kubeconfig", config, "--authentication-kubeconfig",
                   config, "--authorization-kubeconfig", config, "--bind-address", "127.0.0.1", "--secure-port",
                   str(free_port()), "--leader-elect=false")

    def start_sidecars(self, controller_socket):
        for name in SIDECARS:
            self.start(name, self.peers[name], "--csi-address", controller_socket, "--kubeconfig",
                       self.path("admin.kubeconfig"), "--v", "4")

    def end_sidecars(self):
        for process in [process for process in self.processes if process.name in SIDECARS]:
            process.end()
            self.processes.remove(process)

    # The node.

    def have_network(self):
        """A scheduler uses no node whose runtime has no network: one that is written down is enough, as all pods here have
        the host's."""
        os.makedirs(self.path("cni"))
        with open(self.path("cni/10-none.conflist"), "w") as file:
            json.dump({"cniVersion": "0.4.0", "name": "none", "plugins": [{"type": "none"}]}, file)

    def connect_pods(self):
        """Each with an interface and an address of its own, which are asked for by programs that are not ours."""
        self.network_programs = "/usr/lib/cni"
        addresses = {"type": "host-local", "subnet": "10.246.0.0/16", "dataDir": self.path("cni-addresses"),
                     "routes": [{"dst": "0.0.0.0/0"}]}
        with open(self.path("cni/05-pods.conflist"), "w") as file:
            json.dump({"cniVersion": "0.4.0", "name": "pods",
                       "plugins": [{"type": "ptp", "ipMasq": False, "ipam": addresses}]}, file)

    def start_containerd(self):
        run("ip", "address", "add", self.address + "/32", "dev", "lo", check=False)
        config = self.path("containerd.toml")
        # Version 2 is read by 1.6 and 1.7; without CAP_SYS_RESOURCE runc cannot lower a score.
        with open(config, "w") as file:
            file.write(f"""version = 2
root = "{self.path('containerd')}"
state = "{self.path('containerd-run')}"
[grpc]
  address = "{self.path('containerd.sock')}"
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "{IMAGE}"
  restrict_oom_score_adj = true
  [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
    runtime_type = "io.containerd.runc.v2"
    [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
      SystemdCgroup = false
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "{self.network_programs}"
    conf_dir = "{self.path('cni')}"
""")
        self.start("containerd", *self.inside, "containerd", "--config", config).ready(
            lambda: run(*self.ctr, "version", check=False).count("Version:") > 1)
        here = os.path.dirname(os.path.abspath(__file__))
        run(os.path.join(here, "image.sh"), self.path("image.tar"), IMAGE)
        run(*self.ctr, "images", "import", self.path("image.tar"))

    def start_kubelet(self):
        health = free_port()
        config = {
            "apiVersion": "kubelet.config.k8s.io/v1beta1", "kind": "KubeletConfiguration",
            "address": self.address, "port": free_port(), "healthzPort": health, "readOnlyPort": 0,
            "authentication": {"anonymous": {"enabled": False}, "x509": {"clientCAFile": os.path.join(self.pki, "ca.crt")},
                               "webhook": {"enabled": False}},
            "authorization": {"mode": "AlwaysAllow"},
            "containerRuntimeEndpoint": "unix://" + self.path("containerd.sock"),
            "podLogsDir": self.path("logs"), "volumePluginDir": self.path("flexvolume"),
            # What a machine without systemd, with cgroups of version 1 and without CAP_SYS_RESOURCE needs.
            "cgroupDriver": "cgroupfs", "cgroupsPerQOS": False, "enforceNodeAllocatable": [], "failCgroupV1": False,
            "failSwapOn": False, "makeIPTablesUtilChains": False, "localStorageCapacityIsolation": False,
            "evictionHard": {}, "imageGCHighThresholdPercent": 100,
            # Quicker than the defaults: it starts on a volume only after a tick has reported it in use.
            "syncFrequency": "5s", "nodeStatusUpdateFrequency": "1s", "volumeStatsAggPeriod": "5s",
            # Sidecars end with their driver, and are to be there again as soon as it is.
            "crashLoopBackOff": {"maxContainerRestartPeriod": "1s"},
            "logging": {"verbosity": 4}}
        with open(self.path("kubelet.yaml"), "w") as file:
            json.dump(config, file)
        os.makedirs(self.path("logs"), exist_ok=True)
        self.kubelet = self.start("kubelet", *self.inside, self.peers["kubelet"], "--config", self.path("kubelet.yaml"),
                                  "--root-dir", self.root, "--cert-dir", self.path("kubelet-pki"),
                                  "--hostname-override", self.node, "--node-ip", self.address,
                                  "--kubeconfig", self.path(self.node + ".kubeconfig"))
        self.kubelet.ready(lambda: answers(f"http://127.0.0.1:{health}/healthz"))

    def end_kubelet(self, how=signal.SIGTERM):
        """Its pods go on, as over an update of it."""
        self.kubelet.end(how)
        self.processes.remove(self.kubelet)
        self.kubelet = None

    def containers(self):
        return run(*self.ctr, "containers", "ls", "-q", check=False).split()

    def end_containers(self):
        for container in self.containers():
            run(*self.ctr, "tasks", "kill", "-s", "KILL", container, check=False)
            wait_for(f"container {container} has ended", lambda: self.forget_task(container), 20)
            run(*self.ctr, "containers", "rm", container, check=False)
            for group in glob.glob("/sys/fs/cgroup/*/k8s.io/" + container) + glob.glob("/sys/fs/cgroup/k8s.io/" + container):
                remove_directory(group)

    def forget_task(self, container):
        run(*self.ctr, "tasks", "rm", container, check=False)
        return container not in run(*self.ctr, "tasks", "ls", "-q", check=False).split()

    def end_shims(self):
        """Of containers that containerd was making when it was ended."""
        for path in glob.glob("/proc/[0-9]*/cmdline"):
            try:
                with open(path) as file:
                    words = file.read().split("\0")
            except OSError:
                continue
            if "containerd-shim" not in words[0] or self.path("containerd.sock") not in words:
                continue
            container = words[words.index("-id") + 1]
            run("runc", "--root", "/run/containerd/runc/k8s.io", "delete", "--force", container, check=False)
            os.kill(int(path.split("/")[2]), signal.SIGKILL)
            for group in glob.glob("/sys/fs/cgroup/*/k8s.io/" + container) + glob.glob("/sys/fs/cgroup/k8s.io/" + container):
                remove_directory(group)

    def end(self):
        if self.kubelet:
            self.end_kubelet()
        try:
            self.end_containers()
        except Failed as failure:
            say(f"left over: {failure}")
        for process in reversed(self.processes):
            process.end()
        self.processes = []
        self.end_shims()
        for group in glob.glob("/sys/fs/cgroup/*/k8s.io") + glob.glob("/sys/fs/cgroup/k8s.io"):
            remove_directory(group)
        for link in glob.glob("/var/log/containers/*"):
            if os.path.islink(link) and os.readlink(link).startswith(self.dir + "/"):
                os.unlink(link)
        run("ip", "address", "del", self.address + "/32", "dev", "lo", check=False)
        for path in self.outside:
            for name in ("kubelet.sock", "kubelet_internal_checkpoint", "DEPRECATION"):
                if path.endswith("/device-plugins") and os.path.exists(os.path.join(path, name)):
                    os.unlink(os.path.join(path, name))
            for below, _, names in os.walk(path, topdown=False):
                for name in names if below == "/run/containerd/s" else ():
                    os.unlink(os.path.join(below, name))
                remove_directory(below)


def answers(url):
    try:
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        with opener.open(url, timeout=5) as answer:
            return answer.status == 200
    except OSError:
        return False


def remove_directory(path):
    try:
        os.rmdir(path)
    except OSError:
        pass
