"""The tasks of the deep loop that come with rollin: one line each."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class TaskPreset:
    """An environment, and the options of a run that differ from the paper's table for it."""

    factory: str
    """module:factory, imported when it is needed."""
    defaults: Mapping[str, Any] = field(default_factory=dict)
    delta: float | None = None
    """The step Δ of its own curriculum, the default of a run."""


SMALL = {
    "steps": 300_000,
    "warmup": 2000,
    "hidden": (32, 32),
    "batch": 64,
    "gamma": 0.97,
    "initial_temperature": 0.1,
    "head_gain": math.sqrt(2.0),  # this and the fill as point-umaze's study was run with
    "exp_fill": 64,
}
ROBOT = {"log_every": 10_000}  # an evaluation of ten long episodes costs thousands of steps
# Δ and R of the robots are the environments' own, all else is the paper's table, a run's default

TASKS = {
    "point-umaze": TaskPreset("rollin.envs.point_umaze:PointUmaze", SMALL, 1 / 12),
    "dead-end": TaskPreset("rollin.envs.point_umaze:DeadEnd", SMALL, 1 / 12),
    "key-door": TaskPreset("rollin.envs.key_door:KeyDoor", SMALL, 1 / 12),
    "point-speed": TaskPreset("rollin.envs.point_speed:PointSpeed", SMALL, 1 / 12),
    "antmaze-umaze": TaskPreset(
        "rollin.envs.ant_umaze:AntUmaze", {"steps": 3_000_000} | ROBOT, 1 / 24
    ),
    "walker": TaskPreset("rollin.envs.velocity:walker", ROBOT, 0.1),
    "hopper": TaskPreset("rollin.envs.velocity:hopper", ROBOT, 0.1),
    "humanoid": TaskPreset("rollin.envs.velocity:humanoid", ROBOT, 0.1),
    "ant": TaskPreset("rollin.envs.velocity:ant", ROBOT, 0.1),
}
"""Presets by the name that runs and their hashes have."""


def gymnasium_id(name: str) -> str:
    """Return the id of a task in Gymnasium, such as rollin/PointUmaze-v0 of point-umaze."""
    return f"rollin/{''.join(word.capitalize() for word in name.split('-'))}-v0"


_PLAIN_NAMES = {gymnasium_id(name): name for name in TASKS}


def plain_name(task: str) -> str:
    """Return the name of a task in runs: that of our ids of Gymnasium, other names unchanged."""
    return _PLAIN_NAMES.get(task, task)
