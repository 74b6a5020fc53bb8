"""The five-bar linkage through CasADi: reduced by hand to two angles, printed as C, compiled, RK4.

No general method: someone closed the loop on paper (point 3 is where two circles meet) and wrote the equations of
motion of two independent angles; CasADi prints them. One line of JSON on standard output.

By default the whole step of RK4 is one printed function, which is the faster way; `--per-stage` prints the rate and
leaves RK4 to a loop in C; `--equations automatic` writes only positions by hand and lets CasADi differentiate them.
`--gradient` has objectives as further states and lets CasADi differentiate the step by the state and five parameters: the
fewest steps with which each row of the gradient is right to 1e-6 of its largest entry, and the time of that run.
Compiled with `gcc -O3 -march=native`; CC and CFLAGS override.
"""

import argparse
import json
import os
import shlex
import subprocess
import tempfile
from pathlib import Path

import casadi as ca
import numpy as np

import five_bar
from five_bar import GRAVITY, INERTIAS, MASSES, SPRINGS

arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
arguments.add_argument("--equations", choices=["hand", "automatic"], default="hand")
arguments.add_argument("--per-stage", action="store_true", help="print the rate; RK4 is a loop in C")
arguments.add_argument("--gradient", action="store_true", help="three objectives by five parameters, to 1e-6")
arguments.add_argument("--repetitions", type=int, default=1001)
arguments = arguments.parse_args()

COMPILER = [os.environ.get("CC", "gcc"), *shlex.split(os.environ.get("CFLAGS", "-O3 -march=native"))]
DRIVER = Path(__file__).with_name("casadi_driver.c")
A, B = ca.DM(five_bar.A), ca.DM(five_bar.B)
# L_s1, L_s2, m_A1, x_G of A1 along the bar, L_A1; inertia about the centre of mass held.
NOMINAL = [*(s[3] for s in SPRINGS), MASSES[0], five_bar.LENGTHS[0] / 2, five_bar.LENGTHS[0]]
p = ca.SX.sym("p", 5) if arguments.gradient else [float(x) for x in NOMINAL]
NATURAL = [p[0], p[1]]
L = [p[4], *(float(x) for x in five_bar.LENGTHS[1:])]
MASS = [p[2], *(float(x) for x in MASSES[1:])]
CENTRE = [p[3] / p[4], 0.5, 0.5, 0.5]  # of each bar, in parts of its length
WEIGHT = ca.DM([0, -GRAVITY])


def rot90(r):
    """The derivative of a vector of constant length by its angle."""
    return ca.vertcat(-r[1], r[0])


def bars(q):
    """The bars as vectors from their first to their second end: the closed loop, solved."""
    d1, d2 = (L[i] * ca.vertcat(ca.cos(q[i]), ca.sin(q[i])) for i in (0, 1))
    w = B - A - d1 - d2
    ww = ca.dot(w, w)
    along = (L[2] ** 2 - L[3] ** 2) / (2 * ww) + 0.5
    across = -ca.sqrt(L[2] ** 2 / ww - along**2)
    d3 = along * w + across * rot90(w)
    return d1, d2, d3, w - d3


def solve2(M, f):
    """M^-1 f, for a symmetric M."""
    det = M[0, 0] * M[1, 1] - M[0, 1] ** 2
    return ca.vertcat(M[1, 1] * f[0] - M[0, 1] * f[1], M[0, 0] * f[1] - M[0, 1] * f[0]) / det


def hand(q, qd):
    """qdd, with velocities and accelerations of the loop written out; five_bar.reduced says what each line is."""
    d = bars(q)
    det = d[2][0] * d[3][1] - d[2][1] * d[3][0]
    closing = lambda b: ca.vertcat(ca.dot(d[3], b), -ca.dot(d[2], b)) / det
    T = ca.vertcat(ca.SX.eye(2), ca.horzcat(closing(-rot90(d[0])), closing(-rot90(d[1]))))
    thd = T @ qd
    gamma = ca.vertcat(0, 0, closing(sum(d[i] * thd[i] ** 2 for i in range(4))))
    M, f = ca.SX(2, 2), ca.SX(2, 1)
    J, c, r = ca.SX(2, 2), ca.SX(2, 1), A
    for i in range(3):
        Jd, cd = rot90(d[i]) @ T[i, :], rot90(d[i]) * gamma[i] - d[i] * thd[i] ** 2
        JG, cG = J + CENTRE[i] * Jd, c + CENTRE[i] * cd
        M += MASS[i] * JG.T @ JG + INERTIAS[i] * T[i, :].T @ T[i, :]
        f += MASS[i] * JG.T @ (WEIGHT - cG) - INERTIAS[i] * T[i, :].T * gamma[i]
        J, c, r = J + Jd, c + cd, r + d[i]
        if i < len(SPRINGS):
            f -= J.T @ (r - B) * (SPRINGS[i][2] * (1 - NATURAL[i] / ca.norm_2(r - B)))
    # The last bar turns about B.
    about_B = INERTIAS[3] + MASSES[3] * L[3] ** 2 / 4
    M += about_B * T[3, :].T @ T[3, :]
    f -= T[3, :].T * (about_B * gamma[3] + 0.5 * MASSES[3] * ca.dot(rot90(d[3]), WEIGHT))
    return solve2(M, f)


def positions(q):
    """Centres of the bars, angles of the bars, points 1 and 2."""
    d = bars(q)
    r = [A, A + d[0], A + d[0] + d[1], B - d[3], B]
    angles = [q[0], q[1], ca.atan2(d[2][1], d[2][0]), ca.atan2(d[3][1], d[3][0])]
    return ca.vertcat(*[(p + s) / 2 for p, s in zip(r, r[1:])]), ca.vertcat(*angles), r[1], r[2]


def automatic(q, qd):
    """qdd, from positions and energies alone."""
    centres, angles, r1, r2 = positions(q)
    x = ca.vertcat(centres, angles)
    Mx = ca.diag(ca.DM([*np.repeat(MASSES, 2), *INERTIAS]))
    R = ca.jacobian(x, q)
    potential = -ca.dot(ca.repmat(WEIGHT, 4, 1) * np.repeat(MASSES, 2), centres)
    for (_, _, k, natural), r in zip(SPRINGS, (r1, r2)):
        potential += 0.5 * k * (ca.norm_2(r - B) - natural) ** 2
    return solve2(R.T @ Mx @ R, -ca.gradient(potential, q) - R.T @ Mx @ ca.jtimes(R @ qd, q, qd))


def printed_c(function, folder, definitions=()):
    """Prints and compiles a step with the driver; the program."""
    generator = ca.CodeGenerator("printed.c")
    generator.add(function)
    generator.generate(folder + "/")
    subprocess.run([*COMPILER, *definitions, "-o", f"{folder}/driver", DRIVER, f"{folder}/printed.c", "-lm"],
                   check=True)
    return f"{folder}/driver"


def driven(folder, steps, repetitions, start):
    """Wall and processor seconds of each repetition, and the states of a run, start included."""
    out = subprocess.run([f"{folder}/driver", str(steps), str(repetitions), f"{folder}/states",
                          *(repr(float(x)) for x in start)], check=True, capture_output=True, text=True).stdout
    states = np.fromfile(f"{folder}/states").reshape(steps + 1, len(start))
    return [[float(x) for x in line.split()] for line in out.splitlines()], states


def gradient():
    """The gradient of the objectives: the fewest equal steps to 1e-6, and the time of that run."""
    Y, h, S = ca.SX.sym("Y", 7), ca.SX.sym("h"), ca.SX.sym("S", 7, 5)
    q, qd = Y[:2], Y[2:4]
    qdd = hand(q, qd)
    d = [L[i] * ca.vertcat(ca.cos(q[i]), ca.sin(q[i])) for i in (0, 1)]
    r2 = A + d[0] + d[1]
    v2 = sum(rot90(d[i]) * qd[i] for i in (0, 1))
    a2 = sum(rot90(d[i]) * qdd[i] - d[i] * qd[i] ** 2 for i in (0, 1))
    integrands = [ca.sumsqr(x) for x in (r2 - ca.DM(five_bar.P2), v2, a2)]
    rate = ca.Function("rate", [Y, p], [ca.cse(ca.vertcat(qd, qdd, *integrands))])
    next_Y = rk4(lambda x: rate(x, p), Y, h)
    along = ca.vertcat(S, ca.SX.eye(5))
    next_S = ca.jtimes(next_Y, ca.vertcat(Y, p), along)
    # The state, its derivatives column by column, parameters and step, which do not change.
    state = ca.vertcat(Y, ca.vec(S), p, h)
    function = ca.Function("printed", [state], [ca.cse(ca.vertcat(next_Y, ca.vec(next_S), p, h))])
    rows = lambda states: states[-1][7:42].reshape(5, 7)[:, 4:].T
    start = lambda steps: [*five_bar.ANGLES[:2], *np.zeros(5 + 35), *NOMINAL, five_bar.END / steps]
    with tempfile.TemporaryDirectory() as folder:
        printed_c(function, folder, [f"-DN={state.numel()}"])
        exact = rows(driven(folder, 20000, 0, start(20000))[1])
        error = lambda found: float((np.abs(found - exact).max(1) / np.abs(exact).max(1)).max())
        steps = 100
        while error(rows(driven(folder, steps, 0, start(steps))[1])) > 1e-6:
            steps = round(steps * 1.1)
        seconds, states = driven(folder, steps, max(arguments.repetitions // 10, 3), start(steps))
        wall, processor = np.array(seconds[1:]).min(0)
        print(json.dumps({
            "tool": "casadi", "version": ca.__version__, "gradient": rows(states).tolist(), "error": error(rows(states)),
            "steps": steps, "ms_best": wall * 1e3, "ms_processor": processor * 1e3,
            "method": "RK4, the derivative of the printed step, compiled", "operations": function.n_instructions(),
        }))


def rk4(rate, y, h):
    """The state after a step."""
    k1 = rate(y)
    k2 = rate(y + h / 2 * k1)
    k3 = rate(y + h / 2 * k2)
    k4 = rate(y + h * k3)
    return ca.cse(y + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4))


if arguments.gradient:
    gradient()
    raise SystemExit

y = ca.SX.sym("y", 4)
qdd = {"hand": hand, "automatic": automatic}[arguments.equations](y[:2], y[2:])
rate = ca.Function("rate", [y], [ca.cse(ca.vertcat(y[2:], qdd))])


def run(h, repetitions):
    """Prints, compiles and runs.

    Wall and processor seconds of each repetition, the states of a run, operations of the printed C.
    """
    printed = ca.Function("printed", [y], [rate(y) if arguments.per_stage else rk4(rate, y, h)])
    with tempfile.TemporaryDirectory() as folder:
        printed_c(printed, folder, [f"-DPER_STAGE={h!r}"] if arguments.per_stage else [])
        seconds, states = driven(folder, round(five_bar.END / h), repetitions, [*five_bar.ANGLES[:2], 0, 0])
    return seconds, states, printed.n_instructions()


# What is judged, of any state.
centres, angles, _, r2 = positions(y[:2])
v2 = ca.jtimes(r2, y[:2], y[2:])
a2 = ca.jtimes(v2, y, rate(y))
rates = [ca.jtimes(x, y[:2], y[2:]) for x in (centres, angles)]
judged = ca.Function("judged", [y], [centres, angles, *rates, r2, v2, a2])

h = five_bar.H
steps = round(five_bar.END / h)
seconds, states, operations = run(h, arguments.repetitions + 1)
_, finer, _ = run(h / 10, 0)
centres, angles, centre_rates, angle_rates, r2, v2, a2 = (np.array(x).T for x in judged.map(len(states))(states.T))
centres, centre_rates = (x.reshape(-1, 4, 2) for x in (centres, centre_rates))
five_bar.report(
    tool="casadi",
    version=ca.__version__,
    model="reduced by hand to 2 angles; "
    + {"hand": "equations of motion by hand", "automatic": "differentiated by CasADi"}[arguments.equations],
    method="RK4, "
    + ("a loop in C over the printed rate" if arguments.per_stage else "the step printed as one function"),
    order=4,
    h=h,
    steps=steps,
    seconds=seconds[1:],
    r2=r2[-1],
    finer_r2=np.array(judged(finer[-1])[4]).ravel(),
    psi=five_bar.objectives(r2, v2, a2, h),
    energy_drift=five_bar.drift(centres, angles, centre_rates, angle_rates),
    gap=five_bar.gap(centres, angles),
    operations=operations,
    build=" ".join(COMPILER),
)
