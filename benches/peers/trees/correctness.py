"""Compares what generated code wrote with Pinocchio, state by state.

An error is the largest of a block over all states, over the largest entry of the block or, for derivatives, of the quantity
that is differentiated if that is larger (they may vanish).
"""

import numpy as np
import pinocchio as pin

from robots import Theirs

from .build import relative


def error(robot, bundle, results):
    """The worst error of a bundle."""
    model, data = robot.model, robot.model.createData()
    pick, nv, nq = robot.order[robot.kept], robot.nv, len(robot.angles)
    kept = np.ix_(robot.kept, robot.kept)
    worst = 0.0
    for (q, v, a, tau), result in zip(robot.samples, results.reshape(len(robot.samples), -1), strict=True):

        def square(place):
            """A matrix by columns, in Pinocchio's order."""
            return result[place * nv * nv : (place + 1) * nv * nv].reshape(nv, nv, order="F")[np.ix_(pick, pick)]

        if bundle.startswith("forward"):
            a = accelerations(robot, data, q, v, tau)
        theirs = Theirs(model, data, q, v, a, robot.floats, False)
        force = np.abs(theirs.tau).max()
        match bundle:
            case "inverse_dynamics":
                errors = [relative(result[pick], theirs.tau[robot.kept])]
            case "mass_matrix":
                errors = [relative(square(0), theirs.M[kept])]
            case "forward_dynamics" | "forward_dynamics_recursive":
                errors = [relative(result[nq:][pick], a[robot.kept])]
            case "inverse_dynamics_derivatives":
                errors = [relative(square(0), theirs.tau_z[kept], force), relative(square(1), theirs.tau_v[kept], force),
                          relative(square(2), theirs.M[kept])]
            case "forward_dynamics_derivatives":
                inverse = np.linalg.inv(theirs.M[kept])
                scale = np.abs(a).max()
                errors = [relative(square(0), -inverse @ theirs.tau_z[kept], scale),
                          relative(square(1), -inverse @ theirs.tau_v[kept], scale), relative(square(2), inverse)]
        worst = max(worst, *errors)
    return worst


def accelerations(robot, data, q, v_ours, tau):
    """What the forces tau bring about, by Pinocchio, in our velocities."""
    nothing = np.zeros(robot.model.nv)
    v, shift, T = Theirs.transformed(robot.model, q, v_ours, nothing, robot.floats)[:3]
    # Joints that move no mass stay as they are: their rows are zero.
    M = np.triu(pin.crba(robot.model, data, q))
    M = (M + np.triu(M, 1).T)[np.ix_(robot.kept, robot.kept)]
    bias = pin.rnea(robot.model, data, q, v, nothing)
    a = nothing.copy()
    a[robot.kept] = np.linalg.solve(M, (tau - bias)[robot.kept])
    return T.T @ (a - shift)
