"""Records of the runs in directories and CSV files, by the conditions of studies.

Records of no known condition become studies of their own.
"""

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from rollin.errors import RollinError
from rollin.runs.directory import RunDirectory
from rollin.runs.engines import engine, read_record
from rollin.runs.files import ConfigFile
from rollin.runs.records import MOST_STEPS, RUNS, MetricAt, Record, condition_text, read_records
from rollin.runs.spec import flat
from rollin.sweeps.condition import Condition, value_text
from rollin.sweeps.study import METHOD, Study, studies_in
from rollin.sweeps.sweep import SWEEP_FILE, find_runs, read_sweep

ReadRecord = Callable[[RunDirectory, Sequence[int]], Record]
"""Reads the record of a run, with rows of its curve at some steps."""


@dataclass(frozen=True)
class SweepRecord:
    """A sweep: its studies, how many runs it planned, and those missing or not finished."""

    path: Path
    studies: tuple[str, ...]
    planned: int
    missing: tuple[str, ...]


@dataclass
class Collection:
    """Runs, what was skipped and why, and where the runs come from.

    broken: what was skipped because it could not be read; notes: anything else to report; studies:
    those of the sweeps that are not of the paper; sources: tasks' fingerprints and places of runs,
    by the hash of their spec.
    """

    records: list[Record] = field(default_factory=list)
    skipped: list[str] = field(default_factory=list)
    broken: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    commands: list[str] = field(default_factory=list)
    versions: list[dict[str, str]] = field(default_factory=list)
    hosts: list[str] = field(default_factory=list)
    sweeps: list[SweepRecord] = field(default_factory=list)
    studies: list[Study] = field(default_factory=list)
    sources: dict[str, list[tuple[str, Path]]] = field(default_factory=dict)

    def add(self, record: Record, path: Path) -> None:
        """Add a run, unless the same one was found before.

        What was given in Python is not part of a spec's hash, but of the fingerprint; a run without
        a fingerprint equals any of its spec.
        """
        task = record.fingerprint
        known = self.sources.setdefault(record.spec_hash, [])
        same = [place for other, place in known if other == task or not (other and task)]
        if not same:
            known.append((task, path))
            self.records.append(record)
        elif same[0] != path:
            self.skipped.append(f"{path}: the same run as {same[0]}")

    def was_read(self, path: Path) -> bool:
        """Whether runs came from this file."""
        places = (place for known in self.sources.values() for _, place in known)
        return any(place.resolve() == path.resolve() for place in places)

    def pass_over_broken(self, note: str) -> None:
        """Note what could not be read."""
        self.skipped.append(note)
        self.broken.append(note)

    def note_origin(self, commands: Iterable[str], versions: dict[str, str]) -> None:
        """Add commands and versions of a config.json or sweep.json."""
        for command in commands:
            if command and command not in self.commands:
                self.commands.append(command)
        if versions and versions not in self.versions:
            self.versions.append(versions)


def collect(
    directories: Sequence[Path], studies: Sequence[Study] = (), *, unfinished: bool = False
) -> Collection:
    """All runs below some directories; those skipped are noted. Raise if there is none.

    studies: runs are read at the steps of their readings; unfinished: include unfinished runs.
    """
    found = gather(directories, studies, unfinished=unfinished)
    if not found.records:
        names = ", ".join(str(d) for d in directories)
        reasons = f" Skipped {'; '.join(found.skipped[:2])}." if found.skipped else ""
        what = "run" if unfinished else "finished run"
        raise RollinError(
            f"No {what} below {names}: give a directory that rollin train, demo, sweep, "
            f"compare or reproduce has written.{reasons}"
        )
    return found


def gather(
    directories: Sequence[Path],
    studies: Sequence[Study] = (),
    *,
    unfinished: bool = False,
    read: ReadRecord = read_record,
) -> Collection:
    """The same, where there may be no runs yet; read: reads a run."""
    found = Collection()
    for directory in directories:
        runs = find_runs(directory)
        _read_sweeps(found, directory, {study.name for study in studies})
        if not runs and (directory / RUNS).is_file():
            _take_csv(found, directory, unfinished=unfinished)
        steps = _reading_steps([*studies, *found.studies])
        for run in runs:
            _take(found, run, steps, read, unfinished=unfinished)
    return found


def _reading_steps(studies: Sequence[Study]) -> dict[str, set[tuple[int, int]]]:
    """By task: steps at which a study reads, and the length of its runs."""
    found: dict[str, set[tuple[int, int]]] = {}
    for study in studies:
        for condition in study.conditions:
            read = {*study.readings, *condition.published}
            with suppress(RollinError):  # an unknown task, whose length is unknown too
                wanted = {(r.step, condition.steps) for r in read if r.step is not None}
                found.setdefault(condition.task, set()).update(wanted)
    return found


def _take_csv(found: Collection, directory: Path, *, unfinished: bool) -> None:
    try:
        for record in read_records(directory):
            if record.finished or unfinished:
                found.add(record, directory / RUNS)
            else:
                name = condition_text(record.labels) or record.task
                found.skipped.append(
                    f"{directory / RUNS}: {name}, seed {record.seed} is not finished"
                )
    except RollinError as error:
        found.pass_over_broken(str(error).rstrip("."))


def _take(
    found: Collection,
    run: RunDirectory,
    steps: dict[str, set[tuple[int, int]]],
    read: ReadRecord,
    *,
    unfinished: bool,
) -> None:
    try:
        if not run.finished and not unfinished:
            found.skipped.append(f"{run.path}: not finished")
            return
        described = run.config
        found.add(read(run, _steps_of(described, steps)), run.path)
        found.note_origin([described.command], described.versions)
    except RollinError as error:
        text = str(error)
        found.pass_over_broken(text if text.startswith(str(run.path)) else f"{run.path}: {text}")
        return
    host = run.host()
    if host and host not in found.hosts:
        found.hosts.append(host)


def _steps_of(described: ConfigFile, steps: dict[str, set[tuple[int, int]]]) -> list[int]:
    """Steps at which a run is read: those of its task's studies, at its own scale."""
    own = described.config.get("steps")
    length = own if isinstance(own, int) and 0 < own <= MOST_STEPS else 1
    found: set[int] = set()
    for step, whole in steps.get(described.task, ()):
        found |= {round(step * scale) for scale in (1.0, described.scale, length / whole)}
    return sorted(found)


def _read_sweeps(found: Collection, directory: Path, known: set[str]) -> None:
    for path in sorted(directory.rglob(SWEEP_FILE)):
        try:
            described = read_sweep(path)
            studies = studies_in(described, path)
        except RollinError as error:
            found.pass_over_broken(str(error))
            continue
        names = [s.name if s.name in known else _take_study(found, s) for s in studies]
        runs = {name: RunDirectory(path.parent / name) for name in described.runs}
        missing = tuple(n for n, run in runs.items() if not (run.exists and run.finished))
        for run in runs.values():
            if os.path.isdir(run.path) and not run.exists:
                found.pass_over_broken(f"{run.path}: planned by the sweep, but has no config.json")
        of = tuple(names) or tuple(described.tables)
        found.sweeps.append(SweepRecord(path.parent, of, len(runs), missing))
        found.note_origin(described.commands, described.versions)


def _take_study(found: Collection, study: Study) -> str:
    """Add the study of a sweep; return its name here.

    Sweeps of one study in several directories are one; another study of its name gets a number, so
    that each has its own place on a page.
    """
    name = study.name
    number = 1
    while same := [other for other in found.studies if other.name == name]:
        together = _united(same[0], study)
        if together is not None:
            found.studies[found.studies.index(same[0])] = together
            return name
        number += 1
        name = f"{study.name}-{number}"
    found.studies.append(replace(study, name=name))
    return name


def _united(one: Study, other: Study) -> Study | None:
    """A study with the conditions of both; None if a name means different conditions in them."""
    keys = {condition.name: condition.key() for condition in one.conditions}
    if any(keys.get(c.name, c.key()) != c.key() for c in other.conditions):
        return None
    more = [c for c in other.conditions if c.name not in keys]
    seeds = max(one.seeds, other.seeds)
    return replace(one, conditions=(*one.conditions, *more), seeds=seeds)


# ------------------------------------------------------------------ records by condition


Runs = dict[Condition, dict[float, list[Record]]]
"""Runs of each condition by scale, one for each seed, in their order."""
UNVARIED = ("seed", "learner", "threads", "log_every", "log", "eval_episodes", "keep_replay")
"""Options that do not define a condition."""


@dataclass
class Grouping:
    """Runs by condition, those that belong to none, and notes about them."""

    runs: Runs = field(default_factory=dict)
    others: list[Record] = field(default_factory=list)
    skipped: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


def group(records: Sequence[Record], studies: Sequence[Study]) -> Grouping:
    """Assign each record to the conditions that it is a run of.

    Labels count if the key agrees. A run without labels belongs where its key does, at scale 1 or
    at the fraction of its length. Of one seed the longest run counts.
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

    A run made for a condition is not also a shortened run of a longer one.
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
    """The fraction of a condition's length at which a record is one of its runs; None if not.

    A run that differs in its length only is a part of the whole run, if its engine extends runs.
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
    """The runs of the most frequent task; others are not seeds of the same condition.

    A run without a fingerprint counts as one of them.
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
    """Studies of runs that belong to none: one per task, labelled by the options that differ."""
    found = []
    for task in dict.fromkeys(record.task for record in others):
        groups: dict[str, list[Record]] = {}
        for record in others:
            if record.task == task:
                same = f"{sorted(_options(record).items())}, {record.fingerprint}"
                groups.setdefault(same, []).append(record)
        labels = _labels([some[0] for some in groups.values()])
        runs: dict[Condition, list[Record]] = {}
        for names, some in zip(labels, groups.values(), strict=True):
            steps = {"steps": some[0].steps}
            condition = Condition(names, task, steps, known_key=some[0].key)
            runs[condition] = list(_one_per_seed(some).values())
        study = Study(
            task,
            tuple(runs),
            tuple(map(MetricAt, _quantities([r for some in runs.values() for r in some]))),
            seeds=max(map(len, runs.values())),
            columns=tuple(dict.fromkeys(name for names in labels for name in names)),
            baseline=_baseline(labels),
            title=task,
        )
        found.append((study, runs))
    return found


def _quantities(records: Sequence[Record]) -> list[str]:
    """What is read of runs that no study describes: headlines of their engines, and measures."""
    engines = dict.fromkeys(run.engine for run in records)
    declared = {one.name: one.headline for name in engines for one in engine(name).metrics}
    names = dict.fromkeys([*declared, *(name for run in records for name in run.curve.quantities)])
    headlines = [name for name in names if declared.get(name, True)]
    return [name for name in headlines if any(r.value(MetricAt(name)) is not None for r in records)]


def _baseline(labels: Sequence[Mapping[str, str]]) -> str:
    """The filter of the baseline, if there is one: by its name, or by β = 0."""
    for name, value in (("method", "baseline"), ("beta", "0")):
        if any(own.get(name) == value for own in labels):
            return f"{name}={value}"
    return ""


def _options(record: Record) -> Mapping[str, Any]:
    """What distinguishes a run from others: its labels, or its options and its engine."""
    if record.labels:
        return record.labels
    options = {name: value for name, value in record.options.items() if name not in UNVARIED}
    if options.get("method") == "rollin" and options.get("beta") == 0:
        options["method"] = "baseline"
    if options.get("method") in ("baseline", "scratch"):
        del options["beta"]  # it has no effect there
    return {"engine": record.engine, **options}


def _typed(record: Record) -> Mapping[str, Any]:
    """Options as one would type them: those that differ from the task's, in their short form.

    Method and β are always included: they are what runs are compared by.
    """
    given = _options(record)
    if record.labels or not record.options:
        return given
    preset = engine(record.engine).preset(record.task)
    own = flat(preset)

    def beside(base: Mapping[str, Any]) -> dict[str, Any]:
        differs = (n for n in given if n in base and value_text(given[n]) != value_text(base[n]))
        return {name: given[name] for name in differs}

    typed = beside(own)
    for short, form in type(preset).short_forms.items():
        rest = beside({**own, **form})
        if len(rest) + 1 < len(typed):
            typed = {short: True, **rest}
    return {n: v for n, v in given.items() if n in METHOD or n not in own} | typed


def _labels(runs: Sequence[Record]) -> list[dict[str, str]]:
    """Labels of runs: what was typed and differs; numbered where they are the same."""
    typed = [_typed(run) for run in runs]
    names = dict.fromkeys(name for options in typed for name in options)
    varying = [n for n in names if len({str(options.get(n)) for options in typed}) > 1]
    without_steps = [n for n in varying if n != "steps"]
    if len({str([options.get(n) for n in without_steps]) for options in typed}) == len(typed):
        varying = without_steps  # a length alone makes no other method
    found = [{n: value_text(options[n]) for n in varying if n in options} for options in typed]
    for labels, options in zip(found, typed, strict=True):
        if not labels and len(found) > 1:  # all options are the task's own
            name = "method" if options.get("method") in ("baseline", "scratch") else "beta"
            own = {name: value_text(options[name])} if name in options else {"options": "defaults"}
            labels |= own
    texts = [condition_text(labels) for labels in found]
    for i, text in enumerate(texts):
        if texts.count(text) > 1:
            found[i]["task"] = str(1 + texts[:i].count(text))
    return found
