#!/usr/bin/env python3
"""clang-tidy over the files of src/, those of one folder eight at a time: what they include is most of the work.

The files of a batch stand in one file, one after the other, as a unity build has them: clang-tidy and its analyzer
look at what is written in the file that they are given, and not into what that includes. What it finds is
told with the file and line that it stands in.

usage: clang_tidy_each.py BUILD_DIR [FILE...]   (without files: the whole of src/)
"""
import concurrent.futures
import json
import os
import pathlib
import re
import shlex
import subprocess
import sys

BATCH = 8
TOP = pathlib.Path(__file__).resolve().parent.parent


def options(entry):
    """The words of the command without the launcher, the file and what it is compiled to."""
    kept, skip = [], False
    for word in shlex.split(entry["command"]):
        if skip:
            skip = False
        elif word == "-o":
            skip = True
        elif word not in ("-c", entry["file"]) and not word.endswith("ccache"):
            kept.append(word)
    return tuple(kept)


def batches(entries):
    folders = {}
    for entry in sorted({entry["file"]: entry for entry in entries}.values(), key=lambda entry: entry["file"]):
        folders.setdefault((options(entry), os.path.dirname(entry["file"])), []).append(entry)
    return [files[at:at + BATCH] for files in folders.values() for at in range(0, len(files), BATCH)]


def write_together(build, number, batch):
    """The file that holds the batch, and the (first line, name) of each of its files."""
    starts, lines = [], []
    for entry in batch:
        starts.append((len(lines), os.path.relpath(entry["file"], TOP)))
        lines += pathlib.Path(entry["file"]).read_text().splitlines()
    together = build / "tidy" / f"{number}.cc"
    together.parent.mkdir(exist_ok=True)
    together.write_text("\n".join(lines) + "\n")
    return together, starts


def told_where(output, together, starts):
    """What clang-tidy said, with the file and line that it is about in place of the file that it was given."""
    def original(match):
        line = int(match.group(1)) - 1
        first, name = max(start for start in starts if start[0] <= line)
        return f"{name}:{line - first + 1}:"
    return re.sub(re.escape(str(together)) + r":(\d+):", original, output)


def look(build, number, batch):
    together, starts = write_together(build, number, batch)
    done = subprocess.run(["clang-tidy", "--quiet", str(together), "--", *options(batch[0])[1:]], cwd=TOP, text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False)
    if done.returncode == 0:
        return ""
    if len(batch) > 1 and "[clang-diagnostic-error]" in done.stdout:  # one file has a name that another has too
        return "".join(look(build, f"{number}-{at}", [entry]) for at, entry in enumerate(batch))
    return told_where(done.stdout or done.stderr, together, starts)


def main() -> int:
    build = pathlib.Path(sys.argv[1]).resolve()
    wanted = {str(pathlib.Path(name).resolve()) for name in sys.argv[2:]}
    database = json.loads((build / "compile_commands.json").read_text())
    entries = [entry for entry in database if entry["file"].startswith(str(TOP / "src"))]
    entries = [entry for entry in entries if not wanted or entry["file"] in wanted]
    failed = 0
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        todo = batches(entries)
        for found in pool.map(look, [build] * len(todo), range(len(todo)), todo):
            failed += bool(found)
            print(found, end="", flush=True)
    print(f"clang-tidy: {len(entries)} files, {failed or 'no'} batch(es) with findings")
    return 1 if failed or not entries else 0


if __name__ == "__main__":
    sys.exit(main())
