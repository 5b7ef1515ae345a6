"""AntMaze with seeds: the clearest claim about ROLLIN with SAC, and the adaptive curriculum.

Written before the first run. Every run has 3 million steps and is read at `AT`; a run that has
passed this step counts, whether or not it has continued to the end.

`antmaze-decisive`: Δ = 1/12, vanilla goals, uniform sampling, β = 0, 0.5 and 0.9. All published
baseline seeds are at k = 4 of 11, before the first corner. **One comparison is confirmatory: β =
0.9 against 0**, by Fisher's exact test on "k ≥ 5" and by the exact permutation test on k, two-sided
at 5 %. β = 0.5 against 0 and the share of goals solved are exploratory.

`antmaze-tuning`: γ for the adaptive curriculum, on seeds that are used for nothing else. The γ with
the higher mean share of goals solved is taken; γ = 0.99, the paper's, if they tie.

`antmaze-adaptive`: the adaptive curriculum (our extension) with that γ on held-out seeds, and
`antmaze-scratch`: the final context only. Aim: the final goal solved by three of four seeds.

A goal is solved if at least four of five episodes end within 0.5 m of it: of the deterministic
policy (`goals`), or of actions drawn from it (`goals_drawn`), reported apart.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache
from typing import Any

from rollin.paper import antmaze
from rollin.runs.records import MetricAt
from rollin.sweeps.condition import Condition, block
from rollin.sweeps.study import METHOD, Study

FAMILY = "antmaze-decisive"
AT = 1_500_000  # steps at which runs are read
PASSED = 5  # k of a seed that has passed the published plateau
SEEDS = 4
FIRST_SEED = 10  # seed 0 was looked at before
TUNING_SEEDS = 2
FIRST_TUNING_SEED = 0
SCRATCH_SEEDS = 2
GOALS = 24  # one a metre
FEW_GOALS = 12  # one for each context of Δ = 1/12
GAMMA = 0.99  # of the adaptive curriculum: what `antmaze-tuning` chose, the paper's until then
NUMERICS: Mapping[str, Any] = {}
"""How the learner of every run computes; empty: float32."""
OPTIONS: Mapping[str, Any] = {"steps": antmaze.STEP, "log_every": 50_000, **NUMERICS}
"""Of every run; an evaluation of ten episodes every 50,000 steps takes under 1 % of them."""


def _conditions(
    labels: Mapping[str, str], betas: Sequence[float], first_seed: int, **options: Any
) -> list[Condition]:
    """A condition for each β."""
    found = []
    for beta in betas:
        method = options.get("method", "rollin" if beta else "baseline")
        given = {**OPTIONS, **options, "method": method, "beta": beta}
        named = {**labels, "method": method, "beta": f"{beta:g}"}
        (made,) = block(antmaze.TASK, {}, given, named)
        found.append(replace(made, first_seed=first_seed))
    return found


def _study(
    name: str, title: str, conditions: Sequence[Condition], seeds: int, **more: Any
) -> Study:
    quantities = ("kappa", "goals", "goals_drawn")
    readings = tuple(MetricAt(q, step) for step in (AT, antmaze.STEP) for q in quantities)
    return Study(name, tuple(conditions), readings, seeds, family=FAMILY, title=title, **more)


def _decisive() -> Study:
    betas = (0.0, 0.5, 0.9)
    labels = {"curriculum": "1/12"}
    made = _conditions(labels, betas, FIRST_SEED, delta=1 / 12, goals=FEW_GOALS)
    printed = [antmaze.PROGRESS["vanilla", 0.0, "uniform", 12, beta] for beta in betas]
    at_end = MetricAt("kappa", antmaze.STEP)
    return _study(
        "antmaze-decisive",
        "Ant maze, Δ = 1/12, uniform sampling: β = 0, 0.5 and 0.9",
        [replace(c, published={at_end: cell}) for c, cell in zip(made, printed, strict=True)],
        SEEDS,
        columns=METHOD,
        baseline="method=baseline",
        compared="beta=0.9",
    )


def _tuning() -> Study:
    made = [
        condition
        for gamma in (0.99, 0.995)
        for condition in _conditions(
            {"curriculum": "adaptive", "gamma": f"{gamma:g}"}, (0.1,), FIRST_TUNING_SEED,
            adaptive=True, goals=GOALS, gamma=gamma,
        )
    ]  # fmt: skip
    title = "Ant maze, adaptive curriculum: γ on tuning seeds"
    return _study("antmaze-tuning", title, made, TUNING_SEEDS, columns=("gamma",))


def _adaptive() -> Study:
    labels = {"curriculum": "adaptive"}
    options = {"adaptive": True, "goals": GOALS, "gamma": GAMMA}
    made = _conditions(labels, (0.0, 0.1), FIRST_SEED, **options)
    title = "Ant maze, adaptive curriculum: β = 0 and 0.1"
    return _study(
        "antmaze-adaptive", title, made, SEEDS, columns=METHOD, baseline="method=baseline"
    )


def _scratch() -> Study:
    made = _conditions(
        {"curriculum": "none"}, (0.0,), FIRST_SEED, method="scratch", goals=GOALS, gamma=GAMMA
    )
    title = "Ant maze, the final goal only: no curriculum"
    return _study("antmaze-scratch", title, made, SCRATCH_SEEDS, columns=METHOD)


@cache
def studies() -> dict[str, Study]:
    """All of them by name; they share their runs in one directory."""
    return {study.name: study for study in (_decisive(), _tuning(), _adaptive(), _scratch())}
