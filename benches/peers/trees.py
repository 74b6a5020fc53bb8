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
from trees import build, correctness, report
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
STATES = 64


class Robot:
    """A robot on both sides: model, random states, and which numbers belong together."""

    def __init__(self, name, mbs, folder):
        file, self.floats = ROBOTS[name]
        self.name, self.folder = name, folder / name
        self.folder.mkdir(parents=True, exist_ok=True)
        urdf = robots.folder() / file
        root = [pin.JointModelFreeFlyer()] if self.floats else []
        self.model = pin.buildModelFromUrdf(str(urdf), *root)
        self.yaml, imported = build.imported(mbs, urdf, self.floats, self.folder)
        self.locked = set(imported["locked"])
        self.renamed = {r["from"]: r["to"] for r in imported["renamed"] if r["what"] == "joint"}
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
            z, ours = np.zeros(len(self.angles)), np.zeros((2, self.kept.sum()))
            for place, value in self.angles:
                z[place] = value(q)
            ours[:, self.order[self.kept]] = v[self.kept], a[self.kept]
            u = [tau[self.model.joints[joint].idx_v] for joint in self.inputs] if driven else []
            rows.append(np.concatenate([z, *ours, u]))
        np.array(rows).tofile(path)


def measure(robot, bundles, peers, arguments):
    """All figures of one robot: a dictionary."""
    modules = {}
    for bundle in bundles:
        print(f"{robot.name}: {bundle}", file=sys.stderr)
        modules[bundle] = build.Module(robot, bundle, pathlib.Path(arguments.mbs), pathlib.Path(arguments.runtime))
    robot.match(*next(iter(modules.values())).names())
    for driven in (False, True):
        robot.write_ours(robot.folder / f"ours_{driven:d}.states", driven)
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
        for bundle, module in modules.items():
            take(f"ours/{bundle}", module.run(robot.folder / f"ours_{module.driven:d}.states", effort))
    errors = {bundle: correctness.error(robot, bundle, module.results()) for bundle, module in modules.items()}
    return {
        "robot": robot.name,
        "nv": int(robot.kept.sum()),
        "figures": figures,
        "errors": errors | {peer.name: peer.error(robot) for peer in peers},
        "modules": {bundle: module.facts for bundle, module in modules.items()},
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("robots", nargs="*", metavar="ROBOT", help=f"of {', '.join(ROBOTS)} (all)")
    parser.add_argument("--bundles", type=lambda text: text.split(","), help=f"of {','.join(build.BUNDLES)} (all)")
    parser.add_argument("--rounds", type=int, default=5, help="how often all programs run (5)")
    parser.add_argument("--batches", type=int, default=51, help="batches of 0.2 ms in a round (51)")
    parser.add_argument("--cold-calls", type=int, default=25, help="calls in cold caches in a round (25)")
    parser.add_argument("--no-cold", action="store_true", help="hot caches only")
    parser.add_argument("--no-codegen", action="store_true", help="without CppADCodeGen, whose C takes long to compile")
    parser.add_argument("--ours", action="store_true", help="generated code only")
    parser.add_argument("--mbs", default="target/release/mbs")
    parser.add_argument("--runtime", default="target/peers/native", help="folder of the runtime, compiled for this processor")
    arguments = parser.parse_args()
    for name in arguments.robots:
        if name not in ROBOTS:
            parser.error(f"no robot is called {name}; there are: {', '.join(ROBOTS)}")
    for name in arguments.bundles or []:
        if name not in build.BUNDLES:
            parser.error(f"no bundle is called {name}; there are: {', '.join(build.BUNDLES)}")
    folder = pathlib.Path(sys.prefix) / "trees"
    folder.mkdir(exist_ok=True)
    wanted = [] if arguments.ours else [Pinocchio] if arguments.no_codegen else [Pinocchio, GeneratedC]
    peers = [peer(folder) for peer in wanted]
    bundles = [b for b in build.BUNDLES if not arguments.bundles or b in arguments.bundles]
    found = [measure(Robot(name, arguments.mbs, folder), bundles, peers, arguments) for name in arguments.robots or ROBOTS]
    report.tables(found, peers)
    bad = [f"{one['robot']}/{what}: {e:.1e}" for one in found for what, e in one["errors"].items() if not e < report.BOUND]
    if bad:
        sys.exit(f"results differ by more than {report.BOUND}: {', '.join(bad)}")


if __name__ == "__main__":
    main()
