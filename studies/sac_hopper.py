"""Learning curves of plain SAC on Hopper-v5: our learners beside Stable-Baselines3's.

    rollin train Hopper-v5 --learner cpu --seed 0 --steps 200000 --out runs/cpu-0      (and jax;
        the committed ones with --head-gain 1.4142135623730951, which was the default then)
    .venv-peers/bin/python benchmarks/peers/sac/sb3_curve.py --seed 0 --out runs/sb3-0.csv
    python -m studies.sac_hopper runs/cpu-0 runs/jax-0 runs/sb3-0.csv

Collects the evaluations (every 5,000 steps, ten deterministic episodes) in results/sac/hopper.csv,
from which `make pages` draws docs/images/sac-hopper.png.
"""

import argparse
import csv
import re
from pathlib import Path

from matplotlib.figure import Figure

from rollin.report.style import BASELINE, ROLLIN, SPARE
from rollin.runs.directory import RunDirectory
from rollin.runs.engines import spec_of
from rollin.runs.metrics import read_metrics

ROOT = Path(__file__).parents[1]
DATA = ROOT / "results" / "sac" / "hopper.csv"
COLUMNS = ("learner", "seed", "step", "return_mean", "return_std")
COLOURS = {"rollin cpu": ROLLIN, "rollin jax": SPARE[3], "SB3": BASELINE}
STYLES = ("-", "--", ":", "-.")


def read(path: Path) -> list[tuple[str, int, int, float, float]]:
    """The evaluations of a run directory of ours, or of a CSV of SB3's."""
    metrics = read_metrics(path if path.is_file() else path / "metrics.csv")
    if path.is_file():
        found = re.search(r"(\d+)$", path.stem)
        name, seed = "SB3", int(found.group(1)) if found else 0
        means, spreads = metrics["return_mean"], metrics["return_std"]
    else:
        config = spec_of(RunDirectory.open(path)).config
        name, seed = f"rollin {config.learner}", config.seed
        means, spreads = metrics["return"], metrics["return_std"]
    rows = zip(metrics["step"], means, spreads, strict=True)
    return [(name, seed, int(step), round(m, 2), round(s, 2)) for step, m, s in rows]


def draw() -> Figure:
    """The curves: a colour per library, a line style per seed."""
    curves: dict[tuple[str, int], list[tuple[int, float]]] = {}
    with DATA.open(newline="") as file:
        for row in csv.DictReader(file):
            key = row["learner"], int(row["seed"])
            curves.setdefault(key, []).append((int(row["step"]), float(row["return_mean"])))
    figure = Figure(figsize=(8, 4), layout="constrained")
    axis = figure.subplots()
    for (name, seed), points in curves.items():
        steps, returns = zip(*points, strict=True)
        style = STYLES[seed % len(STYLES)]
        axis.plot(steps, returns, style, color=COLOURS[name], label=f"{name}, seed {seed}")
    axis.set_xlabel("environment steps")
    axis.set_ylabel("return (10 deterministic episodes)")
    axis.set_title("Plain SAC on Hopper-v5")
    axis.xaxis.set_major_formatter(lambda x, _: f"{x / 1000:.0f}k")
    axis.legend(fontsize=8)
    return figure


def main() -> None:
    """Take over the evaluations of some runs."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("runs", nargs="+", type=Path, help="run directories, and CSVs of SB3")
    options = parser.parse_args()
    DATA.parent.mkdir(parents=True, exist_ok=True)
    with DATA.open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(COLUMNS)
        for path in options.runs:
            writer.writerows(read(path))


PICTURES = {"sac-hopper": draw}

if __name__ == "__main__":
    main()
