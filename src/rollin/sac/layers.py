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
    RUN,
    WIDE,
    add_lines,
    multiply,
    multiply_across,
    multiply_single,
)
from rollin.sac.team import share
from rollin.sac.vector import (
    LINE,
    adam_line,
    base,
    compiled,
    compiled_as,
    follow_line,
    inlined,
    transpose,
)

panels = compiled(packing.panels)
NONE = np.int64(-1)  # no target follows
CHUNK = np.int64(LINE * PANEL)  # bytes of the gradient of 16 inputs and a panel


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
def adam(p, gradient, line, count, step, target_line):
    """One step of Adam on `count` lines of theta; the target follows if its line is not negative.

    gradient: the address of so many lines; step: what `step_of` gives.
    """
    rate, correction, tau = step
    begin = LINE * line
    theta, m, v = base(mem.theta(p)) + begin, base(mem.m(p)) + begin, base(mem.v(p)) + begin
    for i in range(count):
        at = LINE * i
        adam_line(gradient + at, theta + at, m + at, v + at, rate, correction)
    if target_line >= 0:
        target = base(mem.target(p)) + LINE * target_line
        for i in range(count):
            follow_line(theta + LINE * i, target + LINE * i, tau)


@inlined
def note(runs, count, address, lines):
    """Note runs of lines for the caches to fetch; how many there are then."""
    for i in range(0, lines, RUN):
        runs[count] = address + LINE * i
        count += 1
    return count


@compiled
def note_step(p, runs, count, line, rows, target_line):
    """Note what `adam` will read and write; how many runs there are then."""
    begin = LINE * line
    for array in (mem.theta(p), mem.m(p), mem.v(p)):
        count = note(runs, count, base(array) + begin, rows)
    if target_line >= 0:
        count = note(runs, count, base(mem.target(p)) + LINE * target_line, rows)
    return count


@compiled
def turn(p, layers, layer, panel, some, first, rows):
    """Write the transpose of some weights: outputs of some panels, inputs of one panel at most."""
    outputs = layers[layer, OUT]
    flat = mem.theta(p)
    theta = flat.reshape((flat.size // PANEL, PANEL))
    below = min(first + rows, layers[layer, TURNED_INPUTS]) - first
    for n in range(panel, panel + some):
        line = layers[layer, WEIGHTS] + n * (layers[layer, IN] + 1)
        columns = min(PANEL, outputs - n * PANEL)
        to = layers[layer, TURNED] + first // PANEL * outputs + n * PANEL
        transpose(theta, line + first, 0, mem.turned(p), to, 0, below, columns)


@compiled
def note_turned(p, layers, layer, panel, some, first, rows, offset, runs, count):
    """Note what `turn` will write; how many runs there are then."""
    if first < layers[layer, TURNED_INPUTS]:
        to = layers[layer, TURNED] + first // PANEL * layers[layer, OUT] + panel * PANEL
        count = note(runs, count, base(mem.turned(p)) + LINE * to, some * PANEL)
    return count


@compiled
def finish(p, layers, layer, panel, some, first, rows, offset):
    """After a step of Adam on some weights; `offset` is for targets."""
    turn(p, layers, layer, panel, some, first, rows)


def descending(name, across, add, terms, note_more, finish):
    """A layer's gradient over the batch and a step of Adam, from these products over samples.

    name: of the function; terms: how many lines of inputs and deltas so many samples take;
    note_more, finish: what follows the step, noted for the caches and done.
    """

    def descend(p, layers, layer, x, x_panel, delta, d_panel, step, offset, who):
        """A member's part of a layer.

        A layer is split by its outputs or by its inputs, whichever are more. x, delta: addresses of
        its inputs and of the deltas of its outputs; offset: the first line that a target follows.

        Weights are stepped 16 inputs at a time, whose numbers the caches fetch meanwhile.
        """
        thread, member, members = who
        size, wide, count = layers[layer, IN], panels(layers[layer, OUT]), terms(mem.batch(p))
        by_outputs = wide > panels(size)
        begin, mine = share(wide, 1, member, members) if by_outputs else (0, wide)
        first, rows = (0, size + 1) if by_outputs else share(size + 1, PANEL, member, members)
        if mine == 0 or rows == 0:
            return
        weights = min(rows, size - first)  # one row less where the bias is among them
        sums, strip = base(mem.sums(p)[thread]), base(mem.gradient(p)[thread])
        runs = mem.runs(p)[thread]
        if weights < rows:
            add(base(mem.ones(p)), delta + begin * d_panel, d_panel, sums, mine, count)
        for panel in range(begin, begin + mine, WIDE):
            some, above = min(WIDE, begin + mine - panel), delta + panel * d_panel
            for row in range(first, first + weights, PANEL):
                height, noted = min(PANEL, first + weights - row), 0
                for n in range(panel, panel + some):
                    line = layers[layer, WEIGHTS] + n * (size + 1) + row
                    target_line = line - offset if offset >= 0 else NONE
                    noted = note_step(p, runs, noted, line, height, target_line)
                noted = note_more(p, layers, layer, panel, some, row, height, offset, runs, noted)
                inputs, asked = x + row // PANEL * x_panel, base(runs)
                across(inputs, above, d_panel, strip, CHUNK, height, some, count, asked, noted)
                for n in range(some):
                    line = layers[layer, WEIGHTS] + (panel + n) * (size + 1) + row
                    target_line = line - offset if offset >= 0 else NONE
                    adam(p, strip + CHUNK * n, line, height, step, target_line)
                finish(p, layers, layer, panel, some, row, height, offset)
            if weights < rows:
                for n in range(panel, panel + some):
                    line = layers[layer, WEIGHTS] + (n + 1) * (size + 1) - 1
                    target_line = line - offset if offset >= 0 else NONE
                    adam(p, sums + LINE * (n - begin), line, 1, step, target_line)

    return compiled_as(name, descend)


@inlined
def one_each(batch):
    """Lines that the samples of a batch take."""
    return batch.shape[0]


descend = descending("descend", multiply_across, add_lines, one_each, note_turned, finish)


def descending_last(name, add, terms):
    """The same for the last layer of a critic, a vector."""

    def descend_last(p, layers, x, x_panel, delta, factors, step, offset, who):
        """A member's part. delta: a number per sample; factors: their address for `add`."""
        thread, member, members = who
        last = layers.shape[0] - 1
        size = layers[last, IN]
        first, rows = share(size + 1, PANEL, member, members)
        if rows == 0:
            return
        weights = min(rows, size - first)
        strip, whole = mem.gradient(p)[thread], panels(weights)
        add(factors, x + first // PANEL * x_panel, x_panel, base(strip), whole, terms(mem.batch(p)))
        if weights < rows:
            total = np.float32(0)
            for i in range(mem.batch(p).shape[0]):
                total += delta[i]
            strip[whole] = np.float32(0)
            strip[weights // PANEL, weights % PANEL] = total
        line = layers[last, WEIGHTS] + first // PANEL
        adam(p, base(strip), line, panels(rows), step, line - offset)

    return compiled_as(name, descend_last)


descend_last = descending_last("descend_last", add_lines, one_each)
