"""A team of threads inside compiled code: shared counters, a barrier, and fair shares of work."""

import os
from typing import Any

import numpy as np
from numba import types

from rollin.sac.vector import INT64, base, compiled, intrinsic


@intrinsic
def atomic_add(typing, address, value):
    """Add to a shared int64 and return what it was."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        pointer = builder.inttoptr(args[0], INT64.as_pointer())
        return builder.atomic_rmw("add", pointer, args[1], "seq_cst")

    return types.int64(types.int64, types.int64), generate


@intrinsic
def atomic_load(typing, address):
    """A shared int64 as it is now."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        pointer = builder.inttoptr(args[0], INT64.as_pointer())
        return builder.load_atomic(pointer, "acquire", 8)

    return types.int64(types.int64), generate


_sched_yield = types.ExternalFunction("sched_yield", types.int32())
_usleep = types.ExternalFunction("usleep", types.int32(types.uint32))

# places in a team's int64s, on lines of their own
ARRIVED, GENERATION, JOB, STOP, TAKEN, DONE, FRONT, BACK = range(0, 64, 8)
TEAM = 64
SPINS, YIELDS = 4_000, 20_000  # then a waiting thread sleeps between looks, longer and longer
LONGEST_SLEEP = 1_000  # µs
POSIX = os.name == "posix"


@compiled
def wait_while(address, value):
    """Wait until a shared number is no longer `value`: busy at first, then politely."""
    turns = 0
    while atomic_load(address) == value:
        turns += 1
        if POSIX:  # elsewhere there is one thread only, which never waits
            if turns > YIELDS:
                _usleep(np.uint32(min(turns - YIELDS, LONGEST_SLEEP)))
            elif turns > SPINS:
                _sched_yield()


@compiled
def meet(team, threads):
    """A barrier: nobody goes on before everybody is here."""
    if threads == 1:
        return
    place = base(team)
    generation = atomic_load(place + 8 * GENERATION)
    if atomic_add(place + 8 * ARRIVED, 1) == threads - 1:
        atomic_add(place + 8 * ARRIVED, -threads)
        atomic_add(place + 8 * GENERATION, 1)
    else:
        wait_while(place + 8 * GENERATION, generation)


@compiled
def open_queue(team):
    """Let `take` hand out pieces of work from the first again; nobody may be at work on one."""
    for place in (DONE, FRONT, BACK):
        team[place] = 0
    taken = base(team) + 8 * TAKEN
    atomic_add(taken, -atomic_load(taken))  # the last: until here nothing is handed out


@compiled
def take(team, pieces, rank):
    """The number of a piece of work that nobody else will get, or -1 if none is left.

    Even ranks take from the front and odd ones from the back, so that two threads find what they
    wrote last time in their own caches. Whoever has done a piece counts it in DONE.
    """
    place = base(team)
    if atomic_add(place + 8 * TAKEN, 1) >= pieces:
        return -1
    if rank % 2 == 0:
        return atomic_add(place + 8 * FRONT, 1)
    return pieces - 1 - atomic_add(place + 8 * BACK, 1)


@compiled
def close_queue(team, pieces):
    """Hand out no more pieces, and wait until those that were handed out are done."""
    place = base(team)
    taken = min(atomic_add(place + 8 * TAKEN, pieces), pieces)
    while True:
        done = atomic_load(place + 8 * DONE)
        if done == taken:
            return
        wait_while(place + 8 * DONE, done)


@compiled
def share(total, grain, rank, threads):
    """Begin and size of one thread's part of `total` things in grains that are not split."""
    grains = (total + grain - 1) // grain
    begin = min(total, grains * rank // threads * grain)
    end = min(total, grains * (rank + 1) // threads * grain)
    return begin, end - begin
