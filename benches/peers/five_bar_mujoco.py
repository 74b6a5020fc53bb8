"""The five-bar linkage in MuJoCo: a chain of four hinges whose end an equality constraint ties to B.

Joint coordinates, 4 of them. The constraint is soft: a spring and a damper of its own bring it back, and a run at a
large step shows it. It is made as hard as the step allows: time constant 2 h, impedance nearly 1. Springs are tendons.
One line of JSON on standard output.

`--integrator Euler`, the tool's default, is semi-implicit and of first order. `--integrator RK4` evaluates four times
a step; `order` is then that of the integrator, while what is left of the error is the softness, the same at h/10.
"""

import argparse

import mujoco
import numpy as np

import five_bar

arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
arguments.add_argument("--integrator", choices=["Euler", "implicitfast", "RK4"], default="Euler")
arguments.add_argument("--as-installed", action="store_true", help="the default softness of the constraint")
arguments.add_argument("--repetitions", type=int, default=101)
arguments = arguments.parse_args()

L, I = ([float(x) for x in values] for values in (five_bar.LENGTHS, five_bar.INERTIAS))
START = [five_bar.ANGLES[0], *np.diff(five_bar.ANGLES)]
# MuJoCo wants a body to have volume; about its own axis a rod of a plane mechanism may have any inertia.
SLENDER = 1e-4  # kg m^2
SOFTNESS = 'solref="0.02 1" solimp="0.9 0.95 0.001"' if arguments.as_installed else \
    f'solref="{2 * five_bar.H} 1" solimp="0.9999 0.9999 0.001"'


def bar(i, at, on_it=""):
    return f"""
      <body name="{i}" pos="{at!r} 0 0">
        <joint axis="0 0 1"/>
        <inertial pos="{L[i] / 2!r} 0 0" mass="{five_bar.MASSES[i]}" diaginertia="{SLENDER} {I[i]!r} {I[i]!r}"/>
        <site name="end of {i}" pos="{L[i]!r} 0 0"/>{on_it}
      </body>"""


def build(h):
    """The model at a step. The softness stays that of the step compared, or a finer step would change the model."""
    chain = bar(0, float(five_bar.A[0]), bar(1, L[0], bar(2, L[1], bar(3, L[2]))))
    springs = "".join(
        f'<spatial stiffness="{k}" springlength="{natural!r}"><site site="end of {i}"/><site site="B"/></spatial>'
        for i, (_, _, k, natural) in enumerate(five_bar.SPRINGS))
    return mujoco.MjModel.from_xml_string(f"""
    <mujoco>
      <compiler angle="radian"/>
      <option timestep="{h!r}" gravity="0 {-five_bar.GRAVITY} 0" integrator="{arguments.integrator}"
              solver="Newton" jacobian="dense"><flag contact="disable" island="disable"/></option>
      <worldbody><site name="B" pos="{five_bar.B[0]} 0 0"/>{chain}</worldbody>
      <equality><connect site1="end of 3" site2="B" {SOFTNESS}/></equality>
      <tendon>{springs}</tendon>
    </mujoco>""")


def start(model):
    data = mujoco.MjData(model)
    data.qpos[:] = START
    return data


def timed_run(model, steps):
    """Wall seconds of one call that makes all the steps in C."""
    data = start(model)
    return five_bar.timed(lambda: mujoco.mj_step(model, data, nstep=steps))


def end(h):
    model = build(h)
    data = start(model)
    mujoco.mj_step(model, data, nstep=round(five_bar.END / h))
    mujoco.mj_kinematics(model, data)
    return data.site("end of 1").xpos[:2].copy()


def watched(h):
    """Objectives, energy drift and gaps of the hinges, from a run whose every step is kept."""
    model = build(h)
    data = start(model)
    q, qd, qdd = [], [], []
    for _ in range(round(five_bar.END / h) + 1):
        mujoco.mj_forward(model, data)
        for kept, now in ((q, data.qpos), (qd, data.qvel), (qdd, data.qacc)):
            kept.append(np.cumsum(now))  # relative to absolute angles
        mujoco.mj_step(model, data)
    motion = five_bar.of_absolute_angles(*(np.array(x) for x in (q, qd, qdd)))
    return (five_bar.objectives(motion["r2"], motion["v2"], motion["a2"], h), five_bar.drift(*motion["state"]),
            five_bar.gap(*motion["state"][:2]))


h = five_bar.H
steps = round(five_bar.END / h)
model = build(h)
seconds = five_bar.repeated(lambda: timed_run(model, steps), arguments.repetitions)
psi, energy_drift, gap = watched(h)
five_bar.report(
    tool="mujoco",
    version=mujoco.__version__,
    model="4 joint coordinates, the loop closed by a soft equality constraint",
    method=arguments.integrator + ", constraint " + SOFTNESS.replace('"', ""),
    order=4 if arguments.integrator == "RK4" else 1,
    h=h,
    steps=steps,
    seconds=seconds,
    r2=end(h),
    finer_r2=end(h / 10),
    psi=psi,
    energy_drift=energy_drift,
    gap=gap,
)
