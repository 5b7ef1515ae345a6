"""Compiled kernels of the CPU learner: one SAC update, one action.

Everything is laid out with the *batch along the columns*: activations are (features, batch). A bias
is the last row of its weights, fed by a row of ones.

Every thread runs the same `_update` on its share: of the columns where samples are independent, of
the rows of a layer where the gradient is summed over the batch. No sum is split between threads, so
that any number of them gives the same result to the bit.
"""

import math
from typing import Any, NamedTuple

import numpy as np
from numba import njit

from rollin.sac.gaussian import squash, squash_backward
from rollin.sac.vector import (
    GATE,
    JOB,
    LANES,
    ONE,
    RELU,
    STOP,
    STORE,
    at,
    atomic_add,
    atomic_load,
    base,
    compiled,
    meet,
    multiply,
    share,
    transpose,
    wait_while,
)

# First digits of the SHA-256 of vector.py and gaussian.py, which a test compares: numba's cache of
# the functions below does not see edits in those files, but this line changes with them.
HELPERS = "55c81b407ea73cf1"

IN, OUT, OFFSET = 0, 1, 2  # columns of a table of layers: sizes, and where the weights begin
POLICY, NEXT, DATA = 0, 1, 2  # blocks of inputs: (s, π(s)), (s', π(s')), (s, a)
BETA1, BETA2, EPSILON = np.float32(0.9), np.float32(0.999), np.float32(1e-8)  # Adam
REST1, REST2 = np.float32(0.1), np.float32(0.001)  # 1 - β, not rounded twice
NONE = np.int64(-1)  # no target follows
TINY = np.float32(1.2e-38)  # below are denormals, on which a CPU is a hundred times slower

_kept = njit(nogil=True, error_model="numpy", cache=True)


class Shape(NamedTuple):
    """Tables of layers (rows: in, out, offset), with offsets into the flat parameters."""

    actor: Any  # (layers, 3) int64
    critics: Any  # (2, layers, 3) int64
    targets: Any  # the same, with offsets into `target`
    log_temperature: int  # offset of the last parameter


class Parameters(NamedTuple):
    """Flat float32 vectors: actor, critic 1, critic 2, log temperature; target: the critics'."""

    theta: Any
    m: Any
    v: Any
    target: Any


class Work(NamedTuple):
    """Preallocated activations; all float32, columns are samples."""

    x: Any  # (3, A + O + 1, ld): action, observation, ones; blocks POLICY, NEXT, DATA
    actor: Any  # (2, layers, width + 1, ld): outputs of each layer at POLICY and NEXT
    critic: Any  # (2, layers, width + 1, ld): of both critics
    delta: Any  # (2, layers, width, ld): ∂loss/∂(pre-activations)
    delta_t: Any  # (2, layers, batch, wide): the same, batch along the rows
    rows: Any  # (ROWS, ld): one number per sample, see below
    info: Any  # (INFO,) what an update reports, see below
    order: Any  # (2, ld) uint32: the samples at which each critic is the smaller
    gate: Any  # (2, width, ld): activations of those samples, moved together
    slope: Any  # (A, ld): ∂ min(Q_1, Q_2)/∂a
    gradient: Any  # (threads, size): of a thread's rows of one layer


# rows of Work.rows: of POLICY and NEXT, of both targets, of both critics
LOG_PROB, NEXT_Q, ERROR = 0, 2, 4
ROWS = 6
# entries of Work.info
CRITIC_LOSS, Q_MEAN, ACTOR_LOSS, ENTROPY, TEMPERATURE = 0, 1, 2, 3, 4
INFO = 5
# what `update` returns
FINE, CRITIC_DIVERGED, ACTOR_DIVERGED = 0, 1, 2


class Settings(NamedTuple):
    """The numbers of the algorithm."""

    gamma: np.float32
    tau: np.float32
    learning_rate: np.float32
    target_entropy: np.float32
    log_std_min: np.float32
    log_std_max: np.float32


# ------------------------------------------------------------------ networks


@compiled
def _forward(theta, layers, x, x_stride, h, first, count):
    """Outputs h[layer] of all layers for columns first … first + count; x: address of the input."""
    inputs, stride = x, x_stride
    last = layers.shape[0] - 1
    for layer in range(last + 1):
        wide, mode = layers[layer, OUT], STORE if layer == last else RELU
        out = at(h[layer], 0, first)
        weights = base(theta) + 4 * layers[layer, OFFSET]
        inner = layers[layer, IN] + 1
        multiply(weights, ONE, wide, inputs, stride, out, h.shape[2], wide, count, inner, mode, out)
        inputs, stride = out, h.shape[2]


@compiled
def _backward(theta, layers, h, delta, first, count):
    """From delta of the last layer to those of all layers below."""
    ld = h.shape[2]
    for layer in range(layers.shape[0] - 1, 0, -1):
        weights = base(theta) + 4 * layers[layer, OFFSET]
        rows, wide = layers[layer, IN], layers[layer, OUT]
        above, below = at(delta[layer], 0, first), at(delta[layer - 1], 0, first)
        gate = at(h[layer - 1], 0, first)
        multiply(weights, wide, ONE, above, ld, below, ld, rows, count, wide, GATE, gate)


@compiled
def _transpose_deltas(layers, delta, delta_t, first, count):
    for layer in range(layers.shape[0]):
        transpose(delta[layer][:, first:], delta_t[layer][first:], layers[layer, OUT], count)


@compiled
def _adam(p, gradient, begin, end, step, target_begin):
    """One step of Adam on theta[begin:end]; the target follows if `target_begin` is not negative.

    step: learning rate, number t of the step, τ of the target.
    """
    rate = np.float32(step[0] / (1.0 - 0.9 ** step[1]))
    correction = np.float32(1.0 / (1.0 - 0.999 ** step[1]))
    theta, m, v = p.theta[begin:end], p.m[begin:end], p.v[begin:end]
    for i in range(end - begin):
        g = gradient[i]
        mean = BETA1 * m[i] + REST1 * g
        square = BETA2 * v[i] + REST2 * g * g
        m[i] = mean if abs(mean) > TINY else np.float32(0)
        v[i] = square if square > TINY else np.float32(0)
        theta[i] -= rate * mean / (np.sqrt(square * correction) + EPSILON)
    if target_begin >= 0:
        target = p.target[target_begin : target_begin + end - begin]
        for i in range(end - begin):
            target[i] += step[2] * (theta[i] - target[i])


@compiled
def _descend(p, layers, x, x_stride, h, delta_t, gradient, step, member, members, target_offset):
    """A thread's rows of every layer: their gradient over the batch, then Adam."""
    samples, ld_t = delta_t.shape[1], delta_t.shape[2]
    inputs, stride, out = x, x_stride, base(gradient)
    for layer in range(layers.shape[0]):
        wide, deltas = layers[layer, OUT], at(delta_t[layer], 0, 0)
        first, rows = share(layers[layer, IN] + 1, 1, member, members)
        if rows > 0:
            a = inputs + 4 * first * stride
            multiply(a, stride, ONE, deltas, ld_t, out, wide, rows, wide, samples, STORE, out)
            begin = layers[layer, OFFSET] + first * wide
            target_begin = begin - target_offset if target_offset >= 0 else NONE
            end = begin + rows * wide
            _adam(p, gradient, begin, end, step, target_begin)
        inputs, stride = at(h[layer], 0, 0), h.shape[2]


# ------------------------------------------------------------------ one update


@compiled
def _choose_actions(shape, p, work, s, batch, noise, first, count):
    """Inputs of all networks, and the policy's actions at s and s'; some samples."""
    size = noise.shape[1]
    seen = work.x.shape[1] - 1 - size
    x, ld, last = work.x, work.x.shape[2], shape.actor.shape[0] - 1
    transpose(batch[first:, : size + seen], x[DATA][:, first:], count, size + seen)
    transpose(batch[first:, size:], x[POLICY][size:, first:], count, seen)
    transpose(batch[first:, size + seen :], x[NEXT][size:, first:], count, seen)
    for block in (POLICY, NEXT):
        h, actions = work.actor[block], x[block, :size]
        _forward(p.theta, shape.actor, at(x[block], size, first), ld, h, first, count)
        log_prob = work.rows[LOG_PROB + block]
        low, high = s.log_std_min, s.log_std_max
        squash(h[last], actions, noise[block], low, high, log_prob, first, count)


@compiled
def _evaluate(shape, p, work, c, first, count):
    """Critic c on the data, after its target at (s', π(s')); some samples."""
    h, x, ld, last = work.critic[c], work.x, work.x.shape[2], shape.actor.shape[0] - 1
    _forward(p.target, shape.targets[c], at(x[NEXT], 0, first), ld, h, first, count)
    work.rows[NEXT_Q + c, first : first + count] = h[last, 0, first : first + count]
    _forward(p.theta, shape.critics[c], at(x[DATA], 0, first), ld, h, first, count)


@compiled
def _critic_backward(shape, p, work, s, batch, c, first, count):
    """The Bellman targets y, and the error of critic c carried back; some samples."""
    samples, width = batch.shape
    last = shape.actor.shape[0] - 1
    rows, h, delta = work.rows, work.critic[c], work.delta[c]
    temperature = np.float32(math.exp(p.theta[shape.log_temperature]))
    for i in range(first, first + count):
        reward, mask = batch[i, width - 2], batch[i, width - 1]
        q = min(rows[NEXT_Q, i], rows[NEXT_Q + 1, i])
        y = reward + s.gamma * mask * (q - temperature * rows[LOG_PROB + NEXT, i])
        rows[ERROR + c, i] = h[last, 0, i] - y
        delta[last, 0, i] = np.float32(2.0 / samples) * rows[ERROR + c, i]
    _backward(p.theta, shape.critics[c], h, delta, first, count)
    _transpose_deltas(shape.critics[c], delta, work.delta_t[c], first, count)


@compiled
def _critic_loss(shape, work, samples):
    """Σ_c mean (Q_c - y)², and the mean of Q."""
    last = shape.actor.shape[0] - 1
    loss, mean = 0.0, 0.0
    for c in range(2):
        for i in range(samples):
            loss += work.rows[ERROR + c, i] ** 2
            mean += work.critic[c, last, 0, i]
    return loss / samples, mean / (2 * samples)


@compiled
def _minimum_backward(shape, p, work, c, member, members):
    """∂Q_c/∂a of the samples at which critic c is the smaller: ∂ min(Q_1, Q_2)/∂a there.

    Those samples are moved together, so that they are one product per layer.
    """
    last, samples = shape.actor.shape[0] - 1, work.delta_t.shape[2]
    q, other = work.critic[c, last, 0], work.critic[1 - c, last, 0]
    order, found = work.order[c], 0
    for i in range(samples):
        if q[i] < other[i] or (q[i] == other[i] and c == 0):
            order[found] = i
            found += 1
    first, count = share(found, LANES, member, members)
    if count == 0:
        return
    column = order[first : first + count]
    layers, h, delta, gate = shape.critics[c], work.critic[c], work.delta[c], work.gate[c]
    ld = h.shape[2]
    for i in range(layers[last, IN]):
        weight = p.theta[layers[last, OFFSET] + i]
        active, out = h[last - 1, i], delta[last - 1, i, first:]
        for b in range(count):
            out[b] = weight if active[column[b]] > 0 else np.float32(0)
    for layer in range(last - 1, 0, -1):
        for i in range(layers[layer, IN]):
            active, out = h[layer - 1, i], gate[i, first:]
            for b in range(count):
                out[b] = active[column[b]]
        weights, wide = base(p.theta) + 4 * layers[layer, OFFSET], layers[layer, OUT]
        above, below = at(delta[layer], 0, first), at(delta[layer - 1], 0, first)
        rows, into = layers[layer, IN], at(gate, 0, first)
        multiply(weights, wide, ONE, above, ld, below, ld, rows, count, wide, GATE, into)
    size = work.slope.shape[0]
    weights, wide = base(p.theta) + 4 * layers[0, OFFSET], layers[0, OUT]
    above, out = at(delta[0], 0, first), at(gate, 0, first)
    multiply(weights, wide, ONE, above, ld, out, ld, np.int64(size), count, wide, STORE, out)
    for j in range(size):
        for b in range(count):
            work.slope[j, column[b]] = gate[j, first + b]


@compiled
def _actor_backward(shape, p, work, s, noise, first, count):
    """The actor's loss carried back; some samples."""
    samples, size, last = noise.shape[2], noise.shape[1], shape.actor.shape[0] - 1
    temperature = math.exp(p.theta[shape.log_temperature])
    scale = np.float32(1.0 / samples), np.float32(temperature / samples)
    h, actions, delta = work.actor[POLICY], work.x[POLICY, :size], work.delta[0]
    low, high = s.log_std_min, s.log_std_max
    out = delta[last]
    squash_backward(
        h[last], actions, noise[POLICY], low, high, work.slope, out, scale, first, count
    )
    _backward(p.theta, shape.actor, h, delta, first, count)
    _transpose_deltas(shape.actor, delta, work.delta_t[0], first, count)


@compiled
def _actor_loss(shape, work, temperature, samples):
    """mean(τ log π - min Q), and the entropy -mean log π."""
    last = shape.actor.shape[0] - 1
    loss, log_prob = 0.0, 0.0
    for i in range(samples):
        q1, q2 = work.critic[0, last, 0, i], work.critic[1, last, 0, i]
        q = min(q1, q2) if math.isfinite(q1 + q2) else np.float32(np.nan)  # min would hide a NaN
        loss += temperature * work.rows[LOG_PROB + POLICY, i] - q
        log_prob += work.rows[LOG_PROB + POLICY, i]
    return loss / samples, -log_prob / samples


@compiled
def _temperature_step(shape, p, s, entropy, gradient, step):
    """Adam on log τ for the loss τ (entropy - target entropy)."""
    i = shape.log_temperature
    temperature = math.exp(p.theta[i])
    gradient[0] = np.float32(temperature * (entropy - s.target_entropy))
    _adam(p, gradient, i, i + 1, step, NONE)


@compiled
def _update(rank, threads, team, shape, p, work, s, batch, noise, count):
    """One thread's part of one update; the same calls in the same order on every thread.

    batch: (B, A + 2 O + 2): action, observation, next observation, reward, mask; noise: (2, A, B),
    standard normal, at POLICY and NEXT; count: how many updates there were, this one included.

    With an even number of threads each half takes one critic, whose weights and activations then
    stay in that half's caches; else all share both. The actor is shared by all.
    """
    samples, size = batch.shape[0], noise.shape[1]
    first, columns = share(samples, LANES, rank, threads)
    halves = threads % 2 == 0
    begin, end = (rank % 2, rank % 2 + 1) if halves else (0, 2)
    member, members = (rank // 2, threads // 2) if halves else (rank, threads)
    first_c, columns_c = share(samples, LANES, member, members)
    step, gradient = (s.learning_rate, float(count), s.tau), work.gradient[rank]
    x, ld = work.x, work.x.shape[2]

    _choose_actions(shape, p, work, s, batch, noise, first, columns)
    meet(team, threads)
    for c in range(begin, end):
        _evaluate(shape, p, work, c, first_c, columns_c)
    meet(team, threads)
    for c in range(begin, end):
        _critic_backward(shape, p, work, s, batch, c, first_c, columns_c)
    meet(team, threads)
    loss, q_mean = _critic_loss(shape, work, samples)
    meet(team, threads)
    if not math.isfinite(loss):
        return CRITIC_DIVERGED
    for c in range(begin, end):
        layers, h, delta_t = shape.critics[c], work.critic[c], work.delta_t[c]
        inputs, offset = at(x[DATA], 0, 0), shape.critics[0, 0, OFFSET]
        _descend(p, layers, inputs, ld, h, delta_t, gradient, step, member, members, offset)
    if members > 1:
        meet(team, threads)
    for c in range(begin, end):
        inputs, h = at(x[POLICY], 0, first_c), work.critic[c]
        _forward(p.theta, shape.critics[c], inputs, ld, h, first_c, columns_c)
    meet(team, threads)
    for c in range(begin, end):
        _minimum_backward(shape, p, work, c, member, members)
    meet(team, threads)
    temperature = math.exp(p.theta[shape.log_temperature])
    actor_loss, entropy = _actor_loss(shape, work, temperature, samples)
    _actor_backward(shape, p, work, s, noise, first, columns)
    meet(team, threads)
    if not math.isfinite(actor_loss):
        return ACTOR_DIVERGED
    inputs, h = at(x[POLICY], size, 0), work.actor[POLICY]
    delta_t = work.delta_t[0]
    _descend(p, shape.actor, inputs, ld, h, delta_t, gradient, step, rank, threads, NONE)
    if rank == 0:
        _temperature_step(shape, p, s, entropy, gradient, step)
        work.info[CRITIC_LOSS], work.info[Q_MEAN] = loss, q_mean
        work.info[ACTOR_LOSS], work.info[ENTROPY] = actor_loss, entropy
        work.info[TEMPERATURE] = temperature
    meet(team, threads)
    return FINE


@_kept
def update(rank, threads, team, shape, p, work, s, batch, noise, count):
    """One update of SAC on all threads of the team; returns FINE or what diverged.

    Called with rank 0 for an update, and once with every other rank to serve: those calls take
    part in all updates until the team is told to stop.
    """
    place, done = base(team), 0
    if rank == 0:
        if threads > 1:
            team[JOB + 1] = count
            atomic_add(place + 8 * JOB, 1)
        return _update(rank, threads, team, shape, p, work, s, batch, noise, count)
    while True:
        wait_while(place + 8 * JOB, done)
        if atomic_load(place + 8 * STOP):
            return FINE
        done += 1
        _update(rank, threads, team, shape, p, work, s, batch, noise, team[JOB + 1])


@_kept
def stop(team):
    """Let the helping threads return."""
    atomic_add(base(team) + 8 * STOP, 1)
    atomic_add(base(team) + 8 * JOB, 1)


# ------------------------------------------------------------------ one action


@_kept
def act(layers, theta, observation, noise, low, high, scratch, action):
    """tanh(μ + σε) for one observation; noise = 0 gives the mode. scratch: (2, widest + 1)."""
    last = layers.shape[0] - 1
    scratch[0, : layers[0, IN]] = observation
    for layer in range(last + 1):
        size, wide = layers[layer, IN], layers[layer, OUT]
        scratch[layer % 2, size] = 1  # the bias's input
        weights = base(theta) + 4 * layers[layer, OFFSET]
        inputs, out = at(scratch, layer % 2, 0), at(scratch, (layer + 1) % 2, 0)
        mode = STORE if layer == last else RELU
        multiply(inputs, ONE, ONE, weights, wide, out, wide, ONE, wide, size + 1, mode, out)
    values, size = scratch[(last + 1) % 2], action.shape[0]
    for j in range(size):
        log_std = min(max(values[size + j], low), high)
        action[j] = math.tanh(values[j] + math.exp(log_std) * noise[j])
