"""The parts of one SAC update that differ with bfloat16 products; the others are in `phases`."""

import numpy as np

from rollin.sac import memory as mem
from rollin.sac.lanes import PANEL
from rollin.sac.layers import NONE, panels, place
from rollin.sac.memory import D_Q, DATA, DATA_Q, NEXT, NEXT_Q, POLICY, POLICY_Q
from rollin.sac.pair_layers import (
    backward,
    descend,
    descend_last,
    ends,
    forward,
    pair_count,
    pair_rows,
    to_floats,
    turned_lines,
    values,
)
from rollin.sac.pair_products import (
    FLOATS,
    GATE,
    MASK,
    PAIRS,
    RELU,
    ROWS,
    multiply_floats,
    multiply_pairs,
)
from rollin.sac.pairs import round_line
from rollin.sac.panels import IN, OUT, TURNED, TURNED_INPUTS, WEIGHTS
from rollin.sac.phases import actor_heads_backward, bellman_errors, where_smaller
from rollin.sac.phases import take_inputs as take_float_inputs
from rollin.sac.vector import LINE, base, compiled, inlined, transpose

OF_ACTOR, OF_CRITICS = 0, 1  # of Memory.input_pairs


@inlined
def take_inputs(p, block, first, count):
    """Rows of the batch as inputs, and those that a gradient reads in pairs, too; some samples."""
    take_float_inputs(p, block, first, count)
    if block == POLICY:
        pairs = mem.input_pairs(p)
        _pair_inputs(mem.observed(p)[POLICY], pairs[OF_ACTOR, 0], first, count)
        _pair_inputs(mem.x(p)[DATA], pairs[OF_CRITICS, 0], first, count)


@compiled
def _pair_inputs(x, pairs, first, count):
    for n in range(x.shape[0]):
        target = base(pairs[n]) + LINE * (first // 2)
        pair_rows(base(x[n]) + LINE * first, target, count)


@compiled
def policy_heads(p, block, first, count):
    """Means and log standard deviations of the policy at s or s'; some samples."""
    layers, theta, copies = mem.actor_layers(p), mem.theta(p), mem.copy(p)
    rows, pairs, mask = mem.actor_rows(p), mem.actor_pairs(p), mem.actor_mask(p)
    observed, last = mem.observed(p)[block], layers.shape[0] - 1
    flags = RELU | ROWS | PAIRS | MASK if block == POLICY else RELU | ROWS
    inputs, panel = base(observed) + LINE * first, observed.strides[0]
    for layer in range(last):
        to = ends(rows, pairs, mask, block, block, layer, first)
        forward(theta, copies, layers, layer, inputs, panel, to, count, flags)
        inputs, panel = place(rows, block, layer, first), rows.strides[2]
    lines, heads = mem.out(p)[block], mem.heads(p)[block]
    to = to_floats(base(lines) + LINE * first, np.int64(lines.strides[0]))
    forward(theta, copies, layers, last, inputs, panel, to, count, FLOATS)
    for n in range(lines.shape[0]):
        some = min(PANEL, heads.shape[0] - n * PANEL)
        transpose(lines[n], first, 0, heads, n * PANEL, first, count, some)


@inlined
def evaluate(p, c, first, count):
    """Critic c on the data, and before it its target at (s', π(s')); some samples."""
    rows, theta, target = mem.rows(p), mem.theta(p), mem.target(p)
    tables, targets = mem.critic_layers(p)[c], mem.target_layers(p)[c]
    values(p, target, mem.target_copy(p), targets, c, NEXT, rows[NEXT_Q + c], first, count)
    values(p, theta, mem.copy(p), tables, c, DATA, rows[DATA_Q + c], first, count)


@inlined
def reevaluate(p, c, first, count):
    """Critic c at (s, π(s)); some samples."""
    layers, out = mem.critic_layers(p)[c], mem.rows(p)[POLICY_Q + c]
    values(p, mem.theta(p), mem.copy(p), layers, c, POLICY, out, first, count)


@compiled
def _last_delta(p, c, mask, block, first, count, flags):
    """The delta of a critic's last hidden layer from that of its value: value[c, i, 0]."""
    layers, value = mem.critic_layers(p)[c], mem.value(p)
    last = layers.shape[0] - 1
    weights = base(mem.theta(p)) + LINE * layers[last, WEIGHTS]
    to = ends(mem.delta_rows(p), mem.delta_pairs(p), mask, c, block, last - 1, first)
    x, wide, line = base(value[c]) + LINE * first, panels(layers[last, IN]), np.int64(LINE)
    zeros, none, one = base(mem.zeros(p)), np.int64(0), np.int64(1)
    multiply_floats(x, none, weights, line, zeros, none, count, wide, one, flags, to)


@inlined
def critic_backward(p, c, first, count):
    """The Bellman targets y, and the error of critic c carried back; some samples."""
    layers, mask, value = mem.critic_layers(p)[c], mem.critic_mask(p), mem.value(p)
    last, slope = layers.shape[0] - 1, mem.rows(p)[D_Q + c]
    bellman_errors(p, c, first, count)
    for i in range(first, first + count):
        value[c, i, 0] = slope[i]
    error = base(mem.error_pairs(p)[c]) + 2 * first
    for i in range(0, count, PANEL):
        round_line(base(slope) + 4 * (first + i), error + 2 * i)
    flags = GATE | PAIRS | ROWS if last > 1 else GATE | PAIRS
    _last_delta(p, c, mask, c, first, count, flags)
    backward(p, layers, last - 1, mask, c, c, first, count)


@inlined
def critic_descend(p, c, step, who):
    """Adam on critic c; its target follows."""
    tables, pairs, delta = mem.critic_layers(p), mem.critic_pairs(p), mem.delta_pairs(p)
    layers, offset, inputs = tables[c], tables[0, 0, WEIGHTS], mem.input_pairs(p)
    x, panel = place(inputs, OF_CRITICS, 0, 0), inputs.strides[2]
    for layer in range(layers.shape[0] - 1):
        above, above_panel = place(delta, c, layer, 0), delta.strides[2]
        descend(p, layers, layer, x, panel, above, above_panel, step, offset, who)
        x, panel = place(pairs, c, layer, 0), pairs.strides[2]
    slope, error = mem.rows(p)[D_Q + c], base(mem.error_pairs(p)[c])
    descend_last(p, layers, x, panel, slope, error, step, offset, who)


@inlined
def minimum_backward(p, first, count, rank):
    """∂ min(Q_1, Q_2)/∂a of some samples; see `phases.minimum_backward`."""
    end, order = first + count, mem.order(p)[rank]
    for c in range(2):
        found = where_smaller(p, c, order)
        begin, until = min(first, found), min(end, found)
        _slope(p, c, order, begin, until - begin)
        first, end = max(first - found, 0), max(end - found, 0)


@inlined
def _slope(p, c, order, first, count):
    """∂Q_c/∂a of the samples order[first] … order[first + count].

    Only their masks are moved together.
    """
    if count == 0:
        return
    layers, mask, gate = mem.critic_layers(p)[c], mem.critic_mask(p)[c], mem.gate_mask(p)
    rows, value, moved, slope = mem.delta_rows(p), mem.value(p), mem.moved(p)[c], mem.slope(p)
    top, none, zeros = layers.shape[0] - 2, np.int64(0), base(mem.zeros(p))
    for b in range(first, first + count):
        value[c, b, 0] = np.float32(1)
    for layer in range(top + 1):
        for strip in range(mask.shape[1]):
            bits, moved_bits = mask[layer, strip], gate[c, layer, strip]
            for b in range(first, first + count):
                moved_bits[b] = bits[order[b]]
    _last_delta(p, c, gate, c, first, count, GATE | ROWS)
    turned, panel = base(mem.turned(p)), rows.strides[2]
    for layer in range(top, -1, -1):
        outputs = layers[layer, OUT]
        wide = panels(layers[layer, IN] if layer else layers[layer, TURNED_INPUTS])
        weights, half = turned + LINE * layers[layer, TURNED], pair_count(outputs)
        step, above = LINE * turned_lines(outputs), place(rows, c, layer, first)
        if layer:
            to = ends(rows, mem.delta_pairs(p), gate, c, c, layer - 1, first)
            flags = GATE | ROWS
        else:
            to = to_floats(base(moved) + LINE * first, np.int64(moved.strides[0]))
            flags = FLOATS
        multiply_pairs(above, panel, weights, step, zeros, none, count, wide, half, flags, to)
    for j in range(slope.shape[0]):
        for b in range(first, first + count):
            slope[j, order[b]] = moved[j // PANEL, b, j % PANEL]


@inlined
def actor_backward(p, first, count):
    """The actor's loss carried back; some samples."""
    layers, mask, lines = mem.actor_layers(p), mem.actor_mask(p), mem.out(p)[POLICY]
    last, zeros, none = layers.shape[0] - 1, base(mem.zeros(p)), np.int64(0)
    actor_heads_backward(p, first, count)
    rows, pairs = mem.head_rows(p), mem.head_pairs(p)
    for n in range(lines.shape[0]):
        source = base(lines[n]) + LINE * first
        pair_rows(source, base(pairs[0, 0, n]) + LINE * (first // 2), count)
        to = base(rows[0, 0, n // 2]) + LINE * first + LINE // 2 * (n % 2)
        for i in range(count):
            round_line(source + LINE * i, to + LINE * i)
    outputs, wide = layers[last, OUT], panels(layers[last, IN])
    weights, half = base(mem.turned(p)) + LINE * layers[last, TURNED], pair_count(outputs)
    step, x = LINE * turned_lines(outputs), place(rows, 0, 0, first)
    to = ends(mem.delta_rows(p), mem.delta_pairs(p), mask, 0, POLICY, last - 1, first)
    flags = GATE | PAIRS | ROWS if last > 1 else GATE | PAIRS
    multiply_pairs(x, rows.strides[2], weights, step, zeros, none, count, wide, half, flags, to)
    backward(p, layers, last - 1, mask, POLICY, 0, first, count)


@inlined
def actor_descend(p, step, who):
    """Adam on the actor."""
    layers, pairs, delta, head = (
        mem.actor_layers(p),
        mem.actor_pairs(p),
        mem.delta_pairs(p),
        mem.head_pairs(p),
    )
    inputs, last = mem.input_pairs(p), layers.shape[0] - 1
    x, panel = place(inputs, OF_ACTOR, 0, 0), inputs.strides[2]
    for layer in range(last):
        above, above_panel = place(delta, 0, layer, 0), delta.strides[2]
        descend(p, layers, layer, x, panel, above, above_panel, step, NONE, who)
        x, panel = place(pairs, POLICY, layer, 0), pairs.strides[2]
    descend(p, layers, last, x, panel, place(head, 0, 0, 0), head.strides[2], step, NONE, who)
