"""Runs of a study, condition by condition: what their seeds gave, and what was published."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from rollin.analysis.group import Grouping, own_studies
from rollin.analysis.statistics import Interval, Summary, iqm_interval, summarise
from rollin.errors import RollinError
from rollin.runs.engines import engine
from rollin.runs.records import Reading, Record
from rollin.sweeps.published import Published
from rollin.sweeps.study import Condition, Study


@dataclass(frozen=True, eq=False)
class Result:
    """One quantity of one condition: ours by seed, and the published one.

    step: where it was read in our runs, which may be shorter than the study's; None: at their end.
    """

    condition: Condition
    reading: Reading
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
        """Our mean less the published one."""
        return None if self.published is None else self.summary.mean - self.published.mean


LESS_IS_BETTER = frozenset({"steps_to_solve", "samples_to_solve"})
"""Quantities that are costs."""


def sign(reading: Reading) -> int:
    """By which values of a reading are multiplied so that more is better."""
    return -1 if reading.quantity in LESS_IS_BETTER else 1


def is_above(ours: float, other: float, digits: int) -> bool:
    """Whether a mean is larger as it is shown: what reads the same is not above."""
    return round(ours, digits) > round(other, digits)


@dataclass(frozen=True, eq=False)
class StudyResults:
    """A study as far as there are runs of one scale for it.

    What is read at the end of runs is told by those that are finished; others have none yet.
    own: the runs belong to no study, and this one was made of them.
    """

    study: Study
    scale: float
    runs: dict[Condition, list[Record]]
    own: bool = False

    @cached_property
    def results(self) -> list[Result]:
        """Every condition that has runs, reading by reading."""
        study = self.study
        found = (self._read(c, r) for r in study.readings for c in study.conditions)
        return [result for result in found if result is not None]

    def _read(self, condition: Condition, reading: Reading) -> Result | None:
        step = self.step_of(reading)
        runs = [run for run in self.runs.get(condition, []) if _ready(run, step)]
        values = {run.seed: run.value(Reading(reading.quantity, step)) for run in runs}
        known = {seed: value for seed, value in values.items() if value is not None}
        if not known:
            return None
        published = condition.published.get(reading)
        return Result(condition, reading, step, tuple(known), tuple(known.values()), published)

    def step_of(self, reading: Reading) -> int | None:
        """Where a reading is taken in runs of this scale."""
        return None if reading.step is None else round(reading.step * self.scale)

    @cached_property
    def _by_place(self) -> dict[tuple[int, Reading], Result]:
        return {(id(result.condition), result.reading): result for result in self.results}

    def at(self, condition: Condition, reading: Reading) -> Result | None:
        """The result of a condition, if it has runs that reach the reading."""
        return self._by_place.get((id(condition), reading))

    def baseline(self, result: Result) -> Result | None:
        """What a result is compared with, if that was run."""
        base = self.study.partner(result.condition)
        return None if base is None else self.at(base, result.reading)

    def beats_baseline(self, result: Result) -> bool:
        """Whether our mean is better than that of our baseline."""
        base, more = self.baseline(result), sign(result.reading)
        return base is not None and is_above(
            more * result.summary.mean, more * base.summary.mean, self.digits(result.reading)
        )

    def published_beats(self, condition: Condition, reading: Reading) -> bool:
        """Whether the published mean is above that of the published baseline."""
        base = self.study.partner(condition)
        if base is None:
            return False
        ours, other = condition.published.get(reading), base.published.get(reading)
        if ours is None or other is None:
            return False
        return is_above(ours.mean, other.mean, self.digits(reading))

    def solved(self, condition: Condition, reading: Reading) -> tuple[int, int] | None:
        """Seeds that had mastered the last context where κ is read, and all of them.

        κ = 1 says that the last context was entered, not that it is solved. None for other
        quantities, and for runs without a curriculum.
        """
        if not reading.quantity.startswith("kappa"):
            return None
        step = self.step_of(reading)
        return solved_by([r for r in self.runs.get(condition, []) if _ready(r, step)], step)

    def pairs(self, reading: Reading) -> list[tuple[Result, Result]]:
        """Every result with that of its baseline, where both were run."""
        found = ((r, self.baseline(r)) for r in self.results if r.reading == reading)
        return [(r, base) for r, base in found if base is not None]

    def digits(self, reading: Reading) -> int:
        """As many decimals as the paper prints."""
        printed = [p.printed_mean for c in self.study.conditions if (p := c.published.get(reading))]
        return max((len(text.partition(".")[2]) for text in printed), default=3)

    @property
    def of_the_paper(self) -> bool:
        """Whether anything was published of it."""
        return any(condition.published for condition in self.study.conditions)

    @property
    def step_words(self) -> str:
        """What the steps of its runs are."""
        return engine(next(iter(self.runs.values()))[0].engine).step_words

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
        """Steps that some runs have not come to."""
        every = [run for some in self.runs.values() for run in some]
        steps = {s for r in self.study.readings if (s := self.step_of(r)) is not None}
        return sorted(step for step in steps if any(run.step < step for run in every))

    def silent(self) -> list[tuple[Condition, Reading, list[int]]]:
        """Seeds of which a reading is missing though their runs are long enough for it."""
        found = []
        for condition, runs in self.runs.items():
            for reading in self.study.readings:
                if reading.quantity.startswith("kappa") and all(
                    "kappa" not in run.curve.quantities for run in runs
                ):
                    continue  # from scratch there is no walk
                result = self.at(condition, reading)
                step = self.step_of(reading)
                told = result.seeds if result else ()
                seeds = [r.seed for r in runs if _ready(r, step) and r.seed not in told]
                if seeds:
                    found.append((condition, reading, seeds))
        return found


def solved_by(runs: Sequence[Record], step: int | None = None) -> tuple[int, int] | None:
    """Runs that had mastered the last context by a step, and all that came so far.

    step: None, at the end of each; None is returned if they walk no curriculum.
    """
    told = [
        engine(run.engine).solved(run, run.step if step is None else step)
        for run in runs
        if step is None or run.step >= step
    ]
    known = [answer for answer in told if answer is not None]
    return (sum(known), len(known)) if known else None


def _ready(run: Record, step: int | None) -> bool:
    """Whether a run has come to a step, or to its end."""
    return run.finished if step is None else run.step >= step


def results_of(
    grouping: Grouping,
    studies: Sequence[Study],
    named: Sequence[str] = (),
    only: str | None = None,
) -> list[StudyResults]:
    """Studies that the runs fill, the largest scale first.

    named: those that the runs were made for, which are shown in any case; only: that one and no
    other.
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
    """Those that together show all of these conditions: each shows most of what no other does."""
    left, chosen = list(candidates), []
    shown: set[tuple[Condition, Reading | None]] = set()

    def new(study: Study) -> set[tuple[Condition, Reading | None]]:
        # every study shows the curves of its conditions, too: None
        read = (*study.readings, None)
        return {(c, r) for c in study.conditions if c in conditions for r in read} - shown

    while left:
        best = max(left, key=lambda study: (len(new(study)), -len(study.conditions)))
        if not new(best):
            break
        shown |= new(best)
        chosen.append(best)
        left.remove(best)
    return [study for study in candidates if study in chosen]
