"""Goal relabelling in thirds (section on goal reaching; after Pitis et al., 2020).

Of each batch, a third keeps its context, a third gets the outcome of a later state of the same
episode as its context, and a third that of its own next state; rewards are recomputed.
"""

from collections.abc import Callable

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from rollin.checks import instance
from rollin.errors import RollinError
from rollin.sac.learner import Float
from rollin.sac.replay import Replay, Rows

ComputeReward = Callable[[Float, Float], NDArray[np.floating]]
"""Rewards of outcomes (B, U) under contexts (B, C), shape (B,)."""
ToContext = Callable[[Float], Float]
"""The contexts (B, C) that outcomes (B, U) fulfil."""


def relabel(
    replay: Replay,
    picked: Rows,
    batch: Float,
    generator: Generator,
    compute_reward: ComputeReward,
    to_context: ToContext | None = None,
    drawn_goal: slice | None = None,
    ends: ComputeReward | None = None,
) -> Float:
    """Relabel a gathered batch in place: the first third original, then future, then next state.

    picked: the rows of the batch, which must be drawn independently. compute_reward: rewards of
    outcomes under contexts. to_context: contexts that outcomes fulfil; default: the outcomes.
    drawn_goal: where observations show a goal that the env draws: it is replaced instead of the
    context, by the achieved goal that outcomes begin with. ends: whether outcomes end an episode
    under contexts, where that depends on the context. One or two rows beyond a multiple of three
    stay original.

    >>> import numpy as np
    >>> import rollin
    >>> layout = rollin.RowLayout(observation=1, action=1, context=1, outcome=1)
    >>> replay, generator = rollin.Replay(layout, capacity=100), np.random.default_rng(0)
    >>> for t in range(30):  # from 0 to 30 with a goal that is never met
    ...     after, end = [t + 1.0], t == 29
    ...     ends = {"terminated": False, "truncated": end}
    ...     replay.append([t], [0.0], 0.0, after, **ends, context=[99.0], outcome=after)
    >>> picked = replay.draw(9, generator)
    >>> batch = replay.gather(picked, np.empty((9, layout.batch_width), np.float32))
    >>> met = lambda outcome, context: (outcome == context)[:, 0] * 1.0
    >>> batch = rollin.relabel(replay, picked, batch, generator, met)
    >>> batch[:3, -2].tolist(), batch[6:, -2].tolist()  # rewards: original, next state
    ([0.0, 0.0, 0.0], [1.0, 1.0, 1.0])
    """
    instance("replay", replay, Replay, "make one, rollin.Replay(layout, capacity)")
    third = len(picked) // 3
    changed = picked[len(picked) - 2 * third :]
    sources = changed.copy()
    # the outcome of row t is that of s_{t+1}: "later" is s_{t+1} … s_T, each equally likely
    later = generator.integers(0, replay.rows_left(changed[:third]), endpoint=True)
    sources[:third] += later
    outcomes = replay.outcomes(sources)
    layout = replay.layout
    rows = batch[len(picked) - 2 * third :]
    current = replay.outcomes(changed)
    after = layout.action + layout.observation  # the context's first column
    if drawn_goal is None:
        goals = np.asarray(to_context(outcomes) if to_context else outcomes, np.float32)
        _check_shape(goals, (2 * third, layout.context))
        first, contexts = after, goals
    else:
        size = layout.outcome // 2
        goals = outcomes[:, :size]
        current = np.concatenate((current[:, :size], goals), axis=1)
        first, contexts = layout.action + drawn_goal.start, rows[:, after : after + layout.context]
    rewards = np.asarray(compute_reward(current, contexts), np.float32)
    if rewards.shape != (2 * third,):
        raise RollinError(
            f"compute_reward must give {2 * third} rewards for {2 * third} outcomes, "
            f"got shape {rewards.shape}."
        )
    if not np.isfinite(rewards).all():
        raise RollinError("compute_reward gave a reward that is not a finite number.")
    for column in (first, first + layout.observation + layout.context):  # of s, and of the next
        rows[:, column : column + goals.shape[1]] = goals
    rows[:, -2] = rewards
    if ends is not None:
        rows[:, -1] = ~np.asarray(ends(current, contexts), bool)
    return batch


def _check_shape(contexts: Float, expected: tuple[int, int]) -> None:
    """Raise if relabelling has no context for each outcome."""
    if contexts.shape != expected:
        raise RollinError(
            f"Relabelling needs contexts of shape {expected} from outcomes, "
            f"got {contexts.shape}: give to_context, which maps outcomes to contexts."
        )
