"""The steps of one SAC update, each on some samples or weights; `kernels` puts them in order.

Their names are those of the functions in `sac/jax.py` that compute the same. p is the table of
`memory`. What is called from one place is inlined there: it would be compiled by itself and then
once more.
"""

import math

import numpy as np

from rollin.llvm import addr, compiled, compiled_as, inlined
from rollin.sac.cpu import memory as mem
from rollin.sac.cpu.gemm import (
    BIAS,
    GATE,
    STORE,
    Panels,
    down,
    multiply,
    multiply_few,
    multiply_single,
)
from rollin.sac.cpu.layers import (
    UNFOLLOWED,
    adam,
    backward,
    block,
    descend,
    descend_last,
    forward,
    matrix,
    transposed,
    turn,
    weights,
)
from rollin.sac.cpu.memory import (
    D_Q,
    DATA,
    ERROR,
    GAMMA,
    IN,
    LOG_PROB,
    LOG_STD_MAX,
    LOG_STD_MIN,
    NEXT,
    OUT,
    POLICY,
    TARGET_ENTROPY,
    TURNED_INPUTS,
    WEIGHTS,
    Q,
    panel_count,
)
from rollin.sac.cpu.simd import LINE, PANEL, copy_line, gate_line, transpose

finish = turn
"""What follows every change of some weights."""

# ------------------------------------------------------------------ the squashed Gaussian


@inlined
def exp(x):
    """Return eˣ for |x| < 87, to about one unit in the last place, as vector code."""
    x = min(max(x, np.float32(-87)), np.float32(88))
    n = np.rint(x * np.float32(1.4426950408889634))
    r = x - n * np.float32(0.693359375)
    r = r - n * np.float32(-2.12194440e-4)
    p = np.float32(1.9875691500e-4)
    p = p * r + np.float32(1.3981999507e-3)
    p = p * r + np.float32(8.3334519073e-3)
    p = p * r + np.float32(4.1665795894e-2)
    p = p * r + np.float32(1.6666665459e-1)
    p = p * r + np.float32(5.0000001201e-1)
    p = p * r * r + r + np.float32(1)
    return p * np.int32((np.int32(n) + 127) << 23).view(np.float32)


@compiled
def squash(heads, action, noise, limits, log_prob, first, count):
    """Compute a = tanh(μ + σε) and log π(a), of columns first … first + count.

    heads: (2A, ·), means and log standard deviations; action, noise: (A, ·); limits: of the latter.
    With u = μ + σε and e = exp(-2|u|): tanh|u| = (1 - e)/(1 + e), and
    log(1 - tanh²u) = 2 (log 2 - |u| - log(1 + e)).
    """
    size = action.shape[0]
    low, high = limits
    one, two = np.float32(1), np.float32(2)
    constant = np.float32(-0.5 * math.log(2 * math.pi) - 2 * math.log(2))
    columns = log_prob[first : first + count]
    columns[:] = np.float32(size) * constant
    for j in range(size):
        mean = heads[j, first:]
        raw = heads[size + j, first:]
        draw = noise[j, first:]
        out = action[j, first:]
        for b in range(count):
            log_std = min(max(raw[b], low), high)
            u = mean[b] + exp(log_std) * draw[b]
            e = exp(-two * abs(u))
            tanh = (one - e) / (one + e)
            out[b] = tanh if u > 0 else -tanh
            columns[b] += two * abs(u) - np.float32(0.5) * draw[b] * draw[b] - log_std
            columns[b] += two * log1p(e)


@inlined
def log1p(e):
    """Return log(1 + e) for e in [0, 1] by atanh's series: log(1 + e) = 2 atanh(e / (2 + e))."""
    z = e / (np.float32(2) + e)  # in [0, 1/3]
    s = z * z
    p = np.float32(1 / 13)
    p = p * s + np.float32(1 / 11)
    p = p * s + np.float32(1 / 9)
    p = p * s + np.float32(1 / 7)
    p = p * s + np.float32(0.2)
    p = p * s + np.float32(1 / 3)
    p = p * s + np.float32(1)
    return np.float32(2) * z * p


@compiled
def squash_backward(heads, action, noise, limits, slope, delta, scale, first, count):
    """Compute ∂/∂heads of mean(τ log π - Q), where slope = ∂Q/∂a and scale = (1/batch, τ/batch).

    ∂log π/∂u = 2a, ∂a/∂u = 1 - a²; log σ also enters through u = μ + σε, and not where clipped.
    """
    size = action.shape[0]
    low, high = limits
    one, two = np.float32(1), np.float32(2)
    share, entropy_share = scale
    for j in range(size):
        raw = heads[size + j, first:]
        draw = noise[j, first:]
        a = action[j, first:]
        dq = slope[j, first:]
        d_mean = delta[j, first:]
        d_std = delta[size + j, first:]
        for b in range(count):
            log_std = min(max(raw[b], low), high)
            du = entropy_share * two * a[b] - share * dq[b] * (one - a[b] * a[b])
            d_mean[b] = du
            inside = raw[b] > low and raw[b] < high
            slope_std = du * exp(log_std) * draw[b] - entropy_share
            d_std[b] = slope_std if inside else np.float32(0)


# ------------------------------------------------------------------ inputs and actions


@compiled
def _take(batch, column, target, size, first, count):
    """Copy columns of the batch, `size` of them, to a matrix in panels; some samples.

    Whole lines are copied. What is behind the last column is then anything, and is never read.
    """
    for n in range(panel_count(size)):
        row_addr = addr(batch) + first * batch.strides[0] + 4 * (column + n * PANEL)
        line_addr = addr(target[n]) + LINE * first
        for _ in range(count):
            copy_line(row_addr, line_addr)
            row_addr += batch.strides[0]
            line_addr += LINE


@inlined
def take_inputs(p, case, first, count):
    """Copy rows of the batch to inputs of actor and critics; some samples of POLICY or NEXT.

    What POLICY and DATA have in common goes with POLICY.
    """
    batch = mem.batch(p)
    x = mem.x(p)
    size = mem.action(p).shape[1]
    width = mem.actor_layers(p)[0, IN]
    skipped = width if case == NEXT else 0
    _take(batch, size + skipped, mem.observed(p)[case], width, first, count)
    # the policy's actions will overwrite what stands in their columns
    _take(batch, skipped, x[case], size + width, first, count)
    if case == POLICY:
        _take(batch, 0, x[DATA], size + width, first, count)


@compiled
def policy_heads(p, case, first, count):
    """Compute means and log standard deviations of the policy at s or s'; some samples."""
    layers = mem.actor_layers(p)
    theta = mem.theta(p)
    h = mem.actor(p)
    lines = mem.out(p)[case]
    heads = mem.heads(p)[case]
    last = layers.shape[0] - 1
    inner = layers[last, IN]
    wide = panel_count(heads.shape[0])
    forward(theta, layers, matrix(mem.observed(p)[case], first), h, case, first, count)
    below = block(h, case, last - 1, first)
    w = weights(theta, layers, last)
    columns = Panels(addr(heads) + 4 * first, np.int64(heads.strides[0]))
    done = multiply_few(below, w.addr, columns, count, heads.shape[0], inner)
    first += done
    count -= done
    to = matrix(lines, first)
    multiply(down(below, done), w, to, count, wide, inner, BIAS, to.addr)
    for n in range(wide):
        some = min(PANEL, heads.shape[0] - n * PANEL)
        transpose(lines[n], first, 0, heads, n * PANEL, first, count, some)


@inlined
def choose_actions(p, case, first, count):
    """Draw the policy's actions at s or s', which become inputs of the critics; some samples."""
    settings = mem.settings(p)
    action = mem.action(p)[case]
    size = action.shape[0]
    log_prob = mem.rows(p)[LOG_PROB + case]
    limits = settings[LOG_STD_MIN], settings[LOG_STD_MAX]
    squash(mem.heads(p)[case], action, mem.noise(p)[case], limits, log_prob, first, count)
    for n in range(panel_count(size)):
        some = min(PANEL, size - n * PANEL)
        transpose(action, n * PANEL, first, mem.x(p)[case, n], first, 0, some, count)


@compiled
def temperature(p):
    """Return τ, whose logarithm is the last parameter."""
    theta = mem.theta(p)
    return math.exp(theta[theta.size - PANEL])


# ------------------------------------------------------------------ critics


@compiled
def critic_values(p, c, case, first, count):
    """Compute critic c at DATA or POLICY, or its target at NEXT; some samples."""
    follows = case == NEXT
    theta = mem.target(p) if follows else mem.theta(p)
    layers = mem.target_layers(p)[c] if follows else mem.critic_layers(p)[c]
    h = mem.critic(p)
    last = layers.shape[0] - 1
    forward(theta, layers, matrix(mem.x(p)[case], first), h, c, first, count)
    out_addr = addr(mem.rows(p)[Q + 2 * case + c]) + 4 * first
    below = block(h, c, last - 1, first)
    multiply_single(below, weights(theta, layers, last).addr, out_addr, count, layers[last, IN])


@inlined
def bellman_errors(p, c, first, count):
    """Compute the Bellman targets y, errors and slopes of critic c's loss; some samples."""
    batch = mem.batch(p)
    rows = mem.rows(p)
    samples, width = batch.shape
    tau = np.float32(temperature(p))
    gamma = mem.settings(p)[GAMMA]
    slope = rows[D_Q + c]
    for i in range(first, first + count):
        reward, mask = batch[i, width - 2], batch[i, width - 1]
        following = min(rows[Q + 2 * NEXT, i], rows[Q + 2 * NEXT + 1, i])
        y = reward + gamma * mask * (following - tau * rows[LOG_PROB + NEXT, i])
        rows[ERROR + c, i] = rows[Q + 2 * DATA + c, i] - y
        slope[i] = np.float32(2.0 / samples) * rows[ERROR + c, i]


@inlined
def critic_backward(p, c, first, count):
    """Carry the Bellman error of critic c back; some samples."""
    h = mem.critic(p)
    delta = mem.delta(p)
    slope = mem.rows(p)[D_Q + c]
    layers = mem.critic_layers(p)[c]
    last = h.shape[1]
    bellman_errors(p, c, first, count)
    w = weights(mem.theta(p), layers, last)
    for n in range(panel_count(layers[last, IN])):
        active_addr = block(h[c], last - 1, n, 0).addr
        out_addr = block(delta[c], last - 1, n, 0).addr
        for i in range(first, first + count):
            gate_line(w.addr + LINE * n, slope[i], active_addr + LINE * i, out_addr + LINE * i)
    backward(p, layers, last - 1, h, c, delta, c, first, count)


@inlined
def critic_loss(p):
    """Return Σ_c mean (Q_c - y)², and the mean of Q."""
    samples = mem.batch(p).shape[0]
    rows = mem.rows(p)
    loss = 0.0
    mean = 0.0
    for c in range(2):
        for i in range(samples):
            loss += rows[ERROR + c, i] ** 2
            mean += rows[Q + 2 * DATA + c, i]
    return loss / samples, mean / (2 * samples)


@inlined
def critic_step(p, c, step, who):
    """Make a step of Adam on critic c; its target follows."""
    tables = mem.critic_layers(p)
    layers = tables[c]
    offset = tables[0, 0, WEIGHTS]
    h = mem.critic(p)
    delta = mem.delta(p)
    x = matrix(mem.x(p)[DATA], 0)
    for layer in range(h.shape[1]):
        descend(p, layers, layer, x, block(delta, c, layer, 0), step, offset, who)
        x = block(h, c, layer, 0)
    slope = mem.rows(p)[D_Q + c]
    descend_last(p, layers, x, slope, addr(slope), step, offset, who)


# ------------------------------------------------------------------ actor


@inlined
def where_smaller(p, c, order):
    """Write down the samples at which critic c is the smaller, and return how many they are."""
    rows = mem.rows(p)
    mine, other = rows[Q + 2 * POLICY + c], rows[Q + 2 * POLICY + 1 - c]
    count = np.uint64(0)
    for i in range(mem.batch(p).shape[0]):
        order[count] = i  # the next overwrites it unless it counts: a branch would be unpredictable
        count += np.uint64(mine[i] < other[i] or (mine[i] == other[i] and c == 0))
    return np.int64(count)


def minimising(name, action_slope):
    """Return ∂ min(Q_1, Q_2)/∂a of some samples, from ∂Q_c/∂a of some of a list."""

    def minimum_backward(p, first, count, rank):
        """Compute it for `count` samples, counted through both critics' in turn.

        However unevenly the critics share the samples, threads share them evenly.
        """
        end = first + count
        order = mem.order(p)[rank]
        for c in range(2):
            smaller = where_smaller(p, c, order)
            begin = min(first, smaller)
            action_slope(p, c, order, begin, min(end, smaller) - begin)
            first = max(first - smaller, 0)
            end = max(end - smaller, 0)

    return compiled_as(name, minimum_backward, inlined)


@inlined
def _action_slope(p, c, order, first, count):
    """Compute ∂Q_c/∂a of the samples order[first] … order[first + count].

    They are moved together, so that they are one product per layer.
    """
    if count == 0:
        return
    layers = mem.critic_layers(p)[c]
    h = mem.critic(p)
    delta = mem.delta(p)
    gate = mem.gate(p)[c]
    slope = mem.slope(p)
    last = h.shape[1]
    one = np.float32(1)
    w = weights(mem.theta(p), layers, last)
    gates = matrix(gate, first)
    for n in range(panel_count(layers[last, IN])):
        active_addr = block(h[c], last - 1, n, 0).addr
        out_addr = block(delta[c], last - 1, n, 0).addr
        for b in range(first, first + count):
            gate_line(w.addr + LINE * n, one, active_addr + LINE * order[b], out_addr + LINE * b)
    for layer in range(last - 1, 0, -1):
        wide = panel_count(layers[layer, IN])
        for n in range(wide):
            active_addr = block(h[c], layer - 1, n, 0).addr
            out_addr = addr(gate[n])
            for b in range(first, first + count):
                copy_line(active_addr + LINE * order[b], out_addr + LINE * b)
        above = block(delta, c, layer, first)
        below = block(delta, c, layer - 1, first)
        w = transposed(p, layers, layer)
        multiply(above, w, below, count, wide, layers[layer, OUT], GATE, gates.addr)
    wide = panel_count(layers[0, TURNED_INPUTS])
    above = block(delta, c, 0, first)
    w = transposed(p, layers, 0)
    multiply(above, w, gates, count, wide, layers[0, OUT], STORE, gates.addr)
    for j in range(slope.shape[0]):
        for b in range(first, first + count):
            slope[j, order[b]] = gate[j // PANEL, b, j % PANEL]


minimum_backward = minimising("minimum_backward", _action_slope)


@inlined
def actor_heads_backward(p, first, count):
    """Carry the actor's loss back to its heads, whose deltas are then in `out`; some samples."""
    samples = mem.batch(p).shape[0]
    settings = mem.settings(p)
    action = mem.action(p)[POLICY]
    d_heads = mem.d_heads(p)
    lines = mem.out(p)[POLICY]
    size = action.shape[0]
    scale = np.float32(1.0 / samples), np.float32(temperature(p) / samples)
    limits = settings[LOG_STD_MIN], settings[LOG_STD_MAX]
    heads = mem.heads(p)[POLICY]
    noise = mem.noise(p)[POLICY]
    squash_backward(heads, action, noise, limits, mem.slope(p), d_heads, scale, first, count)
    for n in range(panel_count(2 * size)):
        some = min(PANEL, 2 * size - n * PANEL)
        transpose(d_heads, n * PANEL, first, lines[n], first, 0, some, count)


@inlined
def actor_backward(p, first, count):
    """Carry the actor's loss back; some samples."""
    layers = mem.actor_layers(p)
    h = mem.actor(p)
    delta = mem.delta(p)
    last = layers.shape[0] - 1
    actor_heads_backward(p, first, count)
    below = block(delta, 0, last - 1, first)
    gate = block(h, POLICY, last - 1, first)
    above = matrix(mem.out(p)[POLICY], first)
    wide = panel_count(layers[last, IN])
    w = transposed(p, layers, last)
    multiply(above, w, below, count, wide, layers[last, OUT], GATE, gate.addr)
    backward(p, layers, last - 1, h, POLICY, delta, 0, first, count)


@inlined
def actor_loss(p):
    """Return mean(τ log π - min Q), and the entropy -mean log π."""
    samples = mem.batch(p).shape[0]
    rows = mem.rows(p)
    tau = temperature(p)
    loss = 0.0
    log_prob = 0.0
    for i in range(samples):
        q1, q2 = rows[Q + 2 * POLICY, i], rows[Q + 2 * POLICY + 1, i]
        q = min(q1, q2) if math.isfinite(q1 + q2) else np.float32(np.nan)  # min would hide a NaN
        loss += tau * rows[LOG_PROB + POLICY, i] - q
        log_prob += rows[LOG_PROB + POLICY, i]
    return loss / samples, -log_prob / samples


@inlined
def actor_step(p, step, who):
    """Make a step of Adam on the actor."""
    layers = mem.actor_layers(p)
    h = mem.actor(p)
    delta = mem.delta(p)
    last = layers.shape[0] - 1
    x = matrix(mem.observed(p)[POLICY], 0)
    for layer in range(last):
        descend(p, layers, layer, x, block(delta, 0, layer, 0), step, UNFOLLOWED, who)
        x = block(h, POLICY, layer, 0)
    descend(p, layers, last, x, matrix(mem.out(p)[POLICY], 0), step, UNFOLLOWED, who)


@inlined
def temperature_step(p, entropy, step):
    """Make a step of Adam on log τ for the loss τ (entropy - target entropy)."""
    gradient = mem.gradient(p)[0, 0]
    gradient[:] = np.float32(0)
    gradient[0] = np.float32(temperature(p) * (entropy - mem.settings(p)[TARGET_ENTROPY]))
    adam(p, addr(gradient), mem.theta(p).size // PANEL - 1, 1, step, UNFOLLOWED)
