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
        try:
            observation = env.reset(seed=int(streams["env"].integers(2**31)))
        except RollinError as error:
            raise _at(step + 1, error) from error
        require_finite(observation, 0.0, f"Step {step + 1}: the first of an episode")
        episode_end = False
        while not episode_end:
            step += 1
            if step <= warmup:
                action = streams["warmup"].uniform(-1, 1, env.action_size).astype(np.float32)
            else:
                ahead.begin()
                action = learner.act(observation)
            try:
                seen = env.step(action)
            except RollinError as error:
                raise _at(step, error) from error
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


def _at(step: int, error: RollinError) -> RollinError:
    """An error of the environment, told with the step."""
    return RollinError(f"Step {step}: {error}")
