#!/usr/bin/env python3
"""Runs the compile commands of a database with -fsyntax-only, one for each processor at a time.

Files of one target are read four at a time, as a unity build has them: what they include is most of
the work. If four together are not right, each is read alone, and its own errors are told.

usage: clang_each.py compile_commands.json PREFIX...   (prefixes of paths below the project)
"""
import concurrent.futures
import json
import os
import pathlib
import shlex
import subprocess
import sys
import tempfile

BATCH = 4


def options(entry):
    """The words of the command without the file, what it is compiled to, and ccache."""
    words = shlex.split(entry["command"])
    if os.path.basename(words[0]) == "ccache":
        words = words[1:]
    kept, skip = [], False
    for word in words:
        if skip:
            skip = False
        elif word == "-o":
            skip = True
        elif word not in ("-c", entry["file"]):
            kept.append(word)
    return tuple(kept)


def syntax_only(words, directory, name):
    done = subprocess.run([*words, "-fsyntax-only", name], cwd=directory, text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
    return done.returncode, done.stdout


def check(batch):
    """The files of the batch that are not right, and what clang says of each."""
    words, directory = options(batch[0]), batch[0]["directory"]
    if len(batch) > 1:
        with tempfile.NamedTemporaryFile("w", suffix=".cc") as together:
            together.writelines(f'#include "{entry["file"]}"\n' for entry in batch)
            together.flush()
            if syntax_only(words, directory, together.name)[0] == 0:
                return []
    alone = [(entry["file"], *syntax_only(words, directory, entry["file"])) for entry in batch]
    return [(name, output) for name, code, output in alone if code != 0]


def batches(entries):
    targets = {}
    for entry in entries:
        targets.setdefault((entry["directory"], options(entry)), []).append(entry)
    return [files[at:at + BATCH] for files in targets.values() for at in range(0, len(files), BATCH)]


def main() -> int:
    top = pathlib.Path(__file__).resolve().parent.parent
    prefixes = tuple(str(top / prefix) for prefix in sys.argv[2:])
    database = json.loads(pathlib.Path(sys.argv[1]).read_text())
    entries = [entry for entry in database if entry["file"].startswith(prefixes)]
    failed = 0
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for wrong in pool.map(check, batches(entries)):
            for name, output in wrong:
                failed += 1
                print(f"{os.path.relpath(name, top)}:\n{output}")
    print(f"clang: {len(entries)} files, {failed} with errors")
    return 1 if failed or not entries else 0


if __name__ == "__main__":
    sys.exit(main())
