"""The same pods by a kubelet, and then by volumed, and what differs."""

import json
import os

import differences
from cluster import NODE
from compare import Comparison, compare_calls
from driver import NAME
from lab import MOUNTED, expanded, measured, wait_pods_gone
from objects import GROWING, grown, pods
from tools import say, wait_for
from tree import record
from volumed import Volumed


def run_kubelet(lab):
    """Its records while the pods run, after the growth, when they are gone; the calls; the objects as the API has them."""
    cluster, found = lab.cluster, {}
    lab.begin("kubelet")
    cluster.start_kubelet()
    lab.start_node_driver()
    wait_for("the driver is registered", lambda: NAME in json.dumps((cluster.get("csinode", NODE) or {}).get("spec", {})))
    lab.make_volumes()
    for pod in pods():
        lab.make_pod(pod)
        lab.wait_running([pod["metadata"]["name"]])
    wait_for("volumes measured", lambda: measured(lab.driver, 0, MOUNTED))
    found["objects"] = lab.objects("csidriver", "storageclass", "secret", "pv", "pvc", "pods")
    found["running"] = record(lab.root, lab.driver)
    for name in GROWING:
        cluster.kubectl("patch", "pvc", name, "--type=merge", "-p",
                        '{"spec":{"resources":{"requests":{"storage":"2Gi"}}}}')
    wait_for("claims grown", lambda: all(cluster.get("pvc", name)["status"]["capacity"]["storage"] == "2Gi"
                                         for name in GROWING))
    found["grown"] = record(lab.root, lab.driver)
    lab.delete_pods([pod["metadata"]["name"] for pod in pods()])
    lab.wait_detached()
    wait_pods_gone(lab)
    found["gone"] = record(lab.root, lab.driver)
    found["calls"] = lab.driver.calls()
    found["detached in use"] = lab.driver.detached_in_use()
    lab.delete_volumes()
    lab.finish()
    return found


def run_volumed(lab, objects):
    """The same by volumed, which attaches and grows by the driver's controller itself."""
    found = {}
    lab.begin("volumed", controllers=False)
    agent = lab.volumed = Volumed(lab.binaries, os.path.join(lab.dir, "volumed"), lab.root, "controller",
                                  lab.driver.cloud_socket, os.path.join(lab.dir, "logs"))
    agent.start()
    lab.start_node_driver()
    by_name = {thing["metadata"]["name"]: thing for thing in objects if thing["kind"] == "Pod"}
    agent.put(*[thing for thing in objects if thing["kind"] != "Pod"])
    for name in (pod["metadata"]["name"] for pod in pods()):
        agent.put(by_name[name])
        agent.wait_ready(name)
    wait_for("volumes measured", lambda: measured(lab.driver, 0, MOUNTED))
    found["running"] = record(lab.root, lab.driver)
    for thing in objects:
        if thing["kind"] == "PersistentVolumeClaim" and thing["metadata"]["name"] in GROWING:
            agent.put(grown(thing))
    wait_for("volumes grown", lambda: expanded(lab.driver))
    found["grown"] = record(lab.root, lab.driver)
    for name in (pod["metadata"]["name"] for pod in pods()):
        agent.remove(by_name[name])
        agent.wait_gone(name)
    lab.wait_answered("ControllerUnpublishVolume")
    found["gone"] = record(lab.root, lab.driver)
    found["calls"] = lab.driver.calls()
    found["detached in use"] = lab.driver.detached_in_use()
    lab.finish()
    return found


def compare(lab, verbose):
    kubelet = run_kubelet(lab)
    say("kubelet has run them")
    ours = run_volumed(lab, kubelet["objects"])
    say("volumed has run them")
    with open(os.path.join(lab.scratch, "compared.json"), "w") as file:
        json.dump([{key: [str(call) + " " + json.dumps(call.request) for call in value] if key == "calls" else value
                    for key, value in side.items()} for side in (kubelet, ours)], file, indent=1)
    good = True
    for moment in ("running", "grown", "gone"):
        for what in ("entries", "mounts"):
            comparison = Comparison(differences.tree() if what == "entries" else differences.mounts())
            comparison.maps(what, kubelet[moment][what], ours[moment][what])
            both = kubelet[moment][what].keys() & ours[moment][what].keys()
            say(f"== {what}, {moment}: {len(both)} that both have; of their values {comparison.report(verbose)}")
            good = good and not comparison.unknown
    comparison = Comparison(differences.calls())
    compare_calls(comparison, kubelet["calls"], ours["calls"])
    for key, side in (("kubelet", kubelet), ("ours", ours)):
        if side["detached in use"]:
            comparison.differs(f"{key}: {side['detached in use']} disks were detached in use")
    say(f"== calls: {len(kubelet['calls'])} of kubelet, {len(ours['calls'])} of volumed; of their values {comparison.report(verbose)}")
    return good and not comparison.unknown
