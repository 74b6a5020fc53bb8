#!/usr/bin/env python3
"""Imports every robot of example-robot-data and compares it with Pinocchio.

For each URDF file, on the ground and floating, at random states: the mass, the mass matrix M, inverse dynamics tau and its
derivatives by positions (along the tangent) and by velocities, in joint form. Prints one row of a table for each robot: the
largest error of a block over all states, over the largest entry of the block or, for derivatives, of tau if that is larger
(they may vanish). Fails if one is above 1e-10, or if a robot that moves in Pinocchio cannot be imported.

Run it through robots.sh, which builds what it needs:

    benches/peers/robots.sh > benches/peers/robots.md
"""

import argparse
import json
import pathlib
import subprocess
import sys
import tempfile

import numpy as np
import pinocchio as pin

BOUND = 1e-10


def folder():
    """Where the robots are."""
    for place in map(pathlib.Path, sys.path):
        robots = place / "cmeel.prefix" / "share" / "example-robot-data" / "robots"
        if robots.is_dir():
            return robots
    sys.exit("no example-robot-data: benches/peers/install.sh robots")


def skew(a):
    return np.array([[0, -a[2], a[1]], [a[2], 0, -a[0]], [-a[1], a[0], 0]])


def random_state(model, locked, rng):
    """q, v, a of Pinocchio: unit quaternions, angles of continuous joints as points of the circle."""
    q, v, a = pin.neutral(model), rng.uniform(-1, 1, model.nv), rng.uniform(-1, 1, model.nv)
    for name, joint in zip(model.names[1:], model.joints[1:]):
        i = joint.idx_q
        if name in locked:
            v[joint.idx_v] = a[joint.idx_v] = 0
        elif joint.nq == 7:
            q[i : i + 3] = rng.uniform(-1, 1, 3)
            quaternion = rng.normal(size=4)
            q[i + 3 : i + 7] = quaternion / np.linalg.norm(quaternion)
        elif joint.nq == 2:
            angle = rng.uniform(-np.pi, np.pi)
            q[i], q[i + 1] = np.cos(angle), np.sin(angle)
        else:
            q[i] = rng.uniform(-np.pi, np.pi)
    return q, v, a


class Theirs:
    """What Pinocchio computes at a state, in our velocities.

    Its free flyer has the linear velocity in body axes, ours in those of ground: v_theirs = T v with T = diag(Rᵀ, 1), and, since R
    turns, a_theirs = T a + (−ω × Rᵀ v, 0).
    """

    @staticmethod
    def transformed(model, q, v_ours, a_ours, floats):
        """v and a in its own velocities, T, and of the base R, linear and angular velocity in body axes."""
        T, shift = np.eye(model.nv), np.zeros(model.nv)
        R, linear, omega = np.eye(3), np.zeros(3), np.zeros(3)
        if floats:
            R = pin.Quaternion(q[6], q[3], q[4], q[5]).matrix()
            T[:3, :3] = R.T
            linear, omega = R.T @ v_ours[:3], v_ours[3:6]
            shift[:3] = -np.cross(omega, linear)
        return T @ v_ours, T @ a_ours + shift, T, R, linear, omega

    def __init__(self, model, data, q, v_ours, a_ours, floats):
        nv = model.nv
        v, a, T, R, linear, omega = self.transformed(model, q, v_ours, a_ours, floats)
        tau = pin.rnea(model, data, q, v, a).copy()
        pin.computeRNEADerivatives(model, data, q, v, a)
        by_q, by_v, by_a = data.dtau_dq.copy(), data.dtau_dv.copy(), data.M.copy()
        by_a = np.triu(by_a) + np.triu(by_a, 1).T
        self.M, self.tau = T.T @ by_a @ T, T.T @ tau
        # How v_theirs and a_theirs change with our velocities and, at fixed ours, along the tangent.
        a_by_v, v_by_q, a_by_q, turned = (np.zeros((nv, nv)) for _ in range(4))
        if floats:
            a_by_v[:3, :3] = -skew(omega) @ R.T
            a_by_v[:3, 3:6] = skew(linear)
            v_by_q[:3, 3:6] = skew(linear)
            a_by_q[:3, 3:6] = skew(R.T @ a_ours[:3]) - skew(omega) @ skew(linear)
            turned[:3, 3:6] = -R @ skew(tau[:3])
        self.tau_v = T.T @ (by_v @ T + by_a @ a_by_v)
        self.tau_z = T.T @ (by_q @ T + by_v @ v_by_q + by_a @ a_by_q) + turned


def first_problem(report):
    return next((p["message"] for p in report.get("problems", [])), None)


def correspondence(model, locked, renamed, coordinates, velocities):
    """By velocity of Pinocchio the place of ours, −1 of joints that are locked; pairs of a coordinate of ours and a function of
    q. `coordinates` and `velocities` are our names."""
    z_of, v_of = ({name: i for i, name in enumerate(names)} for names in (coordinates, velocities))
    order = np.full(model.nv, -1)  # by velocity of Pinocchio: ours
    angles = []  # pairs of a coordinate of ours and a function of q
    for name, joint in zip(model.names[1:], model.joints[1:]):
        i, j = joint.idx_q, joint.idx_v
        if name in locked:
            continue
        if joint.nq == 7:
            ours = "floating_base"
            order[j : j + 6] = [v_of[f"{ours}.{c}"] for c in ("x_rate", "y_rate", "z_rate", "wx", "wy", "wz")]
            # Theirs is x y z w, ours has the scalar first.
            places = {"x": i, "y": i + 1, "z": i + 2, "e0": i + 6, "e1": i + 3, "e2": i + 4, "e3": i + 5}
            angles += [(z_of[f"{ours}.{c}"], lambda q, k=k: q[k]) for c, k in places.items()]
            continue
        ours = renamed.get(name, name)
        kind = "displacement" if f"{ours}.displacement" in z_of else "angle"
        order[j] = v_of[f"{ours}.{kind}_rate"]
        place = z_of[f"{ours}.{kind}"]
        angles.append((place, (lambda q, i=i: np.arctan2(q[i + 1], q[i])) if joint.nq == 2 else (lambda q, i=i: q[i])))
    assert sorted(order[order >= 0]) == list(range(len(v_of))) and len(angles) == len(z_of), "joints do not match"
    return order, angles


def compare(urdf, floats, states, programs, work):
    """The worst errors of one robot: a dictionary, or a text that says why there are none and whether that is bad."""
    mbs, evaluate = programs
    yaml = work / "robot.yaml"
    command = [mbs, "import", urdf, "-o", yaml, "--json", "--no-friction", "--no-mimic", "--snap", "0"]
    imported = subprocess.run(command + ["--floating-base"] * floats, capture_output=True, text=True)
    report = json.loads(imported.stdout) if imported.stdout else {}
    try:
        root = [pin.JointModelFreeFlyer()] if floats else []
        model = pin.buildModelFromUrdf(str(urdf), *root)
    except ValueError:
        model = None
    if imported.returncode != 0:
        why = first_problem(report) or imported.stderr.strip()
        return f"{why} (Pinocchio: {'not read' if model is None else f'nv = {model.nv}'})", model is not None and model.nv > 0
    if model is None:
        return "Pinocchio does not read it", False
    plain = subprocess.run([mbs, "import", urdf, "-o", work / "plain.yaml", "--json"], capture_output=True, text=True)
    if plain.returncode != 0 and not floats:
        print(f"{urdf.name} as it stands: {first_problem(json.loads(plain.stdout))}", file=sys.stderr)
    data = model.createData()
    locked = set(report["locked"])
    renamed = {r["from"]: r["to"] for r in report["renamed"] if r["what"] == "joint"}
    rng = np.random.default_rng(43)
    samples = [random_state(model, locked, rng) for _ in range(states)]

    # Ours, asked for in the order of our own names.
    run = subprocess.Popen([evaluate, yaml], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    names = json.loads(run.stdout.readline())
    order, angles = correspondence(model, locked, renamed, names["coordinates"], names["velocities"])
    kept = order >= 0
    nq, nv = len(names["coordinates"]), len(names["velocities"])

    def ask(q, v, a):
        z, ours = np.zeros(nq), np.zeros((2, nv))
        for place, value in angles:
            z[place] = value(q)
        ours[:, order[kept]] = v[kept], a[kept]
        return " ".join(repr(float(x)) for x in np.concatenate([z, ours[0], ours[1]]))

    answers, _ = run.communicate("\n".join(ask(*sample) for sample in samples) + "\n")
    answers = [json.loads(line) for line in answers.splitlines()]
    assert run.returncode == 0 and len(answers) == states, "the evaluation failed"

    mass = pin.computeTotalMass(model)
    worst = {"mass": abs(report["mass"] - mass) / mass, "M": 0.0, "tau": 0.0, "tau_z": 0.0, "tau_v": 0.0}
    for (q, v, a), answer in zip(samples, answers):
        theirs = Theirs(model, data, q, v, a, floats)
        pick = order[kept]
        matrix = lambda key: np.reshape(answer[key], (nv, nv), order="F")[np.ix_(pick, pick)]
        ours = {"M": matrix("mass_matrix"), "tau": np.array(answer["tau"])[pick]}
        ours |= {key: matrix(key) for key in ("tau_z", "tau_v")}
        for key, block in ours.items():
            other = getattr(theirs, key)
            scale = max(np.abs(other).max(), np.abs(theirs.tau).max() if key in ("tau_z", "tau_v") else 0.0)
            mine = np.zeros_like(other)  # joints that move no mass: zero
            mine[np.ix_(kept, kept) if block.ndim == 2 else kept] = block
            worst[key] = max(worst[key], np.abs(mine - other).max() / scale if scale > 0 else np.abs(mine).max())
    return {"nv": nv, "locked": len(locked), **worst}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--states", type=int, default=100, help="random states of each robot (100)")
    parser.add_argument("--only", default="", metavar="TEXT", help="robots whose path contains TEXT")
    parser.add_argument("--mbs", default="target/release/mbs")
    parser.add_argument("--evaluate", default="target/release/examples/evaluate")
    arguments = parser.parse_args()

    keys = ["mass", "M", "tau", "tau_z", "tau_v"]
    print("# Imported robots against Pinocchio\n")
    print("Made by `benches/peers/robots.sh > benches/peers/robots.md`; what is compared stands in [README.md](README.md).")
    print(f"Pinocchio {pin.__version__}, {arguments.states} random states of each robot; worst relative errors.\n")
    print(f"| robot | base | nv | locked | {' | '.join(keys)} |")
    print(f"|---|---|---:|---:|{'---:|' * len(keys)}")
    good, refused, bad = 0, [], []
    worst = dict.fromkeys(keys, 0.0)
    robots = folder()
    with tempfile.TemporaryDirectory() as work:
        for urdf in sorted(robots.rglob("*.urdf")):
            name = str(urdf.relative_to(robots))
            if arguments.only not in name:
                continue
            for floats in (False, True):
                base = "floating" if floats else "fixed"
                found = compare(urdf, floats, arguments.states, (arguments.mbs, arguments.evaluate), pathlib.Path(work))
                if isinstance(found, tuple):
                    why, is_bad = found
                    (bad if is_bad else refused).append(f"{name}, {base}: {why}")
                    continue
                good += 1
                for key in keys:
                    worst[key] = max(worst[key], found[key])
                if max(found[key] for key in keys) > BOUND:
                    bad.append(f"{name}, {base}: above {BOUND}")
                numbers = " | ".join(f"{found[key]:.1e}" for key in keys)
                short = name.removesuffix(".urdf").replace("_description/urdf/", "/").replace("_description/robots/", "/")
                print(f"| {short} | {base} | {found['nv']} | {found['locked'] or ''} | {numbers} |", flush=True)
    print(f"| worst of {good} | | | | {' | '.join(f'{worst[key]:.1e}' for key in keys)} |")
    for line in refused:
        print(f"\nnot compared: {line}")
    for line in bad:
        print(f"\nbad: {line}")
    sys.exit(1 if bad else 0)


if __name__ == "__main__":
    main()
