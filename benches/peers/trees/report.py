"""Prints the tables of trees.py."""

import platform
import re
from pathlib import Path

from .build import RUSTC, run

# The import takes angles nearer than 1e-11 to a multiple of a right angle for it, Pinocchio does not.
BOUND = 1e-8


def processor():
    found = re.search(r"model name\s*: (.*)", Path("/proc/cpuinfo").read_text()) if Path("/proc/cpuinfo").exists() else None
    return found[1].strip() if found else platform.processor()


def microseconds(nanoseconds):
    return f"{nanoseconds / 1000:.3g}"


def tables(found, peers):
    print("# Open trees against Pinocchio\n")
    print("Made by `benches/peers/trees.sh > benches/peers/trees.md`; how stands in [README.md](README.md).\n")
    print(f"- {processor()}")
    print(f"- ours: {run(['rustc', '--version']).strip()}, `{' '.join(RUSTC[3:])}`")
    for peer in peers:
        print(f"- {peer.title}: {peer.made_with()}")
    print("\nMicroseconds a call; in brackets, how many times as long as ours. Error: the worst difference from Pinocchio.\n")
    titles = [f"{when}: {who}" for when in ("hot", "cold") for who in ["ours", *(peer.title for peer in peers)]]
    print(f"| robot | bundle | {' | '.join(titles)} | error |")
    print(f"|---|---|{'---:|' * len(titles)}---:|")
    for one in found:
        figures = one["figures"]
        for bundle in one["modules"]:
            cells = []
            for which in (0, 1):
                ours = figures[f"ours/{bundle}"][which]
                cells.append(microseconds(ours) if ours > 0 else "")
                for peer in peers:
                    theirs = peer.best(figures, bundle, which)
                    cells.append(f"{microseconds(theirs)} ({theirs / ours:.2f})" if theirs and ours > 0 else "")
            print(f"| {one['robot']}, nv = {one['nv']} | {bundle} | {' | '.join(cells)} | {one['errors'][bundle]:.0e} |")
    print("\nWhat ours cost to make, in seconds of one core; code divided by time hot:\n")
    print("| robot | bundle | generated in, s | compiled in, s | operations | code, kB | B/ns |")
    print("|---|---|---:|---:|---:|---:|---:|")
    for one in found:
        for bundle, facts in one["modules"].items():
            per_ns = facts["bytes"] / one["figures"][f"ours/{bundle}"][0]
            print(f"| {one['robot']} | {bundle} | {facts['generated_s']:.3f} | {facts['compiled_s']:.2f} | "
                  f"{facts['operations']} | {facts['bytes'] / 1000:.1f} | {per_ns:.0f} |")
    for peer in peers:
        if not peer.facts:
            continue
        print(f"\nWhat those of {peer.title} cost:\n")
        print("| robot | algorithm | generated in, s | compiled in, s | library, kB |\n|---|---|---:|---:|---:|")
        for name, facts in peer.facts.items():
            generated, compiled, size = facts
            print(f"| {' | '.join(name.split('/'))} | {generated:.2f} | {compiled:.1f} | {size / 1000:.1f} |")
