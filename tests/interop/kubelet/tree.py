"""What is below a root: its files, and its mounts. As text that two agents' roots can be compared by, and as identities
that a root before and after a take-over can."""

import json
import os
import re
import stat

from driver import loop_devices

KINDS = {stat.S_IFDIR: "directory", stat.S_IFREG: "file", stat.S_IFLNK: "link", stat.S_IFSOCK: "socket",
         stat.S_IFBLK: "block device", stat.S_IFIFO: "pipe", stat.S_IFCHR: "character device"}


class Names:
    """Devices have other numbers in each run; they are called by what is behind them."""

    def __init__(self, root, driver):
        self.root, self.disks, self.loops = root, driver.devices(), loop_devices()
        self.by_number = {os.stat(device).st_rdev: device for device in self.loops}

    def device(self, path):
        if path in self.disks:
            return "disk " + self.disks[path]
        behind = self.loops.get(path, "")
        if behind.startswith(self.root + "/"):
            return "loop device over " + os.path.relpath(behind, self.root)
        # A loop device over a device is named by the latter.
        return f"loop device over {self.device(behind)}" if behind.startswith("/dev/loop") else path

    def number(self, rdev):
        return self.device(self.by_number.get(rdev, f"{os.major(rdev)}:{os.minor(rdev)}"))


def entry_of(path, names):
    status = os.lstat(path)
    found = {"kind": KINDS[stat.S_IFMT(status.st_mode)], "mode": oct(stat.S_IMODE(status.st_mode)),
             "owner": f"{status.st_uid}:{status.st_gid}"}
    if stat.S_ISLNK(status.st_mode):
        found["target"] = names.device(os.readlink(path)).replace(names.root, "<root>")
    elif stat.S_ISBLK(status.st_mode):
        found["device"] = names.number(status.st_rdev)
    elif stat.S_ISREG(status.st_mode):
        if os.path.basename(path) == "vol_data.json":
            with open(path) as file:
                found["content"] = json.load(file)
        else:
            found["size"] = status.st_size
    return found


def walk(root):
    yield root
    for directory, folders, files in os.walk(root):
        for name in sorted(folders) + sorted(files):
            yield os.path.join(directory, name)


def entries(root, driver):
    names = Names(root, driver)
    return {os.path.relpath(path, root): entry_of(path, names) for path in walk(root)}


def unescaped(word):
    return re.sub(r"\\([0-7]{3})", lambda match: chr(int(match[1], 8)), word)


def mount_lines(root, process="self"):
    """(id, mount point, root in the filesystem, options, propagation, type, source, options of the filesystem)"""
    with open(f"/proc/{process}/mountinfo") as file:
        for line in file:
            left, _, right = line.rstrip("\n").partition(" - ")
            words, (kind, source, options) = left.split(" "), right.split(" ")
            place = unescaped(words[4])
            if place == root or place.startswith(root + "/"):
                shared = " ".join(re.sub(":.*", "", word) for word in words[6:])
                yield int(words[0]), place, unescaped(words[3]), words[5], shared, kind, source, options


def mounts(root, driver):
    names, found = Names(root, driver), {}
    for _, place, inner, options, shared, kind, source, of_filesystem in mount_lines(root):
        # Loop devices lie in devtmpfs by their names.
        if kind == "devtmpfs":
            inner, of_filesystem = names.device("/dev" + inner), ""
        found.setdefault(os.path.relpath(place, root), []).append(
            {"of": inner, "options": options, "propagation": shared, "type": kind, "source": names.device(source),
             "filesystem options": of_filesystem})
    return found


def record(root, driver):
    return {"entries": entries(root, driver), "mounts": mounts(root, driver)}


def identities(root):
    """Mount ids, and device and inode of all that CSI volumes consist of: none of it may change in a take-over."""
    found = {}
    for number, place, *_ in mount_lines(root):
        found.setdefault(f"mounts at {os.path.relpath(place, root)}", []).append(number)
    for path in walk(root):
        name = os.path.relpath(path, root)
        if re.search(r"kubernetes\.io[~/]csi|volume-subpaths", name):
            status = os.lstat(path)
            found[name] = (status.st_dev, status.st_ino, status.st_rdev)
            if stat.S_ISLNK(status.st_mode):
                found[f"link {name}"] = found.pop(name) + (os.readlink(path),)
    return found
