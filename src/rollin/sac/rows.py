"""Rows of a replay in compiled code: one is written, a batch of them is gathered."""

from typing import Any

import numpy as np

from rollin.compiling import kept
from rollin.sac import ages, bits, lanes, vector
from rollin.sac.ages import draw_below
from rollin.sac.vector import LINE, OPTIONS, base, compiled, prefetch

BOX = 1 + 1e-6  # actions lie in [-1, 1], up to rounding
NOWHERE = -1  # the slot of a row that is checked only
EARLY = 16  # rows between one that is copied and one that is asked for: memory takes that long

_kept: Any = kept(helpers=(ages, bits, lanes, vector), **OPTIONS)


@_kept
def insert(rows, slot, observation, action, context, following, outcome, reward, flag):
    """Write a row; or write nothing and return the first number that is not allowed.

    It is counted through the parts in their order here, the reward last. -1: all is well.
    """
    checked = 0
    for part in (observation, action, context, following, outcome):
        for x in part:
            if not np.isfinite(x):
                return checked
            checked += 1
    for i in range(len(action)):
        if abs(action[i]) > BOX:
            return len(observation) + i
    if not np.isfinite(np.float32(reward)):
        return checked
    if slot == NOWHERE:
        return -1
    row, i = rows[slot], 0
    for part in (action, observation, context, following):
        for x in part:
            row[i] = x
            i += 1
    row[i], row[i + 1] = reward, flag
    for x in outcome:
        row[i + 2] = x
        i += 1
    return -1


@compiled
def _copy(row, sizes, to):
    """A row as a batch has it: action, observation, context, next, context, reward, mask."""
    a, o, c = sizes[0], sizes[1], sizes[2]
    head = a + o + c
    for i in range(head + o):
        to[i] = row[i]
    for i in range(c):
        to[head + o + i] = row[a + o + i]
    to[head + o + c] = row[head + o]
    to[head + o + c + 1] = min(row[head + o + 1], np.float32(1))


@compiled
def _ask_for(rows, slot):
    """Let the caches fetch a row."""
    size = 4 * rows.shape[1]
    begin = base(rows) + slot * size
    for offset in range(0, size, LINE):
        prefetch(begin + offset)
    prefetch(begin + size - 4)  # the row may begin within a line


@compiled
def _gather(rows, slots, sizes, out):
    count = len(slots)
    for b in range(min(EARLY, count)):
        _ask_for(rows, slots[b])
    for b in range(count):
        if b + EARLY < count:
            _ask_for(rows, slots[b + EARLY])
        _copy(rows[slots[b]], sizes, out[b])


@_kept
def gather(rows, picked, sizes, out):
    """Write the batch of these rows."""
    _gather(rows, picked % rows.shape[0], sizes, out)


@_kept
def sample(rows, sizes, out, state, function, held, total):
    """Draw as many of the newest `held` rows as `out` has, and write their batch."""
    capacity, slots = rows.shape[0], np.empty(out.shape[0], np.int64)
    newest = (total - 1) % capacity
    for b in range(out.shape[0]):
        slot = newest - draw_below(state, function, held)
        slots[b] = slot if slot >= 0 else slot + capacity  # a division would take longer
    _gather(rows, slots, sizes, out)
