"""Which conditions of studies records belong to; the rest become studies of their own. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from rollin.errors import RollinError
from rollin.runs.engines import engine
from rollin.runs.options import flat
from rollin.runs.records import Reading, Record, condition_text
from rollin.sweeps.build import value_text
from rollin.sweeps.study import METHOD, Condition, Study

Runs = dict[Condition, dict[float, list[Record]]]
"""Runs of each condition by scale, one for each seed, in their order."""
UNVARIED = ("seed", "learner", "threads", "log_every", "log", "eval_episodes", "keep_replay")
"""Options that do not make another condition."""
OWN = ("kappa", "return", "return_final")
"""What is read of runs that no study describes."""


@dataclass
class Grouping:
    """Runs by condition, those that belong to none, and what is to be known of them."""

    runs: Runs = field(default_factory=dict)
    others: list[Record] = field(default_factory=list)
    skipped: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


def group(records: Sequence[Record], studies: Sequence[Study]) -> Grouping:
    """Put each record to the conditions that it is a run of.

    Labels are believed if the key agrees. A run without labels belongs where its key does, at scale
    1 or at the share of its length. Of one seed the longest counts.
    """
    found = Grouping()
    conditions = list(dict.fromkeys(c for study in studies for c in study.conditions))
    by_task: dict[str, list[Condition]] = {}
    for condition in conditions:
        by_task.setdefault(condition.task, []).append(condition)
    candidates: Runs = {}
    for record in records:
        for condition, scale in _homes(record, by_task.get(record.task, ())).items():
            candidates.setdefault(condition, {}).setdefault(scale, []).append(record)
    shorter: dict[int, tuple[Record, Record]] = {}
    for condition in conditions:
        for scale, runs in candidates.get(condition, {}).items():
            alike = _of_one_task(found, condition, runs)
            longest = _one_per_seed(alike)
            found.runs.setdefault(condition, {})[scale] = list(longest.values())
            shorter |= {id(r): (r, longest[r.seed]) for r in alike if r is not longest[r.seed]}
    for run, longer in shorter.values():
        where = longer.path or "in a runs.csv"
        found.skipped.append(f"{run.path or run.task}: seed {run.seed} counts once, as {where}")
    placed = {id(r) for by_scale in found.runs.values() for runs in by_scale.values() for r in runs}
    found.others = [r for r in records if id(r) not in placed and id(r) not in shorter]
    return found


def _homes(record: Record, conditions: Sequence[Condition]) -> dict[Condition, float]:
    """The conditions that a record is a run of, with the scale.

    One that was made for a condition is no shortened run of another that happens to be longer.
    """
    scales = {c: scale for c in conditions if (scale := scale_of(record, c)) is not None}
    if any(_was_made_for(record, condition) for condition in scales):
        return {
            c: scale
            for c, scale in scales.items()
            if _was_made_for(record, c) or record.steps == c.steps
        }
    return scales


def _was_made_for(record: Record, condition: Condition) -> bool:
    """Whether labels, length and key of a record are those of a condition."""
    return (
        bool(record.labels)
        and dict(record.labels) == dict(condition.labels)
        and record.steps == max(1, round(record.scale * condition.steps))
        and record.key == condition.key(record.scale)
    )


def scale_of(record: Record, condition: Condition) -> float | None:
    """The share of a condition's length at which a record is one of its runs; None if it is not.

    A run whose options are the condition's but for its last step is a part of the whole run, if its
    engine says so.
    """
    if record.task != condition.task:
        return None
    if _was_made_for(record, condition):
        return record.scale
    if record.key == condition.key() and engine(record.engine).extends:
        return 1.0
    scale = record.steps / condition.steps
    try:
        return scale if record.key == condition.key(scale) else None
    except RollinError:  # too short to be one
        return None


def _of_one_task(found: Grouping, condition: Condition, runs: Sequence[Record]) -> Sequence[Record]:
    """The runs of the task that most of them have; others are no seeds of the same condition.

    A run whose task is not known goes with them.
    """
    counts: dict[str, int] = {}
    for run in runs:
        if run.fingerprint:
            counts[run.fingerprint] = counts.get(run.fingerprint, 0) + 1
    if len(counts) < 2:
        return runs
    main = max(counts, key=lambda fingerprint: counts[fingerprint])
    apart = sum(counts.values()) - counts[main]
    note = (
        f"{apart} of the runs of {condition.task}, {condition.name} had another task of the same "
        "name, and are not in the tables."
    )
    if note not in found.notes:
        found.notes.append(note)
    return [run for run in runs if run.fingerprint in (main, "")]


def _one_per_seed(runs: Sequence[Record]) -> dict[int, Record]:
    """The longest run of every seed."""
    longest: dict[int, Record] = {}
    for run in sorted(runs, key=lambda r: (r.seed, -r.step)):
        longest.setdefault(run.seed, run)
    return longest


# ------------------------------------------------------------------ runs of no study


def own_studies(others: Sequence[Record]) -> list[tuple[Study, dict[Condition, list[Record]]]]:
    """Studies of runs that belong to none: one a task, labelled by the options that differ."""
    found = []
    tasks = dict.fromkeys(record.task for record in others)
    for task in tasks:
        some = [record for record in others if record.task == task]
        groups: dict[str, list[Record]] = {}
        for record in some:
            told = str(sorted(_told(record).items(), key=lambda item: item[0]))
            groups.setdefault(f"{told}, {record.fingerprint}", []).append(record)
        members = list(groups.values())
        labels = _labels(members)
        runs: dict[Condition, list[Record]] = {}
        for names, group_ in zip(labels, members, strict=True):
            first = group_[0]
            condition = Condition(names, task, {"steps": first.steps}, known_key=first.key)
            runs[condition] = list(_one_per_seed(group_).values())
        told_by = [r for records in runs.values() for r in records]
        quantities = [
            name for name in OWN if any(r.value(Reading(name)) is not None for r in told_by)
        ]
        quantities += _measures(told_by)
        seeds = max(len(records) for records in runs.values())
        readings = tuple(Reading(name) for name in quantities)
        names = tuple(dict.fromkeys(name for names in labels for name in names))
        base = _baseline(labels)
        study = Study(task, tuple(runs), readings, seeds, columns=names, baseline=base, title=task)
        found.append((study, runs))
    return found


def _baseline(labels: Sequence[Mapping[str, str]]) -> str:
    """What others are compared with, if it is among them: the baseline by its name, or β = 0."""
    for name, value in (("method", "baseline"), ("beta", "0")):
        if any(told.get(name) == value for told in labels):
            return f"{name}={value}"
    return ""


def _measures(records: Sequence[Record]) -> list[str]:
    """Quantities that an environment measures."""
    known = {*OWN, "kappa_mean", "success", "success_final", "return_infinite", "collects",
             "return_undiscounted", "train_return"}  # fmt: skip
    names = dict.fromkeys(name for record in records for name in record.curve.quantities)
    return [name for name in names if name not in known]


def _told(record: Record) -> Mapping[str, Any]:
    """What tells a run from others: its labels, or its options and its engine."""
    if record.labels:
        return record.labels
    options = {name: value for name, value in record.options.items() if name not in UNVARIED}
    if options.get("method") == "rollin" and options.get("beta") == 0:
        options["method"] = "baseline"  # however it was put
    if options.get("method") in ("baseline", "scratch"):
        del options["beta"]  # which means nothing there
    return {"engine": record.engine, **options}


def _described(record: Record) -> Mapping[str, Any]:
    """Options as one would type them: those that are not the task's own, in their short form.

    Method and β are always among them: these are what runs are compared by.
    """
    told = _told(record)
    if record.labels or not record.options:
        return told
    preset = engine(record.engine).preset(record.task)
    own = flat(preset)

    def other(base: Mapping[str, Any]) -> dict[str, Any]:
        return {n: v for n, v in told.items() if n in base and value_text(v) != value_text(base[n])}

    typed = other(own)
    for short, form in type(preset).short_forms.items():
        rest = other({**own, **form})
        if len(rest) + 1 < len(typed):
            typed = {short: True, **rest}
    always = {n: v for n, v in told.items() if n in METHOD or n not in own}
    return {**always, **typed}


def _labels(members: Sequence[Sequence[Record]]) -> list[dict[str, str]]:
    """Names of groups of runs: what was typed and differs; numbered where they are alike."""
    told = [_described(runs[0]) for runs in members]
    names = dict.fromkeys(name for options in told for name in options)
    varying = [n for n in names if len({str(options.get(n)) for options in told}) > 1]
    lengthless = {str([options.get(n) for n in varying if n != "steps"]) for options in told}
    if len(lengthless) == len(told):  # a length alone makes no other method, and is told elsewhere
        varying = [n for n in varying if n != "steps"]
    found = [
        {name: value_text(options[name]) for name in varying if name in options} for options in told
    ]
    if len(found) > 1:
        for labels, options in zip(found, told, strict=True):
            if not labels:
                labels |= _fallback(options)
    texts = [condition_text(labels) for labels in found]
    for i, text in enumerate(texts):
        if texts.count(text) > 1:
            found[i]["task"] = str(1 + texts[:i].count(text))
    return found


def _fallback(options: Mapping[str, Any]) -> dict[str, str]:
    """The name of runs whose options are all the task's own: their β, if they have one."""
    if options.get("method") in ("baseline", "scratch"):
        return {"method": value_text(options["method"])}
    if "beta" in options:
        return {"beta": value_text(options["beta"])}
    return {"options": "defaults"}
