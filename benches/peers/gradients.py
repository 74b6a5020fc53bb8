"""The gradient of the five-bar linkage: three objectives by five parameters, over 5 s, everybody in one run.

CasADi differentiates its printed step (`five_bar_casadi.py --gradient`). The others do not differentiate a run by masses and
lengths: a gradient by central differences takes eleven runs of five seconds in steps of 1 ms, of which three parameters are
made here to see how right it is. Ours is `cargo bench -p mbs-benches --bench sensitivities -- precision`, compiled for this
processor as the peers are. A table in Markdown on standard output.
"""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np

FOLDER = Path(__file__).parent
CHANGE = 1e-3  # m, kg; noise of a solver's tolerance over it and its square are both below 1e-5
BY_DIFFERENCES = [
    ("Exudyn, trapezoidal rule", ["five_bar_exudyn.py", "--repetitions", "5"]),
    ("MuJoCo, RK4", ["five_bar_mujoco.py", "--integrator", "RK4", "--repetitions", "5"]),
    ("Pinocchio, `constraintDynamics`, RK4", ["five_bar_pinocchio.py", "--repetitions", "5"]),
    ("Pinocchio, loop by hand, RK4", ["five_bar_pinocchio.py", "--algorithm", "by-hand", "--repetitions", "5"]),
]


def told(script, beside=None):
    """What a script prints."""
    environment = {**os.environ, **({"FIVE_BAR": beside} if beside else {})}
    out = subprocess.run([sys.executable, FOLDER / script[0], *script[1:]], env=environment, check=True,
                         capture_output=True, text=True).stdout
    return json.loads(out.splitlines()[-1])


def row(tool, how, ms, error):
    print(f"| {tool} | {how} | {ms:.3g} | {error:.1e} |", flush=True)


print("| tool | how | processor ms | error |\n|---|---|---:|---:|")
casadi = told(["five_bar_casadi.py", "--gradient"])
exact = np.array(casadi["gradient"])[:, :3]
size = np.abs(np.array(casadi["gradient"])).max(1, keepdims=True)
row(f"CasADi {casadi['version']}, compiled", f"derivative of the step, RK4, {casadi['steps']} steps",
    casadi["ms_processor"], casadi["error"])
for name, script in BY_DIFFERENCES:
    at = told(script)
    columns = []
    for parameter in ("L_s1", "L_s2", "m_A1"):
        above, below = (np.array(told(script, f"{parameter} {by}")["psi"]) for by in (CHANGE, -CHANGE))
        columns.append((above - below) / (2 * CHANGE))
    error = (np.abs(np.array(columns).T - exact) / size).max()
    tool, method = name.split(", ", 1)
    row(f"{tool} {at['version']}", f"eleven runs, {method}, {at['steps']} steps", 11 * at["us_per_step_processor"] * at["steps"] / 1e3,
        error)
flags = {**os.environ, "RUSTFLAGS": "-C target-cpu=native"} if "--native" in sys.argv else dict(os.environ)
bench = subprocess.run(["cargo", "bench", "--quiet", "-p", "mbs-benches", "--bench", "sensitivities", "--", "precision"],
                       env=flags, check=True, stdout=subprocess.PIPE, text=True).stdout
for line in bench.splitlines():
    if found := re.match(r"  (\S.*?)  +(\d+ steps|tolerance \S+) +(\S+) ms +(\S+)$", line):
        name, effort, ms, error = found.groups()
        row("mbs", f"{name}, {effort}", float(ms), float(error))
