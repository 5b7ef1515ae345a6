"""What a study is, apart from how it is run: conditions, seeds, readings, layout, comparison."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal, Self

from rollin.checks import shown
from rollin.errors import RollinError
from rollin.runs.records import Reading
from rollin.sweeps.condition import Condition, differing
from rollin.sweeps.select import filter_names, select
from rollin.texts import short_repr

StudyKind = Literal["table", "curves", "picture"]
METHOD = ("method", "beta")  # labels that belong together: what is compared
KAPPA = Reading("kappa")


@dataclass(frozen=True, eq=False, repr=False)
class StudyPlan:
    """Conditions with seeds and readings, and how they are laid out and compared.

    rows, columns: labels that lay out its table (the last label is the column if none is named);
    baseline: a filter such as method=baseline that tells what the others are compared with;
    compared: a filter that tells which others, all if empty; family: studies of one family share
    runs and records; kind: a table, curves alone, or a picture without runs; printed: what the
    paper calls it.
    """

    name: str
    conditions: tuple[Condition, ...]
    readings: tuple[Reading, ...] = (KAPPA,)
    seeds: int = 10
    rows: tuple[str, ...] = ()
    columns: tuple[str, ...] = ()
    baseline: str = ""
    compared: str = ""
    family: str = ""
    kind: StudyKind = "table"
    title: str = ""
    printed: str = ""

    def __post_init__(self) -> None:
        if not isinstance(self.name, str):
            raise RollinError(f"A study's name must be a text, got {shown(self.name)}.")
        made = isinstance(self.conditions, Sequence)
        if not made or not all(isinstance(condition, Condition) for condition in self.conditions):
            raise RollinError(
                f"The study {self.name} needs a sequence of conditions, got "
                f"{shown(self.conditions)}: rollin.Study.grid(name, task, beta=[0, 0.1]) makes "
                "them from a grid of options."
            )

    def __repr__(self) -> str:
        return short_repr(self, name=self.name, conditions=len(self.conditions), seeds=self.seeds)

    @property
    def shared(self) -> str:
        """Its family, which is its name if none is named."""
        return self.family or self.name

    @property
    def heading(self) -> str:
        """Its title for people."""
        return self.title or self.name

    @property
    def steps(self) -> int:
        """Steps of its longest run, at full length."""
        return max((condition.steps for condition in self.conditions), default=0)

    @property
    def across(self) -> tuple[str, ...]:
        """Labels that tell the columns of its table, and the lines of a chart, apart."""
        if self.columns:
            return self.columns
        varying = [n for n in differing(self.conditions) if n not in self.rows]
        if not varying:
            return ()
        if varying[-1] in METHOD:
            return tuple(name for name in METHOD if name in varying)
        return (varying[-1],)

    @property
    def down(self) -> tuple[str, ...]:
        """Labels that tell the rows of its table apart."""
        return self.rows or tuple(n for n in differing(self.conditions) if n not in self.across)

    def only(self, chosen: Sequence[Condition]) -> Self:
        """The same study with some of its conditions."""
        return replace(self, conditions=tuple(chosen))

    def partner(self, condition: Condition) -> Condition | None:
        """What a condition is compared with: the baseline that shares all labels not compared."""
        return self._partners.get(id(condition))

    @cached_property
    def _partners(self) -> dict[int, Condition]:
        if not self.baseline:
            return {}
        apart = set(filter_names(self.baseline))
        if apart & set(METHOD):
            apart |= set(METHOD)
        bases: dict[frozenset[tuple[str, str]], list[Condition]] = {}
        for base in select(self.conditions, self.baseline, none_is_fine=True):
            bases.setdefault(_rest(base, apart), []).append(base)
        chosen = self.conditions
        if self.compared:
            chosen = tuple(select(self.conditions, self.compared, none_is_fine=True))
        found: dict[int, Condition] = {}
        for one in chosen:
            same = bases.get(_rest(one, apart), [])
            if len(same) == 1 and same[0] is not one:
                found[id(one)] = same[0]
        return found

    def is_baseline(self, condition: Condition) -> bool:
        """Whether others are compared with it."""
        return any(base is condition for base in self._partners.values())


def _rest(condition: Condition, apart: set[str]) -> frozenset[tuple[str, str]]:
    return frozenset((name, value) for name, value in condition.labels.items() if name not in apart)
