"""What maps of tabular runs show: which runs, and distributions over states."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError
from safetensors.numpy import load

from rollin.errors import RollinError
from rollin.regular import LARGEST_POLICY, read_bounded
from rollin.runs.engines.tabular_options import TabularConfig
from rollin.runs.engines.tabular_run import start_distributions
from rollin.runs.mdps import load_mdp
from rollin.runs.options import configured
from rollin.runs.records import Record
from rollin.tabular import soft
from rollin.tabular.mdp import Array, ContextualMDP

HEADLINE_BETA = 0.75  # of the paper's main table, which is shown where there is a choice


@dataclass(frozen=True)
class FirstBatch:
    """Chances of success right after each switch, a row a seed, from ρ and from μ_k."""

    setting: str
    beta: float
    from_rho: list[list[float]]
    from_mu: list[list[float]]


@dataclass(frozen=True)
class Learned:
    """What a run on four rooms learned: log π and the rewards of its last context, (S, A) each."""

    record: Record
    log_pi: Array
    rewards: Array


@dataclass(frozen=True)
class Distributions:
    """Of every context: where trajectories begin, and where the policy that mastered it goes."""

    record: Record
    starts: list[Array]
    visits: list[Array]


def beta_of(record: Record) -> float:
    """The mixing ratio of a run, from its options or its labels."""
    return float(_told(record).get("beta", 0.0))


def _told(record: Record) -> Mapping[str, Any]:
    return record.options or record.labels


def _setting(record: Record) -> str:
    told = _told(record)
    name = told.get("reward", record.task) if record.task == "four-rooms" else record.task
    return f"{name}, α = {float(told.get('alpha', 0.01)):g}"


def _by_setting(records: Sequence[Record]) -> dict[str, list[Record]]:
    def place(record: Record) -> tuple[bool, float]:
        told = _told(record)
        return told.get("reward") != "hard", -float(told.get("alpha", 0.01))

    found: dict[str, list[Record]] = {}
    for record in sorted(records, key=place):
        found.setdefault(_setting(record), []).append(record)
    return found


def tabular(records: Sequence[Record]) -> list[Record]:
    """Those that tell chances of success at their switches, or that are of four rooms."""
    return [r for r in records if r.task == "four-rooms" or _numbers(r, "success_mu")]


def _numbers(record: Record, name: str) -> list[float]:
    return [s.numbers[name] for s in record.switches if name in s.numbers]


def first_batches(records: Sequence[Record]) -> list[FirstBatch]:
    """Of the runs with roll-in of each setting, with the paper's main β if there is one."""
    found = []
    rolled = _by_setting([r for r in records if beta_of(r) > 0])
    for setting, runs in rolled.items():
        told = [r for r in runs if _numbers(r, "success_mu")]
        if not told:
            continue
        betas = [beta_of(r) for r in told]
        beta = HEADLINE_BETA if HEADLINE_BETA in betas else betas[0]
        some = [r for r in told if beta_of(r) == beta]
        rho, mu = ([_numbers(r, name) for r in some] for name in ("success_rho", "success_mu"))
        found.append(FirstBatch(setting, beta, rho, mu))
    return found


def farthest(records: Sequence[Record]) -> tuple[Record | None, Record | None]:
    """The best run with and without roll-in, of the setting where roll-in shows most."""
    rooms = [r for r in records if r.task == "four-rooms" and r.options and tensors_of(r)]
    pairs = [
        (
            max((r for r in runs if beta_of(r) > 0), key=_reach, default=None),
            max((r for r in runs if beta_of(r) == 0), key=_reach, default=None),
        )
        for runs in _by_setting(rooms).values()
    ]

    def worth(pair: tuple[Record | None, Record | None]) -> tuple[int, int]:
        rolled, plain = ((r.k or 0) if r else -1 for r in pair)
        return rolled, rolled - (plain if pair[1] else rolled)

    return max(pairs, key=worth, default=(None, None))


def _reach(record: Record) -> tuple[int, bool, int]:
    return record.k or 0, beta_of(record) == HEADLINE_BETA, -record.seed


def learned(record: Record) -> Learned:
    """The policy at a run's end."""
    mdp = _mdp(record)
    log_pi = soft.log_softmax(tensors_of(record)["theta"])
    return Learned(record, log_pi, mdp.task(record.k or 0).r)


def distributions(record: Record) -> Distributions | None:
    """μ_k and visitation of every context; None if the run has mastered none."""
    policies = [p.astype(np.float64) for p in tensors_of(record).get("log_policies", ())]
    if not policies:
        return None
    mdp, config = _mdp(record), configured(TabularConfig(), record.options)
    starts = start_distributions(mdp, policies, config)
    visits = [soft.visitation(mdp, p, s.mu) for p, s in zip(policies, starts, strict=False)]
    return Distributions(record, [s.mu for s in starts], visits)


def _mdp(record: Record) -> ContextualMDP:
    return load_mdp(record.task, reward=record.options["reward"], gamma=record.options["gamma"])


def tensors_of(record: Record) -> dict[str, NDArray[Any]]:
    """A run's learned parameters; empty if they were not kept or cannot be read."""
    return {} if record.path is None else _load(record.path / "policy.safetensors")


@lru_cache(maxsize=8)  # a page may be of thousands of runs
def _load(path: Path) -> dict[str, NDArray[Any]]:
    try:
        return load(read_bounded(path, LARGEST_POLICY))
    except (RollinError, SafetensorError, KeyError, ValueError):  # the page does without its maps
        return {}
