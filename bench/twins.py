# SPDX-License-Identifier: MIT
"""The Go side of the benchmarks: which Go, and where its programs are built.

GO=/path/to/go chooses another one than that of the PATH; each version has a folder of its own.
"""
import os
import subprocess

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
GO = os.environ.get("GO", "go")


def version():
    """Such as "go1.19.8 linux/amd64"; "?" if there is none."""
    try:
        r = subprocess.run([GO, "version"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        return r.stdout.strip().removeprefix("go version ") or "?"
    except OSError:
        return "?"


OUT = os.path.join(ROOT, "build", "bench-go", version().split()[0])


def sources(row):
    """Its own file, what all share, and what rows with a common beginning share: hogs.go, not a row itself, for hogs_p99."""
    bench = os.path.join(ROOT, "bench")
    begin = row.rpartition("_")[0]
    files = [os.path.join(bench, "go", name + ".go") for name in (row, "measure", begin)]
    shared = os.path.exists(files[2]) and not os.path.exists(os.path.join(bench, begin + ".c"))
    return files if shared else files[:2]


def command(files, name):
    """Builds a program of some source files; run it with ENV."""
    os.makedirs(OUT, exist_ok=True)
    return [GO, "build", "-o", os.path.join(OUT, name), *files]


ENV = dict(os.environ, GO111MODULE="off", CGO_ENABLED="0")
