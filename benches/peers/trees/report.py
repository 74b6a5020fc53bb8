"""Prints the tables of trees.py."""

import math
import platform
import re
import sys
from pathlib import Path

import numpy as np

from .build import RUSTC, run

# The import takes angles nearer than 1e-11 to a multiple of a right angle for it, Pinocchio does not.
BOUND = 1e-8


def processor():
    found = re.search(r"model name\s*: (.*)", Path("/proc/cpuinfo").read_text()) if Path("/proc/cpuinfo").exists() else None
    return found[1].strip() if found else platform.processor()


def microseconds(nanoseconds):
    return f"{nanoseconds / 1000:.3g}"


def heading(title, peers):
    # Without what trees.sh adds: two options with their values.
    words = ["benches/peers/trees.sh", *sys.argv[5:]]
    print(f"# {title}\n")
    print(f"Made by `{' '.join(words)}`; how stands in [README.md](README.md).\n")
    print(f"- {processor()}")
    print(f"- ours: {run(['rustc', '--version']).strip()}, `{' '.join(RUSTC[3:])}`")
    for peer in peers:
        print(f"- {peer.title}: {peer.made_with()}")


def cells(one, bundle, peers, which):
    """Ours and those of peers, hot (0) or cold (1); empty where nothing ran."""
    ours = one["figures"].get(f"ours/{bundle}", (0, 0))[which]
    found = [microseconds(ours) if ours > 0 else ""]
    for peer in peers:
        theirs = peer.best(one["figures"], bundle, which)
        beside = f" ({theirs / ours:.2f})" if theirs and ours > 0 else ""
        found.append(microseconds(theirs) + beside if theirs else "")
    return found


def made(one, bundle):
    """What a module of ours cost to make."""
    facts = one["modules"][bundle]
    row = [f"{facts['operations']}", f"{facts['generated_s']:.3f}"]
    if "bytes" not in facts:
        return [*row, "", "", ""]
    per_ns = facts["bytes"] / one["figures"][f"ours/{bundle}"][0]
    return [*row, f"{facts['compiled_s']:.2f}", f"{facts['bytes'] / 1000:.1f}", f"{per_ns:.0f}"]


def table(titles, rows, words=2):
    """A table whose first columns are words, the others numbers."""
    print(f"\n| {' | '.join(titles)} |\n|{'---|' * words}{'---:|' * (len(titles) - words)}")
    for row in rows:
        print(f"| {' | '.join(row)} |")


MADE = ["operations", "generated in, s", "compiled in, s", "code, kB", "B/ns"]


def tables(found, peers):
    """Times of robots, and what the code cost to make."""
    heading("Open trees against Pinocchio", peers)
    print("\nMicroseconds a call; in brackets, how many times as long as ours. Error: the worst difference from Pinocchio.")
    who = ["ours", *(peer.title for peer in peers)]
    rows = []
    for one in found:
        for bundle in one["modules"]:
            error = one["errors"].get(bundle)
            rows.append([f"{one['robot']}, nv = {one['nv']}", bundle, *cells(one, bundle, peers, 0), *cells(one, bundle, peers, 1),
                         "" if error is None else f"{error:.0e}"])
    table(["robot", "bundle", *(f"{when}: {name}" for when in ("hot", "cold") for name in who), "error"], rows)
    print("\nWhat ours cost to make, in seconds of one core; code divided by time hot:")
    table(["robot", "bundle", *MADE], [[one["robot"], bundle, *made(one, bundle)] for one in found for bundle in one["modules"]])
    for peer in peers:
        if peer.facts:
            print(f"\nWhat those of {peer.title} cost:")
            rows = [[*name.split("/"), f"{operations:.0f}", f"{generated:.3f}", f"{compiled:.2f}", f"{size / 1000:.1f}"]
                    for name, (operations, generated, compiled, size) in peer.facts.items()]
            table(["robot", "algorithm", "operations", "generated in, s", "compiled in, s", "library, kB"], rows)


def scaling(found, peers):
    """How cost grows with the number of joints."""
    heading("How the cost of open trees grows", peers)
    print("\nMicroseconds a call, hot; seconds of one core. Without a time: too large to be compiled.")
    shape = lambda one: one["robot"].rstrip("0123456789")
    rows = []
    for bundle in found[0]["modules"]:
        rows += [[bundle, shape(one), str(one["nv"]), *cells(one, bundle, peers, 0), *made(one, bundle)] for one in found]
    table(["bundle", "shape", "joints", "ours", *(peer.title for peer in peers), *MADE], rows)
    print("\nExponents p of n^p, fitted from 20 joints on:")
    rows = []
    for bundle in found[0]["modules"]:
        for kind in dict.fromkeys(map(shape, found)):
            of_kind = [one for one in found if shape(one) == kind]
            series = [
                [(one["nv"], one["modules"][bundle]["operations"]) for one in of_kind],
                [(one["nv"], one["figures"].get(f"ours/{bundle}", (0, 0))[0]) for one in of_kind],
                [(one["nv"], one["modules"][bundle].get("bytes", 0)) for one in of_kind],
                [(one["nv"], one["modules"][bundle].get("compiled_s", 0)) for one in of_kind],
                *([(one["nv"], peer.best(one["figures"], bundle, 0) or 0) for one in of_kind] for peer in peers),
            ]
            rows.append([bundle, kind, *map(exponent, series)])
    table(["bundle", "shape", "operations", "time", "code", "compilation", *(f"time, {peer.title}" for peer in peers)], rows)


def exponent(series):
    """Slope of the logarithms, by least squares over the sizes that are large."""
    known = [(math.log(n), math.log(value)) for n, value in series if value > 0 and n >= 20]
    return f"{np.polyfit(*zip(*known), 1)[0]:.2f}" if len(known) > 1 else ""


def series(one, samples, lanes):
    """What inverse dynamics and its derivatives take at all samples of a motion, one by one and four at once."""
    wanted = [f"ours/{bundle}" for bundle in ("inverse_dynamics", "inverse_dynamics_derivatives")]
    if all(key in one["figures"] for key in wanted):
        total = sum(one["figures"][key][0] for key in wanted) * samples / 1e6
        print(f"\n{one['robot']}: tau and its three matrices at {samples} samples in {total:.2f} ms.", end=" ")
    print(f"Four samples at once: {lanes[0]:.2f} ms, {lanes[1]:.0e} from the scalar functions.")


def pairs(rows):
    """Flat code and loops for pairs of joints."""
    print("# Pairs of joints: flat code or loops\n\nMade by `benches/peers/trees.sh --compare-pairs`; how stands in [README.md](README.md).\n")
    print("Microseconds a call, hot; in brackets kB of code. Without a time: too large to be compiled.\n")
    print("| model | nv | bundle | flat | rolled | chosen |\n|---|---:|---|---:|---:|---|")
    for name, nv, bundle, hot, sizes, chosen in rows:
        cell = {way: f"{figure(hot[way])} ({sizes[way] / 1000:.0f})" if hot[way] else "" for way in hot}
        print(f"| {name} | {nv} | {bundle} | {cell['flat']} | {cell['rolled']} | {chosen} |")


def figure(nanoseconds):
    return f"{nanoseconds / 1000:.3g}"
