"""The published figures of the continuous-control experiments.

Copied from the paper: mean ± standard error over 8 seeds. Nothing in this file is a number of ours.
`VELOCITY` has the summary of walker, hopper, humanoid and ant with all β (κ at the step; x-velocity
and return of the 50,000 steps before it), `ANTMAZE` the summary of antmaze-umaze, where ROLLIN is
β = 0.1.
"""

from dataclasses import replace

from rollin.deep.options import RollinOptions
from rollin.envs.registry import TASKS
from rollin.paper.published import Published, published
from rollin.runs.spec import RollinConfig, RunSpec, rollin_config

BETAS = (0.0, 0.1, 0.2, 0.5, 0.75)
HALF, FULL = 500_000, 1_000_000
ANTMAZE_STEP = 3_000_000

Figures = dict[str, Published]
"""By name, as in a run's result.json: kappa, x_velocity_mean_last, return_mean_last."""


def _rows(*lines: str) -> list[list[str]]:
    return [[cell.strip() for cell in line.split("|")] for line in lines]


# robot, half or a whole million steps, then one cell for each of BETAS
_KAPPA = _rows(
    "walker   | 0.5 | 0.83 ± 0.03 | 0.79 ± 0.04 | 0.75 ± 0.04 | 0.78 ± 0.05 | 0.76 ± 0.05",
    "walker   | 1   | 0.92 ± 0.03 | 0.94 ± 0.03 | 0.90 ± 0.01 | 0.92 ± 0.04 | 0.92 ± 0.03",
    "hopper   | 0.5 | 0.85 ± 0.02 | 0.82 ± 0.03 | 0.83 ± 0.02 | 0.78 ± 0.02 | 0.75 ± 0.02",
    "hopper   | 1   | 0.88 ± 0.01 | 0.89 ± 0.00 | 0.89 ± 0.03 | 0.82 ± 0.02 | 0.81 ± 0.02",
    "humanoid | 0.5 | 0.32 ± 0.05 | 0.36 ± 0.04 | 0.21 ± 0.07 | 0.33 ± 0.04 | 0.14 ± 0.06",
    "humanoid | 1   | 0.67 ± 0.03 | 0.69 ± 0.06 | 0.62 ± 0.02 | 0.76 ± 0.03 | 0.71 ± 0.06",
    "ant      | 0.5 | 0.72 ± 0.02 | 0.82 ± 0.06 | 0.68 ± 0.08 | 0.64 ± 0.05 | 0.47 ± 0.05",
    "ant      | 1   | 1.00 ± 0.00 | 1.00 ± 0.00 | 0.83 ± 0.08 | 0.86 ± 0.06 | 0.71 ± 0.07",
)
_SPEED = _rows(
    "walker   | 0.5 | 3.09 ± 0.31 | 2.83 ± 0.31 | 2.41 ± 0.33 | 2.77 ± 0.31 | 2.88 ± 0.32",
    "walker   | 1   | 3.69 ± 0.27 | 3.62 ± 0.26 | 3.09 ± 0.28 | 3.48 ± 0.27 | 3.14 ± 0.34",
    "hopper   | 0.5 | 2.42 ± 0.18 | 2.26 ± 0.22 | 2.45 ± 0.14 | 2.34 ± 0.16 | 2.34 ± 0.16",
    "hopper   | 1   | 2.58 ± 0.16 | 2.65 ± 0.15 | 2.65 ± 0.17 | 2.39 ± 0.18 | 2.52 ± 0.19",
    "humanoid | 0.5 | 0.26 ± 0.05 | 0.32 ± 0.07 | 0.27 ± 0.05 | 0.34 ± 0.05 | 0.38 ± 0.07",
    "humanoid | 1   | 0.39 ± 0.05 | 0.46 ± 0.09 | 0.41 ± 0.05 | 0.41 ± 0.06 | 0.49 ± 0.10",
    "ant      | 0.5 | 3.38 ± 0.43 | 3.85 ± 0.41 | 3.43 ± 0.53 | 3.15 ± 0.45 | 2.38 ± 0.46",
    "ant      | 1   | 4.29 ± 0.51 | 4.66 ± 0.30 | 3.93 ± 0.45 | 3.99 ± 0.48 | 3.50 ± 0.49",
)
_RETURN = _rows(
    "walker | 0.5 | 3450.1 ± 307.4 | 3350.4 ± 184.6 | 2897.4 ± 276.5 | 3255.9 ± 203.8 | "
    "3185.8 ± 341.5",
    "walker | 1 | 4032.3 ± 224.3 | 4128.8 ± 159.6 | 3685.5 ± 135.6 | 4028.8 ± 164.2 | "
    "3895.4 ± 265.4",
    "hopper | 0.5 | 3192.5 ± 80.4 | 3148.6 ± 160.7 | 3241.5 ± 130.8 | 3116.5 ± 141.8 | "
    "3059.6 ± 153.8",
    "hopper | 1 | 3386.2 ± 124.7 | 3421.9 ± 109.8 | 3262.3 ± 98.1 | 3170.7 ± 180.6 | "
    "3394.5 ± 126.5",
    "humanoid | 0.5 | 2910.1 ± 262.9 | 2939.7 ± 392.0 | 2598.9 ± 309.8 | 3137.3 ± 305.6 | "
    "2259.6 ± 245.4",
    "humanoid | 1 | 3017.2 ± 169.0 | 3173.6 ± 238.3 | 2935.8 ± 181.1 | 2905.5 ± 125.9 | "
    "3290.7 ± 275.9",
    "ant | 0.5 | 2976.2 ± 252.4 | 3593.1 ± 237.8 | 3071.8 ± 340.0 | 2818.3 ± 265.2 | "
    "2188.3 ± 256.2",
    "ant | 1 | 4248.5 ± 88.6 | 4473.0 ± 102.2 | 3683.1 ± 345.0 | 3708.7 ± 290.5 | 3250.1 ± 316.2",
)
# learning the last context alone: x-velocity and return
_SCRATCH = _rows(
    "walker   | 0.5 | 3.07 ± 0.26 | 3373.1 ± 170.5",
    "walker   | 1   | 3.30 ± 0.36 | 4212.3 ± 151.4",
    "hopper   | 0.5 | 2.50 ± 0.13 | 2943.6 ± 80.3",
    "hopper   | 1   | 2.55 ± 0.12 | 3073.2 ± 137.7",
    "humanoid | 0.5 | 0.24 ± 0.05 | 2417.1 ± 188.2",
    "humanoid | 1   | 0.37 ± 0.05 | 2763.8 ± 96.5",
    "ant      | 0.5 | 3.60 ± 0.49 | 2910.7 ± 354.3",
    "ant      | 1   | 4.55 ± 0.36 | 4277.9 ± 120.0",
)


def _velocity() -> dict[tuple[str, str, float, int], Figures]:
    found: dict[tuple[str, str, float, int], Figures] = {}
    tables = {"kappa": _KAPPA, "x_velocity_mean_last": _SPEED, "return_mean_last": _RETURN}
    for name, rows in tables.items():
        for robot, millions, *cells in rows:
            step = round(1_000_000 * float(millions))
            for beta, cell in zip(BETAS, cells, strict=True):
                method = "rollin" if beta else "baseline"
                found.setdefault((robot, method, beta, step), {})[name] = published(cell)
    for robot, millions, speed, total in _SCRATCH:
        figures = {"x_velocity_mean_last": published(speed), "return_mean_last": published(total)}
        found[robot, "scratch", 0.0, round(1_000_000 * float(millions))] = figures
    return found


VELOCITY = _velocity()
"""Figures by robot, method, β (0 without roll-in) and step."""


def _antmaze() -> dict[tuple[str, str, str, int], Published]:
    rows = _rows(  # uniform Δ = 1/24, 1/12, then geometric Δ = 1/24, 1/12
        "vanilla    | baseline | 0.40 ± 0.02 | 0.36 ± 0.00 | 0.82 ± 0.08 | 0.38 ± 0.03",
        "vanilla    | rollin   | 0.49 ± 0.04 | 0.44 ± 0.01 | 0.92 ± 0.02 | 0.55 ± 0.04",
        "relabel    | baseline | 0.89 ± 0.03 | 0.66 ± 0.04 | 0.76 ± 0.02 | 0.72 ± 0.03",
        "relabel    | rollin   | 0.91 ± 0.03 | 0.74 ± 0.01 | 0.78 ± 0.01 | 0.73 ± 0.00",
        "go-explore | baseline | 0.37 ± 0.02 | 0.38 ± 0.01 | 0.82 ± 0.07 | 0.42 ± 0.03",
        "go-explore | rollin   | 0.52 ± 0.07 | 0.38 ± 0.01 | 0.95 ± 0.02 | 0.43 ± 0.02",
    )
    columns = [("uniform", 24), ("uniform", 12), ("geometric", 24), ("geometric", 12)]
    return {
        (setting, method, sampling, parts): published(cell)
        for setting, method, *cells in rows
        for (sampling, parts), cell in zip(columns, cells, strict=True)
    }


ANTMAZE = _antmaze()
"""κ at 3 million steps by setting, method, sampling and 1/Δ; go-explore is noise 0.1."""

_NOTED = ("seed", "steps", "learner", "capacity", "log_every", "eval_episodes", "last")
"""Options that do not make another condition of the paper's."""


def published_for(spec: RunSpec[RollinConfig]) -> dict[int, Figures]:
    """Published figures of a run's condition by step; nothing if the paper has no such one."""
    if spec.task not in TASKS or spec.task == "point-umaze":
        return {}
    config, options = spec.config, spec.config.algorithm
    preset = rollin_config(**TASKS[spec.task].defaults)
    same = {name: getattr(preset, name) for name in (*_NOTED, "keep_replay", "delta")}
    if replace(config, **same, algorithm=preset.algorithm) != preset:
        return {}
    method = (
        "scratch" if options.method == "scratch" else "rollin" if options.rolls_in else "baseline"
    )
    varied = {name: getattr(options, name) for name in ("method", "beta")}
    if spec.task == "antmaze-umaze":
        varied |= {name: getattr(options, name) for name in ("relabel", "go_explore", "sampling")}
    if options != replace(preset.algorithm, **varied) or options.method == "fresh":
        return {}
    if spec.task == "antmaze-umaze":
        return _published_antmaze(method, options, config.delta)
    if config.delta is not None:
        return {}
    found = {
        step: VELOCITY.get((spec.task, method, options.rolls_in, step)) for step in (HALF, FULL)
    }
    return {step: figures for step, figures in found.items() if figures is not None}


def _published_antmaze(
    method: str, options: RollinOptions, delta: float | None
) -> dict[int, Figures]:
    setting = "relabel" if options.relabel else "go-explore" if options.go_explore else "vanilla"
    known = options.go_explore in ((0.0,) if setting != "go-explore" else (0.1,))
    parts = 24 if delta is None else round(1 / delta)
    found = ANTMAZE.get((setting, method, options.sampling, parts))
    if found is None or not known or options.rolls_in not in (0.0, 0.1):
        return {}
    return {ANTMAZE_STEP: {"kappa": found}}
