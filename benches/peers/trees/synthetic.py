"""Mechanisms of any size, to see how cost grows: serial chains and binary trees of revolute joints in which nothing folds away."""

import numpy as np

SIZES = (10, 20, 50, 100, 200)
PARENTS = {"chain": lambda i: i - 1, "binary": lambda i: (i - 1) // 2}  # of link i, ground is −1


def urdf(shape, count):
    """A robot of `count` joints: random axes, places and inertias, the same at every call."""
    rng = np.random.default_rng(17)
    text = ['<robot name="synthetic">', '<link name="ground"/>']
    numbers = lambda values: " ".join(repr(float(x)) for x in values)
    for i in range(count):
        # Inertia of a box about its centre of mass, the box turned.
        mass, sides, centre = rng.uniform(0.5, 2), rng.uniform(0.1, 0.3, 3) ** 2, rng.uniform(-0.1, 0.1, 3)
        turned, _ = np.linalg.qr(rng.normal(size=(3, 3)))
        inertia = turned @ np.diag(mass / 12 * (sides.sum() - sides)) @ turned.T
        moments = {"ixx": (0, 0), "ixy": (0, 1), "ixz": (0, 2), "iyy": (1, 1), "iyz": (1, 2), "izz": (2, 2)}
        entries = " ".join(f'{name}="{float(inertia[place])!r}"' for name, place in moments.items())
        parent = PARENTS[shape](i)
        axis = rng.normal(size=3)
        text.append(
            f'<link name="l{i}"><inertial><origin xyz="{numbers(centre)}"/><mass value="{mass!r}"/><inertia {entries}/>'
            f'</inertial></link><joint name="j{i}" type="revolute"><parent link="{f"l{parent}" if parent >= 0 else "ground"}"/>'
            f'<child link="l{i}"/><origin xyz="{numbers(rng.uniform(-0.3, 0.3, 3))}" rpy="{numbers(rng.uniform(-1, 1, 3))}"/>'
            f'<axis xyz="{numbers(axis / np.linalg.norm(axis))}"/>'
            '<limit lower="-3" upper="3" effort="1" velocity="1"/></joint>'
        )
    return "\n".join([*text, "</robot>"])
