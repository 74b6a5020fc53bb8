"""The five-bar linkage in Exudyn: four 2D rigid bodies, five 2D revolute joints, two spring-dampers.

Redundant coordinates: 12 of the bodies, 10 Lagrange multipliers. One line of JSON on standard output.

Exudyn's own advice for speed is taken: the module without range checks, 2D items, bodies whose reference point is the
centre of mass, dense linear algebra for few unknowns, no output. Beyond it, what was measured to be fastest here: the
Jacobian once a step (the default keeps it for many steps and pays with seven iterations instead of two), Eigen's LU.
`--as-installed` leaves all of these as they come.
"""

import argparse
import contextlib
import io
import sys

import numpy as np

import five_bar

arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
arguments.add_argument("--solver", choices=["trapezoidal", "alpha"], default="trapezoidal",
                       help="trapezoidal rule with constraints at velocity level; or generalised alpha, index 3")
arguments.add_argument("--tolerance", type=float, default=1e-8,
                       help="of Newton's method, relative (Exudyn's own: 1e-8); absolute is a hundredth of it")
arguments.add_argument("--as-installed", action="store_true", help="checked module, default Newton and linear solver")
arguments.add_argument("--repetitions", type=int, default=31)
arguments = arguments.parse_args()

# The faster of the two compiled modules must be asked for before the import, which then prints a line.
sys.exudynFast = not arguments.as_installed
with contextlib.redirect_stdout(io.StringIO()):
    import exudyn as exu
    from exudyn.itemInterface import (LoadMassProportional, MarkerBodyMass, MarkerBodyPosition, NodeRigidBody2D,
                                      ObjectConnectorSpringDamper, ObjectGround, ObjectJointRevolute2D,
                                      ObjectRigidBody2D, SensorBody, SensorNode)

SOLVER = {"trapezoidal": exu.DynamicSolverType.TrapezoidalIndex2,
          "alpha": exu.DynamicSolverType.GeneralizedAlpha}[arguments.solver]
END_OF_12 = [five_bar.LENGTHS[1] / 2, 0, 0]  # point 2, in the frame of bar 12
OUT = exu.OutputVariableType


def build(sensors):
    """The system, assembled; with sensors that keep every step in memory, or without any."""
    container = exu.SystemContainer()
    mbs = container.AddSystem()
    ground = mbs.AddObject(ObjectGround())
    at = lambda body, r: mbs.AddMarker(MarkerBodyPosition(bodyNumber=body, localPosition=[*r, 0]))
    A, B = at(ground, five_bar.A), at(ground, five_bar.B)
    nodes, bodies, ends = [], [], []
    for (_, first, second, mass), inertia, length, angle in zip(
        five_bar.BARS, five_bar.INERTIAS, five_bar.LENGTHS, five_bar.ANGLES
    ):
        node = mbs.AddNode(NodeRigidBody2D(referenceCoordinates=[*(first + second) / 2, angle]))
        body = mbs.AddObject(ObjectRigidBody2D(mass=mass, inertia=inertia, nodeNumber=node))
        weight = mbs.AddMarker(MarkerBodyMass(bodyNumber=body))
        mbs.AddLoad(LoadMassProportional(markerNumber=weight, loadVector=[0, -five_bar.GRAVITY, 0]))
        nodes.append(node)
        bodies.append(body)
        ends += [at(body, [-length / 2, 0]), at(body, [length / 2, 0])]
    chain = [A, *ends, B]
    for pair in zip(chain[0::2], chain[1::2]):
        mbs.AddObject(ObjectJointRevolute2D(markerNumbers=list(pair)))
    moving = {"1": ends[1], "2": ends[3]}
    for end, _, stiffness, natural in five_bar.SPRINGS:
        mbs.AddObject(ObjectConnectorSpringDamper(markerNumbers=[B, moving[end]], stiffness=stiffness,
                                                  referenceLength=natural))
    numbers = {}
    if sensors:
        for out in (OUT.Coordinates, OUT.Coordinates_t):
            numbers[out] = [mbs.AddSensor(SensorNode(nodeNumber=n, outputVariableType=out, storeInternal=True,
                                                     writeToFile=False)) for n in nodes]
        for out in (OUT.Position, OUT.Velocity, OUT.Acceleration):
            numbers[out] = mbs.AddSensor(SensorBody(bodyNumber=bodies[1], localPosition=END_OF_12, storeInternal=True,
                                                    outputVariableType=out, writeToFile=False))
    mbs.Assemble()
    # Without its container a system is gone.
    return container, mbs, bodies, numbers


def settings(h, sensors):
    s = exu.SimulationSettings()
    s.timeIntegration.endTime = five_bar.END
    s.timeIntegration.numberOfSteps = round(five_bar.END / h)
    s.timeIntegration.newton.relativeTolerance = arguments.tolerance
    s.timeIntegration.newton.absoluteTolerance = arguments.tolerance / 100
    if not arguments.as_installed:
        s.timeIntegration.newton.modifiedNewtonJacUpdatePerStep = True
        s.linearSolver.solverType = exu.LinearSolverType.EigenDense
    s.parallel.numberOfThreads = 1
    s.solution.file.write = False
    s.solution.solverInformationFileName = ""
    s.solution.sensors.active = sensors
    s.solution.sensors.writePeriod = 0.0  # every step
    return s


def run(h, sensors=False):
    """A run from a fresh system: wall seconds of the solver's call, the system, its bodies and sensors, the solver."""
    container, mbs, bodies, numbers = build(sensors)
    s = settings(h, sensors)
    seconds = five_bar.timed(lambda: mbs.SolveDynamic(s, solverType=SOLVER))
    return seconds, mbs, bodies, numbers, mbs.sys["dynamicSolver"], container


def end(h):
    """Point 2 at the end of a run without sensors, and how often Newton's method iterated and factored."""
    _, mbs, bodies, _, solver, _container = run(h)
    r2 = mbs.GetObjectOutputBody(bodies[1], OUT.Position, END_OF_12)[:2]
    return r2, solver.it.newtonStepsCount, solver.it.newtonJacobiCount


def watched(h):
    """Objectives, energy drift and gaps of the hinges, from a run whose every step is kept."""
    _, mbs, _, numbers, _, _container = run(h, sensors=True)
    kept = lambda number, columns: mbs.GetSensorStoredData(number)[:, 1 : 1 + columns]
    q, qd = (np.stack([kept(n, 3) for n in numbers[out]], axis=1) for out in (OUT.Coordinates, OUT.Coordinates_t))
    q = q + np.stack([[*(p + r) / 2, angle] for (_, p, r, _), angle in zip(five_bar.BARS, five_bar.ANGLES)])
    assert len(q) == round(five_bar.END / h) + 1, "every step and the start are kept"
    motion = [kept(numbers[out], 2) for out in (OUT.Position, OUT.Velocity, OUT.Acceleration)]
    return (five_bar.objectives(*motion, h), five_bar.drift(q[..., :2], q[..., 2], qd[..., :2], qd[..., 2]),
            five_bar.gap(q[..., :2], q[..., 2]))


def main():
    """Measures and reports."""
    h = five_bar.H
    steps = round(five_bar.END / h)
    seconds = five_bar.repeated(lambda: run(h)[0], arguments.repetitions)
    r2, iterations, factorisations = end(h)
    finer_r2, _, _ = end(h / 10)
    psi, energy_drift, gap = watched(h)
    five_bar.report(
        tool="exudyn",
        version=exu.__version__ if hasattr(exu, "__version__") else exu.config.Version(),
        model="2D rigid bodies and revolute joints, 12 coordinates and 10 multipliers",
        method={"trapezoidal": "implicit trapezoidal rule, constraints at velocity level (index 2)",
                "alpha": "generalised alpha, spectral radius 0.9, constraints at position level (index 3)",
                }[arguments.solver],
        order=2,
        h=h,
        steps=steps,
        seconds=seconds,
        r2=r2,
        finer_r2=finer_r2,
        psi=psi,
        energy_drift=energy_drift,
        gap=gap,
        newton_tolerance=arguments.tolerance,
        iterations_per_step=iterations / steps,
        factorisations_per_step=factorisations / steps,
        build="as installed, with range checks" if arguments.as_installed else "without range checks, AVX2",
    )


if __name__ == "__main__":
    main()
