#!/usr/bin/env python3
"""The lab's virtual machine: boots it, or resumes it frozen, gives it a job, returns its exit code.

  vm.py freeze IMAGE                     boots once and freezes the booted machine into IMAGE/warm-*;
                                         nothing to do when that is there for this QEMU and machine
  vm.py run IMAGE JOB LOGS [--cold] [--timeout S] [--follow] [--after SCRIPT]
                                         JOB/run.sh runs inside as /lab/run.sh;
                                         --follow prints what it says while it runs

A job comes in as a disk with a tar of JOB, and /lab/out goes out as another: both are plugged in
when the machine is up, for a frozen machine cannot have them. Inside, the port lab.qmp is QEMU's own
monitor: the job plugs devices by itself. Their images are disk1.img, disk2.img ... of a scratch
folder; SCRIPT, if given, gets that folder when the machine is off.
"""
import argparse
import hashlib
import json
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import sys
import tarfile
import tempfile
import time

MEMORY_MB = 1024
CPUS = 2
SLOTS = 6  # for devices that a job plugs in; guest library: lab.sh
DISKS = 8
QEMU = "qemu-system-x86_64"
NO_RESULT = 125  # QEMU ended, or time was up, before the job had an exit code


class Monitor:
    """QEMU's monitor protocol over a unix socket."""

    def __init__(self, path, deadline):
        self._socket = socket.socket(socket.AF_UNIX)
        while True:
            try:
                self._socket.connect(str(path))
                break
            except OSError:
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.02)
        self._file = self._socket.makefile("rw")
        self._file.readline()
        self.call("qmp_capabilities")

    def call(self, command, **arguments):
        self._file.write(json.dumps({"execute": command, "arguments": arguments}) + "\n")
        self._file.flush()
        while line := self._file.readline():
            answer = json.loads(line)
            if "error" in answer:
                raise RuntimeError(f"{command}: {answer['error']['desc']}")
            if "return" in answer:
                return answer["return"]
        raise RuntimeError(f"{command}: QEMU has ended")


def machine_arguments(image, work, root):
    arguments = [
        "-machine", "q35", "-accel", "tcg,thread=multi", "-cpu", "max", "-smp", str(CPUS),
        "-m", str(MEMORY_MB), "-display", "none", "-nodefaults", "-nic", "none",
        "-kernel", image / "vmlinuz", "-initrd", image / "initrd.img",
        "-append", "console=ttyS0 quiet mitigations=off random.trust_cpu=on"
                   " systemd.show_status=0 systemd.journald.forward_to_console=0",
        "-drive", f"{root},if=none,id=root", "-device", "virtio-blk-pci,drive=root,serial=labroot",
        "-serial", f"file:{work}/serial.log", "-device", "virtio-serial-pci",
        "-chardev", f"file,id=console,path={work}/console.log",
        "-device", "virtconsole,chardev=console",
        "-chardev", f"file,id=rc,path={work}/rc", "-device", "virtserialport,chardev=rc,name=lab.rc",
        "-qmp", f"unix:{work}/qmp,server=on,wait=off",
        # The guest's own monitor: a monitor's socket, and a port that is connected to it.
        "-chardev", f"socket,id=monitor,path={work}/guest-qmp,server=on,wait=off",
        "-mon", "chardev=monitor,mode=control",
        "-chardev", f"socket,id=guest,path={work}/guest-qmp,reconnect=1",
        "-device", "virtserialport,chardev=guest,name=lab.qmp",
        "-device", "virtio-scsi-pci,id=scsi0"]
    for number, slot in enumerate([f"slot{n}" for n in range(1, SLOTS + 1)] + ["jobin", "jobout"]):
        arguments += ["-device", f"pcie-root-port,id={slot},chassis={number + 1}"]
    return [str(argument) for argument in arguments]


def frozen(image):
    """The two files of a frozen machine. A state fits only the machine and the QEMU that made it."""
    version = subprocess.run([QEMU, "--version"], stdout=subprocess.PIPE, check=True).stdout
    what = version + "\n".join(machine_arguments(image, pathlib.Path("work"), "root")).encode()
    key = hashlib.sha256(what).hexdigest()[:16]
    return image / f"warm-{key}.qcow2", image / f"warm-{key}.state"


class Machine:
    """One QEMU process, with the files of its run in `work`."""

    def __init__(self, image, work, deadline, root, more):
        self.work = work
        self.deadline = deadline
        self._errors = open(work / "qemu.err", "w")
        self._process = subprocess.Popen(
            [QEMU, *machine_arguments(image, work, root), *more],
            stdin=subprocess.DEVNULL, stdout=self._errors, stderr=self._errors)
        try:
            self.monitor = Monitor(work / "qmp", min(deadline, time.monotonic() + 20))
        except OSError as error:
            self.end()
            raise RuntimeError(f"QEMU does not start: {(work / 'qemu.err').read_text()}") from error

    def plug(self, name, file, read_only):
        self.monitor.call("blockdev-add", **{
            "driver": "raw", "node-name": name, "read-only": read_only,
            "file": {"driver": "file", "filename": str(file)}})
        self.monitor.call("device_add", driver="virtio-blk-pci", drive=name, id=name,
                          serial=name, bus="job" + name.removeprefix("lab"))

    def said(self):
        """The last line that the guest wrote to its port, or nothing."""
        path = self.work / "rc"
        lines = path.read_text().split("\n") if path.exists() else []
        return lines[-2] if len(lines) > 1 else ""

    def wait_until(self, condition, what):
        while not condition():
            if self._process.poll() is not None:
                raise RuntimeError(f"QEMU ended before {what}")
            if time.monotonic() > self.deadline:
                raise RuntimeError(f"time was up before {what}")
            time.sleep(0.05)

    def wait_for_end(self, follow):
        """False when time was up."""
        with open(self.work / "console.log", errors="replace", newline="") as console:
            while True:
                try:
                    self._process.wait(min(0.1 if follow else 600,
                                           max(0, self.deadline - time.monotonic())))
                    ended = True
                except subprocess.TimeoutExpired:
                    ended = False
                if follow:
                    print(console.read().replace("\r", ""), end="", flush=True)
                if ended or time.monotonic() >= self.deadline:
                    return ended

    def end(self):
        if self._process.poll() is None:
            self._process.kill()
        self._process.wait()
        self._errors.close()


def freeze(image):
    """Into a disk (what the boot wrote) and a state (memory and devices)."""
    disk, state = frozen(image)
    if state.exists():
        return
    print("lab: freezing a booted machine (half a minute, once)", file=sys.stderr)
    new_state = state.with_suffix(".new")
    subprocess.run(["qemu-img", "create", "-q", "-f", "qcow2", "-F", "raw", "-b",
                    image / "root.img", disk], check=True)
    with tempfile.TemporaryDirectory(prefix="volumed-lab.") as folder:
        machine = Machine(image, pathlib.Path(folder), time.monotonic() + 300,
                          f"file={disk},format=qcow2", [])
        try:
            machine.wait_until(lambda: machine.said() == "ready", "it was up")
            time.sleep(3)  # what systemd starts last is of no test's interest
            machine.monitor.call("stop")
            machine.monitor.call("migrate-set-parameters", **{"max-bandwidth": 4_000_000_000})
            machine.monitor.call("migrate", uri=f"exec:cat >{new_state}")
            machine.wait_until(lambda: machine.monitor.call("query-migrate").get("status")
                               in ("completed", "failed"), "it was frozen")
            status = machine.monitor.call("query-migrate")
            if status["status"] != "completed":
                raise RuntimeError(f"freezing failed: {status}")
        finally:
            machine.end()
    new_state.rename(state)


def start(image, work, deadline, cold):
    if cold:
        return Machine(image, work, deadline,
                       f"file={image}/root.img,format=raw,snapshot=on", ["-S"])
    disk, state = frozen(image)
    machine = Machine(image, work, deadline, f"file={disk},format=qcow2,snapshot=on",
                      ["-S", "-incoming", f"exec:cat {state}"])
    machine.wait_until(lambda: machine.monitor.call("query-status")["status"]
                       not in ("inmigrate", "finish-migrate"), "it was resumed")
    return machine


def pack(job, work):
    (work / "now").write_text(f"{int(time.time())}\n")
    (work / "host").write_text(f"{work}\n")
    with tarfile.open(work / "job.tar", "w", dereference=True) as tar:
        tar.add(job, arcname=".")
        tar.add(work / "now", arcname=".now")
        tar.add(work / "host", arcname=".host")
    for name, size in [("out.raw", 256 << 20)] + [(f"disk{n}.img", 0) for n in range(1, DISKS + 1)]:
        with open(work / name, "w") as file:
            file.truncate(size)


def keep_logs(work, logs):
    logs.mkdir(parents=True, exist_ok=True)
    for name in ("console.log", "serial.log", "qemu.err"):
        if (work / name).exists():
            shutil.copy(work / name, logs / name)
    subprocess.run(["tar", "-C", logs, "-xf", work / "out.raw"], stderr=subprocess.DEVNULL, check=False)


def run(image, job, logs, cold, timeout, follow, after):
    with tempfile.TemporaryDirectory(prefix="volumed-lab.") as folder:
        work = pathlib.Path(folder)
        pack(job, work)
        status, machine = NO_RESULT, None
        try:
            machine = start(image, work, time.monotonic() + timeout, cold)
            machine.plug("labout", work / "out.raw", False)
            machine.plug("labin", work / "job.tar", True)
            machine.monitor.call("cont")
            in_time = machine.wait_for_end(follow)
            said = machine.said()
            if said.startswith("rc "):
                status = int(said.removeprefix("rc "))
            if not in_time:
                print(f"lab: still running after {timeout} s")
                status = NO_RESULT
        except RuntimeError as error:
            print(f"lab: {error}")
        finally:
            if machine:
                machine.end()
            keep_logs(work, logs)
        if status == 0 and after:
            with open(logs / "after.log", "w") as log:
                status = subprocess.run([after, work], stdout=log, stderr=log, check=False).returncode
        return status


def main():
    # A killed run takes its machine and its scratch folder with it.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    parser = argparse.ArgumentParser()
    commands = parser.add_subparsers(dest="command", required=True)
    freezing = commands.add_parser("freeze")
    freezing.add_argument("image", type=pathlib.Path)
    running = commands.add_parser("run")
    for name in ("image", "job", "logs"):
        running.add_argument(name, type=pathlib.Path)
    running.add_argument("--cold", action="store_true")
    running.add_argument("--timeout", type=int, default=120)
    running.add_argument("--follow", action="store_true")
    running.add_argument("--after")
    words = parser.parse_args()
    if words.command == "freeze":
        freeze(words.image)
        return 0
    return run(words.image, words.job, words.logs, words.cold, words.timeout, words.follow,
               words.after)


if __name__ == "__main__":
    os.environ["LC_ALL"] = "C"
    sys.exit(main())
