"""Products of matrices of bfloat16 numbers, summed in float32.

A matrix is kept in lines of 64 bytes, which hold pairs, in one of two ways:

    rows    ⌈N / 32⌉ panels of R lines: 32 neighbouring columns of a row in a line, in pairs
    pairs   ⌈N / 16⌉ panels of ⌈R / 2⌉ lines: 16 columns of two neighbouring rows in a line

Activations and deltas are kept as rows, along which k runs forward and backward, and as pairs of
samples, over which it runs for the weights' gradients; weights and their transposes as pairs of
inputs and of outputs. So a product is that of `gemm`, with k in pairs:

    forward    Y  = X W     X as rows, W as pairs of inputs
    inputs     dX = dY Wᵀ   dY as rows, Wᵀ as pairs of outputs
    weights    dW = Xᵀ dY   both as pairs of samples

While a tile is in registers, all that follows is done (`Ends`): a ReLU or its derivative, rounding,
both layouts, a bit for each number that a ReLU let through, and a critic's last layer. Sums begin
with the bias. A first layer's inputs are not rounded: its forward product is one of float32 numbers
with the same ends.
"""

from collections.abc import Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from llvmlite import ir

from rollin.llvm import (
    compiled_as,
    constant,
    inlined,
    int64,
    load,
    multiply_add,
    shuffle,
    store,
)
from rollin.sac.cpu.gemm import (
    ABREAST,
    WIDE,
    Panels,
    Tile,
    adding,
    compile_tile,
    crossing,
    down,
    right,
    strip_of,
)
from rollin.sac.cpu.simd import LANES, LINE, PANEL, PARTS, TILES, VECTOR, ZERO, interleaved, rounded

# what is done with a tile; one of the first two at most
RELU, GATE, MASK, VALUE, ROWS, PAIRS, FLOATS = (np.int64(1 << n) for n in range(7))
_CHANGED = int(RELU | GATE)
# of tiles that store pairs of rows: even, but for a last row by itself
_HEIGHTS = tuple(height for height in TILES.heights if height == 1 or height % 2 == 0)
_BIT = ir.IntType(1)


class Ends(NamedTuple):
    """Where a product goes, from its first row and first column on."""

    rows: Any  # as rows
    pairs: Any  # as pairs
    mask: Any  # a word for each row and 32 columns, a bit for each number: positive, or let through
    value: Any  # address of a line for each row: sums of the numbers times `last`, over panels
    last: Any  # address of a line for each panel
    floats: Any  # as float32, in panels


@inlined
def _further(ends, count):
    """Return the same, so many rows further down."""
    return Ends(
        down(ends.rows, count),
        Panels(ends.pairs.addr + LINE // 2 * count, ends.pairs.stride),
        Panels(ends.mask.addr + 4 * count, ends.mask.stride),
        ends.value + LINE * count,
        ends.last,
        down(ends.floats, count),
    )


@inlined
def _beside(ends, panel):
    """Return the same, so many panels of 16 columns to the right."""
    half = panel % 2
    whole = panel // 2
    return Ends(
        Panels(ends.rows.addr + whole * ends.rows.stride + LINE // 2 * half, ends.rows.stride),
        right(ends.pairs, panel),
        Panels(ends.mask.addr + whole * ends.mask.stride + 2 * half, ends.mask.stride),
        ends.value,
        ends.last + LINE * panel,
        right(ends.floats, panel),
    )


class EndedTile(Tile):
    """A tile of C = A B + bias whose ends are those that flags name at run time."""

    @property
    def name(self) -> str:
        """The name of the tile's functions."""
        return "ended_pairs" if self.pairs else "ended_floats"

    def write(self, builder, a, b, bias, inner, flags, ends) -> None:
        """Write the body of the tile's function."""
        starts = self.begins(builder, b)
        biases = self.begins(builder, bias)
        first = [load(builder, VECTOR, biases[p], offset) for p, offset in self.columns]

        def add(k: Any, count: int, sums: list[Any]) -> list[Any]:
            return self.terms(builder, a, starts, k, count, sums)

        sums = self.summed(builder, first * self.rows, inner, add)
        gated = partial(self._gated, mask=ends.mask.addr)
        sums = _changed(builder, sums, flags, self._relu, gated)
        width = len(self.columns)
        rows = [sums[r * width : (r + 1) * width] for r in range(self.rows)]
        with _if(builder, flags, VALUE):
            self._add_values(builder, rows, ends)
        with _if(builder, flags, FLOATS):
            begins = self.begins(builder, ends.floats)
            for r, row in enumerate(rows):
                for value, (p, offset) in zip(row, self.columns, strict=True):
                    store(builder, value, begins[p], LINE * r + offset)
        with _if(builder, flags, MASK | ROWS | PAIRS):
            self._store_rounded(builder, [rounded(builder, row) for row in rows], flags, ends)

    def _relu(self, builder: Any, sums: Sequence[Any]) -> list[Any]:
        changed = []
        for value in sums:
            positive = builder.fcmp_unordered(">", value, ZERO)  # lets NaN pass
            changed.append(builder.select(positive, value, ZERO))
        return changed

    def _gated(self, builder: Any, sums: Sequence[Any], mask: Any) -> list[Any]:
        count = PANEL * self.panels
        changed = []
        for r in range(self.rows):
            bits = load(builder, ir.IntType(count), mask, 4 * r)
            word = builder.bitcast(bits, ir.VectorType(_BIT, count))
            for v in range(len(self.columns)):
                let_through = shuffle(builder, word, word, range(LANES * v, LANES * (v + 1)))
                value = sums[r * len(self.columns) + v]
                changed.append(builder.select(let_through, value, ZERO))
        return changed

    def _add_values(self, builder: Any, rows: Sequence[Sequence[Any]], ends: Ends) -> None:
        """Add the numbers of each row times those of the last layer to the row's line."""
        for r, row in enumerate(rows):
            for v, offset in enumerate(PARTS):
                total = load(builder, VECTOR, ends.value, LINE * r + offset)
                for p in range(self.panels):
                    weight = load(builder, VECTOR, ends.last, LINE * p + offset)
                    total = multiply_add(builder, row[p * len(PARTS) + v], weight, total)
                store(builder, total, ends.value, LINE * r + offset)

    def _store_rounded(self, builder: Any, words: Sequence[Any], flags: Any, ends: Ends) -> None:
        """Store rounded rows in the layouts that flags name."""
        none = constant(words[0].type, 0)
        with _if(builder, flags, MASK):
            for r, word in enumerate(words):
                bits = builder.icmp_unsigned("!=", word, none)
                bits = builder.bitcast(bits, ir.IntType(PANEL * self.panels))
                store(builder, bits, ends.mask.addr, 4 * r)
        with _if(builder, flags, ROWS):
            for r, word in enumerate(words):
                store(builder, word, ends.rows.addr, LINE * r)
        with _if(builder, flags, PAIRS):
            begins = self.begins(builder, ends.pairs)
            for r in range(0, len(words), 2):
                second = words[r + 1] if r + 1 < len(words) else none
                for p, line in enumerate(interleaved(builder, words[r], second)):
                    store(builder, line, begins[p], LINE // 2 * r)


def _if(builder: Any, flags: Any, some: Any) -> Any:
    """Return a context in which code for any of some flags is written."""
    any_of = builder.and_(flags, int64(int(some)))
    return builder.if_then(builder.icmp_unsigned("!=", any_of, int64(0)))


def _changed(builder: Any, sums: list[Any], flags: Any, relu: Any, gated: Any) -> list[Any]:
    """Return the sums after a ReLU, through a gate, or as they are."""
    before = builder.block
    after = builder.append_basic_block("changed")
    switch = builder.switch(builder.and_(flags, int64(_CHANGED)), after)
    cases = [(before, sums)]
    for flag, change in ((RELU, relu), (GATE, gated)):
        block = builder.append_basic_block("change")
        switch.add_case(int64(int(flag)), block)
        builder.position_at_end(block)
        cases.append((block, change(builder, sums)))
        builder.branch(after)
    builder.position_at_end(after)
    phis = [builder.phi(VECTOR) for _ in sums]
    for block, values in cases:
        for phi, value in zip(phis, values, strict=True):
            phi.add_incoming(value, block)
    return phis


def _strip(heights: tuple[int, ...], panels: int, pairs: bool) -> Any:
    """Return a strip of C, as `gemm.strip_of` makes them."""
    height = heights[0]
    tile = EndedTile("along", height, panels, pairs)
    run = compile_tile(tile)
    lower = _strip(heights[1:], panels, pairs) if len(heights) > 1 else None

    def strip(a, b, bias, rows, inner, flags, ends):
        while rows >= height:
            run(a, b, bias, inner, flags, ends)
            rows -= height
            a = down(a, height)
            ends = _further(ends, height)
        if lower is not None and rows > 0:
            lower(a, b, bias, rows, inner, flags, ends)

    return compiled_as(f"strip_{tile.name}_{height}_{panels}", strip)


def _multiplying(pairs: bool) -> Any:
    """Return C = A B + bias, `rows` of A, `inner` lines and `panels` panels of B."""
    wide = _strip(_HEIGHTS, WIDE, pairs)
    narrow = wide if WIDE == 1 else _strip(_HEIGHTS, 1, pairs)

    def multiply(a, b, bias, rows, panels, inner, flags, ends):
        panel = np.int64(0)
        while panels - panel >= WIDE:
            wide(a, right(b, panel), right(bias, panel), rows, inner, flags, _beside(ends, panel))
            panel += WIDE
        while panel < panels:
            narrow(a, right(b, panel), right(bias, panel), rows, inner, flags, _beside(ends, panel))
            panel += 1

    return compiled_as(f"multiply_{'pairs' if pairs else 'floats'}", multiply)


multiply_pairs = _multiplying(pairs=True)
"""C = A B + bias: A as rows, B as pairs; `inner`: how many pairs."""
multiply_floats = _multiplying(pairs=False)
"""The same of float32 numbers in panels."""

_across_wide = strip_of("across", TILES.heights, WIDE, pairs=True)
_across = _across_wide if WIDE == 1 else strip_of("across", TILES.heights, 1, pairs=True)
multiply_pairs_across = crossing("multiply_pairs_across", _across_wide, _across)
"""C = Aᵀ B of matrices as pairs, summed over `inner` lines; see `gemm.multiply_across`."""
add_pair_lines = adding(
    "add_pair_lines",
    *(strip_of("weighted", (1,), panels, pairs=True) for panels in (ABREAST, 2, 1)),
)
"""The sums of a matrix's rows, times a vector in pairs; see `gemm.add_lines`."""
