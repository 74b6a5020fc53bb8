#!/usr/bin/env python3
"""Imports every robot of example-robot-data and compares it with Pinocchio.

For each URDF file, on the ground and floating, at random states, in joint form:

| column | what | Pinocchio |
|---|---|---|
| M, tau, tau_z, tau_v | mass matrix; inverse dynamics, its derivatives by position (along the tangent) and velocity | computeRNEADerivatives |
| vd_z, vd_v, Minv | derivatives of forward dynamics by position, velocity and forces | computeABADerivatives |
| com, com_v | centre of mass and its Jacobian | centerOfMass, jacobianCenterOfMass |
| h, A, hd | centroidal momentum, its matrix, its rate | ccrba, computeCentroidalMomentumTimeVariation |
| Y | regressor of inverse dynamics | computeJointTorqueRegressor |
| Jd | time derivatives of the Jacobians of the bodies' origins | getJointJacobianTimeVariation |

Prints one row of a table for each robot: the largest error of a block over all states, over the largest entry of the block or, for
derivatives, of tau, vd or v if that is larger (they may vanish). Fails if one is above 1e-10 (for derivatives of forward dynamics, which
are solved for, above 1e-13 times the condition number of M where that is more), or if a robot that moves in Pinocchio cannot be imported.
Robots with joints that move no mass have no forward dynamics in Pinocchio: `nan`.

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
ROUNDING = 1e-13
# Places of their inertial parameters, m, mc, xx, xy, yy, xz, yz, zz, among ours: m, mc, xx, yy, zz, xy, xz, yz.
INERTIAL = [0, 1, 2, 3, 4, 7, 5, 8, 9, 6]
SOLVED = ["vd_z", "vd_v", "Minv"]
KEYS = ["mass", "M", "tau", "tau_z", "tau_v", *SOLVED, "com", "com_v", "h", "A", "hd", "Y", "Jd"]


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

    def __init__(self, model, data, q, v_ours, a_ours, floats, solves):
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
        if solves:
            # T a = a_theirs(q, T v, T tau) − shift
            pin.computeABADerivatives(model, data, q, v, tau)
            by_q, by_v, inverse = data.ddq_dq.copy(), data.ddq_dv.copy(), data.Minv.copy()
            inverse = np.triu(inverse) + np.triu(inverse, 1).T
            tau_by_q = np.zeros((nv, nv))
            if floats:
                tau_by_q[:3, 3:6] = skew(tau[:3])
            self.vd_z = T.T @ (by_q @ T + by_v @ v_by_q + inverse @ tau_by_q - a_by_q)
            self.vd_v = T.T @ (by_v @ T - a_by_v)
            self.Minv = T.T @ inverse @ T
            self.condition = np.linalg.cond(self.M)
        self.com_v = pin.jacobianCenterOfMass(model, data, q) @ T
        self.com = data.com[0].copy()
        pin.ccrba(model, data, q, v)
        self.A, self.h = data.Ag @ T, data.hg.vector.copy()
        self.hd = pin.computeCentroidalMomentumTimeVariation(model, data, q, v, a).vector.copy()
        self.Y = T.T @ pin.computeJointTorqueRegressor(model, data, q, v, a)
        # J T changes with T too: d(Rᵀ)/dt = −ω × Rᵀ
        turning = np.zeros((nv, nv))
        if floats:
            turning[:3, :3] = -skew(omega) @ R.T
        pin.computeJointJacobiansTimeVariation(model, data, q, v)
        frame = pin.LOCAL_WORLD_ALIGNED
        rates = []
        for joint in range(1, model.njoints):
            J = pin.getJointJacobian(model, data, joint, frame)
            Jd = pin.getJointJacobianTimeVariation(model, data, joint, frame)
            rates.append((Jd @ T + J @ turning)[:3])
        self.Jd = np.vstack(rates)


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
    body_of = {carrier: body for body, carrier in enumerate(names["carriers"])}
    bodies = [body_of.get("floating_base" if joint.nq == 7 else renamed.get(name, name), -1) for name, joint in zip(model.names[1:], model.joints[1:])]
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
    worst = dict.fromkeys(KEYS, 0.0)
    worst["mass"] = abs(report["mass"] - mass) / mass
    beyond = set()
    solves = not locked
    worst |= dict.fromkeys(SOLVED, 0.0 if solves else np.nan)
    for (q, v, a), answer in zip(samples, answers):
        theirs = Theirs(model, data, q, v, a, floats, solves)
        n, pick = nv, order[kept]
        columns = lambda key, rows: np.reshape(answer[key], (rows, n), order="F")[:, pick]
        matrix = lambda key: columns(key, n)[pick]
        # Joints that move no mass: zero.
        square, wide, long = np.ix_(kept, kept), np.ix_([True] * 3, kept), np.ix_([True] * 6, kept)
        ours = {"M": (matrix("mass_matrix"), square), "tau": (np.array(answer["tau"])[pick], kept)}
        ours |= {key: (matrix(key), square) for key in ("tau_z", "tau_v")}
        if solves:
            ours |= {"vd_z": (matrix("vd_z"), square), "vd_v": (matrix("vd_v"), square), "Minv": (matrix("vd_tau"), square)}
        A = columns("momentum_matrix", 6)
        ours |= {"com": (answer["com"], slice(3)), "com_v": (columns("com_jacobian", 3), wide)}
        ours |= {"h": (answer["momentum"], slice(6)), "A": (A, long)}
        ours |= {"hd": (A @ a[kept] + answer["momentum_bias"], slice(6))}
        # The regressor of body after body, as that of joint after joint.
        dense = np.zeros((n, len(body_of), 10))
        for (j, body), block in zip(names["blocks"], np.reshape(answer["regressor"], (-1, 10))):
            dense[j, body] = block[INERTIAL]
        moved = [body for body in bodies if body >= 0]
        places = np.repeat(np.array(bodies) >= 0, 10)
        ours |= {"Y": (dense[pick][:, moved].reshape(len(pick), -1), np.ix_(kept, places))}
        theirs.Y[:, ~places] = 0
        rates = columns("marker_jacobian_rates", 3 * len(body_of)).reshape(len(body_of), 3, -1)
        places = np.repeat(np.array(bodies) >= 0, 3)
        ours |= {"Jd": (rates[moved].reshape(-1, len(pick)), np.ix_(places, kept))}
        theirs.Jd[~places] = 0
        # What these are derivatives of: they may vanish.
        least = {"tau_z": theirs.tau, "tau_v": theirs.tau, "vd_z": a, "vd_v": a, "Jd": v}
        for key, (block, place) in ours.items():
            other = getattr(theirs, key)
            scale = max(np.abs(other).max(), np.abs(least.get(key, 0.0)).max())
            mine = np.zeros_like(other)
            mine[place] = block
            error = np.abs(mine - other).max() / scale if scale > 0 else np.abs(mine).max()
            worst[key] = max(worst[key], error)
            if not error <= max(BOUND, ROUNDING * theirs.condition if key in SOLVED else 0.0):
                beyond.add(key)
    if worst["mass"] > BOUND:
        beyond.add("mass")
    return {"nv": nv, "locked": len(locked), "beyond": beyond, **worst}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--states", type=int, default=100, help="random states of each robot (100)")
    parser.add_argument("--only", default="", metavar="TEXT", help="robots whose path contains TEXT")
    parser.add_argument("--mbs", default="target/release/mbs")
    parser.add_argument("--evaluate", default="target/release/examples/evaluate")
    arguments = parser.parse_args()

    keys = KEYS
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
                    worst[key] = np.nanmax([worst[key], found[key]])
                if found["beyond"]:
                    bad.append(f"{name}, {base}: {', '.join(sorted(found['beyond']))} above the bound")
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
