"""Plain SAC on one task, without a curriculum: the yardstick, and the loop in its simplest form.

The loop yields an event per environment step; logging and checkpoints are the driver's business.
An episode begins with a seed from the stream `env`, so that a run which is restored at the end of
an episode resumes bit for bit.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np

from rollin.checks import check_warmup
from rollin.deep.evaluate import require_finite
from rollin.envs.box_env import BoxEnv
from rollin.errors import RollinError
from rollin.sac.learner import SACLearner, UpdateInfo
from rollin.sac.replay import Prefetcher, Replay
from rollin.streams import Streams


@dataclass(slots=True)
class SACStep:
    """One environment step; update: the last one made at it, None without one."""

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
    """Act, store, learn, for ever: `warmup` uniformly random actions, then the learner's policy.

    Its options `update_every` and `updates_per_step` say when it learns; by default it makes one
    update at every step. p: parameter of geometric replay sampling; uniform if None. step:
    environment steps so far.
    """
    check_warmup(warmup, len(learner.batch))
    config = learner.config
    prefetcher = Prefetcher(learner, replay, streams, p)
    while True:
        with _location(step + 1):
            observation = env.reset(seed=int(streams["env"].integers(2**31)))
        require_finite(observation, 0.0, f"Step {step + 1}: the first of an episode")
        episode_end = False
        while not episode_end:
            step += 1
            learns = step > warmup and step % config.update_every == 0
            if learns:
                prefetcher.begin()
            if step <= warmup:
                action = streams["warmup"].uniform(-1, 1, env.action_size).astype(np.float32)
            else:
                action = learner.act(observation)
            with _location(step):
                result = env.step(action)
            replay.append(
                observation, action, result.reward, result.observation,
                terminated=result.terminated, truncated=result.truncated,
            )  # fmt: skip
            info = None
            for _ in range(config.updates_per_step if learns else 0):
                info = prefetcher.update()
            episode_end = result.terminated or result.truncated
            observation = result.observation
            yield SACStep(step, result.reward, episode_end, info)


@contextmanager
def _location(step: int) -> Iterator[None]:
    """Add the step to errors of the environment."""
    try:
        yield
    except RollinError as error:
        raise RollinError(f"Step {step}: {error}") from error
