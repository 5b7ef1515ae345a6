"""What a study's runs say, in a line: the first thing that a page shows of it."""

import math

from rollin.analysis.findings import ENOUGH, Improvement, improvements
from rollin.analysis.results import Result, StudyResults, sign
from rollin.report.words import label_text, quantity_text, reading_text, summary_text
from rollin.runs.records import Reading
from rollin.sweeps.study import differing


def verdict(results: StudyResults) -> str:
    """ROLLIN against the baseline if both were run, else how far the best condition came."""
    reading = _first(results)
    if reading is None:
        if not any(run.finished for runs in results.runs.values() for run in runs):
            return "No run is finished yet."
        return "These runs tell nothing that the study reads."
    pairs = results.pairs(reading)
    if len(pairs) == 1:
        return _one_pair(results, reading, *pairs[0])
    if pairs:
        return _many_pairs(results, reading)
    return _alone(results, reading)


def _first(results: StudyResults) -> Reading | None:
    """κ where there is one, what the curriculum is walked for, as late as it is read."""
    read = {r.reading for r in results.results}
    told = [reading for reading in results.study.readings if reading in read]
    kappas = [reading for reading in told if reading.quantity == "kappa"]
    latest = max(kappas, key=lambda r: math.inf if r.step is None else r.step, default=None)
    return latest or next(iter(told), None)


def _one_pair(results: StudyResults, reading: Reading, ours: Result, base: Result) -> str:
    apart = differing([ours.condition, base.condition])
    name = label_text(ours.condition.labels, apart) or "all runs"
    told = label_text(base.condition.labels, apart)
    other = "the baseline" if told in ("", "baseline") else f"the baseline ({told})"
    quantity, digits = _told(results, reading), results.digits(reading)
    (found,) = improvements(results, reading)
    numbers = (
        f"{quantity} {summary_text(ours.summary, digits)} against "
        f"{summary_text(base.summary, digits)}"
    )
    return (
        f"{name} {_compared(found, reading)} {other}: {numbers}. {_chance(found)}"
        f"{_mastered(results, reading, {name: [ours], other: [base]})}"
    )


def _many_pairs(results: StudyResults, reading: Reading) -> str:
    found = improvements(results, reading)[0]
    pairs = results.pairs(reading)
    bases = list({id(base): base for _, base in pairs}.values())
    groups = {"compared conditions": [ours for ours, _ in pairs], "baseline": bases}
    return (
        f"In {_told(results, reading)}, {found.ahead} of {found.pairs} conditions are "
        f"ahead of their baseline and {found.behind} behind. {_chance(found)}"
        f"{_mastered(results, reading, groups)}"
    )


def _alone(results: StudyResults, reading: Reading) -> str:
    some = [r for r in results.results if r.reading == reading]
    best = max(some, key=lambda result: sign(reading) * result.summary.mean)
    name = _name(results, best)
    number = summary_text(best.summary, results.digits(reading))
    seeds = "1 seed" if best.summary.n == 1 else f"{best.summary.n} seeds"
    quantity = _told(results, reading)
    most = f"The {'largest' if sign(reading) > 0 else 'smallest'} {quantity} is that of {name}:"
    told = f"{quantity} =" if len(some) == 1 else most
    alone = " There is no baseline (β = 0) beside it to compare with." * (len(some) == 1)
    return f"{told} {number} ({seeds}).{_mastered(results, reading, {name: [best]})}{alone}"


def _told(results: StudyResults, reading: Reading) -> str:
    """A quantity in words, and where it is read if that is not the end."""
    step = results.step_of(reading)
    return quantity_text(reading.quantity) if step is None else reading_text(reading, step)


def _compared(found: Improvement, reading: Reading) -> str:
    if found.interval is not None and found.interval.low > 0.5:
        return "does better than"
    if found.interval is not None and found.interval.high < 0.5:
        return "does worse than"
    if found.ahead or found.behind:
        larger = bool(found.ahead) == (sign(reading) > 0)
        return f"has a {'larger' if larger else 'smaller'} mean than"
    return "is level with"


def _chance(found: Improvement) -> str:
    """The chance that a seed does better, with its interval, and what that leaves open."""
    text = f"A seed does better than one of the baseline with probability {found.chance:.2f}"
    if found.interval is None:
        return f"{text}; fewer than {ENOUGH} seeds are too few for an interval."
    low, high = found.interval.low, found.interval.high
    chance = "" if low > 0.5 or high < 0.5 else ", which chance alone may give"
    return f"{text} (95 % interval {low:.2f} – {high:.2f}){chance}."


def _mastered(results: StudyResults, reading: Reading, groups: dict[str, list[Result]]) -> str:
    told = []
    for name, some in groups.items():
        counts = [results.solved(result.condition, reading) for result in some]
        known = [count for count in counts if count is not None]
        if known:
            told.append(f"{sum(c[0] for c in known)} of {sum(c[1] for c in known)} with {name}")
    return f" The last context is mastered by {', '.join(told)}." if told else ""


def _name(results: StudyResults, result: Result) -> str:
    labels = result.condition.labels
    return label_text(labels, results.study.across) or label_text(labels) or "all runs"
