"""Builds our side of trees.py: imported models, generated modules with a driver around them.

A module is compiled as a crate of its own, one unit of code generation, opt-level 3, for this processor. What is there already
and would come out the same is not built again. Times of generation and compilation are processor time, so that other
work on the machine does not count.
"""

import hashlib
import json
import pathlib
import re
import resource
import subprocess
import sys
from dataclasses import dataclass

import numpy as np

HERE = pathlib.Path(__file__).parent
RUSTC = ["rustc", "--edition", "2024", "-C", "opt-level=3", "-C", "codegen-units=1", "-C", "target-cpu=native", "-C",
         "embed-bitcode=no"]


@dataclass
class Bundle:
    """What is generated for a row of the table and how it is called."""

    generated: list  # bundles
    call: str  # its Rust
    results: str = "nv"  # how many numbers it writes
    scratch: str = "0"  # beside the workspace
    driven: bool = False  # torques of the joints are inputs


FORWARD = """    let (zd, vd) = out.split_at_mut(d.nq);
    model.{0}(at, w, zd, vd, &mut [])"""

# The model's inputs drive the joints; nothing else does.
FORWARD_DERIVATIVES = """    let (w, rest) = w.split_at_mut(d.workspace);
    let (vd, tau) = rest.split_at_mut(d.nv);
    let (vd_z, rest) = out.split_at_mut(d.nv * d.nv);
    let (vd_v, vd_tau) = rest.split_at_mut(d.nv * d.nv);
    let to = AccelerationDerivatives { vd, vd_z, vd_v, vd_tau, vd_rho: &mut [] };
    model.forward_dynamics_derivatives(at, tau, w, to)"""

BUNDLES = {
    "inverse_dynamics": Bundle(["inverse_dynamics"], "    model.inverse_dynamics(at, vd, w, out)"),
    "mass_matrix": Bundle(["mass_matrix"], "    model.mass_matrix(at, w, out)", "nv * nv"),
    "forward_dynamics": Bundle(["forward_dynamics"], FORWARD.format("forward_dynamics"), "nq + nv", driven=True),
    "forward_dynamics_recursive": Bundle(["forward_dynamics_recursive"], FORWARD.format("forward_dynamics_recursive"),
                                         "nq + nv", driven=True),
    "inverse_dynamics_derivatives": Bundle(
        ["inverse_dynamics_derivatives"],
        """    let (tau_z, rest) = out.split_at_mut(d.nv * d.nv);
    let (tau_v, m) = rest.split_at_mut(d.nv * d.nv);
    model.inverse_dynamics_derivatives(at, vd, w, tau_z, tau_v, m)""", "3 * nv * nv"),
    "forward_dynamics_derivatives": Bundle(["forward_dynamics_derivatives"], FORWARD_DERIVATIVES, "3 * nv * nv", "2 * nv",
                                           driven=True),
}

# Those with entries for pairs of joints that may be looped over.
PAIRED = ["mass_matrix", "inverse_dynamics_derivatives", "forward_dynamics_derivatives"]

CRATE = """#![no_std]
use mbs_runtime::*;
pub use {module}::Model;
const D: Dims = {module}::DIMS;
pub const RESULTS: usize = {results};
pub const SCRATCH: usize = D.workspace + {scratch};
#[inline(never)]
pub fn call(model: &Model, at: At<'_, f64>, vd: &[f64], w: &mut [f64], out: &mut [f64]) -> Result<(), EvalError> {{
    let d = D;
{call}
}}
{code}"""


def relative(ours, theirs, floor=0.0):
    """The largest error over the largest entry, or over `floor` if that is larger."""
    scale = max(np.abs(theirs).max(), floor)
    return np.abs(ours - theirs).max() / scale if scale > 0 else np.abs(ours).max()


def of_dims(text):
    return re.sub(r"\b(nq|nv|sensitivity)\b", r"D.\1", text)


def run(command):
    """What a program prints; its complaint is shown if it fails."""
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True)
    if done.returncode != 0:
        print(f"{' '.join(map(str, command))}\n{done.stdout[-4000:]}{done.stderr[-4000:]}", file=sys.stderr)
        done.check_returncode()
    return done.stdout


def timed(command):
    """Processor seconds of a program."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    run(command)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def digest(of):
    return hashlib.sha256("\n".join(of).encode()).hexdigest()


def is_stale(program, of):
    note = program.with_suffix(".made-of")
    return not (program.exists() and note.exists() and note.read_text() == digest(of))


def keep(program, of):
    program.with_suffix(".made-of").write_text(digest(of))


def imported(mbs, urdf, floats, folder):
    """The model's file and what the import reports."""
    yaml = folder / "robot.yaml"
    command = [mbs, "import", urdf, "-o", yaml, "--json", "--no-friction", "--no-mimic"]
    return yaml, json.loads(run(command + ["--floating-base"] * floats))


def with_motors(yaml, coordinates):
    """Beside the model's file another in which every coordinate has a torque or force of its own as an input."""
    text = yaml.read_text()
    assert "\nforces:" not in text and "\ninputs:" not in text, "the import has made forces"
    inputs = "".join(f"  motor{i}: {{}}\n" for i in range(len(coordinates)))
    forces = "".join(f"  drive{i}: {{type: joint_force, coordinate: {c}, value: motor{i}}}\n" for i, c in enumerate(coordinates))
    driven = yaml.with_name("driven.yaml")
    driven.write_text(f"{text}\ninputs:\n{inputs}\nforces:\n{forces}")
    return driven


class Module:
    """A generated module with its driver; without one if it is too large."""

    def __init__(self, robot, bundle, arguments):
        what, runtime = BUNDLES[bundle], arguments.runtime
        self.folder, self.bundle, self.driven = robot.folder, bundle, what.driven
        source, library, self.driver = (robot.folder / f"{prefix}{bundle}{suffix}"
                                        for prefix, suffix in (("", ".rs"), ("lib", ".rlib"), ("", "_driver")))
        generate = [arguments.mbs, "generate", robot.driven if what.driven else robot.yaml, "--bundles", ",".join(what.generated),
                    "--module", "robot", "-o", source, "--pairs", arguments.pairs,
                    *["--freeze"] * arguments.freeze]
        self.facts = {"generated_s": min(timed(generate) for _ in range(2))}
        code = source.read_text()
        counts = {name: int(n) for name, n in re.findall(r"^ \| `(\w+)` \| (\d+) \|", code, re.M)}
        self.facts["operations"] = sum(counts[name] for name in what.generated)
        # What loops do costs no code.
        rolled = sum(int(n) for n in re.findall(r"^ *///? Operations: .*?(\d+) rolled", code, re.M))
        self.facts["rolled"] = rolled
        if self.facts["operations"] - rolled > arguments.most:
            self.driver = None
            return
        source.write_text(CRATE.format(module="robot", call=what.call, code=code, results=of_dims(what.results),
                                       scratch=of_dims(what.scratch)))
        dependencies = ["-L", f"dependency={runtime / 'deps'}", "--extern",
                        f"mbs_runtime={runtime / 'libmbs_runtime.rlib'}"]
        linked = (runtime / "libmbs_runtime.rlib").read_bytes().hex()
        made_of = [*RUSTC, source.read_text(), (HERE / "driver.rs").read_text(), linked]
        facts = robot.folder / f"{bundle}.json"
        if is_stale(self.driver, made_of):
            seconds = timed([*RUSTC, "--crate-type", "rlib", "--crate-name", "bundle", *dependencies, "-o", library, source])
            run([*RUSTC, *dependencies, "--extern", f"bundle={library}", "-o", self.driver, HERE / "driver.rs"])
            facts.write_text(json.dumps({"compiled_s": seconds, "bytes": code_bytes(library, what.generated)}))
            keep(self.driver, made_of)
        self.facts |= json.loads(facts.read_text())

    def names(self):
        """Of coordinates and of velocities."""
        return [line.split() for line in run([self.driver, "names", "0", "0", "-"]).splitlines()]

    def run(self, states, effort):
        out = run([self.driver, states, *effort, self.folder / f"{self.bundle}.results"])
        return tuple(map(float, out.split()))

    def results(self):
        return np.fromfile(self.folder / f"{self.bundle}.results")


def choice(robot, bundle, arguments):
    """Which way the generator takes for pairs of joints."""
    what, source = BUNDLES[bundle], robot.folder / "choice.rs"
    run([arguments.mbs, "generate", robot.driven if what.driven else robot.yaml, "--bundles", ",".join(what.generated), "-o", source])
    return "rolled" if re.search(r"^ +r::", source.read_text(), re.M) else "flat"


def series(robot, samples, arguments):
    """Milliseconds for inverse dynamics and its derivatives at all samples, four at once, and their difference from scalar code."""
    source, library, driver = (robot.folder / name for name in ("series.rs", "libseries.rlib", "series"))
    run([arguments.mbs, "generate", robot.yaml, "--bundles", "inverse_dynamics,inverse_dynamics_derivatives", "--lanes", "4",
         "--module", "robot", "-o", source, *["--freeze"] * arguments.freeze])
    source.write_text(f"#![no_std]\n{source.read_text()}")
    runtime = arguments.runtime
    dependencies = ["-L", f"dependency={runtime / 'deps'}", "--extern", f"mbs_runtime={runtime / 'libmbs_runtime.rlib'}"]
    made_of = [*RUSTC, source.read_text(), (HERE / "series.rs").read_text(), (runtime / "libmbs_runtime.rlib").read_bytes().hex()]
    if is_stale(driver, made_of):
        run([*RUSTC, "--crate-type", "rlib", "--crate-name", "bundle", *dependencies, "-o", library, source])
        run([*RUSTC, *dependencies, "--extern", f"bundle={library}", "-o", driver, HERE / "series.rs"])
        keep(driver, made_of)
    found = [tuple(map(float, run([driver, samples, 20]).split())) for _ in range(arguments.rounds)]
    return tuple(map(min, *found)) if len(found) > 1 else found[0]


def code_bytes(library, bundles):
    """Machine code of the functions of bundles, those of their segments included."""
    mine = re.compile("|".join([*(rf"\d{b}" for b in [*bundles, "joint_solve"]), "4call"]))
    total = 0
    for line in run(["nm", "--print-size", "--defined-only", library]).splitlines():
        words = line.split()
        if len(words) == 4 and words[2] in "tT" and mine.search(words[3]):
            total += int(words[1], 16)
    return total
