"""Prints the tables of trees.py."""

import platform
import re
import subprocess
from importlib.metadata import version
from pathlib import Path

from . import build

# The import takes angles nearer than 1e-11 to a multiple of a right angle for it, Pinocchio does not.
BOUND = 1e-8


def processor():
    found = re.search(r"model name\s*: (.*)", Path("/proc/cpuinfo").read_text()) if Path("/proc/cpuinfo").exists() else None
    return found[1].strip() if found else platform.processor()


def first_line(command):
    return subprocess.run(command, capture_output=True, text=True).stdout.splitlines()[0]


def number(nanoseconds):
    return f"{nanoseconds / 1000:.3g}"


def best(figures, program, bundle, which):
    """The fastest of the algorithms that do what a bundle does; nothing if none ran."""
    found = [figures[key][which] for a in build.BUNDLES[bundle].algorithms if (key := f"{program}/{a}") in figures]
    return min(found, default=None)


def tables(found, tools):
    print("# Open trees against Pinocchio\n")
    print("Made by `benches/peers/trees.sh > benches/peers/trees.md`; how stands in [README.md](README.md).")
    print(f"{processor()}; {first_line(build.RUSTC[:1] + ['--version'])}, `{' '.join(build.RUSTC[3:])}`; "
          f"{first_line(['g++', '--version'])}, `{' '.join(build.CXX[1:])}`; Pinocchio {version('pin')}, "
          f"Eigen {version('cmeel-eigen')}.\n")
    print("Microseconds a call; in brackets, how many times as long as ours.\n")
    print("| robot | bundle | hot: ours | Pinocchio | cold: ours | Pinocchio | error |")
    print("|---|---|---:|---:|---:|---:|---:|")
    for one in found:
        figures = one["figures"]
        for bundle in one["modules"]:
            ours = figures[f"ours/{bundle}"]
            cells = []
            for which in (0, 1):
                theirs = best(figures, "pinocchio", bundle, which)
                beside = f"{number(theirs)} ({theirs / ours[which]:.2f})" if theirs and ours[which] else ""
                cells += [number(ours[which]) if ours[which] else "", beside]
            print(f"| {one['robot']}, nv = {one['nv']} | {bundle} | {' | '.join(cells)} | {one['errors'][bundle]:.0e} |")
    print("\nWhat ours cost to make:\n")
    print("| robot | bundle | generated in, s | compiled in, s | operations | code, kB | B/ns |")
    print("|---|---|---:|---:|---:|---:|---:|")
    for one in found:
        for bundle, facts in one["modules"].items():
            per_ns = facts["bytes"] / one["figures"][f"ours/{bundle}"][0]
            print(f"| {one['robot']} | {bundle} | {facts['generated_s']:.3f} | {facts['compiled_s']:.2f} | {facts['operations']} | "
                  f"{facts['bytes'] / 1000:.1f} | {per_ns:.0f} |")
