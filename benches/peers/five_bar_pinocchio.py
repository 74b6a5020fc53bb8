"""The five-bar linkage in Pinocchio, in C++: a chain of four hinges, its end held at B, RK4.

Joint coordinates, 4 of them; constrained accelerations, no stabilisation, so the loop drifts by the error of RK4.
One line of JSON on standard output.

`--algorithm constrained` is pinocchio::constraintDynamics, `articulated` is pinocchio::lcaba; `by-hand` takes only mass
matrix and bias from Pinocchio and writes the two equations of the loop and the elimination of fixed size by hand.

The headers come with the wheel, Eigen with a wheel of its own. Compiled once, which takes minutes, with
`g++ -O3 -march=native`; CXX and CXXFLAGS override, and the program is kept beside the Python environment.
"""

import argparse
import os
import shlex
import subprocess
import sys
import tempfile
from importlib.metadata import version
from pathlib import Path

import numpy as np

import five_bar

arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
arguments.add_argument("--algorithm", choices=["constrained", "articulated", "by-hand"], default="constrained")
arguments.add_argument("--repetitions", type=int, default=101)
arguments = arguments.parse_args()

SOURCE = Path(__file__).with_name("pinocchio_driver.cpp")
PROGRAM = Path(sys.prefix) / "build" / "pinocchio_driver"
COMPILER = [os.environ.get("CXX", "g++"), *shlex.split(os.environ.get("CXXFLAGS", "-O3 -march=native"))]
# What Pinocchio's own build files ask of those who use its headers; no assertions.
DEFINITIONS = ["NDEBUG", "BOOST_MPL_LIMIT_LIST_SIZE=30", "BOOST_MPL_LIMIT_VECTOR_SIZE=30",
               "BOOST_MPL_CFG_NO_PREPROCESSED_HEADERS", "BOOST_FUSION_INVOKE_MAX_ARITY=12"]


def compiled():
    """The program; compiled again if its source or the way to compile it has changed."""
    note = PROGRAM.with_suffix(".made-by")
    made_by = " ".join([*COMPILER, version("pin"), version("cmeel-eigen"), SOURCE.read_text()])
    if not PROGRAM.exists() or not note.exists() or note.read_text() != made_by:
        import cmeel  # of the wheel; beside it lie the headers

        headers = Path(cmeel.__file__).parents[1] / "cmeel.prefix" / "include"
        print("compiling", SOURCE.name, "…", file=sys.stderr)
        PROGRAM.parent.mkdir(exist_ok=True)
        subprocess.run([*COMPILER, "-std=c++17", "-w", *(f"-D{d}" for d in DEFINITIONS), "-isystem", headers,
                        "-isystem", headers / "eigen3", "-o", PROGRAM, SOURCE], check=True)
        note.write_text(made_by)
    return PROGRAM


def run(h, repetitions):
    """Wall and processor seconds of each repetition; absolute angles, rates, accelerations of a run, start included."""
    steps = round(five_bar.END / h)
    numbers = [h, five_bar.GRAVITY, five_bar.A[0], five_bar.B[0], *five_bar.LENGTHS, *five_bar.MASSES,
               *five_bar.INERTIAS, five_bar.ANGLES[0], *np.diff(five_bar.ANGLES)]
    for _, _, stiffness, natural in five_bar.SPRINGS:
        numbers += [stiffness, natural]
    with tempfile.TemporaryDirectory() as folder:
        out = subprocess.run([compiled(), arguments.algorithm, str(steps), str(repetitions), f"{folder}/states"],
                             input=" ".join(repr(float(x)) for x in numbers), check=True, capture_output=True,
                             text=True).stdout
        states = np.fromfile(f"{folder}/states").reshape(-1, 3, 4)
    assert len(states) == steps + 1
    return [[float(x) for x in line.split()] for line in out.splitlines()], np.cumsum(states, axis=-1)


h = five_bar.H
steps = round(five_bar.END / h)
seconds, states = run(h, arguments.repetitions + 1)
_, finer = run(h / 10, 0)
motion = five_bar.of_absolute_angles(*np.moveaxis(states, 1, 0))
five_bar.report(
    tool="pinocchio",
    version=version("pin"),
    model="4 joint coordinates, the loop closed at acceleration level",
    method="RK4 of " + {"constrained": "pinocchio::constraintDynamics", "articulated": "pinocchio::lcaba",
                        "by-hand": "pinocchio::crba and nonLinearEffects, the loop by hand"}[arguments.algorithm],
    order=4,
    h=h,
    steps=steps,
    seconds=seconds[1:],
    r2=motion["r2"][-1],
    finer_r2=five_bar.of_absolute_angles(*np.moveaxis(finer, 1, 0))["r2"][-1],
    psi=five_bar.objectives(motion["r2"], motion["v2"], motion["a2"], h),
    energy_drift=five_bar.drift(*motion["state"]),
    gap=five_bar.gap(*motion["state"][:2]),
    build=" ".join(COMPILER),
)
