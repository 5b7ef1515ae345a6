"""What a run gave, whatever its engine, as far as it has come; and records as CSV files.

Three files hold many records: runs.csv (a row a run), curves.csv (quantities against steps) and
switches.csv (when contexts were entered). They are small enough to commit.
"""

import csv
import io
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rollin.curriculum.progress import Progress
from rollin.deprecated import warn_renamed
from rollin.errors import RollinError
from rollin.runs.files import Outcome
from rollin.untrusted import LARGEST_RECORDS, csv_rows, csv_text, open_bounded

RUNS, CURVES, SWITCHES = "runs.csv", "curves.csv", "switches.csv"
MOST_STEPS = 2**53  # beyond, a float64 does not count steps one by one

Array = NDArray[np.float64]


class MetricAt(NamedTuple):
    """A quantity, and the step at which it is read; None: the last that a run has."""

    quantity: str
    step: int | None = None


class Costs(NamedTuple):
    """What a run took: seconds, steps of the environment, roll-in steps, updates.

    seconds: of wall-clock time without compilation. None: not recorded.
    """

    seconds: float | None = None
    env_steps: int | None = None
    rollin_steps: int | None = None
    updates: int | None = None


class Switch(NamedTuple):
    """Context k was entered after `step` steps, the first one at 0; numbers: seen then."""

    k: int
    step: int
    numbers: Mapping[str, float]


class Trace(NamedTuple):
    """A quantity of one run against its steps."""

    steps: Array
    values: Array


@dataclass(frozen=True)
class Curve:
    """Quantities (N,) at rising steps (N,); NaN if not recorded. The last row is the end."""

    steps: Array
    quantities: Mapping[str, Array]

    def __post_init__(self) -> None:
        if len(self.steps) == 0:
            raise ValueError("it has no rows")
        if any(len(values) != len(self.steps) for values in self.quantities.values()):
            raise ValueError("its columns have different lengths")
        check_order(self.steps.tolist(), "its curve")


@dataclass(frozen=True, eq=False)
class Record:
    """A run as far as it has come.

    labels, family, scale: the condition of a study that it was done for, if any; key: of its
    options without seed and length; options: all of them by name, not known of one from a CSV;
    steps: how long it is to be, step: how far it has come; k, K: the context reached, and the last
    one; completed: the step at which the last one was mastered; version, processor: what made it,
    and where; path: None if it is from a CSV.
    """

    task: str
    engine: str
    seed: int
    steps: int
    step: int
    finished: bool
    costs: Costs
    curve: Curve
    spec_hash: str
    key: str
    fingerprint: str = ""
    k: int | None = None
    K: int | None = None
    switches: tuple[Switch, ...] = ()
    completed: int | None = None
    labels: Mapping[str, str] = field(default_factory=dict)
    family: str = ""
    scale: float = 1.0
    options: Mapping[str, Any] = field(default_factory=dict)
    version: str = ""
    processor: str = ""
    path: Path | None = None

    def __post_init__(self) -> None:
        if not 0 <= self.step <= MOST_STEPS or not 1 <= self.steps <= MOST_STEPS:
            raise ValueError(f"it cannot have {self.step} of {self.steps} steps")
        if self.seed < 0 or not (math.isfinite(self.scale) and self.scale > 0):
            raise ValueError(f"seed {self.seed} or scale {self.scale} is not valid")
        if not all(cost is None or 0 <= cost < math.inf for cost in self.costs):
            raise ValueError("its costs must be numbers of at least 0")
        if (self.k is None) != (self.K is None):
            raise ValueError("it must have both k and K, or neither")
        if self.k is not None and self.K is not None:
            self._check_place(self.k, self.K)
        shares = [
            v for name in ("kappa", "kappa_mean") for v in self.curve.quantities.get(name, ())
        ]
        if any(value < 0 or value > 1 for value in shares):
            raise ValueError("κ must lie between 0 and 1")

    def _check_place(self, k: int, top: int) -> None:
        if top < 1 or not 0 <= k <= top:
            raise ValueError(f"k must lie between 0 and K ≥ 1, got k = {k} and K = {top}")
        check_order([switch.step for switch in self.switches], "its switches")
        ks = [switch.k for switch in self.switches]
        known = all(0 <= place <= top for place in ks) and all(a != b for a, b in pairwise(ks))
        if ks and not (ks[-1] == k and known):
            raise ValueError(f"its switches must lead to k = {k} of {top}, got {ks}")
        if self.switches and self.switches[-1].step > self.step:
            raise ValueError("it has a switch after its last step")

    def value(self, reading: MetricAt) -> float | None:
        """Return a quantity at a step; None if the run did not record it."""
        step = self.step if reading.step is None else reading.step
        if not 0 < step <= self.step:
            return None
        if reading.quantity == "kappa" and "kappa" in self.curve.quantities and self.switches:
            return self.kappa_at(step)
        column = self.curve.quantities.get(reading.quantity)
        row = int(np.searchsorted(self.curve.steps, step))
        if column is None or row == len(column) or self.curve.steps[row] != step:
            return None
        value = float(column[row])
        return value if math.isfinite(value) else None

    def kappa_at(self, step: int) -> float:
        """κ of the context that was learned after a step."""
        assert self.K is not None
        entered = [switch for switch in self.switches if switch.step <= step]
        last = (entered or self.switches)[-1 if entered else 0]
        return last.numbers.get("kappa", last.k / self.K)

    def trace(self, quantity: str) -> Trace | None:
        """Return a quantity against steps; None if the run did not record it."""
        if quantity not in self.curve.quantities:
            return None
        if quantity == "kappa" and self.switches:
            steps = [*(switch.step for switch in self.switches), self.step]
            return Trace(np.array(steps, float), np.array([self.kappa_at(s) for s in steps]))
        values = self.curve.quantities[quantity]
        known = np.isfinite(values)
        return Trace(self.curve.steps[known], values[known]) if known.any() else None


def __getattr__(name: str) -> Any:
    if name == "Reading":
        warn_renamed("rollin.runs.records.Reading", "MetricAt")
        return MetricAt
    raise AttributeError(name)


def check_order(steps: Sequence[float], what: str) -> None:
    """Refuse steps that are negative, not finite, or go back."""
    if not all(map(math.isfinite, steps)) or any(b < a for a, b in pairwise([0, *steps])):
        raise ValueError(f"the steps of {what} must rise from 0")


# ------------------------------------------------------------------ CSV files

_WHO = ("family", "task", "condition", "seed", "scale")
_RUN = (
    *("engine", "steps", "step", "finished"),
    *(*Costs._fields, "k", "K", "completed"),
)
_ORIGIN = ("spec_hash", "key", "fingerprint", "version", "processor")


def condition_text(labels: Mapping[str, str]) -> str:
    """The name of a condition: `method=rollin,beta=0.1`."""
    return ",".join(f"{name}={value}" for name, value in labels.items())


def labels_from(text: str) -> dict[str, str]:
    """What `condition_text` was given."""
    labels: dict[str, str] = {}
    for part in text.split(",") if text else ():
        name, equals, value = part.partition("=")
        if not equals:
            raise ValueError(f"the condition {text!r} is not of the form name=value,name=value")
        labels[name] = value
    return labels


def write_records(records: Sequence[Record]) -> dict[str, bytes]:
    """The three files, by name."""
    quantities = _names(record.curve.quantities for record in records)
    numbers = _names(switch.numbers for record in records for switch in record.switches)
    runs, curves, switches = [], [], []
    for r in records:
        who = [r.family, r.task, condition_text(r.labels), r.seed, f"{r.scale:.12g}"]
        state = [r.engine, r.steps, r.step, int(r.finished)]
        costs = [_cell(cost, 10) for cost in r.costs]
        last = [_cell(_at_end(r, name), 10) for name in quantities]
        place = [_cell(value) for value in (r.k, r.K, r.completed)]
        origin = [r.spec_hash, r.key, r.fingerprint, r.version, r.processor]
        runs.append([*who, *state, *costs, *place, *last, *origin])
        for i, step in enumerate(r.curve.steps):
            row = (r.curve.quantities.get(name) for name in quantities)
            cells = ["" if column is None else _cell(float(column[i])) for column in row]
            curves.append([*who, int(step), *cells])
        for switch in r.switches:
            cells = [_cell(switch.numbers.get(name)) for name in numbers]
            switches.append([*who, switch.step, switch.k, *cells])
    return {
        RUNS: _csv([*_WHO, *_RUN, *quantities, *_ORIGIN], runs),
        CURVES: _csv([*_WHO, "step", *quantities], curves),
        SWITCHES: _csv([*_WHO, "step", "k", *numbers], switches),
    }


def read_records(directory: Path) -> list[Record]:
    """Records of a directory with the three files."""
    runs = _rows(directory / RUNS, (*_WHO, *_RUN, *_ORIGIN))
    curves = _by_run(_rows(directory / CURVES, (*_WHO, "step")))
    switches = _by_run(_rows(directory / SWITCHES, (*_WHO, "step", "k")))
    records: list[Record] = []
    known: set[tuple[str, ...]] = set()
    for line, row in enumerate(runs, 2):
        who = _who(row)
        where = f"{directory / RUNS}, line {line}"
        if who in known:
            raise RollinError(f"{where}: {', '.join(who)} appears twice: keep one of them.")
        known.add(who)
        try:
            records.append(_record(row, curves.get(who, []), switches.get(who, [])))
        except (ArithmeticError, KeyError, ValueError) as error:
            raise RollinError(f"{where} cannot be read: {error}.") from error
    return records


def _record(
    row: Mapping[str, str],
    curve: Sequence[Mapping[str, str]],
    switches: Sequence[Mapping[str, str]],
) -> Record:
    quantities = [name for name in row if name not in (*_WHO, *_RUN, *_ORIGIN)]
    steps = [int(part["step"]) for part in curve] or [int(row["step"])]
    columns = {name: [_number(part[name]) for part in curve or [row]] for name in quantities}
    for name, column in columns.items():  # the last row is the run's, which has all its digits
        if steps[-1] == int(row["step"]):
            column[-1] = _number(row[name])
    quantities = {name: np.array(c) for name, c in columns.items() if not np.isnan(c).all()}
    numbers = [
        name for name in (switches[0] if switches else ()) if name not in (*_WHO, "step", "k")
    ]
    return Record(
        task=row["task"],
        engine=row["engine"],
        seed=int(row["seed"]),
        steps=int(row["steps"]),
        step=int(row["step"]),
        finished=bool(int(row["finished"])),
        costs=Costs(
            None if row["seconds"] == "" else float(row["seconds"]),
            *(_whole(row[name]) for name in Costs._fields[1:]),
        ),
        curve=Curve(np.array(steps, float), quantities),
        spec_hash=row["spec_hash"],
        key=row["key"],
        fingerprint=row["fingerprint"],
        version=row["version"],
        processor=row["processor"],
        k=_whole(row["k"]),
        K=_whole(row["K"]),
        switches=tuple(
            Switch(
                int(part["k"]),
                int(part["step"]),
                {name: float(part[name]) for name in numbers if part[name]},
            )
            for part in switches
        ),
        completed=_whole(row["completed"]),
        labels=labels_from(row["condition"]),
        family=row["family"],
        scale=float(row["scale"]),
    )


class _Row(Mapping[str, str]):
    """A row of a CSV; all share the places of its columns, where a dict would hold them again."""

    __slots__ = ("_cells", "_places")

    def __init__(self, places: Mapping[str, int], cells: Sequence[str]) -> None:
        self._places, self._cells = places, cells

    def __getitem__(self, name: str) -> str:
        return self._cells[self._places[name]]

    def __iter__(self) -> Iterator[str]:
        return iter(self._places)

    def __len__(self) -> int:
        return len(self._places)


def _rows(path: Path, needed: Iterable[str]) -> list[_Row]:
    try:
        with open_bounded(path, LARGEST_RECORDS) as file:
            text = io.TextIOWrapper(file, "utf-8", newline="")
            header, *rows = [row for row in csv_rows(text) if row] or [[]]
    except (UnicodeDecodeError, csv.Error) as error:
        raise RollinError(f"{path} cannot be read: {error}.") from error
    if missing := [name for name in needed if name not in header]:
        raise RollinError(
            f"{path} has no column {', '.join(missing)}: it is from another version, or is another "
            "kind of file. Create it again from its runs with rollin report."
        )
    places = {name: place for place, name in enumerate(header)}
    for line, row in enumerate(rows, 2):
        if len(row) != len(header):
            raise RollinError(f"{path}, line {line} cannot be read: it is not as long as line 1.")
    return [_Row(places, row) for row in rows]


def _by_run(rows: Sequence[_Row]) -> dict[tuple[str, ...], list[_Row]]:
    found: dict[tuple[str, ...], list[_Row]] = {}
    for row in rows:
        found.setdefault(_who(row), []).append(row)
    return found


def _who(row: Mapping[str, str]) -> tuple[str, ...]:
    return tuple(row[name] for name in _WHO)


def _names(mappings: Iterable[Mapping[str, Any]]) -> list[str]:
    return list(dict.fromkeys(name for mapping in mappings for name in mapping))


def _at_end(record: Record, quantity: str) -> float | None:
    """A quantity at the end of a run, which may be ∞."""
    value = record.value(MetricAt(quantity))
    column = record.curve.quantities.get(quantity)
    if value is None and column is not None and record.curve.steps[-1] == record.step:
        return float(column[-1])
    return value


def _cell(value: float | None, digits: int = 6) -> str:
    if value is None or math.isnan(value):
        return ""
    return str(value) if isinstance(value, int) else f"{value:.{digits}g}"


def _number(text: str) -> float:
    return float(text) if text else math.nan


def _whole(text: str) -> int | None:
    return int(text) if text else None


def _csv(header: Sequence[str], rows: Sequence[Sequence[Any]]) -> bytes:
    return csv_text([header, *rows]).encode()


def switches_of(outcome: Outcome, progress: Progress) -> tuple[Switch, ...]:
    """When contexts were entered, the first one at 0.

    A teacher without a path may move between contexts before it masters more of them.
    """
    entered = [(0, progress.first, {}), *((a.step, a.k, a.numbers) for a in outcome.advances)]
    changes = [entered[0], *(new for old, new in pairwise(entered) if new[1] != old[1])]
    kappas = bool(progress.kappas)
    return tuple(
        Switch(k, at, {**({"kappa": progress.kappa_of(k)} if kappas else {}), **numbers})
        for at, k, numbers in changes
    )
