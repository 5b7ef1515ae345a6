"""Layers of networks with bfloat16 products: forward, back, and what follows a step of Adam.

The counterpart of `layers`; matrices are kept as rows and as pairs (`pair_products`).
"""

import numpy as np

from rollin.sac import memory as mem
from rollin.sac import panels as packing
from rollin.sac.lanes import LANES, PANEL
from rollin.sac.layers import descending, descending_last, note, panels, place
from rollin.sac.memory import DATA, POLICY
from rollin.sac.pair_products import (
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
from rollin.sac.pairs import (
    TURNED_PANELS,
    pair_last_line,
    pair_lines,
    turn_block,
    turn_half_block,
)
from rollin.sac.panels import COPY, IN, OUT, TURNED, TURNED_INPUTS, WEIGHTS
from rollin.sac.vector import LINE, base, clear_line, compiled, inlined, sum_line

pair_count = compiled(packing.pair_count)


@inlined
def turned_lines(outputs):
    """Lines of a panel of a transpose."""
    return np.int64(PANEL) * panels(pair_count(outputs))


@inlined
def pair_place(array, i, j, first):
    """Address of the line of a sample, whose number is even, in the first panel of array[i, j]."""
    return place(array, i, j, first // 2)


@inlined
def strip_place(array, i, j, first):
    """Address of a sample's word in the first strip of the mask array[i, j]."""
    return base(array) + i * array.strides[0] + j * array.strides[1] + 4 * first


@inlined
def ends(rows, pairs, mask, i, block, layer, first):
    """The ends of a product that gives layer `layer` of rows[i], with mask[block]."""
    none = np.int64(0)
    return Ends(
        place(rows, i, layer, first),
        np.int64(rows.strides[2]),
        pair_place(pairs, i, layer, first),
        np.int64(pairs.strides[2]),
        strip_place(mask, block, layer, first),
        np.int64(mask.strides[2]),
        none,
        none,
        none,
        none,
    )


@inlined
def with_value(to, value, last):
    """The same with a critic's last layer: addresses of lines of sums, and of its weights."""
    return Ends(
        to.rows,
        to.rows_panel,
        to.pairs,
        to.pairs_panel,
        to.mask,
        to.mask_panel,
        value,
        last,
        to.floats,
        to.floats_panel,
    )


@inlined
def to_floats(c, c_panel):
    """The ends of a product that is stored as float32 only."""
    none = np.int64(0)
    return Ends(none, none, none, none, none, none, none, none, c, c_panel)


@compiled
def forward(theta, copies, layers, layer, x, x_panel, to, count, flags):
    """One hidden layer of some samples. x: the address of its inputs, float32 for the first."""
    inner, wide = layers[layer, IN], panels(layers[layer, OUT])
    weights, step = base(theta) + LINE * layers[layer, WEIGHTS], LINE * (inner + 1)
    bias = weights + LINE * inner
    if layer == 0:
        multiply_floats(x, x_panel, weights, step, bias, step, count, wide, inner, flags, to)
    else:
        half = pair_count(inner)
        copy = base(copies) + LINE * layers[layer, COPY]
        multiply_pairs(x, x_panel, copy, LINE * half, bias, step, count, wide, half, flags, to)


@compiled
def values(p, theta, copies, layers, c, block, out, first, count):
    """A critic's values of some samples of x[block]; of those in DATA all that a gradient reads."""
    rows, pairs, mask = mem.critic_rows(p), mem.critic_pairs(p), mem.critic_mask(p)
    value = mem.value(p)
    x, last = mem.x(p)[block], layers.shape[0] - 1
    kept = MASK | PAIRS if block == DATA else MASK if block == POLICY else np.int64(0)
    weights, lines = base(theta) + LINE * layers[last, WEIGHTS], base(value[c]) + LINE * first
    for i in range(count):
        clear_line(lines + LINE * i)
    inputs, panel = base(x) + LINE * first, x.strides[0]
    for layer in range(last):
        to = with_value(ends(rows, pairs, mask, c, c, layer, first), lines, weights)
        flags = RELU | kept | (VALUE if layer == last - 1 else ROWS)
        forward(theta, copies, layers, layer, inputs, panel, to, count, flags)
        inputs, panel = place(rows, c, layer, first), rows.strides[2]
    size = layers[last, IN]
    bias = theta[PANEL * layers[last, WEIGHTS] + size]
    for i in range(count):
        out[first + i] = sum_line(lines + LINE * i) + bias


@compiled
def backward(p, layers, top, mask, block, c, first, count):
    """From delta[c] of layer `top` to those of all layers below, some samples."""
    rows, pairs = mem.delta_rows(p), mem.delta_pairs(p)
    turned, zeros = base(mem.turned(p)), base(mem.zeros(p))
    for layer in range(top, 0, -1):
        outputs, wide = layers[layer, OUT], panels(layers[layer, IN])
        weights = turned + LINE * layers[layer, TURNED]
        step, none = LINE * turned_lines(outputs), np.int64(0)
        above, panel = place(rows, c, layer, first), rows.strides[2]
        to = ends(rows, pairs, mask, c, block, layer - 1, first)
        flags = GATE | PAIRS | ROWS if layer > 1 else GATE | PAIRS
        half = pair_count(outputs)
        multiply_pairs(above, panel, weights, step, zeros, none, count, wide, half, flags, to)


# ------------------------------------------------------------------ gradients


@compiled
def pair_rows(source, target, count):
    """`count` lines of float32 numbers as lines of pairs; an odd one is paired with 0."""
    for n in range(count // 2):
        pair_lines(source + 2 * n * LINE, target + n * LINE)
    if count % 2:
        pair_last_line(source + (count - 1) * LINE, target + count // 2 * LINE)


@compiled
def round_weights(p, layers, layer, panel, some, first, rows, offset):
    """Write the copies of some weights: outputs of some panels, inputs of one panel at most.

    offset: the first line that a target follows, or negative.
    """
    size, outputs, back = layers[layer, IN], layers[layer, OUT], layers[layer, TURNED_INPUTS]
    half, theta = pair_count(size), base(mem.theta(p))
    copy, target_copy = base(mem.copy(p)), base(mem.target_copy(p))
    has_copy = layer > 0
    first_copy = mem.critic_layers(p)[0, 0, COPY]
    for n in range(panel, panel + some):
        line = layers[layer, WEIGHTS] + n * (size + 1) + first
        at = layers[layer, COPY] + n * half + first // 2
        if has_copy:
            pair_rows(theta + LINE * line, copy + LINE * at, rows)
        if has_copy and offset >= 0:
            source = base(mem.target(p)) + LINE * (line - offset)
            pair_rows(source, target_copy + LINE * (at - first_copy), rows)
    begin = theta + LINE * (layers[layer, WEIGHTS] + panel * (size + 1) + first)
    to = layers[layer, TURNED] + first // PANEL * turned_lines(outputs) + panel * (PANEL // 2)
    turned = base(mem.turned(p)) + LINE * to
    for row in range(0, min(rows, back - first), LANES):
        source, target = begin + LINE * row, turned + 4 * row
        if TURNED_PANELS == 2 and some == 2:
            turn_block(source, source + LINE * (size + 1), target)
        elif TURNED_PANELS == 2:
            turn_half_block(source, target)
        else:
            for part in range(0, PANEL, 2 * LANES):
                turn_block(
                    source + 4 * part, source + 4 * (part + LANES), target + LINE * part // 2
                )


@compiled
def note_rounded(p, layers, layer, panel, some, first, rows, offset, runs, count):
    """Note what `round_weights` will write; how many runs there are then."""
    half, lines = pair_count(layers[layer, IN]), rows // 2
    first_copy = mem.critic_layers(p)[0, 0, COPY]
    for n in range(panel, panel + some):
        at = layers[layer, COPY] + n * half + first // 2
        if layer > 0:
            count = note(runs, count, base(mem.copy(p)) + LINE * at, lines)
        if layer > 0 and offset >= 0:
            target_copy = base(mem.target_copy(p)) + LINE * (at - first_copy)
            count = note(runs, count, target_copy, lines)
    if first < layers[layer, TURNED_INPUTS]:
        outputs = layers[layer, OUT]
        to = layers[layer, TURNED] + first // PANEL * turned_lines(outputs) + panel * (PANEL // 2)
        count = note(runs, count, base(mem.turned(p)) + LINE * to, some * (PANEL // 2))
    return count


@inlined
def in_pairs(batch):
    """Lines that the samples of a batch take."""
    return (batch.shape[0] + 1) // 2


descend = descending(
    "descend_pairs", multiply_pairs_across, add_pair_lines, in_pairs, note_rounded, round_weights
)
descend_last = descending_last("descend_last_pairs", add_pair_lines, in_pairs)
