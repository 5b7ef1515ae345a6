"""The parts of one SAC update, each on some samples or weights; `kernels` puts them in order.

Samples are the rows of all matrices, which are in panels (`products`); p is the table of `memory`.
What is called from one place is inlined there: it would be compiled alone and then once more.
"""

import math

import numpy as np

from rollin.sac import memory as mem
from rollin.sac.gaussian import squash, squash_backward
from rollin.sac.lanes import PANEL
from rollin.sac.layers import (
    NONE,
    adam,
    backward,
    descend,
    descend_last,
    hidden,
    panels,
    place,
    values,
)
from rollin.sac.memory import (
    D_Q,
    DATA,
    DATA_Q,
    ERROR,
    GAMMA,
    LOG_PROB,
    LOG_STD_MAX,
    LOG_STD_MIN,
    NEXT,
    NEXT_Q,
    POLICY,
    POLICY_Q,
    TARGET_ENTROPY,
)
from rollin.sac.panels import IN, OUT, TURNED, TURNED_INPUTS, WEIGHTS
from rollin.sac.products import BIAS, GATE, STORE, multiply, multiply_few
from rollin.sac.vector import LINE, base, compiled, copy_line, gate_line, inlined, transpose

# ------------------------------------------------------------------ inputs and actions


@compiled
def _take(batch, column, target, size, first, count):
    """Columns of the batch, `size` of them, as a matrix in panels; some samples.

    Whole lines are copied. What is behind the last column is then anything, and is never read.
    """
    for n in range(panels(size)):
        row = base(batch) + first * batch.strides[0] + 4 * (column + n * PANEL)
        line = base(target[n]) + LINE * first
        for _ in range(count):
            copy_line(row, line)
            row, line = row + batch.strides[0], line + LINE


@inlined
def take_inputs(p, block, first, count):
    """Rows of the batch as inputs of actor and critics; some samples of POLICY or NEXT.

    What POLICY and DATA have in common goes with POLICY.
    """
    batch, x, observed = mem.batch(p), mem.x(p), mem.observed(p)
    size, seen = mem.action(p).shape[1], mem.actor_layers(p)[0, IN]
    skipped = seen if block == NEXT else 0
    _take(batch, size + skipped, observed[block], seen, first, count)
    # the policy's actions will overwrite what stands in their columns
    _take(batch, skipped, x[block], size + seen, first, count)
    if block == POLICY:
        _take(batch, 0, x[DATA], size + seen, first, count)


@compiled
def policy_heads(p, block, first, count):
    """Means and log standard deviations of the policy at s or s'; some samples."""
    layers, theta, h, lines = mem.actor_layers(p), mem.theta(p), mem.actor(p), mem.out(p)[block]
    observed, heads = mem.observed(p), mem.heads(p)[block]
    last, wide = layers.shape[0] - 1, panels(heads.shape[0])
    inner, weights = layers[last, IN], base(theta) + LINE * layers[last, WEIGHTS]
    step, panel, out_panel = LINE * (inner + 1), h.strides[2], lines.strides[0]
    x, out = base(observed[block]) + LINE * first, base(lines) + LINE * first
    hidden(theta, layers, x, observed.strides[1], h, block, first, count)
    below = place(h, block, last - 1, first)
    into, column = base(heads) + 4 * first, heads.strides[0]
    done = multiply_few(below, panel, weights, into, column, count, heads.shape[0], inner)
    first, count, below, out = first + done, count - done, below + LINE * done, out + LINE * done
    multiply(below, panel, weights, step, out, out_panel, count, wide, inner, BIAS, out)
    for n in range(wide):
        some = min(PANEL, heads.shape[0] - n * PANEL)
        transpose(lines[n], first, 0, heads, n * PANEL, first, count, some)


@inlined
def choose_actions(p, block, first, count):
    """The policy's actions at s or s', which become inputs of the critics; some samples."""
    low, high = mem.settings(p)[LOG_STD_MIN], mem.settings(p)[LOG_STD_MAX]
    heads, action = mem.heads(p)[block], mem.action(p)[block]
    size = action.shape[0]
    log_prob = mem.rows(p)[LOG_PROB + block]
    squash(heads, action, mem.noise(p)[block], low, high, log_prob, first, count)
    for n in range(panels(size)):
        some = min(PANEL, size - n * PANEL)
        transpose(action, n * PANEL, first, mem.x(p)[block, n], first, 0, some, count)


@compiled
def temperature(p):
    """τ, whose logarithm is the last parameter."""
    theta = mem.theta(p)
    return math.exp(theta[theta.size - PANEL])


# ------------------------------------------------------------------ critics


@inlined
def evaluate(p, c, first, count):
    """Critic c on the data, and before it its target at (s', π(s')); some samples."""
    x, h, rows = mem.x(p), mem.critic(p), mem.rows(p)
    values(mem.target(p), mem.target_layers(p)[c], x[NEXT], c, h, rows[NEXT_Q + c], first, count)
    values(mem.theta(p), mem.critic_layers(p)[c], x[DATA], c, h, rows[DATA_Q + c], first, count)


@inlined
def reevaluate(p, c, first, count):
    """Critic c at (s, π(s)); some samples."""
    layers, x, out = mem.critic_layers(p)[c], mem.x(p)[POLICY], mem.rows(p)[POLICY_Q + c]
    values(mem.theta(p), layers, x, c, mem.critic(p), out, first, count)


@inlined
def bellman_errors(p, c, first, count):
    """The Bellman targets y, and the errors and slopes of critic c's loss; some samples."""
    batch, rows = mem.batch(p), mem.rows(p)
    samples, width = batch.shape
    tau, gamma = np.float32(temperature(p)), mem.settings(p)[GAMMA]
    slope = rows[D_Q + c]
    for i in range(first, first + count):
        reward, mask = batch[i, width - 2], batch[i, width - 1]
        following = min(rows[NEXT_Q, i], rows[NEXT_Q + 1, i])
        y = reward + gamma * mask * (following - tau * rows[LOG_PROB + NEXT, i])
        rows[ERROR + c, i] = rows[DATA_Q + c, i] - y
        slope[i] = np.float32(2.0 / samples) * rows[ERROR + c, i]


@inlined
def critic_backward(p, c, first, count):
    """The Bellman targets y, and the error of critic c carried back; some samples."""
    h, delta, slope = mem.critic(p), mem.delta(p), mem.rows(p)[D_Q + c]
    layers, theta, last = mem.critic_layers(p)[c], mem.theta(p), h.shape[1]
    bellman_errors(p, c, first, count)
    begin = base(theta) + LINE * layers[last, WEIGHTS]
    for n in range(panels(layers[last, IN])):
        active, out = place(h[c], last - 1, n, 0), place(delta[c], last - 1, n, 0)
        for i in range(first, first + count):
            gate_line(begin + LINE * n, slope[i], active + LINE * i, out + LINE * i)
    backward(mem.turned(p), layers, last - 1, h, c, delta, c, first, count)


@inlined
def critic_loss(p):
    """Σ_c mean (Q_c - y)², and the mean of Q."""
    samples, rows = mem.batch(p).shape[0], mem.rows(p)
    loss, mean = 0.0, 0.0
    for c in range(2):
        for i in range(samples):
            loss += rows[ERROR + c, i] ** 2
            mean += rows[DATA_Q + c, i]
    return loss / samples, mean / (2 * samples)


@inlined
def critic_descend(p, c, step, who):
    """Adam on critic c; its target follows."""
    tables, h, delta, x = mem.critic_layers(p), mem.critic(p), mem.delta(p), mem.x(p)
    layers, offset = tables[c], tables[0, 0, WEIGHTS]
    inputs, panel = base(x[DATA]), x.strides[1]
    for layer in range(h.shape[1]):
        above, above_panel = place(delta, c, layer, 0), delta.strides[2]
        descend(p, layers, layer, inputs, panel, above, above_panel, step, offset, who)
        inputs, panel = place(h, c, layer, 0), h.strides[2]
    slope = mem.rows(p)[D_Q + c]
    descend_last(p, layers, inputs, panel, slope, base(slope), step, offset, who)


# ------------------------------------------------------------------ actor


@inlined
def where_smaller(p, c, order):
    """Write down the samples at which critic c is the smaller, and return how many they are."""
    mine, other = mem.rows(p)[POLICY_Q + c], mem.rows(p)[POLICY_Q + 1 - c]
    found = np.uint64(0)
    for i in range(mem.batch(p).shape[0]):
        order[found] = i  # the next overwrites it unless it counts: a branch would be a coin's
        found += np.uint64(mine[i] < other[i] or (mine[i] == other[i] and c == 0))
    return np.int64(found)


@inlined
def minimum_backward(p, first, count, rank):
    """∂ min(Q_1, Q_2)/∂a of some samples, counted through both critics' in turn.

    However unevenly the critics share the samples, threads share them evenly.
    """
    end, order = first + count, mem.order(p)[rank]
    for c in range(2):
        found = where_smaller(p, c, order)
        begin, until = min(first, found), min(end, found)
        _slope(p, c, order, begin, until - begin)
        first, end = max(first - found, 0), max(end - found, 0)


@inlined
def _slope(p, c, order, first, count):
    """∂Q_c/∂a of the samples order[first] … order[first + count].

    They are moved together, so that they are one product per layer.
    """
    if count == 0:
        return
    layers, theta = mem.critic_layers(p)[c], mem.theta(p)
    h, delta, gate, slope = mem.critic(p), mem.delta(p), mem.gate(p)[c], mem.slope(p)
    last, panel, turned = h.shape[1], delta.strides[2], base(mem.turned(p))
    one = np.float32(1)
    begin, gates = base(theta) + LINE * layers[last, WEIGHTS], base(gate) + LINE * first
    for n in range(panels(layers[last, IN])):
        active, out = place(h[c], last - 1, n, 0), place(delta[c], last - 1, n, 0)
        for b in range(first, first + count):
            gate_line(begin + LINE * n, one, active + LINE * order[b], out + LINE * b)
    for layer in range(last - 1, 0, -1):
        inner, wide = layers[layer, OUT], panels(layers[layer, IN])
        for n in range(wide):
            active, out = place(h[c], layer - 1, n, 0), base(gate[n])
            for b in range(first, first + count):
                copy_line(active + LINE * order[b], out + LINE * b)
        weights_t, step = turned + LINE * layers[layer, TURNED], LINE * inner
        above, below = place(delta, c, layer, first), place(delta, c, layer - 1, first)
        multiply(above, panel, weights_t, step, below, panel, count, wide, inner, GATE, gates)
    inner, wide = layers[0, OUT], panels(layers[0, TURNED_INPUTS])
    weights_t, step = turned + LINE * layers[0, TURNED], LINE * inner
    above, to_panel = place(delta, c, 0, first), gate.strides[0]
    multiply(above, panel, weights_t, step, gates, to_panel, count, wide, inner, STORE, gates)
    for j in range(slope.shape[0]):
        for b in range(first, first + count):
            slope[j, order[b]] = gate[j // PANEL, b, j % PANEL]


@inlined
def actor_heads_backward(p, first, count):
    """The actor's loss carried back to its heads, whose deltas are then in `out`; some samples."""
    samples, size, lines = mem.batch(p).shape[0], mem.action(p).shape[1], mem.out(p)[POLICY]
    scale = np.float32(1.0 / samples), np.float32(temperature(p) / samples)
    low, high = mem.settings(p)[LOG_STD_MIN], mem.settings(p)[LOG_STD_MAX]
    heads, action, noise = mem.heads(p)[POLICY], mem.action(p)[POLICY], mem.noise(p)[POLICY]
    slope, d_heads = mem.slope(p), mem.d_heads(p)
    squash_backward(heads, action, noise, low, high, slope, d_heads, scale, first, count)
    for n in range(panels(2 * size)):
        some = min(PANEL, 2 * size - n * PANEL)
        transpose(d_heads, n * PANEL, first, lines[n], first, 0, some, count)


@inlined
def actor_backward(p, first, count):
    """The actor's loss carried back; some samples."""
    layers, h, delta, lines = mem.actor_layers(p), mem.actor(p), mem.delta(p), mem.out(p)[POLICY]
    last = layers.shape[0] - 1
    actor_heads_backward(p, first, count)
    inner, wide = layers[last, OUT], panels(layers[last, IN])
    weights_t, step = base(mem.turned(p)) + LINE * layers[last, TURNED], LINE * inner
    above, above_panel = base(lines) + LINE * first, lines.strides[0]
    out, panel = place(delta, 0, last - 1, first), delta.strides[2]
    gate = place(h, POLICY, last - 1, first)
    multiply(above, above_panel, weights_t, step, out, panel, count, wide, inner, GATE, gate)
    backward(mem.turned(p), layers, last - 1, h, POLICY, delta, 0, first, count)


@inlined
def actor_loss(p):
    """mean(τ log π - min Q), and the entropy -mean log π."""
    samples, rows, tau = mem.batch(p).shape[0], mem.rows(p), temperature(p)
    loss, log_prob = 0.0, 0.0
    for i in range(samples):
        q1, q2 = rows[POLICY_Q, i], rows[POLICY_Q + 1, i]
        q = min(q1, q2) if math.isfinite(q1 + q2) else np.float32(np.nan)  # min would hide a NaN
        loss += tau * rows[LOG_PROB + POLICY, i] - q
        log_prob += rows[LOG_PROB + POLICY, i]
    return loss / samples, -log_prob / samples


@inlined
def actor_descend(p, step, who):
    """Adam on the actor."""
    layers, h, delta, lines = mem.actor_layers(p), mem.actor(p), mem.delta(p), mem.out(p)[POLICY]
    observed, last = mem.observed(p), layers.shape[0] - 1
    inputs, panel = base(observed[POLICY]), observed.strides[1]
    for layer in range(last):
        above, above_panel = place(delta, 0, layer, 0), delta.strides[2]
        descend(p, layers, layer, inputs, panel, above, above_panel, step, NONE, who)
        inputs, panel = place(h, POLICY, layer, 0), h.strides[2]
    descend(p, layers, last, inputs, panel, base(lines), lines.strides[0], step, NONE, who)


@inlined
def temperature_step(p, entropy, step):
    """Adam on log τ for the loss τ (entropy - target entropy)."""
    gradient = mem.gradient(p)[0, 0]
    gradient[:] = np.float32(0)
    gradient[0] = np.float32(temperature(p) * (entropy - mem.settings(p)[TARGET_ENTROPY]))
    adam(p, base(gradient), mem.theta(p).size // PANEL - 1, 1, step, NONE)
