"""Products in panels against NumPy in float64, and where each number of a network lies."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rollin import RollinError, llvm
from rollin.compiling import cached_njit
from rollin.sac import cpu
from rollin.sac.cpu import gemm, gemm_bf16, memory, simd
from rollin.sac.cpu.gemm import Fetches, Panels
from rollin.sac.cpu.learner import CpuLearner
from rollin.sac.cpu.memory import (
    IN,
    OUT,
    TURNED,
    TURNED_INPUTS,
    aligned,
    pack,
    panel_count,
)
from rollin.sac.cpu.simd import LINE, PANEL
from rollin.sac.learner import Layout
from tests.sac.test_sac import make, random_batch

SIZES = st.integers(1, 70)
FILL = 7.0  # stands where nothing may be written
COUNT = np.int64  # all arguments of the products are int64
compiled = cached_njit(
    helpers=(cpu, llvm), variant=f"{simd.LANES}_{simd.NATIVE}", error_model="numpy"
)


def in_panels(matrix: np.ndarray, spare: int = 0, fill: float = 0.0) -> np.ndarray:
    """The panels of a matrix, each with some lines more."""
    rows, columns = matrix.shape
    out = aligned(panel_count(columns), rows + spare, PANEL)
    out[:] = fill
    for j in range(columns):
        out[j // PANEL, :rows, j % PANEL] = matrix[:, j]
    return out


def address(array: np.ndarray) -> np.int64:
    return COUNT(array.ctypes.data)


def random(seed: int, *shape: int) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def place(array: np.ndarray) -> Panels:
    return Panels(address(array), COUNT(array.strides[0]))


@compiled
def run_multiply(a, b, c, rows, wide, inner, mode, gate):
    gemm.multiply(a, b, c, rows, wide, inner, mode, gate)


@compiled
def run_row(a, b, c, wide, inner, mode):
    gemm.multiply_row(a, b, c, wide, inner, mode)


@compiled
def run_single(a, b, c, rows, inner):
    gemm.multiply_single(a, b, c, rows, inner)


@compiled
def run_few(a, b, c, rows, columns, inner):
    return gemm.multiply_few(a, b, c, rows, columns, inner)


@compiled
def run_across(a, b, c, rows, wide, inner, pairs):
    none = np.int64(0)
    for panel in range(0, wide, gemm.WIDE):
        some = min(np.int64(gemm.WIDE), wide - panel)
        for row in range(0, rows, PANEL):
            x = gemm.right(a, row // PANEL).addr
            to = gemm.down(gemm.right(c, panel), row)
            height = min(np.int64(PANEL), rows - row)
            y, fetches = gemm.right(b, panel), Fetches(none, none)
            if pairs:
                gemm_bf16.multiply_pairs_across(x, y, to, height, some, inner, fetches)
            else:
                gemm.multiply_across(x, y, to, height, some, inner, fetches)


@compiled
def run_add_lines(a, b, c, wide, inner, pairs):
    if pairs:
        gemm_bf16.add_pair_lines(a, b, c, wide, inner)
    else:
        gemm.add_lines(a, b, c, wide, inner)


@compiled
def run_transpose(source, i, j, target, to_i, to_j, rows, columns):
    simd.transpose(source, i, j, target, to_i, to_j, rows, columns)


def along(x: np.ndarray, w: np.ndarray, mode: np.int64, gate: np.ndarray) -> np.ndarray:
    """X W in panels with two spare lines each; w: (inner + 1, columns), the bias last."""
    (rows, inner), columns = x.shape, w.shape[1]
    a, b, c = in_panels(x, 1), in_panels(w), in_panels(np.zeros((rows, columns)), 2, FILL)
    c[:] = FILL
    g = in_panels(gate, 2)
    wide = panel_count(columns)
    sizes = COUNT(rows), COUNT(wide), COUNT(inner)
    run_multiply(place(a), place(b), place(c), *sizes, mode, address(g))
    assert (c[:, rows:] == FILL).all()
    return c[:, :rows]


def flat(c: np.ndarray, columns: int) -> np.ndarray:
    return c.transpose(1, 0, 2).reshape(c.shape[1], -1)[:, :columns]


@given(SIZES, SIZES, SIZES, st.sampled_from(range(4)), st.integers(0, 99))
def test_products_agree_with_numpy_and_write_nothing_else(rows, inner, columns, mode, seed):
    x, w = random(seed, rows, inner), random(seed + 1, inner + 1, columns)
    gate = random(seed + 2, rows, columns)
    exact = x.astype(float) @ w[:-1].astype(float)
    if mode in (gemm.BIAS, gemm.RELU):
        exact += w[-1]
    if mode == gemm.RELU:
        exact = np.maximum(exact, 0)
    if mode == gemm.GATE:
        exact = np.where(gate > 0, exact, 0)
    found = flat(along(x, w, COUNT(mode), gate), columns)
    np.testing.assert_allclose(found, exact, atol=1e-6 * (inner + 1), rtol=1e-5)


@given(SIZES, SIZES, st.integers(1, 140), st.integers(0, 99))
def test_products_over_samples_agree_with_numpy(rows, inner, columns, seed):
    x, d = random(seed, inner, rows), random(seed + 1, inner, columns)
    a, b, c = in_panels(x, 1), in_panels(d, 3), in_panels(np.zeros((rows, columns)), 2)
    c[:] = FILL
    sizes = COUNT(rows), COUNT(panel_count(columns)), COUNT(inner)
    run_across(place(a), place(b), place(c), *sizes, False)
    exact = x.T.astype(float) @ d.astype(float)
    np.testing.assert_allclose(
        flat(c[:, :rows], columns), exact, atol=1e-6 * inner + 1e-6, rtol=1e-5
    )
    assert (c[:, rows:] == FILL).all()


@given(SIZES, st.sampled_from([16, 24, 32, 64]) | SIZES, st.integers(1, 5), st.integers(0, 99))
def test_few_columns_have_the_bits_of_whole_panels_as_far_as_they_go(rows, inner, half, seed):
    x, w = random(seed, rows, inner), random(seed + 1, inner + 1, 2 * half)
    a, b, out = in_panels(x, 1), in_panels(w), np.full((2 * half + 1, rows + 2), FILL, np.float32)
    sizes = COUNT(rows), COUNT(2 * half), COUNT(inner)
    done = run_few(place(a), address(b), place(out), *sizes)
    possible = 2 * half <= gemm.FEW and inner % simd.LANES == 0
    assert done == (rows // simd.LANES * simd.LANES if possible else 0)
    whole = flat(along(x, w, gemm.BIAS, np.zeros((rows, 2 * half))), 2 * half)
    np.testing.assert_array_equal(out[:-1, :done].T, whole[:done])
    assert (out[:, done:] == FILL).all()
    assert (out[-1] == FILL).all()


@given(SIZES, SIZES | st.sampled_from([16, 32, 64]), st.integers(0, 99))
def test_products_with_a_vector_agree_with_numpy(rows, inner, seed):
    x, w = random(seed, rows, inner), random(seed + 1, inner + 1)
    a, out = in_panels(x, 1), np.full(rows + 3, FILL, np.float32)
    run_single(place(a), address(w), address(out), COUNT(rows), COUNT(inner))
    exact = x.astype(float) @ w[:-1] + w[-1]
    np.testing.assert_allclose(out[:rows], exact, atol=1e-6 * (inner + 1), rtol=1e-5)
    assert (out[rows:] == FILL).all()
    alone = np.empty(1, np.float32)  # a row by itself is not done as a vector
    for row in range(rows):
        begin = Panels(COUNT(address(a) + LINE * row), COUNT(a.strides[0]))
        run_single(begin, address(w), address(alone), COUNT(1), COUNT(inner))
        assert alone[0] == out[row]


@given(SIZES, st.integers(1, 200), st.integers(0, 99))
def test_weighted_sums_of_lines_agree_with_numpy(inner, columns, seed):
    weights, d = random(seed, inner), random(seed + 1, inner, columns)
    b, out = in_panels(d, 2), np.full((panel_count(columns) + 1, PANEL), FILL, np.float32)
    wide = COUNT(panel_count(columns))
    run_add_lines(address(weights), place(b), address(out), wide, COUNT(inner), False)
    exact = weights.astype(float) @ d.astype(float)
    np.testing.assert_allclose(
        out[:-1].ravel()[:columns], exact, atol=1e-6 * inner + 1e-6, rtol=1e-5
    )
    assert (out[-1] == FILL).all()


@given(SIZES, st.integers(1, 200), st.integers(0, 99))
def test_a_number_is_the_same_in_a_single_row_and_in_any_part_of_a_product(inner, columns, seed):
    x, w, none = random(seed, 23, inner), random(seed + 1, inner + 1, columns), np.zeros((23, 1))
    whole = along(x, w, gemm.BIAS, none)
    for first in (1, 5, 17):
        part = along(x[first:], w, gemm.BIAS, none[first:])
        np.testing.assert_array_equal(part, whole[:, first:])
    b, row = in_panels(w), np.zeros(PANEL * panel_count(inner), np.float32)
    row[:inner] = x[3]
    out = np.zeros((panel_count(columns), PANEL), np.float32)
    wide = COUNT(panel_count(columns))
    run_row(address(row), place(b), address(out), wide, COUNT(inner), gemm.BIAS)
    np.testing.assert_array_equal(out, whole[:, 3])
    chain = np.float32(0)  # the definition: fused multiply-adds in the order of k
    for k in range(inner):
        chain = np.float32(np.float64(x[3, k]) * np.float64(w[k, 0]) + np.float64(chain))
    assert whole[0, 3, 0] == pytest.approx(chain + w[-1, 0], rel=1e-6, abs=1e-6)


def test_relu_lets_nan_pass():
    w = np.array([[np.nan, -1, 1], [0, 0, 0]], np.float32)
    found = along(np.ones((1, 1), np.float32), w, gemm.RELU, np.zeros((1, 3)))
    np.testing.assert_array_equal(flat(found, 3), [[np.nan, 0, 1]])


@given(SIZES, SIZES, st.integers(0, 5), st.integers(0, 5))
def test_transpose(rows, columns, i, j):
    source = random(0, rows + i + 1, columns + j + 2)
    target = np.full((columns + j + 1, rows + i + 3), FILL, np.float32)
    run_transpose(source, i, j, target, j, i, rows, columns)
    inside = target[j : j + columns, i : i + rows]
    np.testing.assert_array_equal(inside, source[i : i + rows, j : j + columns].T)
    inside[:] = FILL
    assert (target == FILL).all()


# ------------------------------------------------------------------ where numbers lie

LAYOUTS = st.builds(
    Layout,
    st.integers(1, 40),
    st.integers(1, 20),
    st.lists(st.integers(1, 50), min_size=1, max_size=3).map(tuple),
)


@given(LAYOUTS)
def test_every_parameter_has_a_place_of_its_own(layout):
    packing = pack(layout)
    places = packing.places
    assert len(places) == layout.size
    assert len(set(places.tolist())) == layout.size
    assert 0 <= places.min() <= places.max() == PANEL * (packing.lines - 1)
    assert packing.lines * PANEL > places.max()


@settings(max_examples=25, deadline=None)
@given(LAYOUTS, st.integers(1, 9))
def test_a_network_in_panels_has_its_transposes_beside_it_and_nothing_in_between(layout, updates):
    learner = make("cpu", layout.observation_size, layout.action_size, layout.hidden, 5)
    assert isinstance(learner, CpuLearner)
    for step in range(updates):
        learner.update(random_batch(learner, step))
    kept, packing = learner.memory, pack(layout)
    between = np.ones(len(kept.theta), bool)
    between[packing.places] = False
    for array in (kept.theta, kept.m, kept.v):
        assert (array[between] == 0).all()
    theta = learner.get_state()["theta"]
    tables = (layout.actor, packing.actor), *zip(layout.critics, packing.critics, strict=True)
    for n, (plain, packed) in enumerate(tables):
        for layer, row in zip(layout.layers(theta, plain), packed, strict=True):
            inputs = row[TURNED_INPUTS]
            assert inputs in (0, layout.action_size, row[IN])
            assert n == 0 or inputs > 0 or row[OUT] == 1
            for i in range(inputs):
                line = row[TURNED] + i // PANEL * row[OUT]
                found = kept.turned[line : line + row[OUT], i % PANEL]
                np.testing.assert_array_equal(found, layer[i])


@compiled
def fields_of(table):
    return (memory.theta(table), memory.batch(table), memory.heads(table), memory.x(table)), (
        memory.actor(table),
        memory.critic_layers(table),
        memory.info(table),
        memory.order(table),
        memory.gradient(table),
    )


def test_a_table_of_addresses_gives_the_same_arrays_in_compiled_code():
    learner = make("cpu", 5, 2, (20, 9), 7)
    assert isinstance(learner, CpuLearner)
    kept = learner.memory
    first, second = fields_of(memory.addresses(kept))
    names = (
        ("theta", "batch", "heads", "x"),
        ("actor", "critic_layers", "info", "order", "gradient"),
    )
    for found, name in zip((*first, *second), (*names[0], *names[1]), strict=True):
        array = getattr(kept, name)
        assert (found.shape, found.dtype) == (array.shape, array.dtype)
        assert found.ctypes.data == array.ctypes.data
    for name, field in memory.FIELDS.items():  # each is declared under its own name
        array = getattr(kept, name)
        assert (array.ndim, array.dtype) == (field.dimensions, field.kind)
        assert vars(memory)[name].py_func.__qualname__ == f"field_{name}"
    assert LINE * panel_count(20) <= kept.actor.strides[2]


# ------------------------------------------------------------------ widths


def test_the_widest_vectors_are_taken_unless_others_are_asked_for():
    assert simd.widest({"avx512f": True, "avx2": True}) == 16
    assert simd.widest({"avx2": True}) == 8
    assert simd.widest({}) == 4
    assert simd.choose(None, 16) == simd.choose("", 16) == 16
    assert [simd.choose(asked, 16) for asked in ("16", "8", "4")] == [16, 8, 4]


@pytest.mark.parametrize("asked", ["5", "32", "eight", "-8", "16"])
def test_a_width_that_the_cpu_cannot_run_is_refused(asked):
    with pytest.raises(RollinError, match=rf"must be 8 or 4 on this CPU, got '{asked}'"):
        simd.choose(asked, 8)
    with pytest.raises(RollinError, match=r"must be 4 on this CPU"):
        simd.choose("8", 4)


def test_tiles_fit_the_registers():
    for width, registers in ((16, 32), (8, 16)):
        tiles = simd.tiling(width, "x86_64")
        vectors = tiles.panels * PANEL // width
        assert tiles.heights[0] * vectors + vectors + 1 <= registers
        assert tiles.heights[-1] == 1
    arm, old = simd.tiling(4, "aarch64"), simd.tiling(4, "AMD64")
    assert (arm.heights[0] * 4 + 5, old.heights[0] * 4 + 4) == (29, 16)
