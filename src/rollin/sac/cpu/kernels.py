"""Entry points of the compiled learner: one SAC update, one action; see the package's page.

Every thread runs the same update on its share: of the samples where they are independent, of the
weights of a layer where the gradient is summed over the batch. No sum is split between threads, so
that any number of them gives the same result bit for bit. p is the table of `memory`.
"""

import math
import os
from typing import Any

import numpy as np
from numba import types

from rollin import llvm
from rollin.compiling import cached_njit
from rollin.llvm import INT64, OPTIONS, addr, compiled, compiled_as, inlined, intrinsic
from rollin.sac import cpu
from rollin.sac.cpu import memory as mem
from rollin.sac.cpu import simd, update_steps
from rollin.sac.cpu.gemm import BIAS, RELU, multiply_row
from rollin.sac.cpu.layers import UNFOLLOWED, Part, share, step_of, weights
from rollin.sac.cpu.memory import (
    ACTOR_LOSS,
    CRITIC_LOSS,
    DATA,
    ENTROPY,
    IN,
    LOG_STD_MAX,
    LOG_STD_MIN,
    NEXT,
    OUT,
    POLICY,
    Q_MEAN,
    TEMPERATURE,
    WEIGHTS,
    panel_count,
)
from rollin.sac.cpu.rng import draw_normal
from rollin.sac.cpu.simd import LANES, PANEL, TURNED_PANELS
from rollin.sac.cpu.update_steps import (
    actor_loss,
    choose_actions,
    critic_loss,
    temperature,
    temperature_step,
)

# what `update` returns
FINE, CRITIC_DIVERGED, ACTOR_DIVERGED = 0, 1, 2
GROUP = 32  # samples that a thread takes from the queue at once, if there are several threads

_VARIANT = f"{LANES}_{'native' if simd.NATIVE else 'emulated'}"
entry: Any = cached_njit(helpers=(cpu, llvm), variant=_VARIANT, **OPTIONS)


# ------------------------------------------------------------------ a team of threads


@intrinsic(result=types.int64)
def atomic_add(builder, address, value):
    """Add to a shared int64 and return what it was."""
    place = builder.inttoptr(address, INT64.as_pointer())
    return builder.atomic_rmw("add", place, value, "seq_cst")


@intrinsic(result=types.int64)
def atomic_load(builder, address):
    """Return a shared int64 as it is now."""
    place = builder.inttoptr(address, INT64.as_pointer())
    return builder.load_atomic(place, "acquire", 8)


_sched_yield = types.ExternalFunction("sched_yield", types.int32())
_usleep = types.ExternalFunction("usleep", types.int32(types.uint32))

# places in a team's int64s, on lines of their own
ARRIVED, GENERATION, JOB, STOP, TAKEN, DONE, FRONT, BACK = range(0, 64, 8)
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
    """Wait until all threads have arrived."""
    if threads == 1:
        return
    place = addr(team)
    generation = atomic_load(place + 8 * GENERATION)
    if atomic_add(place + 8 * ARRIVED, 1) == threads - 1:
        atomic_add(place + 8 * ARRIVED, -threads)
        atomic_add(place + 8 * GENERATION, 1)
    else:
        wait_while(place + 8 * GENERATION, generation)


@compiled
def open_queue(team):
    """Let `take` hand out pieces of work from the first again; no thread may be working on one."""
    for place in (DONE, FRONT, BACK):
        team[place] = 0
    taken = addr(team) + 8 * TAKEN
    atomic_add(taken, -atomic_load(taken))  # the last: until here nothing is handed out


@compiled
def take(team, pieces, rank):
    """Return the number of a piece of work that no other thread gets; -1 if none is left.

    Even ranks take from the front and odd ones from the back, so that two threads find what they
    wrote last time in their own caches. The thread that has done a piece counts it in DONE.
    """
    place = addr(team)
    if atomic_add(place + 8 * TAKEN, 1) >= pieces:
        return -1
    if rank % 2 == 0:
        return atomic_add(place + 8 * FRONT, 1)
    return pieces - 1 - atomic_add(place + 8 * BACK, 1)


@compiled
def close_queue(team, pieces):
    """Hand out no more pieces, and wait until those that were handed out are done."""
    place = addr(team)
    taken = min(atomic_add(place + 8 * TAKEN, pieces), pieces)
    while True:
        done = atomic_load(place + 8 * DONE)
        if done == taken:
            return
        wait_while(place + 8 * DONE, done)


# ------------------------------------------------------------------ one update


@compiled
def _groups(p, threads):
    """Return into how many groups of samples the policy's work is divided, and their size."""
    samples = mem.batch(p).shape[0]
    size = samples if threads == 1 else np.int64(GROUP)
    return 2 * ((samples + size - 1) // size), size


def _policy_of(steps: Any) -> Any:
    """Return the policy's part of an update, from the steps of one precision."""
    take_inputs, policy_heads = steps.take_inputs, steps.policy_heads

    def policy(rank, threads, p):
        """Compute inputs and the policy's heads, group by group of the samples, until none is left.

        Noise is not needed yet.
        """
        samples = mem.batch(p).shape[0]
        team = mem.team(p)
        groups, size = _groups(p, threads)
        while True:
            group = take(team, groups, rank)
            if group < 0:
                return
            case = group % 2
            first = group // 2 * size
            count = min(size, samples - first)
            take_inputs(p, case, first, count)
            policy_heads(p, case, first, count)
            atomic_add(addr(team) + 8 * DONE, 1)

    return compiled_as(f"policy_of_{steps.__name__}", policy)


def _update_of(steps: Any, policy: Any) -> Any:
    """Return an update, from the steps of one precision: `update_steps` or `update_steps_bf16`."""
    critic_values = steps.critic_values
    critic_backward, critic_step = steps.critic_backward, steps.critic_step
    minimum_backward = steps.minimum_backward
    actor_backward, actor_step = steps.actor_backward, steps.actor_step

    def update(rank, threads, p, count):
        """Do one thread's part of one update; the same calls in the same order on every thread.

        It learns from batch and noise of the memory. count: how many updates there were, this
        included.

        With an even number of threads each half takes one critic, whose weights and activations
        then stay in that half's caches; else all share both. The actor is shared by all.
        """
        samples = mem.batch(p).shape[0]
        team = mem.team(p)
        first, rows = share(samples, PANEL, rank, threads)
        halves = threads % 2 == 0
        begin, end = (rank % 2, rank % 2 + 1) if halves else (0, 2)
        member, members = (rank // 2, threads // 2) if halves else (rank, threads)
        first_c, rows_c = share(samples, PANEL, member, members)
        step = step_of(p, count)
        tau = temperature(p)

        policy(rank, threads, p)
        meet(team, threads)
        for case in (POLICY, NEXT):
            choose_actions(p, case, first, rows)
        meet(team, threads)
        for c in range(begin, end):
            critic_values(p, c, NEXT, first_c, rows_c)
            critic_values(p, c, DATA, first_c, rows_c)
        meet(team, threads)
        for c in range(begin, end):
            critic_backward(p, c, first_c, rows_c)
        meet(team, threads)
        loss, q_mean = critic_loss(p)
        if not math.isfinite(loss):
            return CRITIC_DIVERGED
        for c in range(begin, end):
            critic_step(p, c, step, (rank, member, members))
        if members > 1:
            meet(team, threads)
        for c in range(begin, end):
            critic_values(p, c, POLICY, first_c, rows_c)
        meet(team, threads)
        minimum_backward(p, first, rows, rank)
        meet(team, threads)
        loss_pi, entropy = actor_loss(p)
        actor_backward(p, first, rows)
        meet(team, threads)
        if not math.isfinite(loss_pi):
            return ACTOR_DIVERGED
        actor_step(p, step, (rank, rank, threads))
        if rank == 0:
            temperature_step(p, entropy, step)
            info = mem.info(p)
            info[CRITIC_LOSS] = loss
            info[Q_MEAN] = q_mean
            info[ACTOR_LOSS] = loss_pi
            info[ENTROPY] = entropy
            info[TEMPERATURE] = tau
        meet(team, threads)
        return FINE

    return compiled_as(f"update_of_{steps.__name__}", update)


def served(steps: Any) -> Any:
    """Return an update on all threads of the team, from the steps of one precision."""
    policy = _policy_of(steps)
    update = _update_of(steps, policy)

    def run(p, rank, threads, count, begun, state, function):
        team = mem.team(p)
        done = 0
        job = addr(team) + 8 * JOB
        if rank == 0:
            if state != 0:
                noise = mem.noise(p)
                draw_normal(state, function, noise.reshape(noise.size))
            if not begun:
                open_queue(team)
            if threads > 1:
                team[JOB + 1] = count
                team[JOB + 2] = atomic_load(job) + 1
                atomic_add(job, 1)
            return update(rank, threads, p, count)
        while True:
            wait_while(job, done)
            if atomic_load(addr(team) + 8 * STOP):
                return FINE
            done += 1
            if done == team[JOB + 2]:
                update(rank, threads, p, team[JOB + 1])
            else:
                policy(rank, threads, p)

    return compiled_as(f"run_of_{steps.__name__}", run, inlined)


_run = served(update_steps)


@entry
def update(p, rank, threads, count, begun, state, function):
    """Make one update of SAC on all threads of the team; return FINE or what diverged.

    Called with rank 0 for an update, and once with every other rank to serve: those calls take part
    in all updates until `stop`. begun: whether `begin` was called for it. state,
    function: the source of noise (`rng`); if 0, the noise is there already.
    """
    return _run(p, rank, threads, count, begun, state, function)


@entry
def begin(p):
    """Let the other threads start on the policy's heads, while the caller does other things."""
    team = mem.team(p)
    open_queue(team)
    atomic_add(addr(team) + 8 * JOB, 1)


@entry
def withdraw(p, threads):
    """Undo `begin`: wait until no thread works for an update that will not come."""
    close_queue(mem.team(p), _groups(p, threads)[0])


@entry
def stop(team):
    """Let the helping threads return."""
    atomic_add(addr(team) + 8 * STOP, 1)
    atomic_add(addr(team) + 8 * JOB, 1)


def deriving(steps: Any) -> Any:
    """Return what writes all that is derived from the weights, of one precision."""
    finish = steps.finish

    def derive(p):
        critics = mem.critic_layers(p)
        for network in range(3):
            layers = critics[max(network - 1, 0)] if network else mem.actor_layers(p)
            offset = critics[0, 0, WEIGHTS] if network else UNFOLLOWED
            for layer in range(layers.shape[0] - (network > 0)):
                wide = panel_count(layers[layer, OUT])
                size = layers[layer, IN]
                for panel in range(0, wide, TURNED_PANELS):
                    some = min(TURNED_PANELS, wide - panel)
                    for first in range(0, size, PANEL):
                        part = Part(panel, some, first, min(PANEL, size - first), offset)
                        finish(p, layers, layer, part)

    return compiled_as(f"derive_of_{steps.__name__}", derive, inlined)


_turn_all = deriving(update_steps)


@entry
def turn_all(p):
    """Write the transposes of all weights, after these were set."""
    _turn_all(p)


# ------------------------------------------------------------------ one action


@entry
def act(p, observation, state, function, action):
    """Compute tanh(μ + σε) for one observation.

    state, function: the source of ε (`rng`); if 0, so is ε.
    """
    layers = mem.actor_layers(p)
    scratch = mem.acting(p)
    size = action.shape[0]
    last = layers.shape[0] - 1
    for i in range(layers[0, IN]):
        scratch[0, i] = observation[i]
    for layer in range(last + 1):
        x_addr = addr(scratch[layer % 2])
        out_addr = addr(scratch[(layer + 1) % 2])
        w = weights(mem.theta(p), layers, layer)
        wide = panel_count(layers[layer, OUT])
        mode = BIAS if layer == last else RELU
        multiply_row(x_addr, w, out_addr, wide, layers[layer, IN], mode)
    heads = scratch[(last + 1) % 2]
    low, high = mem.settings(p)[LOG_STD_MIN], mem.settings(p)[LOG_STD_MAX]
    noise = scratch[2, :size]
    noise[:] = np.float32(0)
    if state != 0:
        draw_normal(state, function, noise)
    for j in range(size):
        log_std = min(max(heads[size + j], low), high)
        action[j] = math.tanh(heads[j] + math.exp(log_std) * noise[j])
