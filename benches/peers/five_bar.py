"""The five-bar linkage the peers are compared on: its data, its energy, its objectives, its exact motion.

What enters: nothing. What leaves: the data every peer builds its model from, and the functions that judge a run.

Run by itself it integrates the linkage, reduced by hand to its two independent angles, with RK4 at two small steps and
prints the motion's end and the objectives: the numbers stored in REFERENCE below.
"""

import json
import os
import statistics
import time

import numpy as np

GRAVITY = 9.81  # m/s^2, along -y
END = 5.0  # s
H = 1e-3  # s, the step that is compared

A, B = np.array([-0.5, 0.0]), np.array([0.5, 0.0])
P1, P2, P3 = np.array([-1.5, -1.0]), np.array([0.0, -2.0]), np.array([1.5, -1.0])
# Uniform rods: (name, first end, second end, kg); I_G = m L^2 / 12.
BARS = [("A1", A, P1, 1.0), ("12", P1, P2, 1.5), ("23", P2, P3, 1.5), ("3B", P3, B, 1.0)]
# (end that moves, end that is fixed, N/m, natural length in m)
SPRINGS = [("1", "B", 100.0, 5.0**0.5), ("2", "B", 100.0, 4.25**0.5)]

LENGTHS = np.array([np.hypot(*(q - p)) for _, p, q, _ in BARS])
MASSES = np.array([m for *_, m in BARS])
INERTIAS = MASSES * LENGTHS**2 / 12
# A linkage beside this one, for differences: FIVE_BAR="L_s1 1e-4" adds 1e-4 to a natural length or to the mass of A1, whose
# inertia about its centre is held. Of the five parameters of the gradient these are the three that every peer has as a number.
NAMES = ("L_s1", "L_s2", "m_A1")
if beside := os.environ.get("FIVE_BAR"):
    changed, by = beside.split()
    at = NAMES.index(changed)
    if at < 2:
        SPRINGS[at] = (*SPRINGS[at][:3], SPRINGS[at][3] + float(by))
    else:
        MASSES[0] += float(by)
        BARS[0] = (*BARS[0][:3], MASSES[0])
ANGLES = np.array([np.arctan2(*(q - p)[::-1]) for _, p, q, _ in BARS])

# The exact motion: point 2 at the end, in metres, and the objectives (published: 0.726877, 7.342288, 304.9207), in the
# digits on which the two steps of `python3 five_bar.py`, extrapolated, leave no doubt.
REFERENCE = {"r2": (0.384031681698, -2.303783444225), "psi": (0.726877461313, 7.34228779279, 304.9206932062)}


def points(centres, angles):
    """Points 1, 2, 3 as the ends of bars A1, 12 and 23, from centres [..., 4, 2] and angles [..., 4]."""
    half = 0.5 * LENGTHS[:, None] * np.stack([np.cos(angles), np.sin(angles)], axis=-1)
    return (centres + half)[..., :3, :]


def energy(centres, angles, centre_rates, angle_rates):
    """Kinetic energy and total energy of a state, or of an array of them."""
    kinetic = 0.5 * ((MASSES * (centre_rates**2).sum(-1)).sum(-1) + (INERTIAS * angle_rates**2).sum(-1))
    potential = GRAVITY * (MASSES * centres[..., 1]).sum(-1)
    r = dict(zip("123", np.moveaxis(points(centres, angles), -2, 0)))
    for moving, _, k, natural in SPRINGS:
        potential = potential + 0.5 * k * (np.linalg.norm(r[moving] - B, axis=-1) - natural) ** 2
    return kinetic, kinetic + potential


def drift(centres, angles, centre_rates, angle_rates):
    """Largest change of the total energy over a run, as a part of the largest kinetic energy."""
    kinetic, total = energy(centres, angles, centre_rates, angle_rates)
    return float(np.abs(total - total[0]).max() / kinetic.max())


def gap(centres, angles):
    """Largest distance over a run between two ends that a hinge holds together, in metres."""
    half = 0.5 * LENGTHS[:, None] * np.stack([np.cos(angles), np.sin(angles)], axis=-1)
    first, second = centres - half, centres + half
    joined = [first[..., 0, :] - A, second[..., 3, :] - B]
    joined += [second[..., i, :] - first[..., i + 1, :] for i in range(3)]
    return float(max(np.linalg.norm(d, axis=-1).max() for d in joined))


def objectives(r2, v2, a2, h):
    """psi1, psi2, psi3 by Simpson's rule over samples h apart, start and end included: it adds no error that counts."""
    weights = np.full(len(r2), 2.0)
    weights[1::2], weights[[0, -1]] = 4, 1
    assert len(weights) % 2, "Simpson's rule wants an even number of steps"
    return [float(h / 3 * weights @ (x**2).sum(-1)) for x in (r2 - P2, v2, a2)]


def of_absolute_angles(q, qd, qdd):
    """The motion of a chain that starts at A, from absolute angles [..., 4], their rates and accelerations.

    `state` is what energy, drift and gap want (gap the first two).
    """
    along = np.stack([np.cos(q), np.sin(q)], axis=-1) * LENGTHS[:, None]
    across = np.stack([-along[..., 1], along[..., 0]], axis=-1)
    velocity = across * qd[..., None]
    acceleration = across * qdd[..., None] - along * qd[..., None] ** 2
    centre = lambda d: np.cumsum(d, axis=-2) - 0.5 * d
    second = lambda d: d[..., :2, :].sum(-2)
    return {"state": (A + centre(along), q, centre(velocity), qd),
            "r2": A + second(along), "v2": second(velocity), "a2": second(acceleration)}


def timed(call):
    """Wall seconds and processor seconds of a call."""
    wall, processor = time.perf_counter(), time.thread_time()
    call()
    return time.perf_counter() - wall, time.thread_time() - processor


def repeated(run, repetitions):
    """What `run`, which returns its own seconds, took each time but the first."""
    return [run() for _ in range(repetitions + 1)][1:]


def report(tool, version, model, method, order, h, steps, seconds, r2, finer_r2, psi, energy_drift, **more):
    """The one line a peer prints.

    `seconds` are pairs of wall and processor seconds, one for each repetition; `finer_r2` is point 2 at the end of the
    tool's own run of a finer step.
    """
    wall, processor = zip(*seconds)
    per_step = lambda x: round(x / steps * 1e6, 4)
    distance = lambda p, q: float(np.hypot(*(np.asarray(p) - np.asarray(q))))
    print(
        json.dumps(
            {
                "tool": tool,
                "version": version,
                "model": model,
                "method": method,
                "order": order,
                "h": h,
                "steps": steps,
                "us_per_step_best": per_step(min(wall)),
                "us_per_step_median": per_step(statistics.median(wall)),
                "us_per_step_processor": per_step(min(processor)),
                "r2": [float(x) for x in r2],
                "r2_error_to_finer": distance(r2, finer_r2),
                "r2_error_to_exact": distance(r2, REFERENCE["r2"]),
                "psi": [float(x) for x in psi],
                "psi_error": [abs(p / q - 1) for p, q in zip(psi, REFERENCE["psi"])],
                "energy_drift": energy_drift,
                **more,
            }
        )
    )


# --- The linkage reduced by hand: q = (angle of A1, angle of 12). Point 3 follows from two circles.


def rot90(r):
    """The derivative of a vector of constant length by its angle."""
    return np.array([-r[1], r[0]])


def reduced(q, qd):
    """Accelerations of q, and r, v, a of point 2.

    All angles th = th(q). Closing the loop, L3 e3 + L4 e4 = B - r2, gives th3 and th4; differentiated once it gives
    their rates, twice their accelerations. Then R^T M R qdd = R^T (Q - M Rd qd), with R = d(centres, angles)/dq.
    """
    L1, L2, L3, L4 = LENGTHS
    d1, d2 = (L * np.array([np.cos(x), np.sin(x)]) for L, x in ((L1, q[0]), (L2, q[1])))
    r1 = A + d1
    r2 = r1 + d2
    # Point 3: from r2 along the line to B, then across, to the side on which it starts.
    w = B - r2
    ww = w @ w
    along = (L3**2 - L4**2 + ww) / (2 * ww)
    across = -np.sqrt(L3**2 / ww - along**2)
    d3 = along * w + across * rot90(w)
    d4 = w - d3
    d = [d1, d2, d3, d4]
    # d1' th1d + d2' th2d + d3' th3d + d4' th4d = 0, with d' = rot90(d)
    closing = np.linalg.inv(np.column_stack([rot90(d3), rot90(d4)]))
    T = np.vstack([np.eye(2), -closing @ np.column_stack([rot90(d1), rot90(d2)])])  # thd = T qd
    thd = T @ qd
    # d1' th1dd + ... + d4' th4dd = sum of d_i thd_i^2; gamma = the part of thdd that qdd does not make
    gamma = np.concatenate([np.zeros(2), closing @ sum(di * wi**2 for di, wi in zip(d, thd))])
    mass = np.zeros((2, 2))
    force = np.zeros(2)
    J, c = np.zeros((2, 2)), np.zeros(2)  # velocity J qd and bias acceleration c of the bar's first end
    for i in range(4):
        Jd = np.outer(rot90(d[i]), T[i])
        cd = rot90(d[i]) * gamma[i] - d[i] * thd[i] ** 2
        JG, cG = J + 0.5 * Jd, c + 0.5 * cd
        mass += MASSES[i] * JG.T @ JG + INERTIAS[i] * np.outer(T[i], T[i])
        force += MASSES[i] * JG.T @ (np.array([0, -GRAVITY]) - cG) - INERTIAS[i] * T[i] * gamma[i]
        J, c = J + Jd, c + cd
        if i < 2:
            s = (r1, r2)[i] - B
            length = np.sqrt(s @ s)
            force -= J.T @ s * (SPRINGS[i][2] * (1 - SPRINGS[i][3] / length))
        if i == 1:
            J2, c2 = J, c
    qdd = np.linalg.solve(mass, force)
    return qdd, r2, J2 @ qd, J2 @ qdd + c2


def exact(h):
    """RK4 of the reduced linkage: point 2 at the end, and the objectives, integrated beside the motion."""

    def rate(y):
        qdd, r2, v2, a2 = reduced(y[:2], y[2:4])
        return np.concatenate([y[2:4], qdd, [(x**2).sum() for x in (r2 - P2, v2, a2)]])

    y = np.concatenate([ANGLES[:2], np.zeros(5)])
    for _ in range(round(END / h)):
        k1 = rate(y)
        k2 = rate(y + h / 2 * k1)
        k3 = rate(y + h / 2 * k2)
        k4 = rate(y + h * k3)
        y = y + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
    return reduced(y[:2], y[2:4])[1], y[4:]


if __name__ == "__main__":
    for h in (4e-4, 2e-4):
        r2, psi = exact(h)
        print(f"h = {h}: r2 = ({r2[0]:.15f}, {r2[1]:.15f}), psi = ({psi[0]:.13f}, {psi[1]:.12f}, {psi[2]:.11f})")
