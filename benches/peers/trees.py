#!/usr/bin/env python3
"""Times generated code of open trees against Pinocchio, on the same states, in one run.

Each robot is imported by `mbs import`; each bundle is generated and compiled as a module of its own for this processor.
Programs of both sides run in turn, several rounds; of each figure the smallest counts. Every result is compared with
Pinocchio's. Prints tables. Run it through trees.sh, which builds what it needs:

    benches/peers/trees.sh > benches/peers/trees.md            # all robots
    benches/peers/trees.sh ur5                                 # one
    benches/peers/trees.sh ur5 --bundles mass_matrix --no-cold
"""

import argparse
import pathlib
import sys

import numpy as np
import pinocchio as pin

import robots
from trees import build, correctness, report, synthetic
from trees.peers import GeneratedC, Pinocchio

# Name: file of example-robot-data, and whether it floats.
ROBOTS = {
    "ur5": ("ur_description/urdf/ur5_robot.urdf", False),
    "panda": ("panda_description/urdf/panda.urdf", False),
    "hyq": ("hyq_description/robots/hyq_no_sensors.urdf", True),
    "anymal": ("anymal_b_simple_description/robots/anymal.urdf", True),
    "talos": ("talos_data/robots/talos_reduced.urdf", True),
    "icub": ("icub_description/robots/icub_reduced.urdf", True),
}
SYNTHETIC = {f"{shape}{size}": (shape, size) for shape in synthetic.PARENTS for size in synthetic.SIZES}
STATES = 64
# Models of this project, and at how many states they are measured.
SHIPPED = {"human43": 301}


def snap(model):
    """What the import does to angles, done to Pinocchio's model: robots write a right angle with a few digits, and code that is
    generated is shorter if zeros are zeros."""
    for place in model.jointPlacements:
        nearest = np.round(place.rotation)
        place.rotation = np.where(np.abs(place.rotation - nearest) < 1e-10, nearest, place.rotation)


class Robot:
    """A robot on both sides: model, random states, and which numbers belong together."""

    def __init__(self, name, mbs, folder):
        self.name, self.folder = name, folder / name
        self.folder.mkdir(parents=True, exist_ok=True)
        if name in ROBOTS:
            file, self.floats = ROBOTS[name]
            urdf = robots.folder() / file
        else:
            urdf, self.floats = self.folder / "robot.urdf", False
            urdf.write_text(synthetic.urdf(*SYNTHETIC[name]))
        root = [pin.JointModelFreeFlyer()] if self.floats else []
        self.model = pin.buildModelFromUrdf(str(urdf), *root)
        snap(self.model)
        self.yaml, imported = build.imported(mbs, urdf, self.floats, self.folder)
        self.locked = set(imported["locked"])
        self.renamed = {r["from"]: r["to"] for r in imported["renamed"] if r["what"] == "joint"}
        self.nv = self.model.nv - sum(self.model.joints[self.model.getJointId(name)].nv for name in self.locked)
        # Joints with a motor, those of one velocity.
        self.inputs = [i for i in range(1, self.model.njoints)
                       if self.model.joints[i].nv == 1 and self.model.names[i] not in self.locked]
        names = [self.model.names[i] for i in self.inputs]
        self.driven = build.with_motors(self.yaml, [self.renamed.get(name, name) for name in names])
        rng = np.random.default_rng(43)
        self.samples = []
        for _ in range(STATES):
            q, v, a = robots.random_state(self.model, self.locked, rng)
            # Nobody drives the base.
            tau = rng.uniform(-1, 1, self.model.nv) * (np.arange(self.model.nv) >= 6 * self.floats)
            self.samples.append((q, v, a, tau))

    def match(self, coordinates, velocities):
        """Finds our numbers by their names."""
        self.order, self.angles = robots.correspondence(self.model, self.locked, self.renamed, coordinates, velocities)
        self.kept = self.order >= 0

    def write_ours(self, path, driven):
        rows = []
        for q, v, a, tau in self.samples:
            z, ours = np.zeros(len(self.angles)), np.zeros((2, self.nv))
            for place, value in self.angles:
                z[place] = value(q)
            ours[:, self.order[self.kept]] = v[self.kept], a[self.kept]
            u = [tau[self.model.joints[joint].idx_v] for joint in self.inputs] if driven else []
            rows.append(np.concatenate([z, *ours, u]))
        np.array(rows).tofile(path)


class Shipped:
    """A model of ours: nobody to compare with."""

    def __init__(self, name, mbs, folder):
        self.name, self.folder = name, folder / name
        self.folder.mkdir(parents=True, exist_ok=True)
        self.yaml = self.driven = pathlib.Path("models") / f"{name}.yaml"

    def match(self, coordinates, velocities):
        self.nq, self.nv = len(coordinates), len(velocities)

    def write_ours(self, path, driven):
        rng = np.random.default_rng(43)
        rng.uniform(-1, 1, (SHIPPED[self.name], self.nq + 2 * self.nv)).tofile(path)


def measure(robot, bundles, peers, arguments):
    """All figures of one robot: a dictionary."""
    modules = {}
    for bundle in bundles:
        print(f"{robot.name}: {bundle}", file=sys.stderr)
        modules[bundle] = build.Module(robot, bundle, arguments)
    timed = {bundle: module for bundle, module in modules.items() if module.driver}
    facts = {bundle: module.facts for bundle, module in modules.items()}
    if not timed:
        return {"robot": robot.name, "nv": robot.nv, "figures": {}, "errors": {}, "modules": facts}
    robot.match(*next(iter(timed.values())).names())
    for driven in (False, True):
        robot.write_ours(robot.folder / f"ours_{driven:d}.states", driven)
    peers = peers if isinstance(robot, Robot) else []
    for peer in peers:
        peer.prepare(robot, bundles)
    figures = {}

    def take(key, found):
        figures[key] = tuple(map(min, figures.get(key, found), found))

    effort = [str(arguments.batches), str(0 if arguments.no_cold else arguments.cold_calls)]
    for turn in range(arguments.rounds):
        print(f"{robot.name}: round {turn + 1} of {arguments.rounds}", file=sys.stderr)
        for peer in peers:
            for algorithm, found in peer.run(robot, effort).items():
                take(f"{peer.name}/{algorithm}", found)
        for bundle, module in timed.items():
            take(f"ours/{bundle}", module.run(robot.folder / f"ours_{module.driven:d}.states", effort))
    errors = {peer.name: peer.error(robot) for peer in peers}
    if isinstance(robot, Robot):
        errors |= {bundle: correctness.error(robot, bundle, module.results()) for bundle, module in timed.items()}
    return {"robot": robot.name, "nv": robot.nv, "figures": figures, "errors": errors, "modules": facts}


# Sizes on both sides of the generator's choices.
COMPARED = ["ur5", "panda", "hyq", "talos", "human43", "chain10", "chain20", "chain50", "binary50", "binary100"]


def compare_pairs(names, folder, arguments):
    """Prints what flat code and loops take for entries of pairs of joints, and which of them the generator chooses."""
    bundles = [b for b in build.PAIRED if not arguments.bundles or b in arguments.bundles]
    arguments.no_cold, rows = True, []
    for name in names:
        robot = (Shipped if name in SHIPPED else Robot)(name, arguments.mbs, folder)
        both = {}
        for arguments.pairs in ("flat", "rolled"):
            both[arguments.pairs] = measure(robot, bundles, [], arguments)
        arguments.pairs = "auto"
        for bundle in bundles:
            hot = {way: one["figures"].get(f"ours/{bundle}", (None,))[0] for way, one in both.items()}
            sizes = {way: one["modules"][bundle].get("bytes") for way, one in both.items()}
            rows.append((name, robot.nv, bundle, hot, sizes, build.choice(robot, bundle, arguments)))
    report.pairs(rows)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("robots", nargs="*", metavar="ROBOT", help=f"of {', '.join([*ROBOTS, *SHIPPED])} (all of them), "
                        f"{', '.join(SYNTHETIC)}")
    parser.add_argument("--scaling", action="store_true", help=f"how cost grows: {', '.join(SYNTHETIC)}")
    parser.add_argument("--bundles", type=lambda text: text.split(","), help=f"of {','.join(build.BUNDLES)} (all)")
    parser.add_argument("--freeze", action="store_true", help="parameters become constants; robots have none")
    parser.add_argument("--pairs", choices=["auto", "flat", "rolled"], default="auto",
                        help="entries for pairs of joints: flat code, loops, or as the generator chooses (auto)")
    parser.add_argument("--compare-pairs", action="store_true", help="both ways to compute entries for pairs of joints, and the choice")
    parser.add_argument("--most", type=int, default=400_000, help="operations beyond which nothing is compiled (400000)")
    parser.add_argument("--rounds", type=int, default=7, help="how often all programs run (7)")
    parser.add_argument("--batches", type=int, default=51, help="batches of 0.2 ms in a round (51)")
    parser.add_argument("--cold-calls", type=int, default=25, help="calls in cold caches in a round (25)")
    parser.add_argument("--no-cold", action="store_true", help="hot caches only")
    parser.add_argument("--no-codegen", action="store_true", help="without CppADCodeGen, whose C takes long to compile")
    parser.add_argument("--patience", type=int, default=600, metavar="SECONDS",
                        help="with the compiler of that C, for each algorithm (600); 0: only what has been compiled before")
    parser.add_argument("--ours", action="store_true", help="generated code only")
    parser.add_argument("--mbs", type=pathlib.Path, default="target/release/mbs")
    parser.add_argument("--runtime", type=pathlib.Path, default="target/peers-native/release",
                        help="folder of the runtime, compiled for this processor")
    arguments = parser.parse_args()
    names = arguments.robots or list(SYNTHETIC if arguments.scaling else ROBOTS | SHIPPED)
    for name in names:
        if name not in ROBOTS and name not in SYNTHETIC and name not in SHIPPED:
            parser.error(f"no robot is called {name}; there are: {', '.join([*ROBOTS, *SHIPPED, *SYNTHETIC])}")
    for name in arguments.bundles or []:
        if name not in build.BUNDLES:
            parser.error(f"no bundle is called {name}; there are: {', '.join(build.BUNDLES)}")
    folder = pathlib.Path(sys.prefix) / "trees"
    folder.mkdir(exist_ok=True)
    peers = [] if arguments.ours else [Pinocchio(folder)]
    if not arguments.ours and not arguments.no_codegen:
        peers.append(GeneratedC(folder, arguments.patience))
    bundles = [b for b in build.BUNDLES if not arguments.bundles or b in arguments.bundles]
    if arguments.compare_pairs:
        return compare_pairs(arguments.robots or COMPARED, folder, arguments)
    found, shipped = [], {}
    for name in names:
        robot = (Shipped if name in SHIPPED else Robot)(name, arguments.mbs, folder)
        shipped[name] = robot
        found.append(measure(robot, bundles, peers, arguments))
    if arguments.scaling:
        report.scaling(found, peers)
    else:
        report.tables(found, peers)
    for one in found:
        if one["robot"] in SHIPPED:
            samples = SHIPPED[one["robot"]]
            report.series(one, samples, build.series(shipped[one["robot"]], samples, arguments))
    bad = [f"{one['robot']}/{what}: {e:.1e}" for one in found for what, e in one["errors"].items() if not e < report.BOUND]
    if bad:
        sys.exit(f"results differ by more than {report.BOUND}: {', '.join(bad)}")


if __name__ == "__main__":
    main()
