"""Products of matrices in panels, the only arithmetic of a network that takes time.

A matrix of R rows and N columns is kept as ⌈N / 16⌉ *panels*, each of R lines of 16 numbers: entry
(r, n) is number n % 16 of line r of panel n // 16. A line is a cache line. With samples along the
rows of activations, one layout serves all three products of a layer as it is:

    forward    Y  = X W     k runs along the lines of X; B is the panels of W
    inputs     dX = dY Wᵀ   k runs along the lines of dY; B is the panels of Wᵀ, kept beside W
    weights    dW = Xᵀ dY   k runs over the lines of X; B is the panels of dY

B is read from end to end, and one tile's worth of it stays in the first cache while all rows pass;
lines of A are used whole. A bias, a ReLU or its derivative is applied in registers.

Each number of a product is one chain of fused multiply-adds in the order of k, whichever tile or
thread computes it: results are the same to the bit for any number of threads and any vectors.
"""

from collections.abc import Callable
from dataclasses import dataclass
from itertools import product as pairs
from typing import Any, Literal

import numpy as np
from numba import types

from rollin.sac.lanes import LANES, PANEL, TILES
from rollin.sac.pairs import add_product, flush, unflush
from rollin.sac.vector import (
    FLOAT,
    INT64,
    LINE,
    VECTOR,
    calling,
    compiled,
    compiled_as,
    fetch,
    int64,
    intrinsic,
    load,
    multiply_add,
    splat,
    store,
    turned,
    zero,
)

# what happens to a product before it is stored; the bias is the line behind those of B
STORE, BIAS, RELU, GATE = (np.int64(mode) for mode in range(4))
UNROLLED = 4  # k per turn of a tile's loop
FEW = 6  # columns of a panel for which turning the rows is cheaper than computing all 16
RUN = 8  # lines that caches are asked for at once
ABREAST = 4  # panels side by side for a single row, so that enough sums are under way at once

Kind = Literal["along", "across", "single", "weighted"]


@dataclass(frozen=True)
class Tile:
    """The sums of one tile of C = A B in registers, `rows` × (panels · 16).

    b(k) is line k of each panel of B, c(r) line r of each panel of C, and of the gate. kind:
    "along": a(r, k) is number k of row r of a matrix in panels; "across": a(r, k) is number r of
    line k of a panel; "single": as "along", but B and C are vectors of numbers;
    "weighted": a(k) is one of the numbers of a vector. Numbers of A and B are float32, or pairs of
    bfloat16 numbers (`pairs`).
    """

    kind: Kind
    rows: int
    panels: int
    pairs: bool = False

    @property
    def name(self) -> str:
        """Of the tile's functions."""
        return f"pairs_{self.kind}" if self.pairs else self.kind

    @property
    def unit(self) -> Any:
        """What a register holds."""
        return FLOAT if self.kind == "single" else VECTOR

    @property
    def step(self) -> int:
        """Bytes from b(k) to b(k + 1), and from c(r) to c(r + 1)."""
        return 4 if self.kind == "single" else LINE

    @property
    def columns(self) -> list[tuple[int, int]]:
        """Panel, and bytes from the begin of its line, of each register of a row."""
        vectors = 1 if self.kind == "single" else PANEL // LANES
        return [(p, 4 * LANES * v) for p, v in pairs(range(self.panels), range(vectors))]

    def summed(self, builder: Any, sums: list[Any], inner: Any, add: Any) -> list[Any]:
        """The sums and all terms; `add` adds some of them."""
        flushing = flush(builder) if self.pairs else None
        whole = builder.and_(inner, int64(-UNROLLED))
        sums = _loop(builder, int64(0), whole, UNROLLED, sums, add)
        sums = _loop(builder, whole, inner, 1, sums, add)
        unflush(builder, flushing)
        return sums

    def terms(self, builder, numbers, starts, k, count, sums) -> list[Any]:
        """Add the terms k … k + count to the sums; where k is along A, they lie in one line."""
        a, a_panel = numbers
        if self.kind == "across":
            begin, of_row, of_term = builder.add(a, builder.mul(k, int64(LINE))), 4, LINE
        elif self.kind == "weighted":
            begin, of_row, of_term = builder.add(a, builder.mul(k, int64(4))), 0, 4
        else:
            panel = builder.mul(builder.lshr(k, int64(4)), a_panel)
            inside = builder.mul(builder.and_(k, int64(PANEL - 1)), int64(4))
            begin, of_row, of_term = builder.add(builder.add(a, panel), inside), LINE, 4
        lines = [builder.add(start, builder.mul(k, int64(self.step))) for start in starts]
        add = add_product if self.pairs else multiply_add
        for i in range(count):
            factors = [
                load(builder, self.unit, lines[p], self.step * i + o) for p, o in self.columns
            ]
            added = []
            for r in range(self.rows):
                number = load(builder, FLOAT, begin, of_row * r + of_term * i)
                number = splat(builder, number) if self.unit is VECTOR else number
                row = sums[r * len(factors) : (r + 1) * len(factors)]
                added += [
                    add(builder, number, factor, value)
                    for factor, value in zip(factors, row, strict=True)
                ]
            sums = added
        return sums


class StoredTile(Tile):
    """A tile whose sums are stored, after a mode that is named at run time where k is along A.

    Where k is across A, mode is a number of runs of lines, whose addresses stand at gate: caches
    fetch them while terms are added.
    """

    def write(self, builder, a, a_panel, b, b_panel, c, c_panel, inner, mode, gate) -> None:
        """The body of the tile's function."""
        starts, ends, gates = (
            [builder.add(begin, builder.mul(step, int64(p))) for p in range(self.panels)]
            for begin, step in ((b, b_panel), (c, c_panel), (gate, c_panel))
        )

        def add(k: Any, count: int, sums: list[Any]) -> list[Any]:
            if self.kind == "across" and count == UNROLLED:
                _fetch_run(builder, builder.lshr(k, int64(2)), mode, gate)
            return self.terms(builder, (a, a_panel), starts, k, count, sums)

        sums = self.summed(builder, [zero(self.unit)] * (self.rows * len(self.columns)), inner, add)
        bias = builder.mul(inner, int64(self.step))

        def same(value: Any, r: int, p: int, offset: int) -> Any:
            return value

        def biased(value: Any, r: int, p: int, offset: int) -> Any:
            return builder.fadd(
                value, load(builder, self.unit, builder.add(starts[p], bias), offset)
            )

        def relu(value: Any, r: int, p: int, offset: int) -> Any:
            total = biased(value, r, p, offset)
            negative = builder.fcmp_ordered("<", total, zero(self.unit))  # lets NaN pass
            return builder.select(negative, zero(self.unit), total)

        def gated(value: Any, r: int, p: int, offset: int) -> Any:
            active = load(builder, self.unit, gates[p], LINE * r + offset)
            positive = builder.fcmp_ordered(">", active, zero(self.unit))
            return builder.select(positive, value, zero(self.unit))

        def finish(change: Callable[..., Any]) -> None:
            places = list(pairs(range(self.rows), self.columns))
            values = [change(value, r, *at) for value, (r, at) in zip(sums, places, strict=True)]
            for value, (r, (p, offset)) in zip(values, places, strict=True):
                store(builder, value, ends[p], self.step * r + offset)

        if self.kind == "along":
            _switch(builder, mode, {STORE: same, BIAS: biased, RELU: relu, GATE: gated}, finish)
        else:
            finish(biased if self.kind == "single" else same)

    def compile(self) -> Any:
        """The tile as a function that compiled code can call."""
        call = calling(f"{self.name}_{self.rows}_{self.panels}", self.write)

        @intrinsic
        def tile(typing, a, a_panel, b, b_panel, c, c_panel, inner, mode, gate):
            return types.void(*[types.int64] * 9), call

        return tile


def _fetch_run(builder: Any, turn: Any, count: Any, runs: Any) -> None:
    """Let the caches fetch run number `turn` of so many, whose addresses stand at `runs`."""
    with builder.if_then(builder.icmp_signed("<", turn, count)):
        place = builder.add(runs, builder.mul(turn, int64(8)))
        address = load(builder, INT64, place)
        for line in range(RUN):
            fetch(builder, builder.add(address, int64(LINE * line)))


def _loop(builder: Any, begin: Any, end: Any, step: int, sums: list[Any], add: Any) -> list[Any]:
    """For k from `begin` to `end` in steps: sums = add(k, step, sums)."""
    before = builder.block
    body, after = (builder.append_basic_block(name) for name in ("terms", "done"))
    builder.cbranch(builder.icmp_signed("<", begin, end), body, after)
    builder.position_at_end(body)
    k, old = builder.phi(INT64), [builder.phi(value.type) for value in sums]
    new = add(k, step, old)
    following = builder.add(k, int64(step))
    last = builder.block  # the body may have made others
    for phi, first, later in zip([k, *old], [begin, *sums], [following, *new], strict=True):
        phi.add_incoming(first, before)
        phi.add_incoming(later, last)
    builder.cbranch(builder.icmp_signed("<", following, end), body, after)
    builder.position_at_end(after)
    results = [builder.phi(value.type) for value in sums]
    for phi, first, later in zip(results, sums, new, strict=True):
        phi.add_incoming(first, before)
        phi.add_incoming(later, last)
    return results


def _switch(builder: Any, mode: Any, cases: dict[Any, Any], act: Callable[[Any], None]) -> None:
    """Act on the case that `mode` names at run time."""
    after = builder.append_basic_block("after")
    switch = builder.switch(mode, after)
    for name, case in cases.items():
        block = builder.append_basic_block("mode")
        switch.add_case(int64(int(name)), block)
        builder.position_at_end(block)
        act(case)
        builder.branch(after)
    builder.position_at_end(after)


def strip_of(kind: Kind, heights: tuple[int, ...], panels: int, pairs: bool = False) -> Any:
    """A strip of C, `panels` wide and `rows` high: as many tiles of each height as fit, in turn."""
    height = heights[0]
    made = StoredTile(kind, height, panels, pairs)
    tile = made.compile()
    lower = strip_of(kind, heights[1:], panels, pairs) if len(heights) > 1 else None
    a_step = height * (4 if kind == "across" else LINE)
    c_step = height * (4 if kind == "single" else LINE)

    def strip(a, a_panel, b, b_panel, c, c_panel, rows, inner, mode, gate):
        while rows >= height:
            tile(a, a_panel, b, b_panel, c, c_panel, inner, mode, gate)
            rows, a, c, gate = rows - height, a + a_step, c + c_step, gate + c_step
        if lower is not None and rows > 0:
            lower(a, a_panel, b, b_panel, c, c_panel, rows, inner, mode, gate)

    return compiled_as(f"strip_{made.name}_{height}_{panels}", strip)


@dataclass(frozen=True)
class Columns:
    """LANES rows of C = A B + bias for a B of few columns, one row in each number of a vector.

    Rows of A are turned in registers, so that no number is computed for columns that are not there.
    step: bytes from b(k) to b(k + 1); the columns of C are c_column bytes apart.
    """

    count: int
    step: int

    def write(self, builder, a, a_panel, b, c, c_column, inner) -> None:
        """The body of the function."""
        places = [4 * j for j in range(self.count)]

        def add(k: Any, count: int, sums: list[Any]) -> list[Any]:
            panel = builder.mul(builder.lshr(k, int64(4)), a_panel)
            inside = builder.mul(builder.and_(k, int64(PANEL - 1)), int64(4))
            begin = builder.add(builder.add(a, panel), inside)
            lines = [load(builder, VECTOR, begin, LINE * r) for r in range(LANES)]
            factors = builder.add(b, builder.mul(k, int64(self.step)))
            for i, column in enumerate(turned(builder, lines)):
                numbers = [load(builder, FLOAT, factors, self.step * i + j) for j in places]
                sums = [
                    multiply_add(builder, column, splat(builder, number), total)
                    for number, total in zip(numbers, sums, strict=True)
                ]
            return sums

        sums = _loop(builder, int64(0), inner, LANES, [zero(VECTOR)] * self.count, add)
        bias = builder.add(b, builder.mul(inner, int64(self.step)))
        for j, total in enumerate(sums):
            number = splat(builder, load(builder, FLOAT, bias, places[j]))
            to = builder.add(c, builder.mul(c_column, int64(j)))
            store(builder, builder.fadd(total, number), to)

    def compile(self) -> Any:
        """The function, as compiled code can call it."""
        call = calling(f"columns_{self.count}_{self.step}", self.write)

        @intrinsic
        def columns(typing, a, a_panel, b, c, c_column, inner):
            return types.void(*[types.int64] * 6), call

        return columns


WIDE, HIGH = TILES.panels, TILES.heights[0]
_along_wide = strip_of("along", TILES.heights, WIDE)
_along = _along_wide if WIDE == 1 else strip_of("along", TILES.heights, 1)
_across_wide = strip_of("across", TILES.heights, WIDE)
_across = _across_wide if WIDE == 1 else strip_of("across", TILES.heights, 1)
_single = strip_of("single", (8, 4, 2, 1), 1)
_abreast = strip_of("along", (1,), ABREAST)
_weighted_abreast, _weighted = strip_of("weighted", (1,), ABREAST), strip_of("weighted", (1,), 1)
_weighted_two = strip_of("weighted", (1,), 2)
_column = Columns(1, 4).compile()
_two_columns, _four_columns = Columns(2, LINE).compile(), Columns(4, LINE).compile()


@compiled
def multiply(a, a_panel, b, b_panel, c, c_panel, rows, panels, inner, mode, gate):
    """C = A B, all in panels: `rows` of A, `inner` columns of it, `panels` of B and C.

    Addresses, and bytes from one panel to the next; all are int64, because numba would compile
    another version for each literal. gate: as C, read in the mode GATE only.
    """
    while panels >= WIDE:
        _along_wide(a, a_panel, b, b_panel, c, c_panel, rows, inner, mode, gate)
        panels -= WIDE
        b, c, gate = b + WIDE * b_panel, c + WIDE * c_panel, gate + WIDE * c_panel
    while panels > 0:
        _along(a, a_panel, b, b_panel, c, c_panel, rows, inner, mode, gate)
        panels -= 1
        b, c, gate = b + b_panel, c + c_panel, gate + c_panel


@compiled
def multiply_row(a, b, b_panel, c, panels, inner, mode):
    """The same for a single row, whose panels are lines that follow each other."""
    line = np.int64(LINE)
    while panels >= ABREAST:
        _abreast(a, line, b, b_panel, c, line, np.int64(1), inner, mode, c)
        panels -= ABREAST
        b, c = b + ABREAST * b_panel, c + ABREAST * line
    while panels > 0:
        _along(a, line, b, b_panel, c, line, np.int64(1), inner, mode, c)
        panels -= 1
        b, c = b + b_panel, c + line


@compiled
def multiply_single(a, a_panel, b, c, rows, inner):
    """C = A B + bias for a B of one column; C is `rows` numbers that follow each other."""
    if inner % LANES == 0:
        while rows >= LANES:
            _column(a, a_panel, b, c, np.int64(0), inner)
            rows, a, c = rows - LANES, a + LANES * LINE, c + 4 * LANES
    _single(a, a_panel, b, np.int64(0), c, np.int64(0), rows, inner, BIAS, c)


@compiled
def multiply_few(a, a_panel, b, c, c_column, rows, columns, inner):
    """C = A B + bias for a B of one panel with few columns, as far as it can; how many rows it did.

    C is by columns, c_column bytes apart: `rows` numbers that follow each other. columns: even.
    """
    if columns > FEW or inner % LANES != 0:
        return np.int64(0)
    done = np.int64(0)
    while done + LANES <= rows:
        x, out = a + LINE * done, c + 4 * done
        if columns >= 4:
            _four_columns(x, a_panel, b, out, c_column, inner)
        if columns % 4 == 2:
            past = columns - 2
            _two_columns(x, a_panel, b + 4 * past, out + past * c_column, c_column, inner)
        done += LANES
    return done


def crossing(name: str, wide: Any, narrow: Any) -> Any:
    """C = Aᵀ B over the lines of both, from strips that are WIDE panels and one panel wide."""

    def multiply_across(a, b, b_panel, c, c_panel, rows, panels, inner, runs, count):
        zero = np.int64(0)
        if panels == WIDE:
            first = min(rows, np.int64(HIGH))
            wide(a, zero, b, b_panel, c, c_panel, first, inner, count, runs)
            a, c, rows = a + 4 * first, c + LINE * first, rows - first
            wide(a, zero, b, b_panel, c, c_panel, rows, inner, zero, runs)
        else:
            for p in range(panels):
                begin, end = b + p * b_panel, c + p * c_panel
                narrow(a, zero, begin, b_panel, end, c_panel, rows, inner, zero, runs)

    return compiled_as(name, multiply_across)


def adding(name: str, four: Any, two: Any, one: Any) -> Any:
    """C = the sums of lines of B, from strips of ABREAST panels, two and one."""

    def add_lines(a, b, b_panel, c, panels, inner):
        zero, line = np.int64(0), np.int64(LINE)
        while panels >= ABREAST:
            four(a, zero, b, b_panel, c, line, np.int64(1), inner, STORE, c)
            panels -= ABREAST
            b, c = b + ABREAST * b_panel, c + ABREAST * line
        if panels >= 2:
            two(a, zero, b, b_panel, c, line, np.int64(1), inner, STORE, c)
            panels -= 2
            b, c = b + 2 * b_panel, c + 2 * line
        if panels > 0:
            one(a, zero, b, b_panel, c, line, np.int64(1), inner, STORE, c)

    return compiled_as(name, add_lines)


multiply_across = crossing("multiply_across", _across_wide, _across)
"""C = Aᵀ B: `rows` columns of A, all of one panel; `inner` rows of both.

panels: of B and C, no more than WIDE. Meanwhile caches fetch `count` runs of eight lines, whose
addresses stand at `runs`, if there are terms enough.
"""
add_lines = adding("add_lines", _weighted_abreast, _weighted_two, _weighted)
"""C = the sum of the `inner` lines of each panel of B, times the numbers of the vector A.

The lines of C follow each other.
"""
