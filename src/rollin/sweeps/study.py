"""A study is conditions with seeds and readings: made from a grid, checked, and run."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rollin.checks import at_least, did_you_mean
from rollin.errors import RollinError
from rollin.runs.records import Reading
from rollin.sweeps.build import block, check_conditions, check_runs, reading
from rollin.sweeps.condition import Condition, differing
from rollin.sweeps.plan import KAPPA, METHOD, StudyPlan
from rollin.sweeps.select import select

if TYPE_CHECKING:
    from rollin.runs.records import Record

__all__ = ["METHOD", "Condition", "Study", "checked_study", "differing"]


@dataclass(frozen=True, eq=False, repr=False)
class Study(StudyPlan):
    """Conditions, each run with several seeds, and the readings that are compared.

    `grid` makes one of a grid of options. rows, columns: labels of its table (default: the last
    label is the column). baseline: a filter such as beta=0, which the others are compared with.
    compared: a filter for these others (default: all). family: studies of one family share runs.

    >>> import rollin
    >>> study = rollin.Study.grid("mine", "point-umaze", beta=[0, 0.1], delta=["1/12", "1/24"])
    >>> [condition.name for condition in study.conditions][:2]
    ['beta=0,delta=1/12', 'beta=0,delta=1/24']
    """

    @classmethod
    def grid(
        cls,
        name: str,
        task: str,
        options: Mapping[str, Any] | None = None,
        *,
        seeds: int = 10,
        baseline: str = "",
        readings: Sequence[str] = ("kappa",),
        **grid: Sequence[Any],
    ) -> "Study":
        """A condition for each point of a grid of options.

        options: of all conditions; baseline: a filter such as beta=0 that tells what the others are
        compared with; readings: quantities, or quantity@step.
        """
        made = block(task, grid, options or {})
        read = tuple(map(reading, readings))
        return checked_study(name, made, read, seeds=seeds, baseline=baseline)

    def run(
        self,
        out: str | Path,
        *,
        seeds: int | None = None,
        scale: float = 1.0,
        jobs: int | None = None,
        **where: Any,
    ) -> "list[Record]":
        """Run it in a directory, or resume it there; return the records of its runs.

        seeds: default: the study's own; scale: factor of all lengths; jobs: runs at the same time
        (default: all cores); where: backend="ray" and its options.
        """
        from rollin.sweeps.run import run_study  # loads what runs processes

        return run_study(self, Path(out), seeds=seeds, scale=scale, jobs=jobs, **where)


def checked_study(
    name: str,
    conditions: Sequence[Condition],
    readings: Sequence[Reading] = (KAPPA,),
    *,
    seeds: int = 10,
    baseline: str = "",
    rows: Sequence[str] = (),
    columns: Sequence[str] = (),
    title: str = "",
) -> Study:
    """A study of some conditions, checked."""
    if not name or Path(name).name != name or name.startswith("."):
        raise RollinError(f"A study's name must be a plain word, got {name!r}.")
    if not conditions:
        raise RollinError(f"The study {name} has no conditions: give it a grid, or a block.")
    check_conditions(len(conditions))
    check_runs(len(conditions), at_least(1, "seeds", seeds))
    _check_told_apart(name, conditions)
    if baseline:
        select(conditions, baseline, "baseline")
    known = {label for condition in conditions for label in condition.labels}
    for label in (*rows, *columns):
        if label not in known:
            raise RollinError(
                f"The study {name} has no label {label!r}.{did_you_mean(label, sorted(known))}"
            )
    return Study(
        name,
        tuple(conditions),
        tuple(readings),
        seeds,
        tuple(rows),
        tuple(columns),
        baseline,
        title=title,
    )


def _check_told_apart(name: str, conditions: Sequence[Condition]) -> None:
    """Refuse conditions that are called alike, and such that are the same runs."""
    keys: dict[str, Condition] = {}
    names: set[str] = set()
    for condition in conditions:
        for label in (*condition.labels, *condition.labels.values()):
            if not label or set(label) & set(",="):  # which stand between labels
                raise RollinError(
                    f"Labels of {name} must be words without commas or =, got {label!r}."
                )
        if condition.name in names:
            raise RollinError(
                f"Two conditions of {name} are called {condition.name or 'nothing'}: give them "
                "other labels."
            )
        names.add(condition.name)
        # runs that differ in their length alone are conditions of their own here
        key = f"{condition.key()}, {condition.steps} steps"
        if key in keys:
            raise RollinError(
                f"{condition.name} and {keys[key].name} of {name} are the same runs: leave one out."
            )
        keys[key] = condition
