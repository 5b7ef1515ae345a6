"""Tables of docs/results/complexity.md, from results/complexity; docs/pages.py writes them.

`python -m studies.complexity_page OUT` takes over the records and fits of a directory of
`rollin reproduce complexity`.
"""

import math
import shutil
import statistics
import sys
from collections.abc import Callable
from functools import cache, partial
from pathlib import Path

from matplotlib.figure import Figure

from rollin.analysis.sheets import markdown
from rollin.complexity.figures import families_figure, main_figure, method_label, slope_text
from rollin.complexity.study import SETTINGS, CostCurve, curve_name, curves_of, size_of
from rollin.runs.records import CURVES, RUNS, SWITCHES, Record, read_records
from rollin.sweeps.sweep import SWEEP_FILE, read_sweep

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "results" / "complexity"
PAGE = RESULTS / "README.md"


@cache
def runs() -> list[Record]:
    """The committed runs."""
    return read_records(RESULTS)


@cache
def curves() -> list[CostCurve]:
    """Their costs against size."""
    return curves_of(runs())


def of(setting: str, gradient: str, quantity: str = "gradient_steps") -> list[CostCurve]:
    """Curves of a setting, a gradient and a cost."""
    wanted = (setting, gradient, quantity)
    return [c for c in curves() if (c.name.setting, c.name.gradient, c.quantity) == wanted]


def number(value: float) -> str:
    return f"{value:,.0f}" if value < 1e6 else f"{value:.3g}".replace("e+0", "e")


def cost_text(curve: CostCurve, size: int) -> str:
    """The median, > the cap where it was cut off, with how many seeds ended if not all."""
    (cost,) = [cost for cost in curve.costs if cost.size == size] or [None]
    if cost is None:
        return ""
    known = math.isfinite(cost.median)
    text = number(cost.median) if known else f"> {number(curve.spent[size])}"
    seeds = len(cost.values)
    return text if seeds == 1 or cost.solved == seeds else f"{text} ({cost.solved}/{seeds})"


def laws(curve: CostCurve) -> tuple[str, str]:
    growth = curve.growth
    if growth is None:
        return "–", "–"
    power, base = slope_text(growth.power, 2), slope_text(growth.exponential, 3)
    return (f"**{power}**", base) if growth.better == "power" else (power, f"**{base}**")


def off(curve: CostCurve) -> str:
    """How far the medians are from the two laws."""
    if curve.growth is None:
        return "–"
    both = (curve.growth.power, curve.growth.exponential)
    return " / ".join(f"{100 * slope.residual:.0f} %" for slope in both)


COSTS: dict[str, tuple[str, tuple[str, ...], str, tuple[int, ...]]] = {
    "lock": ("lock", ("exact", "natural"), "gradient_steps", (8, 16, 20, 24, 32, 64, 128)),
    "lock-fixed": ("lock-fixed", ("exact", "natural"), "gradient_steps", (8, 16, 32, 48, 64, 96)),
    "lock-uniform": ("lock-uniform", ("exact",), "gradient_steps", (8, 16, 32, 64, 96)),
    "sampled-steps": ("lock", ("sampled",), "gradient_steps", (8, 16, 18, 24, 32, 48)),
    "sampled-samples": ("lock", ("sampled",), "env_steps", (8, 16, 18, 24, 32, 48)),
    "fixed-steps": ("lock-fixed", ("sampled",), "gradient_steps", (8, 12, 16, 24, 32)),
    "fixed-samples": ("lock-fixed", ("sampled",), "env_steps", (8, 12, 16, 24, 32)),
}
"""Tables of a cost by size: setting, gradients, cost, sizes."""


def cost_table(name: str) -> str:
    """Cost by size, and the two laws that are fitted to it."""
    setting, gradients, quantity, sizes = COSTS[name]
    head = ["", *(f"n = {size}" for size in sizes), "p of nᵖ", "b of bⁿ", "off by"]
    body = [
        [method_label(c.name), *(cost_text(c, size) for size in sizes), *laws(c), off(c)]
        for gradient in gradients
        for c in of(setting, gradient, quantity)
    ]
    return markdown(head, body)


def mixed() -> str:
    """b of n^p · b^n at fixed γ, beside what the discount would make it."""
    body: list[list[str]] = []
    for curve in of("lock-fixed", "exact"):
        growth, beta = curve.growth, float(curve.name.beta)
        if curve.name.method == "scratch" or growth is None or growth.mixed is None:
            continue
        recursive = curve.name.mu == "recursive" or beta == 0
        discount = f"{(1 - beta * 0.1) / 0.9:.3f}" if recursive else "–"
        sizes = ", ".join(map(str, growth.sizes))
        body.append([method_label(curve.name), sizes, slope_text(growth.mixed, 3), discount])
    return markdown(["", "sizes", "b of nᵖ·bⁿ", "1/γ'"], body)


def first_and_last(curve: CostCurve) -> str:
    """The costs of the smallest and of the largest size that was solved."""
    costs = [cost for cost in curve.costs if math.isfinite(cost.median)]
    return " → ".join(f"{c.size}: {number(c.median)}" for c in (costs[0], costs[-1]))


def families() -> str:
    titles = {setting.name: setting.title for setting in SETTINGS}
    body = [
        [titles[setting], method_label(c.name), first_and_last(c), *laws(c), off(c)]
        for setting in ("corridor", "grid", "random")
        for gradient in ("exact", "natural")
        for c in of(setting, gradient)
    ]
    return markdown(["family", "method", "n: steps", "p of nᵖ", "b of bⁿ", "off by"], body)


def families_sampled() -> str:
    titles = {setting.name: setting.title for setting in SETTINGS}
    body: list[list[str]] = []
    for setting in ("corridor", "grid", "random", "lock-uniform"):
        for curve in of(setting, "sampled", "env_steps"):
            runs = sum(len(cost.values) for cost in curve.costs)
            ended = sum(cost.solved for cost in curve.costs)
            body.append(
                [titles[setting], method_label(curve.name), first_and_last(curve),
                 f"{ended} of {runs}", *laws(curve)]
            )  # fmt: skip
    head = ["family", "method", "n: environment steps", "solved", "p of nᵖ", "b of bⁿ"]
    return markdown(head, body)


def quantity(record: Record, name: str) -> float:
    """A quantity of a run, ∞ and "not told" (not a number) included."""
    return float(record.curve.quantities[name][-1]) if name in record.curve.quantities else math.nan


def per_predictor(record: Record) -> float:
    """η · steps / R."""
    steps = quantity(record, "learning_rate") * record.step
    return steps / quantity(record, "predictor")


def ratios() -> str:
    """Steps beside the mismatch ratio and R."""
    body: list[list[str]] = []
    for setting in ("lock", "lock-fixed", "lock-uniform"):
        for curve in of(setting, "exact"):
            found = {size_of(run): run for run in runs() if curve_name(run) == curve.name}
            largest = max((n for n, run in found.items() if run.completed), default=None)
            if largest is None:
                continue
            for n in sorted({16, largest} & found.keys()):
                run = found[n]
                body.append(
                    [setting, method_label(curve.name), str(n), number(run.step),
                     _ratio(quantity(run, "ln_mismatch_rho")),
                     _ratio(quantity(run, "ln_mismatch_mu")),
                     f"{quantity(run, 'predictor'):,.1f}", f"{per_predictor(run):.2f}"]
                )  # fmt: skip
    head = ["setting", "method", "n", "steps", "‖d/ρ‖∞", "‖d/μ_K‖∞", "R", "η · steps / R"]
    return markdown(head, body)


def _ratio(log: float) -> str:
    if math.isnan(log):
        return ""
    value = math.exp(log) if log < 700 else math.inf
    return "∞" if math.isinf(value) else f"{value:.3g}"


def predictor() -> str:
    """Range of η · steps / R over all exact runs that ended, by setting."""
    body: list[list[str]] = []
    for setting in SETTINGS:
        for scratch in (True, False):
            found = [
                per_predictor(run)
                for run in runs()
                if run.labels["setting"] == setting.name and run.labels["gradient"] == "exact"
                and run.completed and (run.labels["method"] == "scratch") == scratch
                and size_of(run) >= 10
            ]  # fmt: skip
            body.append(
                [setting.title, "scratch" if scratch else "with a curriculum", str(len(found)),
                 f"{min(found):.2f} – {max(found):.2f}", f"{statistics.median(found):.2f}"]
            )  # fmt: skip
    return markdown(["setting", "", "runs", "η · steps / R", "median"], body)


def origin() -> str:
    """What the runs were done with."""
    found = read_sweep(RESULTS / SWEEP_FILE)
    minutes = sum(run.costs.seconds or 0.0 for run in runs()) / 60
    ended = sum(run.completed is not None for run in runs())
    ((version, processor),) = {(run.version, run.processor) for run in runs()}
    kinds = found.versions
    return (
        f"{len(runs()):,} runs, {ended:,} of them solved, the others cut off at their cap; "
        f"{minutes:.0f} minutes of computing in all, on two cores that had other work. "
        f"{processor}, rollin {version}, Python {kinds['python']}, numpy "
        f"{kinds['numpy']}, numba {kinds['numba']}. Command: `{found.commands[0]}`."
    )


TABLES: dict[str, Callable[[], str]] = {
    **{name: partial(cost_table, name) for name in COSTS},
    "mixed": mixed,
    "families": families,
    "families-sampled": families_sampled,
    "ratios": ratios,
    "predictor": predictor,
    "origin": origin,
}


def texts() -> dict[str, str]:
    """Everything that stands in the page, by the name of its markers."""
    return {name: make() for name, make in TABLES.items()}


def take_over(out: Path) -> None:
    """Copy a study's records, fits and origin into the repository."""
    RESULTS.mkdir(parents=True, exist_ok=True)
    for name in (RUNS, CURVES, SWITCHES, SWEEP_FILE):
        shutil.copyfile(out / name, RESULTS / name)
    shutil.copyfile(out / "complexity.csv", RESULTS / "fits.csv")


PICTURES: dict[str, Callable[[], Figure]] = {
    "complexity": lambda: main_figure(curves()),
    "complexity-families": lambda: families_figure(curves()),
}


if __name__ == "__main__":
    take_over(Path(sys.argv[1]))
