"""Which published figures belong to a run: by its task and options."""

import math
from dataclasses import replace

from rollin.deep.options import RollinOptions
from rollin.envs.registry import TASKS
from rollin.paper import antmaze, velocity
from rollin.paper.velocity import Figures
from rollin.runs.spec import RollinConfig, RunSpec, rollin_config

ROBOTS = ("walker", "hopper", "humanoid", "ant")
FREE = ("seed", "steps", "learner", "log_every", "eval_episodes", "keep_replay")
"""Options that do not make another condition of the paper's."""
VARIED = ("method", "beta", "relabel", "go_explore", "sampling")
"""Options of the algorithm in which the paper's conditions differ."""


def published_for(spec: RunSpec[RollinConfig]) -> dict[int, Figures]:
    """Published figures of a run's condition by step; nothing if the paper has no such one."""
    if spec.task != "antmaze-umaze" and spec.task not in ROBOTS:
        return {}
    config, options = spec.config, spec.config.algorithm
    preset = rollin_config(**TASKS[spec.task].defaults)
    free = {name: getattr(preset, name) for name in (*FREE, "delta")}
    varied = {name: getattr(preset.algorithm, name) for name in VARIED}
    sac = replace(config.sac, threads=preset.sac.threads)  # the same bits on any number
    if replace(config, **free, sac=sac, algorithm=replace(options, **varied)) != preset:
        return {}
    if spec.task == "antmaze-umaze":
        return _antmaze(options, config.delta)
    if options != replace(preset.algorithm, method=options.method, beta=options.beta):
        return {}
    return _velocity(spec.task, options) if config.delta in (None, 0.1) else {}


def _velocity(robot: str, options: RollinOptions) -> dict[int, Figures]:
    if options.method == "fresh":
        return {}
    method = options.method if options.rolls_in or options.method == "scratch" else "baseline"
    keys = {step: (robot, method, options.rolls_in, step) for step in velocity.STEPS}
    return {step: velocity.FIGURES[key] for step, key in keys.items() if key in velocity.FIGURES}


def _antmaze(options: RollinOptions, delta: float | None) -> dict[int, Figures]:
    if options.method in ("fresh", "scratch") or (options.relabel and options.go_explore):
        return {}
    setting = "relabel" if options.relabel else "go-explore" if options.go_explore else "vanilla"
    parts = [n for n in (24, 18, 12) if math.isclose(delta or 1 / 24, 1 / n)]
    for n in parts:
        key = (setting, options.go_explore, options.sampling, n, options.rolls_in)
        if key in antmaze.PROGRESS:
            return {antmaze.STEP: {"kappa": antmaze.PROGRESS[key]}}
    return {}
