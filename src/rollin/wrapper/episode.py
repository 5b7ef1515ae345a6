"""What an episode under a plan has come to."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from rollin.curriculum.teacher import EpisodeEnd, Plan
from rollin.errors import RollinError


@dataclass(frozen=True)
class PrefixStep:
    """A hidden step, for learners that want it in their replay: raw observations of the env."""

    observation: Any
    action: Any
    reward: float
    after: Any
    terminated: bool
    truncated: bool


@dataclass
class Episode:
    """The episode that is being played: its plan, and what it has come to."""

    plan: Plan
    serial: int
    hidden: int = 0
    cut: int = 0
    prefix_return: float = 0.0
    total: float = 0.0
    length: int = 0
    success: bool = False
    trace: list[Any] = field(default_factory=list)

    def count(self, reward: float, info: Mapping[str, Any]) -> None:
        """Take in a step of the learner's."""
        self.length += 1
        self.total += reward
        if self.plan.trace:
            if "outcome" not in info:
                raise RollinError(
                    "The teacher wants the outcomes of an episode, and a step of the env told none "
                    f"in its info, only {', '.join(sorted(info)) or 'nothing'}: let the env give "
                    'info["outcome"], or take a teacher whose wants is without "trace".'
                )
            self.trace.append(np.array(info["outcome"]))

    def forget_prefix(self, steps: int) -> None:
        """Go on as if its roll-in, which has ended the episode, had not been."""
        self.cut, self.prefix_return, self.success = steps, 0.0, False

    def start(self) -> dict[str, int]:
        """What `info["rollin_start"]` tells."""
        ticket = self.plan.ticket
        return {"ticket": ticket, "serial": self.serial, "hidden": self.hidden, "cut": self.cut}

    def end(self, env: int, ends: tuple[bool, bool], *, abandoned: bool = False) -> EpisodeEnd:
        """How it ended, for the teacher; ends: terminated, truncated."""
        plan = self.plan
        return EpisodeEnd(
            plan.ticket, self.serial, env, plan.context, plan.purpose, self.hidden > 0,
            self.hidden, self.cut, self.prefix_return, self.total, self.length, self.success,
            *ends, abandoned, self.trace if plan.trace else None,
        )  # fmt: skip
