"""Many runs of the five-bar linkage with other springs: `mbs sweep`, `mbs simulate` one by one, Exudyn's ParameterVariation.

    target/peers/bin/python benches/peers/sweep.py target/release/mbs

All in one run, on the same computer: runs a second of the wall's time and of processor time; on a busy computer the latter counts. Every run has the same steps (0.5 s at 1 ms) and the same method where there is one (the trapezoidal rule). Rates are
what tools give together: Exudyn builds its system in Python for every run, which is part of its sweep.
"""

import argparse
import contextlib
import io
import multiprocessing
import pathlib
import resource
import subprocess
import sys
import tempfile
import time

arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
arguments.add_argument("mbs", help="the command")
arguments.add_argument("--runs", type=int, default=10_000, help="of `mbs sweep`")
arguments.add_argument("--alone", type=int, default=40, help="of `mbs simulate`, one by one")
arguments.add_argument("--grid", type=int, default=20, help="points along each of two axes, for Exudyn")
ARGUMENTS = arguments.parse_args() if __name__ == "__main__" else None
END, H = 0.5, 1e-3

# The module of the peer reads the command line and measures only where it is run itself.
sys.argv = sys.argv[:1]
import five_bar  # noqa: E402
import five_bar_exudyn as peer  # noqa: E402
from exudyn.processing import ParameterVariation  # noqa: E402


def one(parameters):
    """The height of point 2 at the end."""
    (moving_1, fixed_1, _, natural_1), (moving_2, fixed_2, _, natural_2) = five_bar.SPRINGS
    five_bar.SPRINGS = [(moving_1, fixed_1, parameters["k_1"], natural_1),
                        (moving_2, fixed_2, parameters["k_2"], natural_2)]
    five_bar.END = END
    with contextlib.redirect_stdout(io.StringIO()):
        r2, _, _ = peer.end(H)
    return r2[1]


def processor():
    """Seconds that this process and those it has waited for have been running."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(one.ru_utime + one.ru_stime for one in used)


def timed(what):
    """Seconds, of the wall and of processors."""
    begin, used = time.perf_counter(), processor()
    what()
    return time.perf_counter() - begin, processor() - used


def main():
    model = str(pathlib.Path(__file__).resolve().parents[2] / "models" / "five_bar.yaml")
    common = [model, "--end", str(END), "--step", str(H)]
    cores = multiprocessing.cpu_count()
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for threads in sorted({1, cores}):
            command = [ARGUMENTS.mbs, "sweep", *common, "--over", "k_1=50:200", "--over", "k_2=50:200", "--samples",
                       str(ARGUMENTS.runs), "--threads", str(threads), "--out", f"{folder}/{threads}.csv"]
            seconds = timed(lambda: subprocess.run(command, check=True, capture_output=True))
            rows.append((f"mbs sweep, {threads} threads", ARGUMENTS.runs, seconds))
    command = [ARGUMENTS.mbs, "simulate", *common, "--json"]
    seconds = timed(lambda: [subprocess.run(command, check=True, capture_output=True) for _ in range(ARGUMENTS.alone)])
    rows.append(("mbs simulate, one by one", ARGUMENTS.alone, seconds))
    n = ARGUMENTS.grid
    for threads in sorted({1, cores}):
        def vary():
            with contextlib.redirect_stdout(io.StringIO()):
                return ParameterVariation(one, {"k_1": (50, 200, n), "k_2": (50, 200, n)}, showProgress=False,
                                          useMultiProcessing=threads > 1, numberOfThreads=threads)
        seconds = timed(vary)
        rows.append((f"Exudyn ParameterVariation, {threads} processes", n * n, seconds))
    print("| | runs | s | runs a second | processor s | runs a processor second |\n|---|---:|---:|---:|---:|---:|")
    for name, runs, (wall, used) in rows:
        print(f"| {name} | {runs} | {wall:.2f} | {runs / wall:.0f} | {used:.2f} | {runs / used:.0f} |")


if __name__ == "__main__":
    main()
