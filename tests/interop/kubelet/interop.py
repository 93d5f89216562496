"""scripts/interop runs this: the same pods by a real kubelet and by volumed with the same driver, compared entry by entry,
each agent's take-over of what the other one has made, and volumed as the kubelet's CSI driver (docs/INTEROP.md)."""

import argparse
import os
import shutil
import signal
import sys
import tempfile

from lab import Lab
from own_daemonset import own_daemonset
from own_driver import own_driver
from runs import compare
from storage_suite import storage_suite
from suite_drivers import DRIVERS
from take_over import (end_what_volumed_made, take_over_and_end, take_over_from_kubelet, take_over_from_volumed,
                       take_over_midway)
from tools import Failed, say


def in_lab(steps, scratch, peers, binaries):
    """Those that failed, on one cluster."""
    lab = Lab(scratch, peers, binaries)
    try:
        lab.cluster.start_control_plane()
        lab.cluster.start_containerd()
        return [name for name, step in steps.items() if not step(lab)]
    finally:
        lab.end()


def keep_logs(scratch):
    """The logs of volumed, the kubelet and all others outlive a run that has failed, if nothing else of it does."""
    kept = tempfile.mkdtemp(prefix="interop-logs.", dir="build")
    for directory, _, names in os.walk(scratch):
        for name in names:
            log = os.path.join(directory, name)
            if name.endswith(".log") and os.path.isfile(log):
                shutil.copy(log, os.path.join(kept, os.path.relpath(log, scratch).replace("/", "-")))
    return os.path.abspath(kept)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--volumed", required=True, help="build directory")
    parser.add_argument("--peer", action="append", default=[], help="NAME=PROGRAM")
    parser.add_argument("--keep", action="store_true", help="keep logs and records of a run that has failed")
    parser.add_argument("--verbose", action="store_true", help="each difference, not one of a kind")
    parser.add_argument("--rounds", type=int, default=3, help="of own-driver: lives of a claim that are timed")
    parser.add_argument("--daemonset", action="store_true", help="own-driver with volumed in a container")
    parser.add_argument("--all", action="store_true", help="of storage-suite: what takes minutes or the node alone, too")
    parser.add_argument("--driver", action="append", choices=DRIVERS, help="of storage-suite: image if nothing is said")
    parser.add_argument("--only", help="of storage-suite: specs that have this in their names")
    parser.add_argument("step", nargs="*", default=[])
    words = parser.parse_args()
    peers = dict(word.split("=", 1) for word in words.peer)
    binaries = {"build": words.volumed, "volumed": words.volumed + "/src/agent/volumed",
                "volumectl": words.volumed + "/src/cli/volumectl"}
    steps = {"compare": lambda lab: compare(lab, words.verbose), "from-kubelet": take_over_from_kubelet,
             "ended-by-volumed": take_over_and_end, "from-volumed": take_over_from_volumed,
             "ended-by-kubelet": end_what_volumed_made, "midway": take_over_midway}
    wanted = words.step or [*steps, "own-driver"]
    for name in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(name, lambda *_: sys.exit(143))
    scratch = tempfile.mkdtemp(prefix="volumed-kubelet.", dir="/var/tmp")
    failed = ["it did not end"]
    try:
        of_lab = {name: steps[name] for name in wanted if name in steps}
        failed = in_lab(of_lab, scratch, peers, binaries) if of_lab else []
        if "own-driver" in wanted:
            (own_daemonset if words.daemonset else own_driver)(scratch, peers, binaries, words.rounds)
        if "storage-suite" in wanted:
            failed += storage_suite(scratch, peers, binaries, words.driver or ["image"], words.all, words.only)
    except Failed as failure:
        failed = [str(failure)]
    finally:
        if failed and words.keep:
            say(f"kept, with all logs: {scratch}")
        else:
            if failed:
                say(f"logs of volumed, the kubelet and all others: {keep_logs(scratch)} (--keep keeps records, too)")
            shutil.rmtree(scratch, ignore_errors=True)
    if not failed and "own-driver" in wanted:
        say("done: all of it held: claims of volumed's own class lived their whole lives under a real kubelet, over deaths of the "
            "kubelet and of volumed, on one node and on two; nothing is left")
    say(f"interop: {'FAILED: ' + ', '.join(failed) if failed else 'all as it should be'}")
    return 1 if failed else 0


sys.exit(main())
