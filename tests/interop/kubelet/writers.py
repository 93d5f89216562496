"""Uses volumes as programs do, until it is ended: then it checks that each write is there, and says as JSON what it saw.
  writers.py PLACE...    PLACE: write:FILE, device:FILE, read:FILE
Each write opens the place anew, so that it sees what is there at that moment; a descriptor of the first one stays open."""

import json
import os
import signal
import stat
import sys
import threading
import time

RECORD = 512
PAUSE = 0.01
ending = threading.Event()


class Place:
    def __init__(self, word):
        self.kind, _, self.path = word.partition(":")
        self.count, self.errors, self.identity, self.held = 0, [], None, None
        self.slowest = 0.0

    def note(self, error):
        if len(self.errors) < 5:
            self.errors.append(str(error))

    def once(self):
        flags = {"write": os.O_WRONLY | os.O_CREAT | os.O_APPEND, "device": os.O_RDWR, "read": os.O_RDONLY}[self.kind]
        descriptor = os.open(self.path, flags, 0o644)
        try:
            status = os.fstat(descriptor)
            identity = (status.st_dev, status.st_ino) if stat.S_ISREG(status.st_mode) else (status.st_rdev,)
            if self.identity is None:
                self.identity, self.held = identity, os.dup(descriptor)
            elif self.identity != identity:
                self.note(f"another file: {self.identity} {identity}")
            if self.kind == "read":
                os.read(descriptor, RECORD)
                return
            record = b"%d\n" % self.count
            if self.kind == "device":
                os.pwrite(descriptor, record.ljust(RECORD), self.count * RECORD)
            else:
                os.write(descriptor, record)
            os.fdatasync(descriptor)
        finally:
            os.close(descriptor)

    def use(self):
        while not ending.is_set():
            start = time.monotonic()
            try:
                self.once()
                self.count += 1
            except OSError as error:
                self.note(error)
            self.slowest = max(self.slowest, time.monotonic() - start)
            time.sleep(PAUSE)

    def check(self):
        """What was said to be written has to be there, in its order, and nothing else."""
        if self.kind == "read":
            return
        with open(self.path, "rb") as file:
            if self.kind == "write":
                numbers = file.read().split()
            else:
                numbers = [file.read(RECORD).strip() for _ in range(self.count)]
        lost = [number for number in range(self.count) if number >= len(numbers) or numbers[number] != b"%d" % number]
        if lost or len(numbers) != self.count:
            self.note(f"{len(lost)} of {self.count} writes are not there, the first is {lost[:1]}; {len(numbers)} records")


def main():
    signal.signal(signal.SIGTERM, lambda *_: ending.set())
    places = [Place(word) for word in sys.argv[1:]]
    threads = [threading.Thread(target=place.use) for place in places]
    for thread in threads:
        thread.start()
    ending.wait()
    for thread in threads:
        thread.join()
    for place in places:
        try:
            place.check()
        except OSError as error:
            place.note(error)
    print(json.dumps([{"place": f"{place.kind}:{place.path}", "count": place.count, "errors": place.errors,
                       "slowest": round(place.slowest, 3)} for place in places]))


main()
