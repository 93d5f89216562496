#!/usr/bin/env python3
"""Compiles the files of a database with its clang, one for each processor at a time.

Files of one target are compiled four at a time, as a unity build has them: what they include is most
of the work. The objects serve nothing but ccache, which answers for files that were right before. If
four together are not right, each is read alone, and its own errors are told.

usage: clang_each.py compile_commands.json PREFIX...   (prefixes of paths below the project)
"""
import concurrent.futures
import hashlib
import json
import os
import pathlib
import shlex
import shutil
import subprocess
import sys

BATCH = 4


def options(entry):
    """The words of the command without the file and what it is compiled to."""
    kept, skip = [], False
    for word in shlex.split(entry["command"]):
        if skip:
            skip = False
        elif word == "-o":
            skip = True
        elif word not in ("-c", entry["file"]):
            kept.append(word)
    return tuple(kept)


def run(words, directory):
    done = subprocess.run(words, cwd=directory, text=True, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, check=False)
    return done.returncode, done.stdout


def syntax_only(entry):
    return run([*options(entry), "-fsyntax-only", entry["file"]], entry["directory"])


def compile_together(batch):
    """Whether the files of the batch are right together. Its names are the same in each checkout."""
    folder = pathlib.Path(batch[0]["directory"]) / "batches"
    folder.mkdir(exist_ok=True)
    includes = [os.path.relpath(entry["file"], folder) for entry in batch]
    text = "".join(f'#include "{name}"\n' for name in includes)
    source = folder / (hashlib.sha256(text.encode()).hexdigest()[:16] + ".cc")
    if not source.exists():
        source.write_text(text)
    words = [*options(batch[0]), "-c", str(source), "-o", str(source.with_suffix(".o"))]
    ccache = shutil.which("ccache")
    return run([ccache, *words] if ccache else words, batch[0]["directory"])[0] == 0


def check(batch):
    """The files of the batch that are not right, and what clang says of each."""
    if compile_together(batch):
        return []
    doubtful = [entry for entry in batch if len(batch) == 1 or not compile_together([entry])]
    alone = [(entry["file"], *syntax_only(entry)) for entry in doubtful]
    return [(name, output) for name, code, output in alone if code != 0]


def batches(entries):
    targets = {}
    for entry in entries:
        folder = os.path.dirname(entry["file"])
        targets.setdefault((entry["directory"], options(entry), folder), []).append(entry)
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
