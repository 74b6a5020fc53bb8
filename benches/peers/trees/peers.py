"""The peers of trees.py: Pinocchio's C++, and the C that CppADCodeGen writes of it.

A peer has `name`, `title`, `made_with()`, `prepare(robot, bundles)`, `run(robot, effort)` → nanoseconds hot and cold by
algorithm, `error(robot)`, and `facts`, what its programs cost to make, by robot and algorithm.
"""

import pathlib
import re
import subprocess
import sys
from importlib.metadata import version

import numpy as np
import pinocchio as pin
from robots import Theirs

from .build import HERE, digest, is_stale, keep, relative, run, timed

CXX = ["g++", "-O3", "-march=native", "-DNDEBUG"]
# What Pinocchio's own build files ask of those who use its headers.
DEFINITIONS = ["BOOST_MPL_LIMIT_LIST_SIZE=30", "BOOST_MPL_LIMIT_VECTOR_SIZE=30", "BOOST_MPL_CFG_NO_PREPROCESSED_HEADERS",
               "BOOST_FUSION_INVOKE_MAX_ARITY=12"]
CC = ["gcc", "-O3", "-march=native", "-fPIC", "-shared"]


def headers():
    import cmeel  # of the wheel; beside it lie the headers

    return pathlib.Path(cmeel.__file__).parents[1] / "cmeel.prefix" / "include"


def compiler(command):
    return f"{run([command[0], '--version']).splitlines()[0]}, `{' '.join(command[1:])}`"


def compiled(sources, folder, command=tuple(CXX)):
    """A C++ program named after its first source. Each source is compiled again if it, a part that it includes, or the way to
    compile it has changed."""
    objects, program = [], folder / next(iter(sources))
    stale = not program.exists()
    for name, parts in sources.items():
        source, made = HERE / f"{name}.cpp", folder / f"{name}.o"
        compile_it = [*command, "-std=c++17", "-w", *(f"-D{d}" for d in DEFINITIONS), "-isystem", headers(), "-isystem",
                      headers() / "eigen3", "-c", "-o", made, source]
        texts = [(HERE / part).read_text() for part in [source.name, *parts]]
        made_of = [*map(str, compile_it), version("pin"), *texts]
        if is_stale(made, made_of):
            slow = any("<pinocchio/" in text for text in texts)
            print(f"compiling {source.name}{', some minutes' if slow else ''}", file=sys.stderr)
            run(compile_it)
            keep(made, made_of)
            stale = True
        objects.append(made)
    if stale:
        run([command[0], "-o", program, *objects, "-ldl"])
    return program


def write_model(robot):
    """Pinocchio's model as model.hpp reads it, and its states: its linear velocity of the base is in body axes."""
    model = robot.model
    lines = [" ".join(map(repr, map(float, model.gravity.linear))), str(model.njoints - 1)]
    for i in range(1, model.njoints):
        joint, place, inertia = model.joints[i], model.jointPlacements[i], model.inertias[i]
        axis = joint.extract().axis if "Unaligned" in joint.shortname() else np.zeros(3)
        numbers = [*place.rotation.ravel(), *place.translation, inertia.mass, *inertia.lever, *inertia.inertia.ravel()]
        words = [joint.shortname(), *map(repr, map(float, axis)), str(model.parents[i]), *map(repr, map(float, numbers))]
        lines.append(" ".join(words))
    (robot.folder / "model.txt").write_text("\n".join(lines) + "\n")
    rows = []
    for q, v, a, tau in robot.samples:
        v, a = Theirs.transformed(model, q, v, a, robot.floats)[:2]
        rows.append(np.concatenate([q, v, a, tau]))
    np.array(rows).tofile(robot.folder / "theirs.states")


class Peer:
    def run(self, robot, effort):
        if not self.wanted:
            return {}
        lines = [line.split() for line in run(self.command(robot, effort)).splitlines()]
        return {algorithm: (float(hot), float(cold)) for algorithm, hot, cold in lines}

    def best(self, figures, bundle, which):
        """The fastest of the algorithms that do what a bundle does; nothing if none ran."""
        found = [figures[key][which] for a in self.algorithms[bundle] if (key := f"{self.name}/{a}") in figures]
        return min(found, default=None)

    def error(self, robot):
        """The worst error of inverse dynamics, if that is timed: the same robot and the same states have reached the program."""
        if not self.wanted or self.wanted[0] != "rnea":
            return 0.0
        model, data = robot.model, robot.model.createData()
        tau = np.fromfile(robot.folder / f"{self.name}.results")[: len(robot.samples) * model.nv]
        worst = 0.0
        for (q, v, a, _), theirs in zip(robot.samples, tau.reshape(-1, model.nv), strict=True):
            v, a = Theirs.transformed(model, q, v, a, robot.floats)[:2]
            worst = max(worst, relative(theirs, pin.rnea(model, data, q, v, a)))
        return worst


class Pinocchio(Peer):
    name, title = "pinocchio", "Pinocchio"
    algorithms = {
        "inverse_dynamics": ["rnea"],
        "mass_matrix": ["crba_world", "crba_local"],
        "forward_dynamics": ["aba_world", "aba_local"],
        "forward_dynamics_recursive": ["aba_world", "aba_local"],
        "inverse_dynamics_derivatives": ["rnea_derivatives"],
        "forward_dynamics_derivatives": ["aba_derivatives"],
    }

    def __init__(self, folder):
        self.program = compiled({"pinocchio": ["algorithms.hpp", "measure.hpp"], "algorithms": ["algorithms.hpp", "model.hpp"]},
                                folder)
        self.facts = {}

    def made_with(self):
        return f"pin {version('pin')}, Eigen {version('cmeel-eigen')}, {compiler(CXX)}"

    def prepare(self, robot, bundles):
        write_model(robot)
        self.wanted = list(dict.fromkeys(a for b in bundles for a in self.algorithms[b]))

    def command(self, robot, effort):
        return [self.program, robot.folder / "model.txt", robot.folder / "theirs.states", *effort,
                robot.folder / f"{self.name}.results", *self.wanted]


def operators(source):
    """Operations of a generated function: those between spaces, and functions."""
    body = source.read_text().partition("// auxiliary variables")[2]
    return len(re.findall(r" [-+*/] |\b(?:sin|cos|sqrt)\(", body))


class GeneratedC(Peer):
    name, title = "cppadcg", "CppADCodeGen"
    algorithms = {
        "inverse_dynamics": ["rnea"],
        "mass_matrix": ["crba"],
        "forward_dynamics": ["aba"],
        "forward_dynamics_recursive": ["aba"],
        "inverse_dynamics_derivatives": ["rnea_derivatives"],
        "forward_dynamics_derivatives": ["aba_derivatives"],
    }

    def __init__(self, folder, patience):
        self.patience = patience  # with the compiler of the C, seconds of one core
        self.program = compiled({"generated_c": ["measure.hpp"]}, folder)
        # It only writes: how fast does not matter much, how long it takes to compile does.
        self.generator = compiled({"generate_c": ["model.hpp"]}, folder, ["g++", "-O1", "-DNDEBUG"])
        self.facts = {}

    def made_with(self):
        versions = f"CppADCodeGen {version('cmeel-cppadcodegen')}, CppAD {version('cmeel-cppad')}"
        return f"C of the same algorithms, {versions}, {compiler(CC)}"

    def prepare(self, robot, bundles):
        write_model(robot)
        self.wanted = []
        for algorithm in dict.fromkeys(a for b in bundles for a in self.algorithms[b]):
            if facts := self.made(robot, algorithm):
                self.wanted.append(algorithm)
                self.facts[f"{robot.name}/{algorithm}"] = facts

    def made(self, robot, algorithm):
        """Generates and compiles; what that cost, or nothing if the compiler would take too long."""
        folder, library = robot.folder / "c" / algorithm, robot.folder / "c" / f"{algorithm}.so"
        model, note = robot.folder / "model.txt", library.with_suffix(".seconds")
        made_of = [*CC, model.read_text(), version("cmeel-cppadcodegen"), digest([(HERE / "generate_c.cpp").read_text()])]
        given_up = [*made_of, f"given up after {self.patience} s"]
        if is_stale(library, made_of):
            if self.patience == 0 or not is_stale(library, given_up):
                return None
            print(f"{robot.name}: C of {algorithm}", file=sys.stderr)
            folder.mkdir(parents=True, exist_ok=True)
            seconds = timed([self.generator, model, folder.parent, algorithm])
            sources = [s for s in sorted(folder.glob("*.c")) if "_forward_zero" in s.name]
            operations = sum(map(operators, sources))
            try:
                compilation = timed(["prlimit", f"--cpu={self.patience}", *CC, "-o", library, *sources, "-lm"])
            except subprocess.CalledProcessError:
                print(f"not compiled in {self.patience} s: {operations} operations", file=sys.stderr)
                library.touch()
                keep(library, given_up)
                return None
            note.write_text(f"{operations} {seconds} {compilation}")
            keep(library, made_of)
        return [*map(float, note.read_text().split()), library.stat().st_size]

    def command(self, robot, effort):
        return [self.program, robot.folder / "c", robot.model.nq, robot.model.nv, robot.folder / "theirs.states", *effort,
                robot.folder / f"{self.name}.results", *self.wanted]
