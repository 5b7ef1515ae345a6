"""Layers of networks in panels: forward, back, and one step of Adam.

Samples are `first` … `first` + `count`; addresses and bytes between panels as in `products`. p is
the table of `memory`, `layers` one of the tables of `panels`.
"""

import numpy as np

from rollin.sac import memory as mem
from rollin.sac import panels as packing
from rollin.sac.lanes import PANEL
from rollin.sac.memory import LEARNING_RATE, TAU
from rollin.sac.panels import IN, OUT, TURNED, TURNED_INPUTS, WEIGHTS
from rollin.sac.products import (
    GATE,
    RELU,
    WIDE,
    add_lines,
    multiply,
    multiply_across,
    multiply_single,
)
from rollin.sac.team import share
from rollin.sac.vector import LINE, base, compiled, copy_line, transpose

BETA1, BETA2, EPSILON = np.float32(0.9), np.float32(0.999), np.float32(1e-8)  # Adam
REST1, REST2 = np.float32(0.1), np.float32(0.001)  # 1 - β, not rounded twice
panels = compiled(packing.panels)
NONE = np.int64(-1)  # no target follows
TINY = np.float32(1.2e-38)  # below are denormals, on which a CPU is a hundred times slower


@compiled
def place(array, i, j, first):
    """Address of line `first` of the first panel of array[i, j]."""
    return base(array) + i * array.strides[0] + j * array.strides[1] + LINE * first


@compiled
def hidden(theta, layers, x, x_panel, h, block, first, count):
    """Outputs h[block] of all hidden layers; x: address of the first sample's input."""
    inputs, panel = x, x_panel
    for layer in range(layers.shape[0] - 1):
        inner, wide = layers[layer, IN], panels(layers[layer, OUT])
        weights, step = base(theta) + LINE * layers[layer, WEIGHTS], LINE * (inner + 1)
        out, out_panel = place(h, block, layer, first), h.strides[2]
        multiply(inputs, panel, weights, step, out, out_panel, count, wide, inner, RELU, out)
        inputs, panel = out, out_panel


@compiled
def values(theta, layers, x, c, h, out, first, count):
    """A critic's values of some samples of x, (panels, lines, 16)."""
    hidden(theta, layers, base(x) + LINE * first, x.strides[0], h, c, first, count)
    last = layers.shape[0] - 1
    weights, below = base(theta) + LINE * layers[last, WEIGHTS], place(h, c, last - 1, first)
    into = base(out) + 4 * first
    multiply_single(below, h.strides[2], weights, into, count, layers[last, IN])


@compiled
def backward(turned, layers, top, h, block, delta, c, first, count):
    """From delta[c] of layer `top` to those of all layers below, some samples."""
    for layer in range(top, 0, -1):
        inner, wide = layers[layer, OUT], panels(layers[layer, IN])
        weights, step = base(turned) + LINE * layers[layer, TURNED], LINE * inner
        above, below = place(delta, c, layer, first), place(delta, c, layer - 1, first)
        gate, panel = place(h, block, layer - 1, first), delta.strides[2]
        multiply(above, panel, weights, step, below, panel, count, wide, inner, GATE, gate)


@compiled
def step_of(p, count):
    """Of step number `count` of Adam: the learning rate and the correction of v; τ of targets."""
    settings = mem.settings(p)
    rate = np.float32(settings[LEARNING_RATE] / (1.0 - 0.9 ** float(count)))
    return rate, np.float32(1.0 / (1.0 - 0.999 ** float(count))), settings[TAU]


@compiled
def adam(p, gradient, begin, end, step, target_begin):
    """One step of Adam on theta[begin:end]; the target follows if `target_begin` is not negative.

    step: what `step_of` gives.
    """
    rate, correction, tau = step
    theta, m, v = mem.theta(p)[begin:end], mem.m(p)[begin:end], mem.v(p)[begin:end]
    for i in range(end - begin):
        g = gradient[i]
        mean = BETA1 * m[i] + REST1 * g
        square = BETA2 * v[i] + REST2 * g * g
        m[i] = mean if abs(mean) > TINY else np.float32(0)
        v[i] = square if square > TINY else np.float32(0)
        theta[i] -= rate * mean / (np.sqrt(square * correction) + EPSILON)
    if target_begin >= 0:
        target = mem.target(p)[target_begin : target_begin + end - begin]
        for i in range(end - begin):
            target[i] += tau * (theta[i] - target[i])


@compiled
def turn(p, layers, layer, panel, first, rows):
    """Write the transpose of some weights: of the outputs of a panel, of `rows` inputs at most."""
    outputs = layers[layer, OUT]
    flat = mem.theta(p)
    theta = flat.reshape((flat.size // PANEL, PANEL))
    line = layers[layer, WEIGHTS] + panel * (layers[layer, IN] + 1)
    end = min(first + rows, layers[layer, TURNED_INPUTS])
    columns = min(PANEL, outputs - panel * PANEL)
    for row in range(first, end, PANEL):
        to = layers[layer, TURNED] + row // PANEL * outputs + panel * PANEL
        some = min(PANEL, end - row)
        transpose(theta, line + row, 0, mem.turned(p), to, 0, some, columns)


@compiled
def descend(p, layers, layer, x, x_panel, delta, d_panel, step, offset, who):
    """A member's part of a layer: its gradient over the batch, Adam, the transpose.

    A layer is split by its outputs or by its inputs, whichever are more. x, delta: addresses of
    its inputs and of the deltas of its outputs; offset: the first line that a target follows.
    """
    thread, member, members = who
    size, wide, samples = layers[layer, IN], panels(layers[layer, OUT]), mem.batch(p).shape[0]
    by_outputs = wide > panels(size)
    begin, count = share(wide, 1, member, members) if by_outputs else (0, wide)
    first, rows = (0, size + 1) if by_outputs else share(size + 1, PANEL, member, members)
    if count == 0 or rows == 0:
        return
    weights = min(rows, size - first)  # one row less where the bias is among them
    sums, strip = mem.sums(p)[thread], mem.gradient(p)[thread]
    if weights < rows:
        add_lines(base(mem.ones(p)), delta + begin * d_panel, d_panel, base(sums), count, samples)
    inputs = x + first // PANEL * x_panel
    for panel in range(begin, begin + count, WIDE):
        some, above = min(WIDE, begin + count - panel), delta + panel * d_panel
        out, out_panel = base(strip), LINE * rows
        multiply_across(inputs, x_panel, above, d_panel, out, out_panel, weights, some, samples)
        for i in range(some):
            if weights < rows:
                copy_line(base(sums[panel + i - begin]), base(strip[i * rows + weights]))
            line = layers[layer, WEIGHTS] + (panel + i) * (size + 1) + first
            target_begin = PANEL * (line - offset) if offset >= 0 else NONE
            gradient = strip[i * rows : (i + 1) * rows].reshape(rows * PANEL)
            adam(p, gradient, PANEL * line, PANEL * (line + rows), step, target_begin)
            turn(p, layers, layer, panel + i, first, weights)


@compiled
def descend_last(p, layers, x, x_panel, delta, step, offset, who):
    """The same for the last layer of a critic, a vector; delta: a number per sample."""
    thread, member, members = who
    last, samples = layers.shape[0] - 1, mem.batch(p).shape[0]
    size = layers[last, IN]
    first, rows = share(size + 1, PANEL, member, members)
    if rows == 0:
        return
    weights = min(rows, size - first)
    strip = mem.gradient(p)[thread]
    inputs = x + first // PANEL * x_panel
    add_lines(base(delta), inputs, x_panel, base(strip), panels(weights), samples)
    gradient = strip.reshape(strip.size)
    if weights < rows:
        total = np.float32(0)
        for i in range(samples):
            total += delta[i]
        gradient[weights] = total
    begin = PANEL * layers[last, WEIGHTS] + first
    adam(p, gradient, begin, begin + rows, step, begin - PANEL * offset)
