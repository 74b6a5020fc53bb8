#!/usr/bin/env python3
"""Instructions of compiled bundles, as they are and packed, and the weights of `mbs-codegen/src/bundle/packing/cost.rs`.

    MBS_SIMD=never cargo build --profile bench -p mbs-benches --bin instructions    # keep program and generated modules
    MBS_SIMD=always cargo build --profile bench -p mbs-benches --bin instructions
    packing.py NEVER_PROGRAM NEVER_MODULES ALWAYS_PROGRAM ALWAYS_MODULES

The modules are the folder `out` of the build script. Needs objdump and numpy. Bundles of one function are inlined and left out. Prints a row
for each bundle: instructions of both forms, their ratio, the ratio by the fit; then the fitted weights.
"""

import collections
import pathlib
import re
import subprocess
import sys

import numpy

KINDS = ["pack_operation", "operation", "join", "pack_move", "move", "extract", "result"]
LINES = [
    (r"let p\d+ = p::load\(|p::store\(", "pack_move"),
    (r"let p\d+ = p::join\(", "join"),
    (r"let p\d+ = ", "pack_operation"),
    (r"let v\d+ = p::", "extract"),
    (r"let v\d+ = ld\(w, |st\(w, ", "move"),
    (r"st\(out_", "result"),
    (r"let (v\d+|\(v\d+, v\d+\)) = ", "operation"),
]


def statements(folder):
    """Statements by kind of every function of every module."""
    found = {}
    for path in pathlib.Path(folder).glob("*.rs"):
        function = None
        for line in path.read_text().splitlines():
            if name := re.match(r"\s*(?:pub )?fn (\w+)_\d+\(", line):
                function = found.setdefault((path.stem, name[1]), collections.Counter())
            elif re.match(r"    }", line):
                function = None
            elif function is not None:
                kind = next((kind for pattern, kind in LINES if re.match(pattern, line.strip())), None)
                function.update([kind] if kind else [])
    return found


def instructions(program):
    """Instructions of every bundle that is several functions."""
    text = subprocess.run(["objdump", "-d", "--no-show-raw-insn", "-C", program], capture_output=True, text=True, check=True).stdout
    found, bundle = collections.Counter(), None
    for line in text.splitlines():
        if name := re.match(r"[0-9a-f]+ <(.*)>:$", line):
            parts = re.match(r"<?mbs_benches::(\w+)::.*?(\w+)_\d+$", name[1])
            bundle = parts and (parts[1], parts[2])
        elif bundle and line.startswith("  "):
            found[bundle] += 1
    return found


def main():
    never, never_modules, always, always_modules = sys.argv[1:]
    counts, texts = [instructions(never), instructions(always)], [statements(never_modules), statements(always_modules)]
    bundles = [key for key in texts[1] if texts[1][key]["pack_operation"] and all(key in found for found in [*counts, texts[0]])]
    # Checks of parameters are not straight code.
    bundles = sorted((key for key in bundles if key[1] != "conditions"), key=lambda key: -counts[0][key])
    rows = [[[text[key][kind] for kind in KINDS] for key in bundles] for text in texts]
    matrix = numpy.array(rows[0] + rows[1], float)
    measured = numpy.array([count[key] for count in counts for key in bundles], float)
    weights = numpy.linalg.lstsq(matrix / measured[:, None], numpy.ones(len(measured)), rcond=None)[0]
    estimated = matrix @ weights
    for i, key in enumerate(bundles):
        j = i + len(bundles)
        print(f"{' '.join(key):40} {counts[0][key]:8} {counts[1][key]:8} {measured[j] / measured[i]:6.2f} {estimated[j] / estimated[i]:6.2f}")
    print({kind: round(weight, 2) for kind, weight in zip(KINDS, weights.tolist())})


main()
