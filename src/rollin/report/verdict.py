"""What a study's runs say, in a line: the first thing that a page shows of it."""

import math
from collections.abc import Iterable, Sequence

from rollin.analysis.findings import ENOUGH, Improvement, improvements
from rollin.analysis.results import Result, StudyResults, is_above, sign
from rollin.analysis.statistics import improvement_interval
from rollin.report.words import label_text, quantity_text, reading_text, summary_text
from rollin.runs.records import Reading
from rollin.sweeps.study import differing

FEW = 3  # conditions that a sentence names one by one


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
        f"{name} {_compared(found, reading)} {other}: {numbers}. {_chance(found, [ours, base])}"
        f"{_mastered(results, reading, {name: [ours], other: [base]})}"
    )


def _many_pairs(results: StudyResults, reading: Reading) -> str:
    found = improvements(results, reading)[0]
    pairs = results.pairs(reading)
    bases = list({id(base): base for _, base in pairs}.values())
    groups = {"compared conditions": [ours for ours, _ in pairs], "baseline": bases}
    level = found.pairs - found.ahead - found.behind
    ties = f", {level} tied" if level else ""
    return (
        f"In {_told(results, reading)}, {found.ahead} of {found.pairs} conditions have a better "
        f"mean than their baseline and {found.behind} a worse one{ties}. "
        f"{_chance(found, [r for pair in pairs for r in pair])}"
        f"{_mastered(results, reading, groups)}"
    )


def _alone(results: StudyResults, reading: Reading) -> str:
    """Conditions without a baseline: the best one, a tie, or what the seeds leave open."""
    more, digits = sign(reading), results.digits(reading)
    some = sorted(
        (r for r in results.results if r.reading == reading),
        key=lambda result: -more * result.summary.mean,
    )
    best = more * some[0].summary.mean
    top = [r for r in some if not is_above(best, more * r.summary.mean, digits)]
    quantity, number = _told(results, reading), summary_text(some[0].summary, digits)
    if len(some) == 1:
        mastered = _mastered(results, reading, {_name(results, some[0]): some})
        alone = " There is no baseline (β = 0) beside it to compare with."
        return f"{quantity} = {number} ({_seeds(some)}).{mastered}{alone}"
    names = {_name(results, r): [r] for r in top}
    if len(top) == 1:
        second = some[1]
        text = (
            f"{_name(results, top[0])} has the {'largest' if more > 0 else 'smallest'} mean "
            f"{quantity}: {number}; {_name(results, second)} follows with "
            f"{summary_text(second.summary, digits)} ({_seeds(some)}). "
            f"{_open_question(top[0], second, more)}"
        )
        names[_name(results, second)] = [second]
    else:
        who = f"All {len(some)} conditions" if len(top) == len(some) > FEW else _joined(names)
        value = f"{some[0].summary.mean:.{digits}f}"
        ahead = "" if len(top) == len(some) else ", the best of all conditions"
        text = f"{who} tie: {quantity} = {value}{ahead} ({_seeds(some)}).{_too_few(top)}"
    return f"{text.rstrip()}{_mastered(results, reading, names if len(names) <= FEW else {})}"


def _joined(names: Iterable[str]) -> str:
    *first, last = names
    return f"{', '.join(first)} and {last}" if first else last


def _seeds(some: Sequence[Result]) -> str:
    """How many seeds each of some conditions has."""
    low, high = min(r.summary.n for r in some), max(r.summary.n for r in some)
    if high == 1:
        return "1 seed" if len(some) == 1 else "1 seed each"
    count = str(low) if low == high else f"{low} to {high}"
    return f"{count} seeds" if len(some) == 1 else f"{count} seeds each"


def _open_question(first: Result, second: Result, more: int) -> str:
    """What the seeds of two conditions leave open; empty if the interval excludes a tie."""
    if few := _too_few([first, second]):
        return few
    ours, other = ([round(more * v, 3) for v in side.values] for side in (first, second))
    if improvement_interval([ours], [other]).low > 0.5:
        return ""
    return " The difference is within the noise of the seeds."


def _too_few(some: Sequence[Result]) -> str:
    """A sentence if some conditions have too few seeds for any comparison."""
    fewest = min(result.summary.n for result in some)
    if fewest >= ENOUGH:
        return ""
    seeds = "One seed decides nothing" if fewest == 1 else f"{fewest} seeds decide nothing"
    return f" {seeds}: compare at least {ENOUGH} of each condition."


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
    return "ties with"


def _chance(found: Improvement, some: Sequence[Result]) -> str:
    """The chance that a seed does better, with its interval, and what that leaves open."""
    if found.interval is None:
        return _too_few(some).strip()
    text = f"A seed does better than one of the baseline with probability {found.chance:.2f}"
    low, high = found.interval.low, found.interval.high
    chance = "" if low > 0.5 or high < 0.5 else ", which chance alone may give"
    return f"{text} (95 % interval {low:.2f} – {high:.2f}){chance}."


def _mastered(results: StudyResults, reading: Reading, groups: dict[str, list[Result]]) -> str:
    told = []
    for name, some in groups.items():
        counts = [results.solved(result.condition, reading) for result in some]
        known = [count for count in counts if count is not None]
        if known:
            told.append((name, sum(c[0] for c in known), sum(c[1] for c in known)))
    if not told:
        return ""
    if not any(done for _, done, _ in told):
        return " No run mastered the final context."
    if len(told) == 1:
        _, done, n = told[0]
        return f" {done} of {n} {'run' if n == 1 else 'runs'} mastered the final context."
    parts = ", ".join(f"{done} of {n} with {name}" for name, done, n in told)
    return f" Runs that mastered the final context: {parts}."


def _name(results: StudyResults, result: Result) -> str:
    labels = result.condition.labels
    return label_text(labels, results.study.across) or label_text(labels) or "all runs"
