"""Compiled kernels of the CPU learner: one SAC update, one action.

Samples are the rows of all matrices, which are in panels (`products`); p is the table of `memory`.

Every thread runs the same `_update` on its share: of the samples where they are independent, of the
weights of a layer where the gradient is summed over the batch. No sum is split between threads, so
that any number of them gives the same result to the bit.
"""

import math
from typing import Any

import numpy as np

from rollin.compiling import kept
from rollin.sac import (
    bits,
    gaussian,
    lanes,
    pair_layers,
    pair_phases,
    pair_products,
    pairs,
    phases,
    products,
    team,
    vector,
)
from rollin.sac import layers as networks
from rollin.sac import memory as mem
from rollin.sac import panels as packing
from rollin.sac.bits import draw_normal
from rollin.sac.lanes import LANES, PANEL
from rollin.sac.layers import (
    NONE,
    panels,
    step_of,
    turn,
)
from rollin.sac.memory import (
    ACTOR_LOSS,
    CRITIC_LOSS,
    ENTROPY,
    LOG_STD_MAX,
    LOG_STD_MIN,
    NEXT,
    POLICY,
    Q_MEAN,
    TEMPERATURE,
)
from rollin.sac.pair_layers import round_weights
from rollin.sac.pairs import TURNED_PANELS
from rollin.sac.panels import IN, OUT, WEIGHTS
from rollin.sac.phases import (
    actor_loss,
    choose_actions,
    critic_loss,
    temperature,
    temperature_step,
)
from rollin.sac.products import BIAS, RELU, multiply_row
from rollin.sac.team import (
    DONE,
    JOB,
    STOP,
    atomic_add,
    atomic_load,
    close_queue,
    meet,
    open_queue,
    share,
    take,
    wait_while,
)
from rollin.sac.vector import LINE, OPTIONS, base, compiled, compiled_as

# what `update` returns
FINE, CRITIC_DIVERGED, ACTOR_DIVERGED = 0, 1, 2
GROUP = 32  # samples that a thread takes from the queue at once, if there are several threads

_HELPERS = (bits, gaussian, lanes, mem, networks, packing, phases, products, team, vector)
_HELPERS += (pairs, pair_products, pair_layers, pair_phases)
_VARIANT = f"{LANES}_{'native' if pairs.NATIVE else 'emulated'}"
_kept: Any = kept(helpers=_HELPERS, variant=_VARIANT, **OPTIONS)


# ------------------------------------------------------------------ one update


@compiled
def _groups(p, threads):
    """Into how many groups of samples the policy's work is divided, and how large they are."""
    samples = mem.batch(p).shape[0]
    size = samples if threads == 1 else np.int64(GROUP)
    return 2 * ((samples + size - 1) // size), size


def _policy_of(parts: Any) -> Any:
    """The policy's part of an update, from the parts of `phases` or of `pair_phases`."""
    take_inputs, policy_heads = parts.take_inputs, parts.policy_heads

    def policy(rank, threads, p):
        """Inputs and the policy's heads, group by group of the samples, until none is left.

        Noise is not needed yet.
        """
        samples, team = mem.batch(p).shape[0], mem.team(p)
        groups, size = _groups(p, threads)
        while True:
            group = take(team, groups, rank)
            if group < 0:
                return
            block, first = group % 2, group // 2 * size
            count = min(size, samples - first)
            take_inputs(p, block, first, count)
            policy_heads(p, block, first, count)
            atomic_add(base(team) + 8 * DONE, 1)

    return compiled_as(f"policy_of_{parts.__name__}", policy)


def _update_of(parts: Any, policy: Any) -> Any:
    """One update, from the parts of `phases` or of `pair_phases`."""
    evaluate, reevaluate = parts.evaluate, parts.reevaluate
    critic_backward, critic_descend = parts.critic_backward, parts.critic_descend
    minimum_backward = parts.minimum_backward
    actor_backward, actor_descend = parts.actor_backward, parts.actor_descend

    def update(rank, threads, p, count):
        """One thread's part of one update; the same calls in the same order on every thread.

        It learns from batch and noise of the memory. count: how many updates there were, this
        included.

        With an even number of threads each half takes one critic, whose weights and activations
        then stay in that half's caches; else all share both. The actor is shared by all.
        """
        samples, team = mem.batch(p).shape[0], mem.team(p)
        first, rows = share(samples, PANEL, rank, threads)
        halves = threads % 2 == 0
        begin, end = (rank % 2, rank % 2 + 1) if halves else (0, 2)
        member, members = (rank // 2, threads // 2) if halves else (rank, threads)
        first_c, rows_c = share(samples, PANEL, member, members)
        step, tau = step_of(p, count), temperature(p)

        policy(rank, threads, p)
        meet(team, threads)
        for block in (POLICY, NEXT):
            choose_actions(p, block, first, rows)
        meet(team, threads)
        for c in range(begin, end):
            evaluate(p, c, first_c, rows_c)
        meet(team, threads)
        for c in range(begin, end):
            critic_backward(p, c, first_c, rows_c)
        meet(team, threads)
        loss, q_mean = critic_loss(p)
        if not math.isfinite(loss):
            return CRITIC_DIVERGED
        for c in range(begin, end):
            critic_descend(p, c, step, (rank, member, members))
        if members > 1:
            meet(team, threads)
        for c in range(begin, end):
            reevaluate(p, c, first_c, rows_c)
        meet(team, threads)
        minimum_backward(p, first, rows, rank)
        meet(team, threads)
        loss_pi, entropy = actor_loss(p)
        actor_backward(p, first, rows)
        meet(team, threads)
        if not math.isfinite(loss_pi):
            return ACTOR_DIVERGED
        actor_descend(p, step, (rank, rank, threads))
        if rank == 0:
            temperature_step(p, entropy, step)
            info = mem.info(p)
            info[CRITIC_LOSS], info[Q_MEAN], info[ACTOR_LOSS] = loss, q_mean, loss_pi
            info[ENTROPY], info[TEMPERATURE] = entropy, tau
        meet(team, threads)
        return FINE

    return compiled_as(f"update_of_{parts.__name__}", update)


def _served(parts: Any) -> Any:
    """An update on all threads of the team, from the parts of `phases` or of `pair_phases`."""
    policy = _policy_of(parts)
    update = _update_of(parts, policy)

    def run(p, rank, threads, count, begun, state, function):
        team, done = mem.team(p), 0
        job = base(team) + 8 * JOB
        if rank == 0:
            if state != 0:
                noise = mem.noise(p)
                draw_normal(state, function, noise.reshape(noise.size))
            if not begun:
                open_queue(team)
            if threads > 1:
                team[JOB + 1], team[JOB + 2] = count, atomic_load(job) + 1
                atomic_add(job, 1)
            return update(rank, threads, p, count)
        while True:
            wait_while(job, done)
            if atomic_load(base(team) + 8 * STOP):
                return FINE
            done += 1
            if done == team[JOB + 2]:
                update(rank, threads, p, team[JOB + 1])
            else:
                policy(rank, threads, p)

    return compiled_as(f"run_of_{parts.__name__}", run)


_run, _pair_run = _served(phases), _served(pair_phases)


@_kept
def update(p, rank, threads, count, begun, state, function):
    """One update of SAC on all threads of the team; returns FINE or what diverged.

    Called with rank 0 for an update, and once with every other rank to serve: those calls take part
    in all updates until `stop`. begun: whether `begin` was called for it. state,
    function: the source of noise (`bits`); if 0, the noise is there already.
    """
    return _run(p, rank, threads, count, begun, state, function)


@_kept
def update_pairs(p, rank, threads, count, begun, state, function):
    """The same with bfloat16 products."""
    return _pair_run(p, rank, threads, count, begun, state, function)


@_kept
def begin(p):
    """Let the other threads start on the policy's heads, while the caller does other things."""
    team = mem.team(p)
    open_queue(team)
    atomic_add(base(team) + 8 * JOB, 1)


@_kept
def withdraw(p, threads):
    """Undo `begin`: wait until nobody works for an update that will not come."""
    close_queue(mem.team(p), _groups(p, threads)[0])


@_kept
def stop(team):
    """Let the helping threads return."""
    atomic_add(base(team) + 8 * STOP, 1)
    atomic_add(base(team) + 8 * JOB, 1)


@_kept
def turn_all(p):
    """Write the transposes of all weights, after these were set."""
    for network in range(3):
        layers = mem.critic_layers(p)[max(network - 1, 0)] if network else mem.actor_layers(p)
        for layer in range(layers.shape[0] - (network > 0)):
            wide, size = panels(layers[layer, OUT]), layers[layer, IN]
            for first in range(0, size, PANEL):
                turn(p, layers, layer, 0, wide, first, min(PANEL, size - first))


@_kept
def round_all(p):
    """Write the rounded copies and transposes of all weights, after these were set."""
    offset = mem.critic_layers(p)[0, 0, WEIGHTS]
    for network in range(3):
        layers = mem.critic_layers(p)[max(network - 1, 0)] if network else mem.actor_layers(p)
        for layer in range(layers.shape[0] - (network > 0)):
            wide, size = panels(layers[layer, OUT]), layers[layer, IN]
            for panel in range(0, wide, TURNED_PANELS):
                some = min(TURNED_PANELS, wide - panel)
                for first in range(0, size, PANEL):
                    rows = min(PANEL, size - first)
                    follows = offset if network else NONE
                    round_weights(p, layers, layer, panel, some, first, rows, follows)


# ------------------------------------------------------------------ one action


@_kept
def act(p, observation, state, function, action):
    """tanh(μ + σε) for one observation.

    state, function: the source of ε (`bits`); if 0, so is ε.
    """
    layers, theta, size = mem.actor_layers(p), mem.theta(p), action.shape[0]
    last, scratch = layers.shape[0] - 1, mem.acting(p)
    for i in range(layers[0, IN]):
        scratch[0, i] = observation[i]
    for layer in range(last + 1):
        inner, wide = layers[layer, IN], panels(layers[layer, OUT])
        weights, step = base(theta) + LINE * layers[layer, WEIGHTS], LINE * (inner + 1)
        x, out = base(scratch[layer % 2]), base(scratch[(layer + 1) % 2])
        multiply_row(x, weights, step, out, wide, inner, BIAS if layer == last else RELU)
    heads = scratch[(last + 1) % 2]
    low, high = mem.settings(p)[LOG_STD_MIN], mem.settings(p)[LOG_STD_MAX]
    noise = scratch[2, :size]
    noise[:] = np.float32(0)
    if state != 0:
        draw_normal(state, function, noise)
    for j in range(size):
        log_std = min(max(heads[size + j], low), high)
        action[j] = math.tanh(heads[j] + math.exp(log_std) * noise[j])
