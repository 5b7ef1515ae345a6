"""Plain SAC on one task, without a curriculum: the yardstick, and the loop in its simplest form.

The loop yields an event per environment step; logging and checkpoints are the driver's business.
An episode begins with a seed from the stream `env`, so that a run which is restored at the end of
an episode goes on exactly as it would have.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from rollin.checks import check_warmup
from rollin.deep.evaluate import require_finite
from rollin.envs.box_env import BoxEnv
from rollin.errors import RollinError
from rollin.sac.ahead import Ahead
from rollin.sac.learner import SACLearner, UpdateInfo
from rollin.sac.replay import Replay
from rollin.streams import Streams


@dataclass(slots=True)
class SACStep:
    """One environment step."""

    step: int
    reward: float
    episode_end: bool
    update: UpdateInfo | None


def train_sac(
    env: BoxEnv,
    learner: SACLearner,
    replay: Replay,
    streams: Streams,
    *,
    warmup: int = 10_000,
    p: float | None = None,
    step: int = 0,
) -> Iterator[SACStep]:
    """Act, store, learn, for ever: `warmup` uniformly random actions, then one update per step.

    p: parameter of geometric replay sampling; uniform if None. step: environment steps so far.
    """
    check_warmup(warmup, len(learner.batch))
    ahead = Ahead(learner, replay, streams, p)
    while True:
        with _at(step + 1):
            observation = env.reset(seed=int(streams["env"].integers(2**31)))
        require_finite(observation, 0.0, f"Step {step + 1}: the first of an episode")
        episode_end = False
        while not episode_end:
            step += 1
            if step <= warmup:
                action = streams["warmup"].uniform(-1, 1, env.action_size).astype(np.float32)
            else:
                action = learner.act(observation)
                ahead.begin()
            with _at(step):
                seen = env.step(action)
            replay.append(
                observation,
                action,
                seen.reward,
                seen.observation,
                terminated=seen.terminated,
                truncated=seen.truncated,
            )
            info = ahead.update() if step > warmup else None
            episode_end = seen.terminated or seen.truncated
            observation = seen.observation
            yield SACStep(step, seen.reward, episode_end, info)


class _at:  # noqa: N801  (used as a statement)
    """Inside, an error of the environment is told with the step."""

    __slots__ = ("step",)

    def __init__(self, step: int) -> None:
        self.step = step

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, RollinError):
            raise RollinError(f"Step {self.step}: {error}") from error
