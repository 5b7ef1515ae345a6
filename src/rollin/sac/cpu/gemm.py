"""Products of matrices in panels, the only arithmetic of a network that takes time.

Of the three products of a layer (the package's page), k runs along the lines of A in two:

    forward    Y  = X W     A is X, B the panels of W
    inputs     dX = dY Wᵀ   A is dY, B the panels of Wᵀ
    weights    dW = Xᵀ dY   k runs over the lines of X, B is the panels of dY

B is read from end to end, and one tile's worth of it stays in the first cache while all rows pass;
lines of A are used whole. A bias, a ReLU or its derivative is applied in registers.
"""

from collections.abc import Callable
from dataclasses import dataclass
from itertools import product
from typing import Any, Literal, NamedTuple

import numpy as np

from rollin.llvm import (
    FLOAT,
    INT64,
    compiled,
    compiled_as,
    constant,
    fetch,
    inlined,
    int64,
    intrinsic,
    load,
    loop,
    multiply_add,
    outlined,
    splat,
    store,
)
from rollin.sac.cpu.simd import (
    LANES,
    LINE,
    PANEL,
    PARTS,
    TILES,
    VECTOR,
    ZERO,
    add_product,
    flush,
    turned,
    unflush,
)

# what happens to a product before it is stored; the bias is the line behind those of B
STORE, BIAS, RELU, GATE = (np.int64(mode) for mode in range(4))
UNROLLED = 4  # k per turn of a tile's loop
FEW = 6  # columns of a panel for which turning the rows is cheaper than computing all 16
RUN = 8  # lines that caches are asked for at once
ABREAST = 4  # panels side by side for a single row, so that enough sums are under way at once


class Panels(NamedTuple):
    """A matrix in panels from some line on: an address, and the bytes from a panel to the next."""

    addr: Any
    stride: Any


class Fetches(NamedTuple):
    """Lines for the caches to fetch: where the addresses of runs of lines stand, and how many."""

    addr: Any
    count: Any


@inlined
def right(matrix, count):
    """Return a matrix from so many panels further on."""
    return Panels(matrix.addr + count * matrix.stride, matrix.stride)


@inlined
def down(matrix, count):
    """Return a matrix from so many lines further on."""
    return Panels(matrix.addr + LINE * count, matrix.stride)


def _number(builder: Any, a: Panels, k: Any) -> Any:
    """Return the address of number k of the first row of a matrix."""
    panel = builder.mul(builder.lshr(k, int64(4)), a.stride)
    inside = builder.mul(builder.and_(k, int64(PANEL - 1)), int64(4))
    return builder.add(builder.add(a.addr, panel), inside)


Kind = Literal["along", "across", "single", "weighted"]


@dataclass(frozen=True)
class Tile:
    """The sums of one tile of C = A B in registers, `rows` × (panels · 16).

    b(k) is line k of each panel of B, c(r) line r of each panel of C, and of the gate. kind:
    "along": a(r, k) is number k of row r of a matrix in panels; "across": a(r, k) is number r of
    line k of a panel; "single": as "along", but B and C are vectors of numbers;
    "weighted": a(k) is one of the numbers of a vector. Numbers of A and B are float32, or pairs of
    bfloat16 numbers (`simd`).
    """

    kind: Kind
    rows: int
    panels: int
    pairs: bool = False

    @property
    def name(self) -> str:
        """The name of the tile's functions."""
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
        parts = [0] if self.kind == "single" else PARTS
        return list(product(range(self.panels), parts))

    def summed(self, builder: Any, sums: list[Any], inner: Any, add: Any) -> list[Any]:
        """Return the sums with all terms; `add` adds some of them."""
        flushing = flush(builder) if self.pairs else None
        whole = builder.and_(inner, int64(-UNROLLED))
        sums = loop(builder, int64(0), whole, UNROLLED, sums, add)
        sums = loop(builder, whole, inner, 1, sums, add)
        unflush(builder, flushing)
        return sums

    def terms(self, builder: Any, a: Panels, starts: list[Any], k: Any, count: int, sums: Any):
        """Add the terms k … k + count to the sums; where k is along A, they lie in one line."""
        of_row, of_term = {"across": (4, LINE), "weighted": (0, 4)}.get(self.kind, (LINE, 4))
        if self.kind in ("across", "weighted"):
            begin = builder.add(a.addr, builder.mul(k, int64(of_term)))
        else:
            begin = _number(builder, a, k)
        lines = [builder.add(start, builder.mul(k, int64(self.step))) for start in starts]
        add = add_product if self.pairs else multiply_add
        for i in range(count):
            factors = [
                load(builder, self.unit, lines[p], self.step * i + o) for p, o in self.columns
            ]
            added = []
            for r in range(self.rows):
                number = load(builder, FLOAT, begin, of_row * r + of_term * i)
                number = splat(builder, VECTOR, number) if self.unit is VECTOR else number
                row = sums[r * len(factors) : (r + 1) * len(factors)]
                added += [
                    add(builder, number, factor, value)
                    for factor, value in zip(factors, row, strict=True)
                ]
            sums = added
        return sums

    def begins(self, builder: Any, matrix: Panels) -> list[Any]:
        """Return the address of each panel."""
        steps = (builder.mul(matrix.stride, int64(p)) for p in range(self.panels))
        return [builder.add(matrix.addr, step) for step in steps]


def compile_tile(tile: Any) -> Any:
    """Return a tile as a function that compiled code can call."""
    call = outlined(f"rollin_{tile.name}_{tile.rows}_{tile.panels}_{LANES}", tile.write)

    @intrinsic
    def run(builder, a, b, c, inner, mode, gate):
        call(builder, a, b, c, inner, mode, gate)

    return run


class StoredTile(Tile):
    """A tile whose sums are stored, after a mode that is named at run time where k is along A.

    Where k is across A, mode is a number of runs of lines, whose addresses stand at gate: caches
    fetch them while terms are added.
    """

    def write(self, builder, a, b, c, inner, mode, gate) -> None:
        """Write the body of the tile's function."""
        starts = self.begins(builder, b)
        ends = self.begins(builder, c)
        gates = self.begins(builder, Panels(gate, c.stride))

        def add(k: Any, count: int, sums: list[Any]) -> list[Any]:
            if self.kind == "across" and count == UNROLLED:
                _fetch_run(builder, builder.lshr(k, int64(2)), Fetches(gate, mode))
            return self.terms(builder, a, starts, k, count, sums)

        none = constant(self.unit, 0.0)
        sums = self.summed(builder, [none] * (self.rows * len(self.columns)), inner, add)
        bias = builder.mul(inner, int64(self.step))

        def same(value: Any, r: int, p: int, offset: int) -> Any:
            return value

        def biased(value: Any, r: int, p: int, offset: int) -> Any:
            number = load(builder, self.unit, builder.add(starts[p], bias), offset)
            return builder.fadd(value, number)

        def relu(value: Any, r: int, p: int, offset: int) -> Any:
            total = biased(value, r, p, offset)
            negative = builder.fcmp_ordered("<", total, none)  # lets NaN pass
            return builder.select(negative, none, total)

        def gated(value: Any, r: int, p: int, offset: int) -> Any:
            active = load(builder, self.unit, gates[p], LINE * r + offset)
            return builder.select(builder.fcmp_ordered(">", active, none), value, none)

        def finish(change: Callable[..., Any]) -> None:
            places = list(product(range(self.rows), self.columns))
            values = [change(value, r, *at) for value, (r, at) in zip(sums, places, strict=True)]
            for value, (r, (p, offset)) in zip(values, places, strict=True):
                store(builder, value, ends[p], self.step * r + offset)

        if self.kind == "along":
            _switch(builder, mode, {STORE: same, BIAS: biased, RELU: relu, GATE: gated}, finish)
        else:
            finish(biased if self.kind == "single" else same)


def _fetch_run(builder: Any, turn: Any, fetches: Fetches) -> None:
    """Let the caches fetch run number `turn`, if there is one."""
    with builder.if_then(builder.icmp_signed("<", turn, fetches.count)):
        place = builder.add(fetches.addr, builder.mul(turn, int64(8)))
        address = load(builder, INT64, place)
        for line in range(RUN):
            fetch(builder, builder.add(address, int64(LINE * line)))


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
    """Return a strip of C, `panels` wide: as many tiles of each height as fit, in turn."""
    height = heights[0]
    tile = StoredTile(kind, height, panels, pairs)
    run = compile_tile(tile)
    lower = strip_of(kind, heights[1:], panels, pairs) if len(heights) > 1 else None
    a_step = height * (4 if kind == "across" else LINE)
    c_step = height * (4 if kind == "single" else LINE)

    def strip(a, b, c, rows, inner, mode, gate):
        while rows >= height:
            run(a, b, c, inner, mode, gate)
            rows -= height
            a = Panels(a.addr + a_step, a.stride)
            c = Panels(c.addr + c_step, c.stride)
            gate += c_step
        if lower is not None and rows > 0:
            lower(a, b, c, rows, inner, mode, gate)

    return compiled_as(f"strip_{tile.name}_{height}_{panels}", strip)


@dataclass(frozen=True)
class Columns:
    """LANES rows of C = A B + bias for a B of few columns, one row in each number of a vector.

    Rows of A are turned in registers, so that no number is computed for columns that are not there.
    step: bytes from b(k) to b(k + 1); the columns of C are c.stride bytes apart.
    """

    count: int
    step: int

    def write(self, builder: Any, a: Panels, b: Any, c: Panels, inner: Any) -> None:
        """Write the body of the function."""
        places = [4 * j for j in range(self.count)]

        def add(k: Any, count: int, sums: list[Any]) -> list[Any]:
            begin = _number(builder, a, k)
            lines = [load(builder, VECTOR, begin, LINE * r) for r in range(LANES)]
            factors = builder.add(b, builder.mul(k, int64(self.step)))
            for i, column in enumerate(turned(builder, lines)):
                numbers = [load(builder, FLOAT, factors, self.step * i + j) for j in places]
                sums = [
                    multiply_add(builder, column, splat(builder, VECTOR, number), total)
                    for number, total in zip(numbers, sums, strict=True)
                ]
            return sums

        sums = loop(builder, int64(0), inner, LANES, [ZERO] * self.count, add)
        bias = builder.add(b, builder.mul(inner, int64(self.step)))
        for j, total in enumerate(sums):
            number = splat(builder, VECTOR, load(builder, FLOAT, bias, places[j]))
            to = builder.add(c.addr, builder.mul(c.stride, int64(j)))
            store(builder, builder.fadd(total, number), to)

    def compile(self) -> Any:
        """Return the function, as compiled code can call it."""
        call = outlined(f"rollin_columns_{self.count}_{self.step}_{LANES}", self.write)

        @intrinsic
        def columns(builder, a, b, c, inner):
            call(builder, a, b, c, inner)

        return columns


WIDE = TILES.panels
HIGH = TILES.heights[0]
_along_wide = strip_of("along", TILES.heights, WIDE)
_along = _along_wide if WIDE == 1 else strip_of("along", TILES.heights, 1)
_across_wide = strip_of("across", TILES.heights, WIDE)
_across = _across_wide if WIDE == 1 else strip_of("across", TILES.heights, 1)
_single = strip_of("single", (8, 4, 2, 1), 1)
_abreast = strip_of("along", (1,), ABREAST)
_weighted_abreast = strip_of("weighted", (1,), ABREAST)
_weighted_two = strip_of("weighted", (1,), 2)
_weighted = strip_of("weighted", (1,), 1)
_column = Columns(1, 4).compile()
_two_columns = Columns(2, LINE).compile()
_four_columns = Columns(4, LINE).compile()
NONE, ONE = np.int64(0), np.int64(1)


@compiled
def multiply(a, b, c, rows, panels, inner, mode, gate):
    """Compute C = A B, all in panels: `rows` of A, `inner` columns of it, `panels` of B and C.

    Numbers are int64, because numba would compile another version for each literal. gate: the
    address of a matrix that lies as C does, read in the mode GATE only.
    """
    while panels >= WIDE:
        _along_wide(a, b, c, rows, inner, mode, gate)
        panels -= WIDE
        b = right(b, WIDE)
        c = right(c, WIDE)
        gate += WIDE * c.stride
    while panels > 0:
        _along(a, b, c, rows, inner, mode, gate)
        panels -= 1
        b = right(b, 1)
        c = right(c, 1)
        gate += c.stride


@compiled
def multiply_row(a_addr, b, c_addr, panels, inner, mode):
    """Compute the same for a single row, whose panels are lines that follow each other."""
    a = Panels(a_addr, np.int64(LINE))
    c = Panels(c_addr, np.int64(LINE))
    while panels >= ABREAST:
        _abreast(a, b, c, ONE, inner, mode, c.addr)
        panels -= ABREAST
        b = right(b, ABREAST)
        c = right(c, ABREAST)
    while panels > 0:
        _along(a, b, c, ONE, inner, mode, c.addr)
        panels -= 1
        b = right(b, 1)
        c = right(c, 1)


@compiled
def multiply_single(a, b_addr, c_addr, rows, inner):
    """Compute C = A B + bias for a B of one column; C is numbers that follow each other."""
    if inner % LANES == 0:
        while rows >= LANES:
            _column(a, b_addr, Panels(c_addr, NONE), inner)
            rows -= LANES
            a = down(a, LANES)
            c_addr += 4 * LANES
    _single(a, Panels(b_addr, NONE), Panels(c_addr, NONE), rows, inner, BIAS, c_addr)


@compiled
def multiply_few(a, b_addr, c, rows, columns, inner):
    """Compute C = A B + bias for a B of one panel with few columns; return how many rows it did.

    C is by columns, c.stride bytes apart: `rows` numbers that follow each other. columns: even.
    """
    if columns > FEW or inner % LANES != 0:
        return NONE
    done = NONE
    while done + LANES <= rows:
        out = Panels(c.addr + 4 * done, c.stride)
        if columns >= 4:
            _four_columns(down(a, done), b_addr, out, inner)
        if columns % 4 == 2:
            past = columns - 2
            _two_columns(down(a, done), b_addr + 4 * past, right(out, past), inner)
        done += LANES
    return done


def crossing(name: str, wide: Any, narrow: Any) -> Any:
    """Return C = Aᵀ B over the lines of both, from strips WIDE panels and one panel wide."""

    def multiply_across(a_addr, b, c, rows, panels, inner, fetches):
        a = Panels(a_addr, NONE)
        if panels == WIDE:
            first = min(rows, np.int64(HIGH))
            wide(a, b, c, first, inner, fetches.count, fetches.addr)
            a = Panels(a_addr + 4 * first, NONE)
            wide(a, b, down(c, first), rows - first, inner, NONE, fetches.addr)
        else:
            for p in range(panels):
                narrow(a, right(b, p), right(c, p), rows, inner, NONE, fetches.addr)

    return compiled_as(name, multiply_across)


def adding(name: str, four: Any, two: Any, one: Any) -> Any:
    """Return C = the sums of lines of B, from strips of ABREAST panels, two and one."""

    def add_lines(a_addr, b, c_addr, panels, inner):
        a = Panels(a_addr, NONE)
        c = Panels(c_addr, np.int64(LINE))
        while panels >= ABREAST:
            four(a, b, c, ONE, inner, STORE, c.addr)
            panels -= ABREAST
            b = right(b, ABREAST)
            c = right(c, ABREAST)
        if panels >= 2:
            two(a, b, c, ONE, inner, STORE, c.addr)
            panels -= 2
            b = right(b, 2)
            c = right(c, 2)
        if panels > 0:
            one(a, b, c, ONE, inner, STORE, c.addr)

    return compiled_as(name, add_lines)


multiply_across = crossing("multiply_across", _across_wide, _across)
"""C = Aᵀ B: `rows` columns of A, all of one panel; `inner` rows of both.

panels: of B and C, no more than WIDE. Meanwhile caches fetch runs of eight lines, if there are
terms enough.
"""
add_lines = adding("add_lines", _weighted_abreast, _weighted_two, _weighted)
"""C = the sum of the `inner` lines of each panel of B, times the numbers of the vector A.

The lines of C follow each other.
"""
