"""Tables of the study of γ, from its records and from exact computations."""

import statistics
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence

from rollin.analysis.results import solved_by
from rollin.analysis.sheets import markdown
from rollin.analysis.statistics import outcomes, summarise
from rollin.paper.four_rooms import HEADLINE_BETA, PROGRESS, RETURN, ROWS
from rollin.report.labels import solved_text
from rollin.runs.records import MetricAt, Record, read_records
from studies import four_rooms_returns as exact
from studies.four_rooms_gamma import BETAS, CHOOSING, RECORDS, REPORTED, SETTINGS

ALPHA = exact.ALPHA
Key = tuple[str, str, float, float]


def read() -> dict[Key, list[Record]]:
    """The runs by setting, reward, α and β."""
    names = {tuple(setting.labels.values()): setting.name for setting in SETTINGS}
    found: dict[Key, list[Record]] = defaultdict(list)
    for record in read_records(RECORDS):
        labels = record.labels
        setting = names[labels["gamma"], labels["adam"]]
        row = labels["reward"], float(labels["alpha"]), float(labels["beta"])
        found[setting, *row].append(record)
    return found


def read_table() -> dict[tuple[str, float, float], list[Record]]:
    """The default's runs of the committed table, by reward, α and β."""
    found: dict[tuple[str, float, float], list[Record]] = defaultdict(list)
    for record in read_records(RECORDS.parent / "four-rooms"):
        labels = record.labels
        found[labels["reward"], float(labels["alpha"]), float(labels["beta"])].append(record)
    return found


def of_seeds(rows: Sequence[Record], seeds: range) -> list[Record]:
    """Those that have one of the seeds."""
    return [row for row in rows if row.seed in seeds]


def numbers(rows: Sequence[Record], quantity: str) -> list[float]:
    """A quantity at the end of each run."""
    return [value for row in rows if (value := row.value(MetricAt(quantity))) is not None]


# ------------------------------------------------------------------ without a run


def exact_table() -> str:
    """Returns of the policies that need no training, by γ."""
    rows = []
    for gamma in exact.GAMMAS:
        cells = [f"{gamma:g}"]
        for reading in (exact.discounted, exact.infinite):
            easy, hard = (
                exact.value(reading, exact.edge_collector, reward, gamma)
                for reward in ("easy", "hard")
            )
            best = exact.value(reading, exact.goal_collector, "easy", gamma)
            cells += [f"{easy:.3f} / {hard:.4f}", f"{easy / hard:.2f}", f"{best:.2f}"]
        rows.append([*cells, str(exact.pays_until("hard", 0.01, gamma))])
    head = ["γ"]
    for horizon in ("50 steps", "infinite horizon"):
        head += [f"edge, {horizon}: easy / hard", "ratio", "goal"]
    return markdown([*head, "hard, α = 0.01: pays until k ="], rows)


def fit_table() -> str:
    """For every reading of "final return": γ from the easy return, then the hard one."""
    rows = []
    for name, reading in exact.READINGS.items():
        fit = exact.fit(reading, exact.edge_collector)
        if fit is None:
            ours = exact.value(reading, exact.edge_collector, "easy", 0.95)
            rows.append([name, f"none: {ours:.2f} at any γ", "–", "–", "–"])
            continue
        off = f"{fit.hard / exact.HARD - 1:+.1%}"
        rows.append([name, f"{fit.gamma:.4f}", f"{fit.hard:.4f}", off, f"{fit.ratio:.2f}"])
    against = f"against {exact.HARD:.3f}"
    return markdown(["final return", f"γ for {exact.EASY:.3f}", "hard", against, "ratio"], rows)


def horizon_table() -> str:
    """For some horizons: the γ that comes nearest to both published returns."""
    rows = []
    for fit in map(exact.fit_with_horizon, exact.HORIZONS):
        off = (f"{value / printed - 1:+.2%}"
               for value, printed in ((fit.easy, exact.EASY), (fit.hard, exact.HARD)))  # fmt: skip
        returns = f"{fit.easy:.3f} / {fit.hard:.4f}"
        rows.append([str(fit.horizon), f"{fit.gamma:.4f}", returns, " / ".join(off)])
    published = f"against {exact.EASY:.3f} / {exact.HARD:.3f}"
    return markdown(["steps", "γ", "edge: easy / hard", published], rows)


# ------------------------------------------------------------------ the runs


def progress_table() -> str:
    """Last contexts of the seeds for choosing: every setting on every row it was tried on."""
    found = read()
    lines = []
    published = (
        " → ".join(f"{16 * PROGRESS[row][beta].mean:.1f}" for beta in BETAS) for row in ROWS
    )
    lines.append(["published, mean", *published, ""])
    for setting in SETTINGS:
        cells = []
        distances = []
        for reward, alpha in ROWS:
            if (reward, alpha) not in setting.rows:
                cells.append("–")
                continue
            ks = []
            for beta in BETAS:
                rows = of_seeds(found[setting.name, reward, alpha, beta], CHOOSING)
                ks.append(", ".join(str(row.k) for row in rows))
                mean = statistics.mean(numbers(rows, "kappa"))
                distances.append(abs(mean - PROGRESS[reward, alpha][beta].mean))
            cells.append(" → ".join(ks))
        lines.append([setting.name, *cells, f"{statistics.mean(distances):.3f}"])
    names = [f"{reward}, α = {alpha:g}" for reward, alpha in ROWS]
    return markdown(["k of 16, baseline → β = 0.75", *names, "mean error of κ"], lines)


def returns_table() -> str:
    """What ROLLIN's last policies gather at α = 0.001, means of the seeds for choosing."""
    found = read()
    lines = [
        ["published", f"{exact.EASY:.3f} / {exact.HARD:.3f}", f"{exact.EASY / exact.HARD:.2f}"]
        + ["?"] * 4
    ]
    for setting in SETTINGS:
        if ("easy", ALPHA) not in setting.rows:
            continue
        means: dict[str, list[float]] = defaultdict(list)
        for reward in ("easy", "hard"):
            rows = of_seeds(found[setting.name, reward, ALPHA, HEADLINE_BETA], CHOOSING)
            for name in ("return", "return_infinite", "return_undiscounted",
                         "collects", "collects_discounted"):  # fmt: skip
                means[name].append(statistics.mean(numbers(rows, name)))
        easy, hard = means["return"]
        lines.append([setting.name, f"{easy:.3f} / {hard:.4f}", f"{easy / hard:.2f}"])
        easy, hard = means["return_infinite"]
        lines[-1] += [f"{easy:.3f} / {hard:.4f}", f"{easy / hard:.2f}"]
        easy, hard = means["return_undiscounted"]
        lines[-1].append(f"{easy:.2f} / {hard:.3f}")
        pairs = (means[name] for name in ("collects", "collects_discounted"))
        lines[-1].append("; ".join(f"{easy:.2f} / {hard:.2f}" for easy, hard in pairs))
    head = ["easy / hard", "50 steps", "ratio", "infinite", "ratio", "undiscounted",
            "collects; discounted"]  # fmt: skip
    return markdown(head, lines)


def report_table() -> str:
    """The headline cells on seeds that took part in no choice."""
    found, first = read(), read_table()
    lines = []
    for reward, alpha in ROWS:
        for beta in BETAS:
            cells = [f"{reward}, α = {alpha:g}, {f'β = {beta:g}' if beta else 'baseline'}"]
            published = PROGRESS[reward, alpha][beta], RETURN[reward, alpha][beta]
            cells.append(" / ".join(p.printed_mean for p in published))
            rows = first[reward, alpha, beta]
            means = (statistics.mean(numbers(rows, name)) for name in ("kappa", "return"))
            both = " / ".join(f"{mean:.3f}" for mean in means)
            cells.append(f"{both}<br>{mastered(rows)}")
            for setting, seeds in REPORTED.items():
                rows = of_seeds(found[setting, reward, alpha, beta], seeds)
                kappa, error, _ = summarise(numbers(rows, "kappa"))
                reached = outcomes(row.k for row in rows if row.k is not None)
                cells.append(f"{kappa:.3f} ± {error:.3f}<br>{reached}<br>{mastered(rows)}")
                cells.append(returns(rows, "return"))
                if setting == "γ = 0.963":  # whose 10.62 is the value over an infinite horizon
                    cells[-1] += f"<br>infinite: {returns(rows, 'return_infinite')}"
            lines.append(cells)
    head = ["", "published κ / return", "γ = 0.95, seeds 0 – 9: κ / return"]
    for setting, seeds in REPORTED.items():
        title = f"{setting}, seeds {seeds[0]} – {seeds[-1]}"
        head += [f"{title}: κ, k of the seeds", "return"]
    return markdown(head, lines)


def mastered(rows: Sequence[Record]) -> str:
    """How many seeds master the last context."""
    solved = solved_by(rows)
    assert solved is not None
    return solved_text(solved)


def returns(rows: Sequence[Record], name: str) -> str:
    """Mean ± standard error; the seeds if they are not of one kind."""
    values = numbers(rows, name)
    mean, error, _ = summarise(values)
    text = f"{mean:.3f} ± {error:.3f}"
    if error < 0.01:
        return text
    counts = sorted(Counter(f"{value:.2f}" for value in values).items(), reverse=True)
    return f"{text} ({', '.join(f'{v}×{n}' if n > 1 else v for v, n in counts)})"


TABLES: dict[str, Callable[[], str]] = {
    "gamma-exact": exact_table,
    "gamma-fit": fit_table,
    "gamma-horizon": horizon_table,
    "gamma-progress": progress_table,
    "gamma-returns": returns_table,
    "gamma-report": report_table,
}


def texts() -> dict[str, str]:
    """Every table by the name of its markers."""
    return {name: make() for name, make in TABLES.items()}
