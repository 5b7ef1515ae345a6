"""Products of bfloat16 pairs against exact arithmetic, and the learner that is made of them."""

from fractions import Fraction
from functools import cache
from typing import Any

import jax
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rollin import RollinError
from rollin.runs.engines.sac import SACRunConfig
from rollin.runs.spec import RunSpec
from rollin.sac import jax as oracle
from rollin.sac.config import SACConfig
from rollin.sac.cpu import gemm_bf16, simd
from rollin.sac.cpu.gemm_bf16 import FLOATS, GATE, MASK, PAIRS, RELU, ROWS, VALUE, Ends
from rollin.sac.cpu.memory import aligned, panel_count
from rollin.sac.cpu.simd import PANEL
from tests.sac.test_gemm import address, compiled, place, run_across, run_add_lines
from tests.sac.test_sac import ARRAYS, SHAPES, make, random_batch

SIZES = st.integers(1, 70)
TINY = 2.0**-126  # the smallest number that is not denormal
ONE = np.float32(1)


def rounded(x: np.ndarray) -> np.ndarray:
    """The nearest bfloat16 numbers, ties to even, as float32; denormal numbers are 0."""
    bits = np.ascontiguousarray(x, np.float32).view(np.uint32).astype(np.uint64)
    near = ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16 << 16).astype(np.uint32).view(np.float32)
    return np.where(np.abs(x) < TINY, np.float32(0), near)


def words(x: np.ndarray) -> np.ndarray:
    """The upper halves of float32 numbers that bfloat16 can hold."""
    return (np.ascontiguousarray(x, np.float32).view(np.uint32) >> 16).astype(np.uint16)


def widened(halves: np.ndarray) -> np.ndarray:
    return (halves.astype(np.uint32) << 16).view(np.float32)


def as_rows(x: np.ndarray) -> np.ndarray:
    """(strips, rows, 16): 32 columns of a row in a line."""
    count, columns = x.shape
    out = aligned(-(-columns // 32), count, PANEL)
    halves = out.view(np.uint16)
    for j in range(columns):
        halves[j // 32, :, j % 32] = words(x[:, j])
    return out


def as_pairs(x: np.ndarray) -> np.ndarray:
    """(panels, pairs of rows, 16): 16 columns of two rows in a line."""
    count, columns = x.shape
    out = aligned(panel_count(columns), -(-count // 2), PANEL)
    halves = out.view(np.uint16)
    for i in range(count):
        for n in range(out.shape[0]):
            part = words(x[i, n * PANEL : (n + 1) * PANEL])
            halves[n, i // 2, i % 2 : 2 * len(part) : 2] = part
    return out


def from_rows(lines: np.ndarray, columns: int) -> np.ndarray:
    return widened(np.concatenate(list(lines.view(np.uint16)), axis=1)[:, :columns])


def from_pairs(lines: np.ndarray, rows: int, columns: int) -> np.ndarray:
    halves = lines.view(np.uint16)
    out = np.zeros((2 * lines.shape[1], PANEL * len(lines)), np.uint16)
    for n, panel in enumerate(halves):
        out[::2, n * PANEL : (n + 1) * PANEL] = panel[:, ::2]
        out[1::2, n * PANEL : (n + 1) * PANEL] = panel[:, 1::2]
    return widened(out[:rows, :columns])


def bits_of(mask: np.ndarray, columns: int) -> np.ndarray:
    """(strips, rows) of words as (rows, columns) of truth."""
    bits = (mask[:, :, None].view(np.uint32) >> np.arange(32, dtype=np.uint32)) & 1
    return np.concatenate(list(bits), axis=1)[:, :columns].astype(bool)


def fma(a: np.float32, b: np.float32, c: np.float32) -> np.float32:
    """A b + c, rounded once; denormal numbers are 0."""
    a, b, c = (np.float32(0) if abs(x) < TINY else x for x in (a, b, c))
    exact = Fraction(float(a)) * Fraction(float(b)) + Fraction(float(c))
    if exact == 0:
        return np.float32(0)
    # of float64 and one bit more, so that rounding twice cannot matter
    near = np.float32(float(exact))
    if Fraction(float(near)) != exact:
        around = [
            near,
            np.nextafter(near, np.float32(np.inf)),
            np.nextafter(near, -np.inf, dtype=np.float32),
        ]
        near = min(
            around, key=lambda x: (abs(Fraction(float(x)) - exact), int(x.view(np.uint32)) & 1)
        )
    return np.float32(0) if abs(near) < TINY else near


def summed(x: np.ndarray, w: np.ndarray, first: np.ndarray) -> np.ndarray:
    """X W + first as the instruction adds it up: the second product of a pair, then the first."""
    total = np.broadcast_to(first, (len(x), w.shape[1])).astype(np.float32).copy()
    for k in range(0, x.shape[1], 2):
        for n in (k + 1, k):
            if n < x.shape[1]:
                for i in range(len(x)):
                    for j in range(w.shape[1]):
                        total[i, j] = fma(x[i, n], w[n, j], total[i, j])
    return total


@compiled
def run_multiply(a, b, bias, rows, wide, inner, flags, ends):
    gemm_bf16.multiply_pairs(a, b, bias, rows, wide, inner, flags, ends)


@compiled
def run_turn(first, second, target, half):
    if half:
        simd.turn_half_block(first, target)
    else:
        simd.turn_block(first, second, target)


class Product:
    """C = A B + bias with all ends, and what may not be written is seen."""

    def __init__(self, x, w, bias, flags, open_bits=None, last=None):
        rows, columns = len(x), w.shape[1]
        self.rows, self.columns, wide = rows, columns, panel_count(columns)
        a, b = as_rows(x), as_pairs(w)
        first = aligned(wide, PANEL)
        first.ravel()[:columns] = bias
        self.as_rows = aligned(-(-wide // 2), rows, PANEL)
        self.as_pairs = aligned(wide, -(-rows // 2), PANEL)
        self.mask = np.zeros((-(-wide // 2), rows), np.int32)
        if open_bits is not None:
            for j in range(columns):
                word = open_bits[:, j].astype(np.uint32) << np.uint32(j % 32)
                self.mask[j // 32] |= word.view(np.int32)
        self.value = aligned(rows, PANEL)
        self.floats = aligned(wide, rows, PANEL)
        weights = aligned(wide, PANEL)
        weights.ravel()[:columns] = 0 if last is None else last
        ends = Ends(
            *(place(self.as_rows), place(self.as_pairs), place(self.mask)),
            *(address(self.value), address(weights), place(self.floats)),
        )
        sizes = (np.int64(n) for n in (rows, wide, -(-x.shape[1] // 2)))
        run_multiply(place(a), place(b), place(first), *sizes, flags, ends)

    @property
    def result(self) -> np.ndarray:
        return self.floats.transpose(1, 0, 2).reshape(self.rows, -1)[:, : self.columns]


def normal(seed: int, *shape: int) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


@given(st.integers(1, 5), st.integers(1, 9), st.integers(1, 20), st.integers(0, 99))
@settings(max_examples=25)
def test_a_product_of_pairs_has_the_bits_of_multiply_adds_in_order(rows, inner, columns, seed):
    x, w = rounded(normal(seed, rows, inner)), rounded(normal(seed + 1, inner, columns))
    bias = normal(seed + 2, columns)
    found = Product(x, w, bias, FLOATS).result
    np.testing.assert_array_equal(found, summed(x, w, bias))


@pytest.mark.parametrize("size", [1e-19, 3e-20, 1e-38, 1e-39])
def test_denormal_numbers_are_zero_before_and_after_a_product(size):
    x = rounded(normal(0, 6, 8) * np.float32(size))
    w = rounded(normal(1, 8, 17) * np.float32(min(1.0, 1e-38 / size)))
    bias = normal(2, 17) * np.float32(1e-38)
    found = Product(x, w, bias, FLOATS).result
    np.testing.assert_array_equal(found, summed(x, w, bias))
    assert (found == 0).any()
    assert (found != 0).any()


@given(SIZES, SIZES, SIZES, st.integers(0, 99))
@settings(max_examples=40)
def test_ends_of_a_product_are_rounded_in_both_layouts(rows, inner, columns, seed):
    x, w = rounded(normal(seed, rows, inner)), rounded(normal(seed + 1, inner, columns))
    bias, last = normal(seed + 2, columns), normal(seed + 3, columns)
    sums = Product(x, w, bias, FLOATS).result
    exact = x.astype(float) @ w.astype(float) + bias
    np.testing.assert_allclose(sums, exact, atol=1e-6 * (inner + 1), rtol=1e-5)
    found = Product(x, w, bias, RELU | FLOATS | ROWS | PAIRS | MASK | VALUE, last=last)
    relu = np.maximum(sums, 0)
    np.testing.assert_array_equal(found.result, relu)
    np.testing.assert_array_equal(from_rows(found.as_rows, columns), rounded(relu))
    np.testing.assert_array_equal(from_pairs(found.as_pairs, rows, columns), rounded(relu))
    np.testing.assert_array_equal(bits_of(found.mask, columns), rounded(relu) > 0)
    values = found.value.astype(float).sum(1)
    np.testing.assert_allclose(values, relu.astype(float) @ last, rtol=1e-4, atol=1e-4)
    open_bits = np.random.default_rng(seed).random((rows, columns)) < 0.5
    found = Product(x, w, bias, GATE | FLOATS | ROWS, open_bits=open_bits)
    gated = np.where(open_bits, sums, 0)
    np.testing.assert_array_equal(found.result, gated)
    np.testing.assert_array_equal(from_rows(found.as_rows, columns), rounded(gated))
    assert not found.as_pairs.any()  # flags did not ask for it
    np.testing.assert_array_equal(bits_of(found.mask, columns), open_bits)


def test_nothing_is_written_beside_a_product():
    """A product of few rows in the middle of larger matrices."""
    x, w = rounded(normal(0, 40, 20)), rounded(normal(1, 20, 50))
    whole = Product(x, w, np.zeros(50), RELU | ROWS | PAIRS | MASK | FLOATS)
    for lines in (whole.as_rows[-1].view(np.uint16)[:, 50 - 32 :], whole.floats[-1][:, 2:]):
        assert not lines.any()  # padding stays 0: it is multiplied by weights that are 0, too


def test_a_nan_passes_a_relu_and_rounding():
    x, w = np.ones((3, 2), np.float32), np.ones((2, 4), np.float32)
    x[1, 0] = np.nan
    found = Product(x, w, np.zeros(4), RELU | ROWS | PAIRS | FLOATS)
    for matrix in (found.result, from_rows(found.as_rows, 4), from_pairs(found.as_pairs, 3, 4)):
        np.testing.assert_array_equal(np.isnan(matrix), [[False] * 4, [True] * 4, [False] * 4])


@given(SIZES, SIZES, st.integers(1, 140), st.integers(0, 99))
@settings(max_examples=40)
def test_products_over_samples_agree_with_numpy(rows, inner, columns, seed):
    x, d = rounded(normal(seed, inner, rows)), rounded(normal(seed + 1, inner, columns))
    a, b = as_pairs(x), as_pairs(d)
    c = aligned(len(b), rows, PANEL)
    sizes = np.int64(rows), np.int64(len(b)), np.int64(a.shape[1])
    run_across(place(a), place(b), place(c), *sizes, True)
    exact = x.T.astype(float) @ d.astype(float)
    found = c.transpose(1, 0, 2).reshape(rows, -1)[:, :columns]
    np.testing.assert_allclose(found, exact, atol=1e-6 * inner, rtol=1e-5)


@given(SIZES, st.integers(1, 140), st.integers(0, 99))
@settings(max_examples=30)
def test_sums_over_samples_agree_with_numpy(inner, columns, seed):
    factors, d = rounded(normal(seed, inner)), rounded(normal(seed + 1, inner, columns))
    b = as_pairs(d)
    a = aligned(panel_count(inner), PANEL)
    a.view(np.uint16).ravel()[:inner] = words(factors)
    c = aligned(len(b), PANEL)
    sizes = np.int64(len(b)), np.int64(b.shape[1])
    run_add_lines(address(a), place(b), address(c), *sizes, True)
    exact = factors.astype(float) @ d.astype(float)
    np.testing.assert_allclose(c.ravel()[:columns], exact, atol=1e-6 * inner, rtol=1e-5)


@pytest.mark.parametrize("half", [False, True])
def test_a_block_of_weights_is_turned_into_pairs_of_outputs(half):
    if half and simd.LANES < 16:
        pytest.skip("narrow vectors have no half block")
    width = simd.LANES if half else 2 * simd.LANES
    weights = normal(0, 2, PANEL, PANEL)  # inputs of two parts that lie apart
    step = simd.LANES if simd.LANES < PANEL else 0
    second = weights[1] if not step else weights[0]
    out = aligned(simd.LANES + 1, PANEL)
    at = address(weights[0]), address(second) + 4 * step, address(out)
    run_turn(*at, half)
    parts = (weights[0, :, : simd.LANES], second[:, step : step + simd.LANES])
    block = np.concatenate(parts, axis=1)[: simd.LANES, :width]
    found = widened(out.view(np.uint16)[: width // 2, : 2 * simd.LANES])
    for j in range(width):
        np.testing.assert_array_equal(found[j // 2, j % 2 :: 2], rounded(block)[:, j])
    assert not out[width // 2 :].any()


# ------------------------------------------------------------------ the learner


TINY_STEP = {"learning_rate": 1e-12}  # so that both actors go back through the same critics


@cache
def one_update(shape, updates):
    """A learner's state after some updates, what the next is made from, and its gradients."""
    trained = make("cpu", *shape, precision="bfloat16")
    for step in range(updates):
        trained.update(random_batch(trained, step))
    learner = make("cpu", *shape, precision="bfloat16", **TINY_STEP)
    state, layout = trained.get_state(), learner.layout
    learner.set_state(state)
    batch, noise = random_batch(learner, 1000), normal(7, 2, layout.action_size, shape[3])
    learner.update(batch, noise)
    found = (learner.get_state()["m"] - 0.9 * state["m"].astype(float)) / 0.1
    return layout, learner.config, state, batch.astype(float), noise.astype(float), found


def by_layer(layout, flat):
    """Gradients of actor and critics, layer by layer."""
    tables = {"actor": layout.actor, "critic 0": layout.critics[0], "critic 1": layout.critics[1]}
    return {
        (name, i): layer
        for name, table in tables.items()
        for i, layer in enumerate(layout.layers(flat, table))
    }


def apart(found, exact):
    """Of every layer: the distance of two gradients, in units of the exact one's norm."""
    return {n: np.linalg.norm(found[n] - exact[n]) / np.linalg.norm(exact[n]) for n in exact}


def half(x):
    return rounded(x).astype(float)


class Rounded:
    """A network in float64, whose numbers are rounded where ours are; x: (B, inputs)."""

    def __init__(self, layers, x, *, value):
        self.layers, self.inputs, self.open = layers, [half(x)], []
        hidden = x
        for i, layer in enumerate(layers[:-1]):
            weights = layer[:-1] if i == 0 else half(layer[:-1])
            hidden = np.maximum(x @ weights + layer[-1], 0)
            self.inputs.append(half(hidden))
            self.open.append(self.inputs[-1] > 0)
            x = self.inputs[-1]
        last = layers[-1]
        self.out = hidden @ last[:-1] + last[-1] if value else x @ half(last[:-1]) + last[-1]

    def deltas(self, top):
        """Those of the hidden layers, from that of the last one before its gate."""
        found = [half(top * self.open[-1])]
        for layer, gate in zip(self.layers[-2:0:-1], self.open[-2::-1], strict=True):
            found.insert(0, half(found[0] @ half(layer[:-1]).T * gate))
        return found

    def gradient(self, deltas, out, bias):
        """Of all layers, flat; out: the last layer's delta for its weights, bias: for its bias."""
        parts = [
            np.vstack([x.T @ d, d.sum(0)]).ravel()
            for x, d in zip(self.inputs, deltas, strict=False)
        ]
        return np.concatenate([*parts, (self.inputs[-1].T @ out).ravel(), bias.sum(0)])


def rounded_gradients(layout, config, state, batch, noise):
    """An update's gradients, written once more with every rounding in its place."""
    theta, target = state["theta"].astype(float), state["theta"].astype(float)
    target[layout.critic_begin : layout.log_temperature] = state["target"]
    a, o, samples = layout.action_size, layout.observation_size, len(batch)
    action, seen, following, rest = np.split(batch, [a, a + o, a + 2 * o], axis=1)
    temperature = np.exp(theta[layout.log_temperature])
    actor = layout.layers(theta, layout.actor)

    def policy(observation, draw):
        network = Rounded(actor, observation, value=False)
        mean, raw = np.split(network.out, 2, axis=1)
        log_std = np.clip(raw, config.log_std_min, config.log_std_max)
        u = mean + np.exp(log_std) * draw
        density = -(draw**2) / 2 - log_std - np.log(2 * np.pi) / 2
        log_prob = (density - 2 * (np.log(2) - u - np.logaddexp(0, -2 * u))).sum(1)
        return network, np.tanh(u), log_prob, np.exp(log_std)

    def critics(weights, x):
        tables = (layout.layers(weights, table) for table in layout.critics)
        return [Rounded(layers, x, value=True) for layers in tables]

    def least(networks):
        return np.minimum(*(network.out[:, 0] for network in networks))

    _, ahead, log_prob, _ = policy(following, noise[1].T)
    future = least(critics(target, np.hstack([ahead, following]))) - temperature * log_prob
    y = rest[:, 0] + config.gamma * rest[:, 1] * future
    parts = []
    for network in critics(theta, np.hstack([action, seen])):
        error = 2 / samples * (network.out - y[:, None])
        deltas = network.deltas(error @ network.layers[-1][:-1].T)
        parts.append(network.gradient(deltas, half(error), error))

    network, chosen, _, std = policy(seen, noise[0].T)
    slope = np.empty_like(chosen)
    both = critics(theta, np.hstack([chosen, seen]))
    values = [critic.out[:, 0] for critic in both]
    for c, smaller in enumerate((values[0] <= values[1], values[0] > values[1])):
        weights = both[c].layers
        top = np.broadcast_to(weights[-1][:-1].T, both[c].inputs[-1].shape)
        slope[smaller] = (both[c].deltas(top)[0] @ half(weights[0][:a]).T)[smaller]
    du = 2 * temperature / samples * chosen - slope * (1 - chosen**2) / samples
    heads = np.hstack([du, du * std * noise[0].T - temperature / samples])
    deltas = network.deltas(half(heads) @ half(actor[-1][:-1]).T)
    own = network.gradient(deltas, half(heads), half(heads))
    return np.concatenate([own, *parts])


NETWORKS = [(11, 3, (256, 256), 256), (31, 8, (64, 48, 33), 101), (5, 12, (20,), 30)]


@pytest.mark.parametrize("updates", [0, 50])
@pytest.mark.parametrize("shape", NETWORKS)
def test_an_update_rounds_where_it_should_and_nowhere_else(shape, updates):
    layout, config, state, batch, noise, found = one_update(shape, updates)
    exact = rounded_gradients(layout, config, state, batch, noise)
    errors = apart(by_layer(layout, found), by_layer(layout, np.append(exact, 0)))
    assert max(errors.values()) < 4e-3, errors


unflatten: Any = oracle.unflatten  # of float64, too


@pytest.mark.parametrize("updates", [0, 50])
def test_gradients_are_those_of_float64_within_a_bound_per_layer(updates):
    """Stated bound: each layer's gradient lies within 5 % of JAX's in float64, by their norms."""
    layout, config, state, batch, noise, found = one_update(NETWORKS[0], updates)
    with jax.enable_x64(True):
        target = np.zeros(layout.size)
        target[layout.critic_begin : layout.log_temperature] = state["target"]
        weights, m, v = (unflatten(layout, state[n].astype(float)) for n in ARRAYS[:3])
        critics = unflatten(layout, target).critics
        before = oracle.State(weights, m, v, critics, jax.numpy.asarray(updates))
        after, _ = oracle.update(layout, config, before, *map(jax.numpy.asarray, (batch, noise)))
        moved = jax.tree.map(
            lambda new, old: (np.asarray(new) - 0.9 * np.asarray(old)) / 0.1, after.m, m
        )
    exact = {("actor", i): layer for i, layer in enumerate(moved.actor)}
    for c in range(2):
        exact |= {(f"critic {c}", i): layer[c] for i, layer in enumerate(moved.critics)}
    errors = apart(by_layer(layout, found), exact)
    assert max(errors.values()) < 0.05, errors
    assert min(errors.values()) > 1e-4, errors  # float32 would be nearer


def test_precision_changes_bits_and_the_state_fits_both():
    single, half = make("cpu", *SHAPES[0]), make("cpu", *SHAPES[0], precision="bfloat16")
    np.testing.assert_array_equal(single.get_state()["theta"], half.get_state()["theta"])
    batch = random_batch(single, 0)
    assert single.update(batch) != half.update(batch)
    single.set_state(half.get_state())
    observation = np.ones(11)
    np.testing.assert_array_equal(  # actions are computed in float32
        single.act(observation, deterministic=True), half.act(observation, deterministic=True)
    )


def test_auto_is_what_the_cpu_has(monkeypatch):
    for found, expected in ((True, "bfloat16"), (False, "float32")):
        monkeypatch.setattr(
            "rollin.compiling.host_features", lambda found=found: {"avx512bf16": found}
        )
        assert SACConfig(precision="auto").precision == expected


def test_a_precision_that_a_learner_lacks_is_refused():
    with pytest.raises(RollinError, match=r"learner jax computes in float32, got precision bfl"):
        make("jax", *SHAPES[0], precision="bfloat16")
    with pytest.raises(RollinError, match="must be float32, bfloat16 or auto, got 'float16'"):
        SACConfig(precision="float16")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("asked", "width", "unit", "native"),
    [
        (None, 16, True, True),
        ("", 16, True, True),
        ("emulated", 16, True, False),
        (None, 8, True, False),
        (None, 16, False, False),
    ],
)
def test_the_unit_is_used_where_it_is(asked, width, unit, native):
    assert simd.choose_pairs(asked, width, {"avx512bf16": unit}) == native


def test_an_unknown_way_to_multiply_pairs_is_named():
    with pytest.raises(RollinError, match="ROLLIN_PAIRS must be emulated or unset, got 'fast'"):
        simd.choose_pairs("fast", 16, {})


def test_a_run_s_precision_is_part_of_its_name_and_float32_changes_no_name():
    def spec(**options):
        return RunSpec("Hopper-v5", SACRunConfig(sac=SACConfig(**options)))

    assert "precision" not in spec().to_json()["config"]["sac"]
    assert spec().hash == spec(precision="float32").hash
    assert spec(precision="bfloat16").hash not in (spec().hash, spec(threads=2).hash)


def test_a_run_with_jax_refuses_bfloat16_by_its_options():
    with pytest.raises(RollinError, match="--precision bfloat16 needs --learner cpu"):
        SACRunConfig(learner="jax", sac=SACConfig(precision="bfloat16"))
