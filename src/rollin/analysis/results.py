"""Results of a study by condition, measured and published, its tables and its curves."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from rollin.analysis.collect import Grouping, own_studies
from rollin.analysis.statistics import Interval, Summary, iqm_interval, summarise
from rollin.errors import RollinError
from rollin.runs.engines import engine, metric
from rollin.runs.records import Array, MetricAt, Record, Trace
from rollin.sweeps.condition import Condition, Published, differing
from rollin.sweeps.study import Study


@dataclass(frozen=True, eq=False)
class Result:
    """One quantity of one condition: measured by seed, and published.

    step: where it was read in these runs, which may be shorter than the study's; None: their end.
    """

    condition: Condition
    reading: MetricAt
    step: int | None
    seeds: tuple[int, ...]
    values: tuple[float, ...]
    published: Published | None

    @cached_property
    def summary(self) -> Summary:
        """Mean ± standard error over seeds."""
        return summarise(self.values)

    @cached_property
    def iqm(self) -> Interval:
        """Interquartile mean with its bootstrap interval."""
        return iqm_interval([self.values])

    @property
    def difference(self) -> float | None:
        """The measured mean less the published one."""
        return None if self.published is None else self.summary.mean - self.published.mean


def is_above(ours: float, other: float, digits: int) -> bool:
    """Whether a mean is larger at the digits that are shown."""
    return round(ours, digits) > round(other, digits)


@dataclass(frozen=True, eq=False)
class StudyResults:
    """A study with its runs of one scale. Only finished runs are read at their end.

    own: the runs belong to no study, and this one was made of them.
    """

    study: Study
    scale: float
    runs: dict[Condition, list[Record]]
    own: bool = False

    @cached_property
    def results(self) -> list[Result]:
        """Every condition that has runs, reading by reading."""
        found = [self._read(c, r) for r in self.study.readings for c in self.study.conditions]
        return [result for result in found if result is not None]

    def _read(self, condition: Condition, reading: MetricAt) -> Result | None:
        step = self.step_of(reading)
        runs = [run for run in self.runs.get(condition, []) if _ready(run, step)]
        values = {run.seed: run.value(MetricAt(reading.quantity, step)) for run in runs}
        known = {seed: value for seed, value in values.items() if value is not None}
        if not known:
            return None
        published = condition.published.get(reading)
        return Result(condition, reading, step, tuple(known), tuple(known.values()), published)

    def step_of(self, reading: MetricAt) -> int | None:
        """Where a reading is taken in runs of this scale."""
        return None if reading.step is None else round(reading.step * self.scale)

    @cached_property
    def _by_place(self) -> dict[tuple[int, MetricAt], Result]:
        return {(id(result.condition), result.reading): result for result in self.results}

    def at(self, condition: Condition, reading: MetricAt) -> Result | None:
        """The result of a condition, if it has runs that reach the reading."""
        return self._by_place.get((id(condition), reading))

    def baseline(self, result: Result) -> Result | None:
        """What a result is compared with, if that was run."""
        base = self.study.partner(result.condition)
        return None if base is None else self.at(base, result.reading)

    def beats_baseline(self, result: Result) -> bool:
        """Whether the measured mean is better than that of the baseline."""
        base = self.baseline(result)
        more = self.sign(result.reading)
        return base is not None and is_above(
            more * result.summary.mean, more * base.summary.mean, self.digits(result.reading)
        )

    def published_beats(self, condition: Condition, reading: MetricAt) -> bool:
        """Whether the published mean is above that of the published baseline."""
        base = self.study.partner(condition)
        own = condition.published.get(reading)
        other = base and base.published.get(reading)
        if own is None or other is None:
            return False
        return is_above(own.mean, other.mean, self.digits(reading))

    def solved(self, condition: Condition, reading: MetricAt) -> tuple[int, int] | None:
        """Seeds that had mastered the last context where κ is read, and all of them.

        κ = 1 says that the last context was entered, not that it is solved. None for other
        quantities, and for runs without a curriculum.
        """
        if not reading.quantity.startswith("kappa"):
            return None
        step = self.step_of(reading)
        return solved_by([r for r in self.runs.get(condition, []) if _ready(r, step)], step)

    def pairs(self, reading: MetricAt) -> list[tuple[Result, Result]]:
        """Every result with that of its baseline, where both were run."""
        found = ((r, self.baseline(r)) for r in self.results if r.reading == reading)
        return [(r, base) for r, base in found if base is not None]

    def digits(self, reading: MetricAt) -> int:
        """As many decimals as the paper prints."""
        printed = [p.printed_mean for c in self.study.conditions if (p := c.published.get(reading))]
        return max((len(text.partition(".")[2]) for text in printed), default=3)

    @property
    def of_the_paper(self) -> bool:
        """Whether anything was published of it."""
        return any(condition.published for condition in self.study.conditions)

    @property
    def engine(self) -> str:
        """The engine of its runs."""
        return next(iter(self.runs.values()))[0].engine

    @property
    def step_words(self) -> str:
        """What the steps of its runs are."""
        return engine(self.engine).step_words

    def sign(self, reading: MetricAt) -> int:
        """1 if more of a quantity is better, -1 if it is a cost."""
        return -1 if metric(reading.quantity, self.engine).less_is_better else 1

    def steps(self) -> list[int]:
        """How far its runs have come, without repetition."""
        return sorted({run.step for runs in self.runs.values() for run in runs})

    def missing(self) -> int:
        """Conditions without runs."""
        return len(self.study.conditions) - len(self.runs)

    def seed_counts(self) -> set[int]:
        """How many seeds conditions have."""
        return {len({run.seed for run in runs}) for runs in self.runs.values()}

    def short_readings(self) -> list[int]:
        """Steps that some runs have not reached."""
        every = [run for some in self.runs.values() for run in some]
        steps = {s for r in self.study.readings if (s := self.step_of(r)) is not None}
        return sorted(step for step in steps if any(run.step < step for run in every))

    def silent(self) -> list[tuple[Condition, MetricAt, list[int]]]:
        """Seeds of which a reading is missing though their runs are long enough for it."""
        found = []
        for condition, runs in self.runs.items():
            for reading in self.study.readings:
                if reading.quantity.startswith("kappa") and all(
                    "kappa" not in run.curve.quantities for run in runs
                ):
                    continue  # from scratch there is no curriculum
                result = self.at(condition, reading)
                step = self.step_of(reading)
                known = result.seeds if result else ()
                seeds = [r.seed for r in runs if _ready(r, step) and r.seed not in known]
                if seeds:
                    found.append((condition, reading, seeds))
        return found


def solved_by(runs: Sequence[Record], step: int | None = None) -> tuple[int, int] | None:
    """Runs that had mastered the final context by a step, and all that reached this step.

    step: None, at the end of each; None is returned if they follow no curriculum.
    """
    answers = [
        engine(run.engine).solved(run, run.step if step is None else step)
        for run in runs
        if step is None or run.step >= step
    ]
    known = [answer for answer in answers if answer is not None]
    return (sum(known), len(known)) if known else None


def _ready(run: Record, step: int | None) -> bool:
    """Whether a run has reached a step, or its end."""
    return run.finished if step is None else run.step >= step


def results_of(
    grouping: Grouping,
    studies: Sequence[Study],
    named: Sequence[str] = (),
    only: str | None = None,
) -> list[StudyResults]:
    """Studies that the runs fill, the largest scale first.

    named: those that the runs were made for, which are always shown; only: show this one only.
    """
    if only is not None:
        wanted = [study for study in studies if study.name == only]
        found = [results for study in wanted for results in _by_scale(study, grouping)]
        if not found:
            raise RollinError(
                f"{only} has no runs here: leave out --study to see those that there are."
            )
        return found
    by_name = {study.name: study for study in studies}
    own = _fill(
        grouping, list(grouping.runs), [by_name[n] for n in dict.fromkeys(named) if n in by_name]
    )
    left = [c for c in grouping.runs if all(c not in study.conditions for study in own)]
    others = _fill(grouping, left, [study for study in studies if study.kind == "table"])
    shown = [results for study in (*own, *others) for results in _by_scale(study, grouping)]
    own_runs = own_studies(grouping.others)
    return shown + [StudyResults(study, 1.0, runs, own=True) for study, runs in own_runs]


def _by_scale(study: Study, grouping: Grouping) -> list[StudyResults]:
    runs = grouping.runs
    scales = sorted({s for c in study.conditions for s in runs.get(c, {})}, reverse=True)
    return [
        StudyResults(study, s, {c: runs[c][s] for c in study.conditions if s in runs.get(c, {})})
        for s in scales
    ]


def _fill(
    grouping: Grouping, conditions: Sequence[Condition], candidates: Sequence[Study]
) -> list[Study]:
    """Studies that together show all of these conditions, chosen greedily."""
    left = list(candidates)
    chosen: list[Study] = []
    covered: set[tuple[Condition, MetricAt | None]] = set()

    def new(study: Study) -> set[tuple[Condition, MetricAt | None]]:
        # None: the curves of a condition, which every study shows
        read = (*study.readings, None)
        return {(c, r) for c in study.conditions if c in conditions for r in read} - covered

    while left:
        best = max(left, key=lambda study: (len(new(study)), -len(study.conditions)))
        if not new(best):
            break
        covered |= new(best)
        chosen.append(best)
        left.remove(best)
    return [study for study in candidates if study in chosen]


Labels = Mapping[str, str]


@dataclass(frozen=True, eq=False)
class Place:
    """One place of a table: a condition, its result and the published value; both may be missing.

    beats, published_beats: above the baseline; best, published_best: of the row, where another is
    worse; solved: beside κ, seeds that mastered the final context, and all of them.
    """

    condition: Condition
    result: Result | None
    published: Published | None
    digits: int
    beats: bool
    published_beats: bool
    best: bool
    published_best: bool
    solved: tuple[int, int] | None = None


@dataclass(frozen=True)
class ReadingTable:
    """One reading of a study; None where it has no such condition.

    engine: of its runs; columns, rows: by the labels that they share; scaled: whether the runs are
    of another length.
    """

    engine: str
    reading: MetricAt
    step: int | None
    scaled: bool
    columns: list[Labels]
    rows: list[tuple[Labels, list[Place | None]]]


def reading_tables(results: StudyResults) -> list[ReadingTable]:
    """One table for each reading, of the rows and columns that have runs."""
    found = (_table(results, reading) for reading in results.study.readings)
    return [table for table in found if table is not None]


def _table(results: StudyResults, reading: MetricAt) -> ReadingTable | None:
    study = results.study
    run = [r.condition for r in results.results if r.reading == reading]
    if not run:
        return None
    places = {(_key(c, study.down), _key(c, study.across)): c for c in study.conditions}
    rows = dict.fromkeys(_key(c, study.down) for c in run)
    wanted = {_key(c, study.across) for c in run}
    columns = dict.fromkeys(column for _, column in places if column in wanted)
    return ReadingTable(
        results.engine,
        reading,
        results.step_of(reading),
        results.scale != 1,
        [dict(column) for column in columns],
        [
            (dict(row), _row(results, reading, [places.get((row, column)) for column in columns]))
            for row in rows
        ],
    )


def _key(condition: Condition, names: Sequence[str]) -> tuple[tuple[str, str], ...]:
    return tuple((name, condition.labels[name]) for name in names if name in condition.labels)


def _row(
    results: StudyResults, reading: MetricAt, conditions: Sequence[Condition | None]
) -> list[Place | None]:
    more = results.sign(reading)
    digits = results.digits(reading)
    found = [r for c in conditions if c and (r := results.at(c, reading))]
    means = [more * r.summary.mean for r in found]
    known = [p.mean for c in conditions if c and (p := c.published.get(reading))]

    def place(condition: Condition | None) -> Place | None:
        result = condition and results.at(condition, reading)
        published = condition and condition.published.get(reading)
        if condition is None or (result is None and published is None):
            return None
        mean = more * result.summary.mean if result else math.nan
        return Place(
            condition,
            result or None,
            published or None,
            digits,
            beats=bool(result) and results.beats_baseline(result),
            published_beats=results.published_beats(condition, reading),
            best=bool(result)
            and not is_above(max(means), mean, digits)
            and any(is_above(mean, other, digits) for other in means),
            published_best=bool(published) and not is_above(max(known), published.mean, digits),
            solved=results.solved(condition, reading),
        )

    return [place(condition) for condition in conditions]


# ------------------------------------------------------------------ quantities against steps


POINTS = 300  # of a line, at most
BEYOND = 1.05  # of the last step: how far ahead a published value is still shown


@dataclass(frozen=True)
class Line:
    """A condition, labels that distinguish it in its panel, its seeds, published values by step."""

    condition: Condition
    labels: Mapping[str, str]
    traces: Sequence[Trace]
    published: Mapping[int, Published]

    def published_inside(self) -> dict[int, Published]:
        """Published values at steps that all seeds have reached, or nearly so."""
        end = min(trace.steps[-1] for trace in self.traces)
        return {step: value for step, value in self.published.items() if step <= BEYOND * end}


@dataclass(frozen=True)
class Panel:
    """One quantity in one setting; setting: the labels that its lines share; engine: of the runs.

    every: the labels of all lines of the study, here or on other panels, each with its own look.
    """

    quantity: str
    task: str
    setting: Mapping[str, str]
    lines: list[Line]
    engine: str
    every: tuple[Mapping[str, str], ...] = ()


def panels(results: StudyResults) -> dict[str, list[Panel]]:
    """Panels by quantity: those that the study reads, or that were published of its conditions."""
    read = [r.quantity for r in results.study.readings]
    read = read or [r.quantity for condition in results.runs for r in condition.published]
    settings: dict[tuple[str, ...], list[Condition]] = {}
    names = _names(results)
    for condition in results.runs:
        key = (condition.task, *(condition.labels.get(name, "") for name in names))
        settings.setdefault(key, []).append(condition)
    across = dict.fromkeys(tuple(_chosen(c, results.study.across).items()) for c in results.runs)
    every = tuple(map(dict, across))
    found: dict[str, list[Panel]] = {}
    for quantity in dict.fromkeys(read):
        for conditions in settings.values():
            if lines := [line for c in conditions if (line := _line(results, quantity, c))]:
                setting = _chosen(conditions[0], names)
                panel = Panel(quantity, conditions[0].task, setting, lines, results.engine, every)
                found.setdefault(quantity, []).append(panel)
    return found


def _chosen(condition: Condition, names: Sequence[str]) -> dict[str, str]:
    """Some of a condition's labels."""
    return {name: condition.labels[name] for name in names if name in condition.labels}


def _names(results: StudyResults) -> list[str]:
    """Names of the labels of a panel: those that lay out the table, and those that differ."""
    across = results.study.across
    names = dict.fromkeys(n for c in results.runs for n in c.labels if n not in across)
    telling = (*differing(list(results.runs)), *results.study.rows)
    return [name for name in names if name in telling] or list(names)


def _line(results: StudyResults, quantity: str, condition: Condition) -> Line | None:
    """A condition's line; None if none of its runs recorded the quantity."""
    traces = traces_of(results.runs[condition], quantity)
    published = {
        reading.step: value
        for reading, value in condition.published.items()
        if reading.quantity == quantity and reading.step is not None
    }
    labels = _chosen(condition, results.study.across)
    return Line(condition, labels, traces, published) if traces else None


def traces_of(records: Sequence[Record], quantity: str) -> list[Trace]:
    """Return a quantity of some runs, as far as they recorded it."""
    return [trace for run in records if (trace := run.trace(quantity)) is not None]


def over_seeds(traces: Sequence[Trace]) -> tuple[Array, Array, Array]:
    """Steps, mean and standard error, up to the last step of the slowest seed.

    Seeds may have been logged at other steps: each counts with its last value before a step.
    """
    begin = max(trace.steps[0] for trace in traces)
    end = min(trace.steps[-1] for trace in traces)
    steps = np.unique(np.concatenate([trace.steps for trace in traces]))
    steps = few_enough(steps[(steps >= begin) & (steps <= end)])
    values = [held(trace, steps) for trace in traces]
    found = [summarise(column) for column in zip(*values, strict=True)]
    return steps, np.array([s.mean for s in found]), np.array([s.error for s in found])


def held(trace: Trace, steps: Array) -> Array:
    """The last value before each step."""
    return trace.values[np.searchsorted(trace.steps, steps, "right") - 1]


def few_enough(steps: Array) -> Array:
    """No more steps than a picture can show, the first and the last among them."""
    if len(steps) <= POINTS:
        return steps
    return steps[np.unique(np.linspace(0, len(steps) - 1, POINTS).round().astype(int))]
