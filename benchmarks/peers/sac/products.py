"""The matrix products of one SAC update and nothing else: a floor under every implementation.

Counted for the least arithmetic that we know: the actor's loss goes back through the smaller critic
only, so that there are fifteen products of the hidden layers and not sixteen.
"""
# pyright: reportMissingImports=false

import time
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np

from benchmarks.peers.sac.case import Case

SIZES = {"Hopper-v5": (11, 3), "Ant-v5": (27, 8)}  # observations, actions
LINE = 16  # float32 numbers in a cache line
TRIALS = 9  # of a product in each layout


def products(case: Case) -> list[tuple[str, int, int]]:
    """Kind and layer sizes: forward (B,i)(i,o), weights (i,B)(B,o), inputs (B,o)(o,i)."""
    observed, acted = SIZES[case.env]
    actor = list(pairwise((observed, *case.hidden, 2 * acted)))
    critic = list(pairwise((observed + acted, *case.hidden, 1)))
    needed = [("forward", *layer) for layer in 2 * actor + 6 * critic]
    needed += [("weights", *layer) for layer in actor + 2 * critic]
    needed += [("inputs", *layer) for layer in actor[1:] + 3 * critic[1:]]
    return [*needed, ("inputs", acted, case.hidden[0])]


def padded(array: Any) -> Any:
    """A copy with rows an odd number of cache lines apart, so that columns use all cache sets."""
    rows, columns = array.shape
    apart = LINE * (-(-columns // LINE) | 1)
    raw = np.zeros(rows * apart + LINE, np.float32)
    begin = -raw.ctypes.data % (4 * LINE) // 4
    copy = raw[begin : begin + rows * apart].reshape(rows, apart)[:, :columns]
    copy[:] = array
    return copy


class Products:
    """All products of an update into buffers that are there already."""

    libraries: tuple[str, ...] = ()

    def __init__(self, case: Case) -> None:
        random = np.random.default_rng(0)
        made: dict[tuple[str, int, int], Any] = {}  # the same again stays in the caches
        self.calls: list[Any] = []
        for kind, inputs, outputs in products(case):
            if (kind, inputs, outputs) not in made:
                x, y, w = (
                    random.standard_normal(shape).astype(np.float32)
                    for shape in ((case.batch, inputs), (case.batch, outputs), (inputs, outputs))
                )
                made[kind, inputs, outputs] = self.prepare(kind, x, y, w)
            self.calls.append(made[kind, inputs, outputs])

    def prepare(self, kind: str, x: Any, y: Any, w: Any) -> Any:
        """What a call of this kind needs, in the layout that it should have."""
        raise NotImplementedError

    def steps(self, count: int) -> None:
        """There is no environment."""
        raise NotImplementedError

    def updates(self, count: int) -> None:
        """The products of so many updates."""
        raise NotImplementedError


class Library(Products):
    """A BLAS, each product in the faster of two layouts: rows side by side, or padded."""

    multiply: Callable[..., Any]

    def prepare(self, kind: str, x: Any, y: Any, w: Any) -> Any:
        """A product's operands and its result."""

        def operands(lay: Callable[[Any], Any]) -> Any:
            a, b, c = lay(x), lay(y), lay(w)
            of = {"forward": (a, c, b), "weights": (a.T, b, c), "inputs": (b, c.T, a)}
            return [self.held(array) for array in of[kind]]

        both = operands(np.array), operands(padded)
        return min(both, key=lambda found: min(self._seconds(found) for _ in range(TRIALS)))

    def held(self, array: Any) -> Any:
        """An array as the library takes it, on the same memory."""
        return array

    def _seconds(self, found: Any) -> float:
        began = time.perf_counter()
        self.multiply(found[0], found[1], out=found[2])
        return time.perf_counter() - began

    def updates(self, count: int) -> None:
        """The products of so many updates."""
        for _ in range(count):
            for a, b, out in self.calls:
                self.multiply(a, b, out=out)


class OpenBLAS(Library):
    """NumPy's BLAS."""

    libraries = ("numpy",)

    def __init__(self, case: Case) -> None:
        from threadpoolctl import threadpool_limits

        threadpool_limits(case.threads)
        self.multiply = np.matmul
        super().__init__(case)


class MKL(Library):
    """PyTorch's BLAS."""

    libraries = ("torch",)

    def __init__(self, case: Case) -> None:
        import torch

        torch.set_num_threads(case.threads)
        self.multiply = torch.mm
        super().__init__(case)

    def held(self, array: Any) -> Any:
        """An array of the library's own, in the same memory."""
        import torch

        return torch.from_numpy(array)


class Ours(Products):
    """The kernel of our CPU learner in its layout, panels; a critic's last layer is a vector."""

    libraries = ("rollin", "numba", "llvmlite")

    def __init__(self, case: Case) -> None:
        from numba import njit

        from rollin.sac.cpu import gemm
        from rollin.sac.cpu.gemm import Fetches, Panels

        assert case.threads == 1, "products are split between threads by the learner"
        super().__init__(case)
        wide, store = gemm.WIDE, gemm.STORE
        multiply, across = gemm.multiply, gemm.multiply_across
        single, add_lines = gemm.multiply_single, gemm.add_lines
        none = np.int64(0)  # nothing to fetch meanwhile

        @njit(error_model="numpy")
        def run(table, count):
            for _ in range(count):
                for kind, a, a_panel, b, b_panel, c, c_panel, rows, panels, inner in table:
                    x, y, out = Panels(a, a_panel), Panels(b, b_panel), Panels(c, c_panel)
                    if kind == 0:
                        multiply(x, y, out, rows, panels, inner, store, c)
                    elif kind == 1:  # as the learner: blocks of a panel of inputs
                        for first in range(0, rows, LINE):
                            part, lines = a + first // LINE * a_panel, min(LINE, rows - first)
                            for p in range(0, panels, wide):
                                begin = Panels(b + p * b_panel, b_panel)
                                end = Panels(c + p * c_panel + 4 * LINE * first, c_panel)
                                some = min(wide, panels - p)
                                across(part, begin, end, lines, some, inner, Fetches(c, none))
                    elif kind == 2:
                        single(x, b, c, rows, inner)
                    else:
                        add_lines(a, y, c, panels, inner)

        self.table = np.array([call[0] for call in self.calls if call is not None], np.int64)
        self.compiled = run

    def prepare(self, kind: str, x: Any, y: Any, w: Any) -> Any:
        """Addresses, bytes between panels and sizes; None where the learner has no product."""
        samples, (inputs, outputs) = len(x), w.shape
        column = np.zeros(max(samples, inputs) + 1, np.float32)
        a, b = (in_panels(array, 1) for array in (x, y))
        if outputs == 1 and kind == "forward":
            kept, row = (a, column, column.copy()), (2, samples, 1, inputs)
        elif outputs == 1 and kind == "weights":
            kept, row = (column, a, in_panels(w.T, 0)), (3, 1, len(a), samples)
        elif outputs == 1:
            return None  # the errors, times a vector of weights
        elif kind == "forward":
            kept, row = (a, in_panels(w, 1), b), (0, samples, len(b), inputs)
        elif kind == "weights":
            kept, row = (a, b, in_panels(w, 1)), (1, inputs, len(b), samples)
        else:
            kept, row = (b, in_panels(w.T, 0), a), (0, samples, len(a), outputs)
        places = [
            number
            for array in kept
            for number in (array.ctypes.data, array.strides[0] if array.ndim == 3 else 0)
        ]
        return [row[0], *places, *row[1:]], kept  # the arrays must live as long as their addresses

    def updates(self, count: int) -> None:
        """The products of so many updates."""
        self.compiled(self.table, count)


def in_panels(matrix: Any, spare: int) -> Any:
    """A matrix in panels of 16 columns, each with some lines more."""
    rows, columns = matrix.shape
    panels = -(-columns // LINE)
    raw = np.zeros(panels * (rows + spare) * LINE + LINE, np.float32)
    begin = -raw.ctypes.data % (4 * LINE) // 4
    lines = raw[begin : begin + panels * (rows + spare) * LINE].reshape(panels, -1, LINE)
    whole = np.zeros((rows, panels * LINE), np.float32)
    whole[:, :columns] = matrix
    lines[:, :rows] = whole.reshape(rows, panels, LINE).transpose(1, 0, 2)
    return lines
