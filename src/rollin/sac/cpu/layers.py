"""Layers of networks in panels: forward, back, and one step of Adam.

Samples are `first` … `first` + `count`. p is the table of `memory`, `layers` one of its tables of
layers.
"""

from typing import Any, NamedTuple

import numpy as np

from rollin.llvm import addr, compiled, compiled_as, inlined
from rollin.sac.cpu import memory as mem
from rollin.sac.cpu.gemm import (
    GATE,
    RELU,
    RUN,
    WIDE,
    Fetches,
    Panels,
    add_lines,
    multiply,
    multiply_across,
    right,
)
from rollin.sac.cpu.memory import (
    IN,
    LEARNING_RATE,
    OUT,
    TAU,
    TURNED,
    TURNED_INPUTS,
    WEIGHTS,
    panel_count,
)
from rollin.sac.cpu.simd import LINE, PANEL, adam_line, follow_line, transpose

UNFOLLOWED = np.int64(-1)  # no target follows
CHUNK = np.int64(LINE * PANEL)  # bytes of the gradient of 16 inputs and a panel


class Part(NamedTuple):
    """Some weights of a layer: outputs of some panels, inputs of one panel at most.

    offset: the first line that a target follows, or negative.
    """

    panel: Any
    panels: Any
    first: Any
    rows: Any
    offset: Any


# ------------------------------------------------------------------ places


@inlined
def block(array, i, j, first):
    """Return array[i, j] in panels, from line `first`."""
    begin = addr(array) + i * array.strides[0] + j * array.strides[1]
    return Panels(begin + LINE * first, np.int64(array.strides[2]))


@inlined
def matrix(array, first):
    """Return an array in panels, from line `first`."""
    return Panels(addr(array) + LINE * first, np.int64(array.strides[0]))


@inlined
def weights(theta, layers, layer):
    """Return a layer's weights; the bias is the line behind them."""
    return Panels(addr(theta) + LINE * layers[layer, WEIGHTS], LINE * (layers[layer, IN] + 1))


@inlined
def transposed(p, layers, layer):
    """Return the transpose of a layer's weights."""
    return Panels(addr(mem.turned(p)) + LINE * layers[layer, TURNED], LINE * layers[layer, OUT])


@compiled
def share(total, grain, rank, threads):
    """Return begin and size of one thread's part of `total` things in grains that are not split."""
    grains = (total + grain - 1) // grain
    begin = min(total, grains * rank // threads * grain)
    end = min(total, grains * (rank + 1) // threads * grain)
    return begin, end - begin


# ------------------------------------------------------------------ forward and back


@compiled
def forward(theta, layers, x, h, i, first, count):
    """Write the outputs h[i] of all hidden layers; x: the inputs of these samples."""
    for layer in range(layers.shape[0] - 1):
        out = block(h, i, layer, first)
        wide = panel_count(layers[layer, OUT])
        w = weights(theta, layers, layer)
        multiply(x, w, out, count, wide, layers[layer, IN], RELU, out.addr)
        x = out


@compiled
def backward(p, layers, top, h, i, delta, c, first, count):
    """Carry delta[c] of layer `top` back to all layers below."""
    for layer in range(top, 0, -1):
        above = block(delta, c, layer, first)
        below = block(delta, c, layer - 1, first)
        gate = block(h, i, layer - 1, first)
        wide = panel_count(layers[layer, IN])
        w = transposed(p, layers, layer)
        multiply(above, w, below, count, wide, layers[layer, OUT], GATE, gate.addr)


# ------------------------------------------------------------------ Adam


@compiled
def step_of(p, count):
    """Return the learning rate and v's correction of step `count` of Adam, and τ of targets."""
    settings = mem.settings(p)
    rate = np.float32(settings[LEARNING_RATE] / (1.0 - 0.9 ** float(count)))
    return rate, np.float32(1.0 / (1.0 - 0.999 ** float(count))), settings[TAU]


@compiled
def adam(p, gradient_addr, line, count, step, offset):
    """Make one step of Adam on `count` lines of theta; the target follows, see `Part.offset`."""
    rate, correction, tau = step
    theta_addr = addr(mem.theta(p)) + LINE * line
    m_addr = addr(mem.m(p)) + LINE * line
    v_addr = addr(mem.v(p)) + LINE * line
    for at in range(0, LINE * count, LINE):
        adam_line(gradient_addr + at, theta_addr + at, m_addr + at, v_addr + at, rate, correction)
    if offset >= 0:
        target_addr = addr(mem.target(p)) + LINE * (line - offset)
        for at in range(0, LINE * count, LINE):
            follow_line(theta_addr + at, target_addr + at, tau)


@inlined
def note(runs, count, address, lines):
    """Note runs of lines for the caches to fetch; return how many there are then."""
    for i in range(0, lines, RUN):
        runs[count] = address + LINE * i
        count += 1
    return count


@compiled
def note_step(p, runs, count, line, rows, offset):
    """Note what `adam` will read and write; return how many runs there are then."""
    for array in (mem.theta(p), mem.m(p), mem.v(p)):
        count = note(runs, count, addr(array) + LINE * line, rows)
    if offset >= 0:
        count = note(runs, count, addr(mem.target(p)) + LINE * (line - offset), rows)
    return count


@compiled
def turn(p, layers, layer, part):
    """Write the transpose of some weights."""
    flat = mem.theta(p)
    theta = flat.reshape((flat.size // PANEL, PANEL))
    outputs = layers[layer, OUT]
    inputs = min(part.first + part.rows, layers[layer, TURNED_INPUTS]) - part.first
    for n in range(part.panel, part.panel + part.panels):
        line = layers[layer, WEIGHTS] + n * (layers[layer, IN] + 1)
        columns = min(PANEL, outputs - n * PANEL)
        to = layers[layer, TURNED] + part.first // PANEL * outputs + n * PANEL
        transpose(theta, line + part.first, 0, mem.turned(p), to, 0, inputs, columns)


@compiled
def note_turned(p, layers, layer, part, runs, count):
    """Note what `turn` will write; return how many runs there are then."""
    if part.first < layers[layer, TURNED_INPUTS]:
        first = part.first // PANEL * layers[layer, OUT] + part.panel * PANEL
        begin = addr(mem.turned(p)) + LINE * (layers[layer, TURNED] + first)
        count = note(runs, count, begin, part.panels * PANEL)
    return count


def descending(name, across, add, terms, note_more, finish):
    """Return a layer's gradient over the batch and a step of Adam, from products over samples.

    name: of the function; terms: how many lines of inputs and deltas so many samples take;
    note_more, finish: what follows the step, noted for the caches and done.
    """

    def descend(p, layers, layer, x, delta, step, offset, who):
        """Do a member's part of a layer, which is split by its outputs or inputs, if more.

        x, delta: inputs and deltas of the outputs. Weights are stepped 16 inputs at a time, whose
        numbers the caches fetch meanwhile.
        """
        thread, member, members = who
        size = layers[layer, IN]
        wide = panel_count(layers[layer, OUT])
        count = terms(mem.batch(p).shape[0])
        by_outputs = wide > panel_count(size)
        begin, mine = share(wide, 1, member, members) if by_outputs else (0, wide)
        first, rows = (0, size + 1) if by_outputs else share(size + 1, PANEL, member, members)
        if mine == 0 or rows == 0:
            return
        last = first + min(rows, size - first)  # the bias, if it is among these rows
        has_bias = last < first + rows
        sums_addr = addr(mem.sums(p)[thread])
        strip = Panels(addr(mem.gradient(p)[thread]), CHUNK)
        runs = mem.runs(p)[thread]
        if has_bias:
            add(addr(mem.ones(p)), right(delta, begin), sums_addr, mine, count)
        for panel in range(begin, begin + mine, WIDE):
            some = min(WIDE, begin + mine - panel)
            for row in range(first, last, PANEL):
                part = Part(panel, some, row, min(PANEL, last - row), offset)
                line = layers[layer, WEIGHTS] + panel * (size + 1) + row
                noted = 0
                for n in range(some):
                    noted = note_step(p, runs, noted, line + n * (size + 1), part.rows, offset)
                noted = note_more(p, layers, layer, part, runs, noted)
                inputs_addr = x.addr + row // PANEL * x.stride
                fetches = Fetches(addr(runs), noted)
                above = right(delta, panel)
                across(inputs_addr, above, strip, part.rows, some, count, fetches)
                for n in range(some):
                    strip_addr = strip.addr + CHUNK * n
                    adam(p, strip_addr, line + n * (size + 1), part.rows, step, offset)
                finish(p, layers, layer, part)
            if has_bias:
                for n in range(panel, panel + some):
                    line = layers[layer, WEIGHTS] + (n + 1) * (size + 1) - 1
                    adam(p, sums_addr + LINE * (n - begin), line, 1, step, offset)

    return compiled_as(name, descend)


def descending_last(name, add, terms):
    """Return the same for the last layer of a critic, a vector."""

    def descend_last(p, layers, x, delta, factors_addr, step, offset, who):
        """Do a member's part. delta: a number per sample; factors: the same, as `add` reads it."""
        thread, member, members = who
        last = layers.shape[0] - 1
        size = layers[last, IN]
        first, rows = share(size + 1, PANEL, member, members)
        if rows == 0:
            return
        mine = min(rows, size - first)
        strip = mem.gradient(p)[thread]
        whole = panel_count(mine)
        samples = mem.batch(p).shape[0]
        add(factors_addr, right(x, first // PANEL), addr(strip), whole, terms(samples))
        if mine < rows:
            total = np.float32(0)
            for i in range(samples):
                total += delta[i]
            strip[whole] = np.float32(0)
            strip[mine // PANEL, mine % PANEL] = total
        line = layers[last, WEIGHTS] + first // PANEL
        adam(p, addr(strip), line, panel_count(rows), step, offset)

    return compiled_as(name, descend_last)


@inlined
def one_each(samples):
    """Return the lines that samples take."""
    return samples


descend = descending("descend", multiply_across, add_lines, one_each, note_turned, turn)
descend_last = descending_last("descend_last", add_lines, one_each)
