"""Processes, waiting and what is said of a step. Nothing here knows Kubernetes."""

import os
import signal
import socket
import subprocess
import time


class Failed(Exception):
    """A step that did not happen, or that happened otherwise than it should."""


def say(text):
    print(text, flush=True)


def run(*words, text="", check=True, env=None):
    """The standard output of a command that has ended."""
    done = subprocess.run(words, input=text, capture_output=True, text=True, env=env)
    if check and done.returncode != 0:
        raise Failed(f"{' '.join(words[:6])}: exit {done.returncode}: {(done.stderr or done.stdout)[-2000:]}")
    return done.stdout


def wait_for(what, condition, seconds=90):
    """Until the condition is true; what it returned. A machine under load is slow."""
    end = time.monotonic() + seconds
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > end:
            raise Failed(f"not within {seconds} s: {what}")
        time.sleep(0.05)


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def listens(path):
    with socket.socket(socket.AF_UNIX) as probe:
        try:
            probe.connect(path)
            return True
        except OSError:
            return False


class Process:
    """A child of this script, and with it ended: of its main thread, for the kernel goes by that. Its output goes to DIRECTORY/NAME.log, or its standard output to a
    file of its own."""

    def __init__(self, directory, name, *words, output=None, env=None):
        self.name, self.log = name, os.path.join(directory, name + ".log")
        with open(self.log, "ab") as log, open(output or self.log, "ab") as out:
            self.child = subprocess.Popen(
                ("setpriv", "--pdeathsig", "KILL") + words,
                stdin=subprocess.DEVNULL, stdout=out, stderr=log, env=env, start_new_session=True)

    def runs(self):
        return self.child.poll() is None

    def ready(self, condition, seconds=120):
        def look():
            if not self.runs():
                raise Failed(f"{self.name} ended: {self.last_words()}")
            return condition()
        wait_for(f"{self.name} is ready", look, seconds)
        return self

    def last_words(self):
        with open(self.log, errors="replace") as log:
            return log.read()[-3000:]

    def end(self, how=signal.SIGTERM, patience=30):
        if self.runs():
            self.child.send_signal(how)
            try:
                self.child.wait(patience)
            except subprocess.TimeoutExpired:
                self.child.kill()
        self.child.wait()
