"""From records of runs to curves of cost against size, and the laws fitted to them."""

import math
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from rollin.analysis.growth import Growth, SizeCosts, Slope, costs_by_size, fit_growth
from rollin.runs.records import Reading, Record
from rollin.texts import csv_text

FIT_FROM = 10  # states: smaller MDPs are shown, and take no part in fits
QUANTITIES = ("gradient_steps", "env_steps")


class CurveName(NamedTuple):
    """What the runs of a curve have in common: all but size and seed."""

    setting: str
    gradient: str
    method: str
    beta: str
    mu: str


@dataclass(frozen=True)
class CostCurve:
    """One cost of one method against the number of states.

    spent: the least that a run which was cut off had spent at each size.
    """

    name: CurveName
    quantity: str
    costs: tuple[SizeCosts, ...]
    spent: dict[int, float]
    growth: Growth | None

    @property
    def random(self) -> bool:
        """Whether anything was drawn."""
        return any(len(cost.values) > 1 for cost in self.costs)


def curves_of(records: Iterable[Record]) -> list[CostCurve]:
    """All curves of a study: settings as they come, scratch before β = 0 before roll-in.

    Samples are a cost of sampled gradients only.
    """
    grouped: dict[CurveName, list[Record]] = defaultdict(list)
    for record in records:
        grouped[curve_name(record)].append(record)
    settings = list(dict.fromkeys(name.setting for name in grouped))
    return [
        _curve(name, quantity, members)
        for name, members in sorted(grouped.items(), key=lambda item: _order(item[0], settings))
        for quantity in (QUANTITIES if name.gradient == "sampled" else QUANTITIES[:1])
    ]


def curve_name(record: Record) -> CurveName:
    """The curve that a run belongs to."""
    return CurveName(*(record.labels[name] for name in CurveName._fields))


def size_of(record: Record) -> int:
    """The number of states of its MDP."""
    states = record.value(Reading("states"))
    assert states is not None
    return int(states)


def _order(name: CurveName, settings: Sequence[str]) -> tuple[int, str, int, bool, str]:
    method = ("scratch", "curriculum", "rollin").index(name.method)
    recursive = name.mu == "recursive"
    return settings.index(name.setting), name.gradient, method, recursive, name.beta


def _curve(name: CurveName, quantity: str, records: Sequence[Record]) -> CostCurve:
    by_size: dict[int, list[tuple[float, bool]]] = defaultdict(list)
    spent: dict[int, float] = {}
    for record in records:
        size, solved = size_of(record), record.completed is not None
        cost = float(record.step if quantity == "gradient_steps" else record.costs.env_steps or 0)
        by_size[size].append((cost, solved))
        if not solved:
            spent[size] = min(cost, spent.get(size, math.inf))
    costs = tuple(costs_by_size(by_size))
    return CostCurve(name, quantity, costs, spent, fit_growth(costs, at_least=FIT_FROM))


FIT_COLUMNS = (
    *CurveName._fields, "quantity", "sizes", "left_out", "seeds", "interval",
    "power", "power_low", "power_high", "power_residual",
    "base", "base_low", "base_high", "base_residual", "better",
    "mixed_base", "mixed_base_low", "mixed_base_high", "mixed_base_residual",
)  # fmt: skip


def fits_csv(curves: Iterable[CostCurve]) -> str:
    """The fits as CSV."""
    rows = ([row[name] for name in FIT_COLUMNS] for row in fit_rows(curves))
    return csv_text([FIT_COLUMNS, *rows])


def fit_rows(curves: Iterable[CostCurve]) -> list[dict[str, Any]]:
    """A row for every curve that has a fit; `base` is b of b^n, `mixed_base` b of n^p · b^n."""
    return [
        {
            **curve.name._asdict(),
            "quantity": curve.quantity,
            "sizes": " ".join(map(str, growth.sizes)),
            "left_out": " ".join(map(str, growth.left_out)),
            "seeds": growth.seeds,
            "interval": growth.interval,
            **_columns("power", growth.power),
            **_columns("base", growth.exponential),
            "better": growth.better,
            **_columns("mixed_base", growth.mixed),
        }
        for curve in curves
        if (growth := curve.growth) is not None
    ]


def _columns(name: str, slope: Slope | None) -> dict[str, str]:
    if slope is None:
        return dict.fromkeys((name, f"{name}_low", f"{name}_high", f"{name}_residual"), "")
    return {
        name: f"{slope.value:.5g}",
        f"{name}_low": f"{slope.low:.5g}",
        f"{name}_high": f"{slope.high:.5g}",
        f"{name}_residual": f"{slope.residual:.4f}",
    }
