"""The matrix products of one SAC update and nothing else: a floor under every implementation.

Counted for the least arithmetic that we know: the actor's loss goes back through the smaller critic
only, so that there are fifteen products of the hidden layers and not sixteen.
"""
# pyright: reportMissingImports=false

from itertools import pairwise
from typing import Any

import numpy as np

from benchmarks.peers.sac.case import Case

SIZES = {"Hopper-v5": (11, 3), "Ant-v5": (27, 8), "spin": (11, 3)}  # observations, actions


def products(case: Case) -> list[tuple[str, int, int]]:
    """Kind and layer sizes: forward (B,i)(i,o), weights (i,B)(B,o), inputs (B,o)(o,i)."""
    observed, acted = SIZES[case.env]
    actor = list(pairwise((observed, *case.hidden, 2 * acted)))
    critic = list(pairwise((observed + acted, *case.hidden, 1)))
    needed = [("forward", *layer) for layer in 2 * actor + 6 * critic]
    needed += [("weights", *layer) for layer in actor + 2 * critic]
    needed += [("inputs", *layer) for layer in actor[1:] + 3 * critic[1:]]
    return [*needed, ("inputs", acted, case.hidden[0])]


class Products:
    """All products of an update into buffers that are there already."""

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
                of = {"forward": (x, w, y), "weights": (x.T, y, w), "inputs": (y, w.T, x)}
                made[kind, inputs, outputs] = self.prepare(kind, *of[kind])
            self.calls.append(made[kind, inputs, outputs])

    def prepare(self, kind: str, a: Any, b: Any, out: Any) -> Any:
        """What `multiply` will be called with."""
        return a, b, out

    def multiply(self, a: Any, b: Any, out: Any) -> None:
        """Out = a b."""
        np.matmul(a, b, out=out)

    def run(self, count: int) -> None:
        """The products of so many updates."""
        for _ in range(count):
            for call in self.calls:
                self.multiply(*call)


class OpenBLAS(Products):
    """NumPy's BLAS."""

    def __init__(self, case: Case) -> None:
        from threadpoolctl import threadpool_limits

        super().__init__(case)
        threadpool_limits(case.threads)


class MKL(Products):
    """PyTorch's BLAS."""

    def __init__(self, case: Case) -> None:
        import torch

        torch.set_num_threads(case.threads)
        self.torch = torch
        super().__init__(case)

    def prepare(self, kind: str, a: Any, b: Any, out: Any) -> Any:
        """As tensors on the same memory."""
        return tuple(self.torch.from_numpy(x) for x in (a, b, out))

    def multiply(self, a: Any, b: Any, out: Any) -> None:
        """Out = a b."""
        self.torch.mm(a, b, out=out)


class Ours(Products):
    """The kernel of our CPU learner, in its own layout: the batch along the columns."""

    def __init__(self, case: Case) -> None:
        from numba import njit

        from rollin.sac import vector

        assert case.threads == 1, "products are split between threads by the learner"
        super().__init__(case)
        zero = vector.STORE

        @njit(error_model="numpy")
        def run(table, count):
            for _ in range(count):
                for i in range(table.shape[0]):
                    a, a_i, a_k, b, b_k, c, c_i, rows, columns, inner = table[i]
                    vector.multiply(a, a_i, a_k, b, b_k, c, c_i, rows, columns, inner, zero, c)

        self.table = np.array([call[0] for call in self.calls], np.int64)
        self.compiled = run

    def prepare(self, kind: str, a: Any, b: Any, out: Any) -> Any:
        """Addresses and strides of (ab)ᵀ = bᵀaᵀ where a batch is along the columns then."""
        if kind == "weights":  # here the batch is summed over
            left, right, product = np.ascontiguousarray(a), b, out
        else:
            left, right, product = b.T, np.ascontiguousarray(a.T), np.ascontiguousarray(out.T)
        row = [left.ctypes.data, left.strides[0] // 4, left.strides[1] // 4]
        row += [right.ctypes.data, right.strides[0] // 4]
        row += [product.ctypes.data, product.strides[0] // 4]
        row += [product.shape[0], product.shape[1], left.shape[1]]
        return row, (left, right, product)  # the arrays must live as long as their addresses

    def run(self, count: int) -> None:
        """The products of so many updates."""
        self.compiled(self.table, count)
