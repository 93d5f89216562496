#!/usr/bin/env python3
"""Runs the compile commands of a database with -fsyntax-only, two at a time.

usage: clang_each.py compile_commands.json PREFIX...   (prefixes of paths below the project)
"""
import concurrent.futures
import json
import os
import pathlib
import shlex
import subprocess
import sys


def syntax_only(entry):
    words = shlex.split(entry["command"])
    if os.path.basename(words[0]) == "ccache":
        words = words[1:]
    kept, skip = [], False
    for word in words:
        if skip:
            skip = False
        elif word == "-o":
            skip = True
        elif word != "-c":
            kept.append(word)
    done = subprocess.run(kept + ["-fsyntax-only"], cwd=entry["directory"], text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
    return entry["file"], done.returncode, done.stdout


def main() -> int:
    top = pathlib.Path(__file__).resolve().parent.parent
    prefixes = tuple(str(top / prefix) for prefix in sys.argv[2:])
    database = json.loads(pathlib.Path(sys.argv[1]).read_text())
    entries = [entry for entry in database if entry["file"].startswith(prefixes)]
    failed = 0
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for name, code, output in pool.map(syntax_only, entries):
            if code != 0:
                failed += 1
                print(f"{os.path.relpath(name, top)}:\n{output}")
    print(f"clang: {len(entries)} files, {failed} with errors")
    return 1 if failed or not entries else 0


if __name__ == "__main__":
    sys.exit(main())
