"""Which published figures belong to a run: by its task and options."""

import math
from dataclasses import replace

from rollin.deep.options import RollinOptions
from rollin.envs.registry import TASKS
from rollin.paper import antmaze, velocity
from rollin.paper.velocity import Figures
from rollin.runs.spec import RollinConfig, RunSpec, rollin_config

MAZE = "antmaze-umaze"
DELTAS = {MAZE: 1 / 24} | {robot: 0.1 for robot, *_ in velocity.FIGURES}
"""The tasks of the paper, and the step Δ that each has of its own."""
FREE = ("seed", "steps", "learner", "threads", "log_every", "eval_episodes", "keep_replay")
"""Options that do not make another condition."""
VARIED = ("method", "beta", "sampling", "relabel", "go_explore")
"""Options in which the paper's conditions differ, besides Δ."""


def parts_of(spec: RunSpec[RollinConfig]) -> int | None:
    """n of a step Δ = 1/n that is not the task's own; None if it is, 0 if there is no such n."""
    delta, own = spec.config.delta, DELTAS.get(spec.task)
    if delta is None or (own is not None and math.isclose(delta, own)):
        return None
    parts = round(1 / delta)
    return parts if math.isclose(delta * parts, 1) else 0


def published_for(spec: RunSpec[RollinConfig]) -> dict[int, Figures]:
    """Published figures of a run's condition by step; nothing if the paper has no such one."""
    if spec.task not in DELTAS:
        return {}
    config, options, parts = spec.config, spec.config.algorithm, parts_of(spec)
    preset = rollin_config(**TASKS[spec.task].defaults)
    free = {name: getattr(preset, name) for name in FREE if name != "threads"}
    varied = {name: getattr(preset.algorithm, name) for name in VARIED}
    sac = replace(config.sac, threads=preset.sac.threads)
    plain = replace(config, **free, delta=None, sac=sac, algorithm=replace(options, **varied))
    if plain != preset or options.method == "fresh":
        return {}
    if spec.task == MAZE:
        return _antmaze(options, 24 if parts is None else parts)
    if options != replace(preset.algorithm, method=options.method, beta=options.beta) or parts:
        return {}
    return _velocity(spec.task, options)


def _velocity(robot: str, options: RollinOptions) -> dict[int, Figures]:
    method = options.method if options.rolls_in or options.method == "scratch" else "baseline"
    keys = {step: (robot, method, options.rolls_in, step) for step in velocity.STEPS}
    return {step: velocity.FIGURES[key] for step, key in keys.items() if key in velocity.FIGURES}


def _antmaze(options: RollinOptions, parts: int) -> dict[int, Figures]:
    if options.method == "scratch" or (options.relabel and options.go_explore):
        return {}
    setting = "relabel" if options.relabel else "go-explore" if options.go_explore else "vanilla"
    key = (setting, options.go_explore, options.sampling, parts, options.rolls_in)
    found = antmaze.PROGRESS.get(key)
    return {} if found is None else {antmaze.STEP: {"kappa": found}}
