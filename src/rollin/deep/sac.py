"""Plain SAC on one task, without a curriculum: the yardstick, and the loop in its simplest form.

The loop yields an event per environment step; logging and checkpoints are the driver's business.
An episode begins with a seed from the stream `env`, so that a run which is restored at the end of
an episode goes on exactly as it would have.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from rollin.envs.box import BoxEnv
from rollin.errors import RollinError
from rollin.sac.learner import Learner, UpdateInfo
from rollin.sac.network import Float
from rollin.sac.replay import Replay
from rollin.streams import Streams

EVALUATION_SEED = 10_000  # of the first evaluation episode; the same episodes at every evaluation


@dataclass(frozen=True)
class Event:
    """One environment step."""

    step: int
    reward: float
    episode_end: bool
    update: UpdateInfo | None


def train_sac(
    env: BoxEnv,
    learner: Learner,
    replay: Replay,
    streams: Streams,
    *,
    warmup: int = 10_000,
    p: float | None = None,
    step: int = 0,
) -> Iterator[Event]:
    """Act, store, learn, for ever: `warmup` uniformly random actions, then one update per step.

    p: parameter of geometric replay sampling; uniform if None. step: environment steps so far.
    """
    batch = np.empty((learner.config.batch, replay.layout.batch_width), np.float32)
    if warmup < learner.config.batch:
        raise RollinError(
            f"warmup must be at least one batch ({learner.config.batch}), got {warmup}: the first "
            "update draws a batch from what the random actions collected."
        )
    while True:
        observation = env.reset(seed=int(streams["env"].integers(2**31)))
        require_finite(observation, 0.0, f"Step {step + 1}: the first of an episode")
        episode_end = False
        while not episode_end:
            step += 1
            if step <= warmup:
                action = streams["warmup"].uniform(-1, 1, env.action_size).astype(np.float32)
            else:
                action = learner.act(observation)
            seen = env.step(action)
            replay.append(
                observation,
                action,
                seen.reward,
                seen.observation,
                terminated=seen.terminated,
                truncated=seen.truncated,
            )
            info = None
            if step > warmup:
                picked = replay.draw(len(batch), streams["replay"], p)
                info = learner.update(replay.gather(picked, batch))
            episode_end = seen.terminated or seen.truncated
            observation = seen.observation
            yield Event(step, seen.reward, episode_end, info)


def evaluate(env: BoxEnv, learner: Learner, episodes: int) -> list[float]:
    """Returns of deterministic episodes, always from the same first states."""
    returns = []
    for i in range(episodes):
        observation, total, done = env.reset(seed=EVALUATION_SEED + i), 0.0, False
        while not done:
            require_finite(observation, total, f"Evaluation episode {i + 1}")
            seen = env.step(learner.act(observation, deterministic=True))
            observation, total = seen.observation, total + seen.reward
            done = seen.terminated or seen.truncated
        require_finite(observation, total, f"Evaluation episode {i + 1}")
        returns.append(total)
    return returns


def require_finite(observation: Float, total: float, where: str) -> None:
    """Refuse an observation or a sum of rewards that is not finite."""
    bad = np.flatnonzero(~np.isfinite(observation))
    if len(bad):
        raise RollinError(f"{where}: observation[{bad[0]}] is {observation[bad[0]]}.")
    if not np.isfinite(total):
        raise RollinError(f"{where}: the sum of rewards is {total}.")
