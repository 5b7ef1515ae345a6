"""Runs that are no cell of the paper: a row for each set of options, its seeds together."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from rollin.analysis.statistics import summarise
from rollin.report.records import RunRecord
from rollin.report.words import summary_text
from rollin.sweeps.study import FREE

SHOWN = {
    "κ": ("kappa",),
    "return": ("final_return", "return_mean_last", "eval_return"),
    "return, last context": ("eval_return_final",),
}
"""Columns, and which final figure of an engine stands there."""
NONE = "–"
HIDDEN = tuple(name for name in FREE if name != "steps")


@dataclass(frozen=True)
class Condition:
    """Runs that differ only in their seed, and in what does not matter for the result.

    nth: which of the tasks of that name, told apart by their fingerprints, where options are alike.
    """

    task: str
    options: str
    records: list[RunRecord]
    nth: int

    @property
    def steps(self) -> int:
        """Their length."""
        return self.records[0].steps

    def figures(self) -> dict[str, str]:
        """Final figures, mean ± standard error over seeds."""
        return {column: self._figure(names) for column, names in SHOWN.items()}

    def _figure(self, names: Sequence[str]) -> str:
        for name in names:
            values = [r.figure(name, r.steps) for r in self.records]
            known = [value for value in values if value is not None]
            if known:
                return summary_text(summarise(known), 3)
        return NONE


def columns(found: Sequence[Condition]) -> list[str]:
    """The columns in which any of them has a figure."""
    return [name for name in SHOWN if any(c.figures()[name] != NONE for c in found)]


def conditions(records: Sequence[RunRecord]) -> list[Condition]:
    """In order of appearance, called by the options in which those of a task differ."""
    groups: dict[str, list[RunRecord]] = {}
    for record in records:
        key = (record.spec.task, _options(record), record.fingerprint)
        groups.setdefault(str(key), []).append(record)
    members = list(groups.values())
    found = []
    for runs in members:
        task, options = runs[0].spec.task, _options(runs[0])
        others = [_options(o[0]) for o in members if o[0].spec.task == task]
        varying = [n for n in options if len({str(other.get(n)) for other in others}) > 1]
        words = [f"{name} {options[name]}" for name in varying]
        same = [o for o in members if o[0].spec.task == task and _options(o[0]) == options]
        nth = 1 + [o is runs for o in same].index(True)
        words += [f"task {nth} of that name"] * (len(same) > 1)
        found.append(Condition(task, ", ".join(words), runs, nth))
    return found


def _options(record: RunRecord) -> dict[str, Any]:
    values: dict[str, Any] = {"engine": record.spec.config.engine}
    for name, value in asdict(record.spec.config).items():
        values |= value if isinstance(value, dict) else {name: value}
    return {name: value for name, value in values.items() if name not in HIDDEN}
