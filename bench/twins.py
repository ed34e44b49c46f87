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


def command(source, name):
    """Builds one source file; run it with ENV."""
    os.makedirs(OUT, exist_ok=True)
    return [GO, "build", "-o", os.path.join(OUT, name), source]


ENV = dict(os.environ, GO111MODULE="off", CGO_ENABLED="0")
