"""Layers and steps of an update with bfloat16 products, and the entry points of such an update.

The counterparts of `layers` and `update_steps`, which hold all that does not differ. Matrices are
kept as rows and as pairs (`gemm_bf16`). Imported where bfloat16 is asked for.
"""

import sys

import numpy as np

from rollin.llvm import addr, compiled, inlined
from rollin.sac.cpu import memory as mem
from rollin.sac.cpu.gemm import NONE, Panels
from rollin.sac.cpu.gemm_bf16 import (
    FLOATS,
    GATE,
    MASK,
    PAIRS,
    RELU,
    ROWS,
    VALUE,
    Ends,
    add_pair_lines,
    multiply_floats,
    multiply_pairs,
    multiply_pairs_across,
)
from rollin.sac.cpu.kernels import deriving, entry, served
from rollin.sac.cpu.layers import (
    UNFOLLOWED,
    block,
    descending,
    descending_last,
    matrix,
    note,
    weights,
)
from rollin.sac.cpu.memory import (
    COPY,
    D_Q,
    DATA,
    IN,
    NEXT,
    OUT,
    POLICY,
    TURNED,
    TURNED_INPUTS,
    WEIGHTS,
    Q,
    pair_count,
    panel_count,
    turned_lines,
)
from rollin.sac.cpu.simd import (
    LANES,
    LINE,
    PANEL,
    TURNED_PANELS,
    clear_line,
    pair_last_line,
    pair_lines,
    round_line,
    sum_line,
    transpose,
    turn_block,
    turn_half_block,
)
from rollin.sac.cpu.update_steps import actor_heads_backward, bellman_errors, minimising
from rollin.sac.cpu.update_steps import take_inputs as take_float_inputs

OF_ACTOR, OF_CRITICS = 0, 1  # of `memory.input_pairs`

# ------------------------------------------------------------------ places


@inlined
def transposed(p, layers, layer):
    """Return the transpose of a layer's weights, in pairs."""
    begin = addr(mem.turned(p)) + LINE * layers[layer, TURNED]
    return Panels(begin, LINE * turned_lines(layers[layer, OUT]))


@inlined
def no_bias(p):
    """Return zeros in place of a bias."""
    return Panels(addr(mem.zeros(p)), NONE)


@inlined
def ends(rows, pairs, mask, i, mask_i, layer, first):
    """Return the ends of a product that gives layer `layer` of rows[i], with mask[mask_i]."""
    words = addr(mask) + mask_i * mask.strides[0] + layer * mask.strides[1] + 4 * first
    return Ends(
        block(rows, i, layer, first),
        block(pairs, i, layer, first // 2),
        Panels(words, np.int64(mask.strides[2])),
        NONE,
        NONE,
        Panels(NONE, NONE),
    )


@inlined
def with_value(to, value_addr, last_addr):
    """Return the same with a critic's last layer: lines of sums, and its weights."""
    return Ends(to.rows, to.pairs, to.mask, value_addr, last_addr, to.floats)


@inlined
def to_floats(matrix):
    """Return the ends of a product that is stored as float32 only."""
    nowhere = Panels(NONE, NONE)
    return Ends(nowhere, nowhere, nowhere, NONE, NONE, matrix)


# ------------------------------------------------------------------ forward and back


@compiled
def forward(theta, copies, layers, layer, x, to, count, flags):
    """Compute one layer of some samples; x: its inputs, float32 for the first."""
    inner = layers[layer, IN]
    wide = panel_count(layers[layer, OUT])
    w = weights(theta, layers, layer)
    bias = Panels(w.addr + LINE * inner, w.stride)
    if layer == 0:
        multiply_floats(x, w, bias, count, wide, inner, flags, to)
    else:
        half = pair_count(inner)
        copied = Panels(addr(copies) + LINE * layers[layer, COPY], LINE * half)
        multiply_pairs(x, copied, bias, count, wide, half, flags, to)


@compiled
def backward(p, layers, top, mask, mask_i, c, first, count):
    """Carry delta[c] of layer `top` back to all layers below."""
    rows = mem.delta_rows(p)
    pairs = mem.delta_pairs(p)
    for layer in range(top, 0, -1):
        wide = panel_count(layers[layer, IN])
        half = pair_count(layers[layer, OUT])
        to = ends(rows, pairs, mask, c, mask_i, layer - 1, first)
        flags = GATE | PAIRS | ROWS if layer > 1 else GATE | PAIRS
        above = block(rows, c, layer, first)
        w = transposed(p, layers, layer)
        multiply_pairs(above, w, no_bias(p), count, wide, half, flags, to)


# ------------------------------------------------------------------ gradients


@compiled
def pair_rows(source_addr, target_addr, count):
    """Write lines of float32 numbers as lines of pairs; an odd one is paired with 0."""
    for n in range(count // 2):
        pair_lines(source_addr + 2 * n * LINE, target_addr + n * LINE)
    if count % 2:
        pair_last_line(source_addr + (count - 1) * LINE, target_addr + count // 2 * LINE)


@inlined
def _copy_line(layers, layer, n, first):
    """Return the line of the rounded copy of some inputs' weights, of panel n."""
    return layers[layer, COPY] + n * pair_count(layers[layer, IN]) + first // 2


@inlined
def _turned_line(layers, layer, part):
    """Return the line of the transpose of some weights."""
    lines = part.first // PANEL * turned_lines(layers[layer, OUT])
    return layers[layer, TURNED] + lines + part.panel * (PANEL // 2)


@compiled
def round_weights(p, layers, layer, part):
    """Write the rounded copies and the transpose of some weights."""
    size = layers[layer, IN]
    theta_addr = addr(mem.theta(p))
    first_copy = mem.critic_layers(p)[0, 0, COPY]
    for n in range(part.panel, part.panel + part.panels):
        line = layers[layer, WEIGHTS] + n * (size + 1) + part.first
        at = _copy_line(layers, layer, n, part.first)
        if layer > 0:
            pair_rows(theta_addr + LINE * line, addr(mem.copy(p)) + LINE * at, part.rows)
        if layer > 0 and part.offset >= 0:
            source = addr(mem.target(p)) + LINE * (line - part.offset)
            to = addr(mem.target_copy(p)) + LINE * (at - first_copy)
            pair_rows(source, to, part.rows)
    begin = theta_addr + LINE * (layers[layer, WEIGHTS] + part.panel * (size + 1) + part.first)
    turned_addr = addr(mem.turned(p)) + LINE * _turned_line(layers, layer, part)
    inputs = min(part.rows, layers[layer, TURNED_INPUTS] - part.first)
    for row in range(0, inputs, LANES):
        source = begin + LINE * row
        target = turned_addr + 4 * row
        if TURNED_PANELS == 2 and part.panels == 2:
            turn_block(source, source + LINE * (size + 1), target)
        elif TURNED_PANELS == 2:
            turn_half_block(source, target)
        else:
            for n in range(0, PANEL, 2 * LANES):
                turn_block(source + 4 * n, source + 4 * (n + LANES), target + LINE * n // 2)


@compiled
def note_rounded(p, layers, layer, part, runs, count):
    """Note what `round_weights` will write; return how many runs there are then."""
    first_copy = mem.critic_layers(p)[0, 0, COPY]
    for n in range(part.panel, part.panel + part.panels):
        at = _copy_line(layers, layer, n, part.first)
        if layer > 0:
            count = note(runs, count, addr(mem.copy(p)) + LINE * at, part.rows // 2)
        if layer > 0 and part.offset >= 0:
            to = addr(mem.target_copy(p)) + LINE * (at - first_copy)
            count = note(runs, count, to, part.rows // 2)
    if part.first < layers[layer, TURNED_INPUTS]:
        begin = addr(mem.turned(p)) + LINE * _turned_line(layers, layer, part)
        count = note(runs, count, begin, part.panels * (PANEL // 2))
    return count


descend = descending(
    "descend_pairs", multiply_pairs_across, add_pair_lines, pair_count, note_rounded, round_weights
)
descend_last = descending_last("descend_last_pairs", add_pair_lines, pair_count)

finish = round_weights
"""What follows every change of some weights."""

# ------------------------------------------------------------------ steps


@inlined
def take_inputs(p, case, first, count):
    """Copy rows of the batch to inputs, and in pairs to those that a gradient reads."""
    take_float_inputs(p, case, first, count)
    if case == POLICY:
        pairs = mem.input_pairs(p)
        _pair_inputs(mem.observed(p)[POLICY], pairs[OF_ACTOR, 0], first, count)
        _pair_inputs(mem.x(p)[DATA], pairs[OF_CRITICS, 0], first, count)


@compiled
def _pair_inputs(x, pairs, first, count):
    for n in range(x.shape[0]):
        target = addr(pairs[n]) + LINE * (first // 2)
        pair_rows(addr(x[n]) + LINE * first, target, count)


@compiled
def policy_heads(p, case, first, count):
    """Compute means and log standard deviations of the policy at s or s'; some samples."""
    layers = mem.actor_layers(p)
    theta = mem.theta(p)
    copies = mem.copy(p)
    rows = mem.actor_rows(p)
    last = layers.shape[0] - 1
    flags = RELU | ROWS | PAIRS | MASK if case == POLICY else RELU | ROWS
    x = matrix(mem.observed(p)[case], first)
    for layer in range(last):
        to = ends(rows, mem.actor_pairs(p), mem.actor_mask(p), case, case, layer, first)
        forward(theta, copies, layers, layer, x, to, count, flags)
        x = block(rows, case, layer, first)
    lines = mem.out(p)[case]
    heads = mem.heads(p)[case]
    forward(theta, copies, layers, last, x, to_floats(matrix(lines, first)), count, FLOATS)
    for n in range(lines.shape[0]):
        some = min(PANEL, heads.shape[0] - n * PANEL)
        transpose(lines[n], first, 0, heads, n * PANEL, first, count, some)


@compiled
def critic_values(p, c, case, first, count):
    """Compute critic c at DATA or POLICY, or its target at NEXT; some samples.

    Of those in DATA, all that a gradient reads is stored.
    """
    follows = case == NEXT
    theta = mem.target(p) if follows else mem.theta(p)
    copies = mem.target_copy(p) if follows else mem.copy(p)
    layers = mem.target_layers(p)[c] if follows else mem.critic_layers(p)[c]
    rows = mem.critic_rows(p)
    last = layers.shape[0] - 1
    stored = MASK | PAIRS if case == DATA else MASK if case == POLICY else np.int64(0)
    last_addr = weights(theta, layers, last).addr
    value_addr = addr(mem.value(p)[c]) + LINE * first
    for i in range(count):
        clear_line(value_addr + LINE * i)
    x = matrix(mem.x(p)[case], first)
    for layer in range(last):
        to = ends(rows, mem.critic_pairs(p), mem.critic_mask(p), c, c, layer, first)
        to = with_value(to, value_addr, last_addr)
        flags = RELU | stored | (VALUE if layer == last - 1 else ROWS)
        forward(theta, copies, layers, layer, x, to, count, flags)
        x = block(rows, c, layer, first)
    bias = theta[PANEL * layers[last, WEIGHTS] + layers[last, IN]]
    values = mem.rows(p)[Q + 2 * case + c]
    for i in range(count):
        values[first + i] = sum_line(value_addr + LINE * i) + bias


@compiled
def _last_delta(p, c, mask, first, count, flags):
    """Compute the delta of a critic's last hidden layer from that of its value: value[c, i, 0]."""
    layers = mem.critic_layers(p)[c]
    last = layers.shape[0] - 1
    w = Panels(weights(mem.theta(p), layers, last).addr, np.int64(LINE))
    to = ends(mem.delta_rows(p), mem.delta_pairs(p), mask, c, c, last - 1, first)
    x = Panels(addr(mem.value(p)[c]) + LINE * first, NONE)
    wide = panel_count(layers[last, IN])
    multiply_floats(x, w, no_bias(p), count, wide, np.int64(1), flags, to)


@inlined
def critic_backward(p, c, first, count):
    """Carry the Bellman error of critic c back; some samples."""
    layers = mem.critic_layers(p)[c]
    mask = mem.critic_mask(p)
    value = mem.value(p)
    slope = mem.rows(p)[D_Q + c]
    last = layers.shape[0] - 1
    bellman_errors(p, c, first, count)
    for i in range(first, first + count):
        value[c, i, 0] = slope[i]
    error_addr = addr(mem.error_pairs(p)[c]) + 2 * first
    for i in range(0, count, PANEL):
        round_line(addr(slope) + 4 * (first + i), error_addr + 2 * i)
    flags = GATE | PAIRS | ROWS if last > 1 else GATE | PAIRS
    _last_delta(p, c, mask, first, count, flags)
    backward(p, layers, last - 1, mask, c, c, first, count)


@inlined
def critic_step(p, c, step, who):
    """Make a step of Adam on critic c; its target follows."""
    tables = mem.critic_layers(p)
    layers = tables[c]
    offset = tables[0, 0, WEIGHTS]
    h = mem.critic_pairs(p)
    delta = mem.delta_pairs(p)
    x = block(mem.input_pairs(p), OF_CRITICS, 0, 0)
    for layer in range(layers.shape[0] - 1):
        descend(p, layers, layer, x, block(delta, c, layer, 0), step, offset, who)
        x = block(h, c, layer, 0)
    slope = mem.rows(p)[D_Q + c]
    descend_last(p, layers, x, slope, addr(mem.error_pairs(p)[c]), step, offset, who)


@inlined
def _action_slope(p, c, order, first, count):
    """Compute ∂Q_c/∂a of the samples order[first] … order[first + count].

    Only their masks are moved together.
    """
    if count == 0:
        return
    layers = mem.critic_layers(p)[c]
    mask = mem.critic_mask(p)[c]
    gate = mem.gate_mask(p)
    rows = mem.delta_rows(p)
    value = mem.value(p)
    moved = mem.moved(p)[c]
    slope = mem.slope(p)
    top = layers.shape[0] - 2
    for b in range(first, first + count):
        value[c, b, 0] = np.float32(1)
    for layer in range(top + 1):
        for strip in range(mask.shape[1]):
            bits = mask[layer, strip]
            moved_bits = gate[c, layer, strip]
            for b in range(first, first + count):
                moved_bits[b] = bits[order[b]]
    _last_delta(p, c, gate, first, count, GATE | ROWS)
    for layer in range(top, -1, -1):
        wide = panel_count(layers[layer, IN] if layer else layers[layer, TURNED_INPUTS])
        half = pair_count(layers[layer, OUT])
        if layer:
            to = ends(rows, mem.delta_pairs(p), gate, c, c, layer - 1, first)
            flags = GATE | ROWS
        else:
            to = to_floats(matrix(moved, first))
            flags = FLOATS
        above = block(rows, c, layer, first)
        w = transposed(p, layers, layer)
        multiply_pairs(above, w, no_bias(p), count, wide, half, flags, to)
    for j in range(slope.shape[0]):
        for b in range(first, first + count):
            slope[j, order[b]] = moved[j // PANEL, b, j % PANEL]


minimum_backward = minimising("minimum_backward_pairs", _action_slope)


@inlined
def actor_backward(p, first, count):
    """Carry the actor's loss back; some samples."""
    layers = mem.actor_layers(p)
    mask = mem.actor_mask(p)
    lines = mem.out(p)[POLICY]
    rows = mem.head_rows(p)
    last = layers.shape[0] - 1
    actor_heads_backward(p, first, count)
    for n in range(lines.shape[0]):
        source = addr(lines[n]) + LINE * first
        pair_rows(source, addr(mem.head_pairs(p)[0, 0, n]) + LINE * (first // 2), count)
        to_addr = addr(rows[0, 0, n // 2]) + LINE * first + LINE // 2 * (n % 2)
        for i in range(count):
            round_line(source + LINE * i, to_addr + LINE * i)
    wide = panel_count(layers[last, IN])
    half = pair_count(layers[last, OUT])
    to = ends(mem.delta_rows(p), mem.delta_pairs(p), mask, 0, POLICY, last - 1, first)
    flags = GATE | PAIRS | ROWS if last > 1 else GATE | PAIRS
    above = block(rows, 0, 0, first)
    w = transposed(p, layers, last)
    multiply_pairs(above, w, no_bias(p), count, wide, half, flags, to)
    backward(p, layers, last - 1, mask, POLICY, 0, first, count)


@inlined
def actor_step(p, step, who):
    """Make a step of Adam on the actor."""
    layers = mem.actor_layers(p)
    h = mem.actor_pairs(p)
    delta = mem.delta_pairs(p)
    last = layers.shape[0] - 1
    x = block(mem.input_pairs(p), OF_ACTOR, 0, 0)
    for layer in range(last):
        descend(p, layers, layer, x, block(delta, 0, layer, 0), step, UNFOLLOWED, who)
        x = block(h, POLICY, layer, 0)
    descend(p, layers, last, x, block(mem.head_pairs(p), 0, 0, 0), step, UNFOLLOWED, who)


# ------------------------------------------------------------------ entry points

_run, _derive = served(sys.modules[__name__]), deriving(sys.modules[__name__])


@entry
def update_pairs(p, rank, threads, count, begun, state, function):
    """Make an update with bfloat16 products; see `kernels.update`."""
    return _run(p, rank, threads, count, begun, state, function)


@entry
def round_all(p):
    """Write the rounded copies and transposes of all weights, after these were set."""
    _derive(p)
