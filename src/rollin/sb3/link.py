"""How a school speaks to the wrappers of a vector env, and a roll-in gets into the replay."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from stable_baselines3.common.vec_env import VecEnv

from rollin.curriculum.teacher import Plan
from rollin.envs.offer import Offer
from rollin.wrapper import PrefixStep


class SB3Link:
    """The wrappers of one of Stable-Baselines3's vector envs, which may live in other processes."""

    def __init__(self, envs: VecEnv) -> None:
        self.envs, self.count = envs, int(envs.num_envs)

    def offers(self) -> list[Offer]:
        """What each env offers to teachers."""
        return list(self.envs.get_attr("offer"))

    def enrol(self, given: Sequence[Sequence[int]]) -> None:
        """Call `enrol` on each wrapper."""
        for i, one in enumerate(given):
            self.envs.env_method("enrol", *one, indices=[i])

    def assign(self, plans: Sequence[Sequence[Plan]]) -> None:
        """Assign plans, some or none for each wrapper."""
        for i, stock in enumerate(plans):
            for plan in stock:
                self.envs.env_method("assign", plan, indices=[i])

    def load_guide(self, version: int, guide: Any, planned: Sequence[int]) -> None:
        """Load a guide in every wrapper; planned: versions that plans to come ask for."""
        self.envs.env_method("load_guide", version, guide, planned)

    def get_states(self) -> list[dict[str, Any]]:
        """The state of every wrapper."""
        return self.envs.env_method("get_state")

    def set_states(self, states: Sequence[Mapping[str, Any]]) -> None:
        """Give every wrapper its state."""
        for i, state in enumerate(states):
            self.envs.env_method("set_state", state, indices=[i])

    def playing(self) -> list[int]:
        """Tickets of the episodes that are being played; 0 where none is."""
        return [int(ticket) for ticket in self.envs.get_attr("playing")]


def store(model: Any, step: PrefixStep) -> None:
    """Put a hidden step into the replay buffer, as the learner does with its own."""
    action = np.asarray(step.action)
    if hasattr(model.action_space, "low"):
        action = model.policy.scale_action(action)
    info = {"TimeLimit.truncated": step.truncated and not step.terminated}
    done = np.array([step.terminated or step.truncated])
    model.replay_buffer.add(
        _batch(step.observation), _batch(step.after), action[None], np.array([step.reward]), done,
        [info],
    )  # fmt: skip


def _batch(observation: Any) -> Any:
    if isinstance(observation, Mapping):
        return {key: np.asarray(part)[None] for key, part in observation.items()}
    return np.asarray(observation)[None]
