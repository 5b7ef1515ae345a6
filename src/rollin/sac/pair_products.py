"""Products of matrices of bfloat16 numbers, summed in float32.

A matrix is kept in lines of 64 bytes, which hold pairs, in one of two ways:

    rows    ⌈N / 32⌉ panels of R lines: 32 neighbouring columns of a row in a line, in pairs
    pairs   ⌈N / 16⌉ panels of ⌈R / 2⌉ lines: 16 columns of two neighbouring rows in a line

Activations and deltas are kept as rows, along which k runs forward and backward, and as pairs of
samples, over which it runs for the weights' gradients; weights and their transposes as pairs of
inputs and of outputs. So a product is that of `products`, with k in pairs:

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
from numba import types

from rollin.sac.lanes import LANES, PANEL, TILES
from rollin.sac.pairs import interleaved, rounded
from rollin.sac.products import (
    ABREAST,
    WIDE,
    Tile,
    adding,
    crossing,
    strip_of,
)
from rollin.sac.vector import (
    INT32,
    LINE,
    VECTOR,
    calling,
    compiled_as,
    inlined,
    int64,
    intrinsic,
    load,
    multiply_add,
    store,
    zero,
)

# what is done with a tile; one of the first two at most
RELU, GATE, MASK, VALUE, ROWS, PAIRS, FLOATS = (np.int64(1 << n) for n in range(7))
_CHANGED = int(RELU | GATE)
# of tiles that store pairs of rows: even, but for a last row by itself
_HEIGHTS = tuple(height for height in TILES.heights if height == 1 or height % 2 == 0)
_VECTORS = PANEL // LANES  # of a line
_BIT = ir.IntType(1)


class Ends(NamedTuple):
    """Where a product goes: addresses of its first row and first column, and bytes of panels."""

    rows: Any  # as rows, from there on
    rows_panel: Any
    pairs: Any  # as pairs
    pairs_panel: Any
    mask: Any  # a word for each row and 32 columns, a bit for each number: positive, or let through
    mask_panel: Any
    value: Any  # a line for each row: sums of the numbers times `last`, over panels
    last: Any  # a line for each panel
    floats: Any  # as float32, in panels
    floats_panel: Any


@inlined
def _further(ends, rows):
    """The same, so many rows further down."""
    return Ends(
        ends.rows + LINE * rows,
        ends.rows_panel,
        ends.pairs + LINE // 2 * rows,
        ends.pairs_panel,
        ends.mask + 4 * rows,
        ends.mask_panel,
        ends.value + LINE * rows,
        ends.last,
        ends.floats + LINE * rows,
        ends.floats_panel,
    )


@inlined
def _beside(ends, panel):
    """The same, so many panels of 16 columns to the right."""
    half, whole = panel % 2, panel // 2
    return Ends(
        ends.rows + whole * ends.rows_panel + LINE // 2 * half,
        ends.rows_panel,
        ends.pairs + panel * ends.pairs_panel,
        ends.pairs_panel,
        ends.mask + whole * ends.mask_panel + 2 * half,
        ends.mask_panel,
        ends.value,
        ends.last + LINE * panel,
        ends.floats + panel * ends.floats_panel,
        ends.floats_panel,
    )


class EndedTile(Tile):
    """A tile of C = A B + bias whose ends are those that flags name at run time."""

    @property
    def name(self) -> str:
        """Of the tile's functions."""
        return "ended_pairs" if self.pairs else "ended_floats"

    def write(self, builder, a, a_panel, b, b_panel, bias, bias_panel, inner, flags, *ends) -> None:
        """The body of the tile's function; `bias_panel`: bytes between lines of the bias."""
        to = Ends(*ends)
        starts = [builder.add(b, builder.mul(b_panel, int64(p))) for p in range(self.panels)]
        first = [
            load(builder, VECTOR, builder.add(bias, builder.mul(bias_panel, int64(p))), offset)
            for p, offset in self.columns
        ]

        def add(k: Any, count: int, sums: list[Any]) -> list[Any]:
            return self.terms(builder, (a, a_panel), starts, k, count, sums)

        sums = self.summed(builder, first * self.rows, inner, add)
        sums = _changed(builder, sums, flags, self._relu, partial(self._gated, mask=to.mask))
        width = len(self.columns)
        rows = [sums[r * width : (r + 1) * width] for r in range(self.rows)]
        with _if(builder, flags, VALUE):
            self._add_values(builder, rows, to)
        with _if(builder, flags, FLOATS):
            for r, row in enumerate(rows):
                for value, (p, offset) in zip(row, self.columns, strict=True):
                    panel = builder.add(to.floats, builder.mul(to.floats_panel, int64(p)))
                    store(builder, value, panel, LINE * r + offset)
        with _if(builder, flags, MASK | ROWS | PAIRS):
            self._store_rounded(builder, [rounded(builder, row) for row in rows], flags, to)

    def _relu(self, builder: Any, sums: Sequence[Any]) -> list[Any]:
        found = []
        for value in sums:
            positive = builder.fcmp_unordered(">", value, zero(VECTOR))  # lets NaN pass
            found.append(builder.select(positive, value, zero(VECTOR)))
        return found

    def _gated(self, builder: Any, sums: Sequence[Any], mask: Any) -> list[Any]:
        count, found = PANEL * self.panels, []
        bits = ir.VectorType(_BIT, count)
        for r in range(self.rows):
            word = builder.bitcast(load(builder, ir.IntType(count), mask, 4 * r), bits)
            for v in range(len(self.columns)):
                lanes = ir.Constant(
                    ir.VectorType(INT32, LANES), [LANES * v + i for i in range(LANES)]
                )
                let_through = builder.shuffle_vector(word, word, lanes)
                value = sums[r * len(self.columns) + v]
                found.append(builder.select(let_through, value, zero(VECTOR)))
        return found

    def _add_values(self, builder: Any, rows: Sequence[Sequence[Any]], to: Ends) -> None:
        """Add the numbers of each row times those of the last layer to the row's line."""
        for r, row in enumerate(rows):
            for v in range(_VECTORS):
                offset = 4 * LANES * v
                total = load(builder, VECTOR, to.value, LINE * r + offset)
                for p in range(self.panels):
                    weight = load(builder, VECTOR, to.last, LINE * p + offset)
                    total = multiply_add(builder, row[p * _VECTORS + v], weight, total)
                store(builder, total, to.value, LINE * r + offset)

    def _store_rounded(self, builder: Any, words: Sequence[Any], flags: Any, to: Ends) -> None:
        """Store rounded rows in the layouts that flags name."""
        none = ir.Constant(words[0].type, [0] * PANEL * self.panels)
        with _if(builder, flags, MASK):
            for r, word in enumerate(words):
                bits = builder.icmp_unsigned("!=", word, none)
                store(
                    builder, builder.bitcast(bits, ir.IntType(PANEL * self.panels)), to.mask, 4 * r
                )
        with _if(builder, flags, ROWS):
            for r, word in enumerate(words):
                store(builder, word, to.rows, LINE * r)
        with _if(builder, flags, PAIRS):
            for r in range(0, len(words), 2):
                second = words[r + 1] if r + 1 < len(words) else none
                for p, line in enumerate(interleaved(builder, words[r], second)):
                    panel = builder.add(to.pairs, builder.mul(to.pairs_panel, int64(p)))
                    store(builder, line, panel, LINE // 2 * r)

    def compile(self) -> Any:
        """The tile as a function that compiled code can call."""
        call = calling(f"{self.name}_{self.rows}_{self.panels}", self.write)

        @intrinsic
        def tile(typing, a, a_panel, b, b_panel, bias, bias_panel, inner, flags, ends):
            def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
                *numbers, last = args
                fields = [builder.extract_value(last, i) for i in range(len(Ends._fields))]
                return call(context, builder, signature, [*numbers, *fields])

            return types.void(*[types.int64] * 8, ends), generate

        return tile


def _if(builder: Any, flags: Any, some: Any) -> Any:
    """A context in which code for any of some flags is written."""
    asked = builder.and_(flags, int64(int(some)))
    return builder.if_then(builder.icmp_unsigned("!=", asked, int64(0)))


def _changed(builder: Any, sums: list[Any], flags: Any, relu: Any, gated: Any) -> list[Any]:
    """The sums after a ReLU, through a gate, or as they are."""
    before, after = builder.block, builder.append_basic_block("changed")
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
    """A strip of C, as `products.strip_of` makes them."""
    height = heights[0]
    made = EndedTile("along", height, panels, pairs)
    tile = made.compile()
    lower = _strip(heights[1:], panels, pairs) if len(heights) > 1 else None

    def strip(a, a_panel, b, b_panel, bias, bias_panel, rows, inner, flags, ends):
        while rows >= height:
            tile(a, a_panel, b, b_panel, bias, bias_panel, inner, flags, ends)
            rows, a = rows - height, a + height * LINE
            ends = _further(ends, height)
        if lower is not None and rows > 0:
            lower(a, a_panel, b, b_panel, bias, bias_panel, rows, inner, flags, ends)

    return compiled_as(f"strip_{made.name}_{height}_{panels}", strip)


def _multiplying(pairs: bool) -> Any:
    """C = A B + bias, `rows` of A, `inner` lines and `panels` panels of B."""
    wide = _strip(_HEIGHTS, WIDE, pairs)
    narrow = wide if WIDE == 1 else _strip(_HEIGHTS, 1, pairs)

    def multiply(a, a_panel, b, b_panel, bias, bias_panel, rows, panels, inner, flags, ends):
        panel = np.int64(0)
        while panels - panel >= WIDE:
            begin, first = b + panel * b_panel, bias + panel * bias_panel
            to = _beside(ends, panel)
            wide(a, a_panel, begin, b_panel, first, bias_panel, rows, inner, flags, to)
            panel += WIDE
        while panel < panels:
            begin, first = b + panel * b_panel, bias + panel * bias_panel
            to = _beside(ends, panel)
            narrow(a, a_panel, begin, b_panel, first, bias_panel, rows, inner, flags, to)
            panel += 1

    return compiled_as(f"multiply_{'pairs' if pairs else 'floats'}", multiply)


multiply_pairs = _multiplying(pairs=True)
"""C = A B + bias: A as rows, B as pairs; `inner`: how many pairs."""
multiply_floats = _multiplying(pairs=False)
"""The same of float32 numbers in panels."""

_across_wide = strip_of("across", TILES.heights, WIDE, pairs=True)
_across = _across_wide if WIDE == 1 else strip_of("across", TILES.heights, 1, pairs=True)
multiply_pairs_across = crossing("multiply_pairs_across", _across_wide, _across)
"""C = Aᵀ B of matrices as pairs, summed over `inner` lines; see `products.multiply_across`."""
add_pair_lines = adding(
    "add_pair_lines",
    *(strip_of("weighted", (1,), panels, pairs=True) for panels in (ABREAST, 2, 1)),
)
"""The sums of a matrix's rows, times a vector in pairs; see `products.add_lines`."""
