"""The learners against each other, against finite differences, and against their contract."""

import gc
import sys
import threading
import time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rollin import RollinError
from rollin.sac import make_learner
from rollin.sac.config import SACConfig
from rollin.sac.cpu import learner as cpu_module
from rollin.sac.cpu.learner import CpuLearner
from rollin.sac.learner import Layout, SACLearner, orthogonal
from rollin.streams import Streams

ARRAYS = ("theta", "m", "v", "target")
PRECISIONS = ("float32", "bfloat16")
KINDS = [("cpu", "float32"), ("cpu", "bfloat16"), ("jax", "float32")]
SHAPES = [  # observation, action, hidden, batch
    (11, 3, (256, 256), 256),
    (5, 2, (7,), 1),
    (4, 1, (33, 17, 9), 50),
    (37, 8, (64, 48), 100),
    (1, 1, (1,), 3),
]


def random_batch(learner: SACLearner, seed: int) -> np.ndarray:
    rng, layout = np.random.default_rng(seed), learner.layout
    batch = rng.standard_normal((learner.config.batch, layout.row)).astype(np.float32)
    batch[:, : layout.action_size] = np.tanh(batch[:, : layout.action_size])
    batch[:, -1] = rng.random(len(batch)) < 0.8
    return batch


def make(name, observation, action, hidden, batch, seed=0, **options) -> SACLearner:
    config = SACConfig(hidden=hidden, batch=batch, **options)
    return make_learner(name, observation, action, config, Streams(seed))


def assert_same(one: SACLearner | dict, other: SACLearner | dict) -> None:
    one, other = (each if isinstance(each, dict) else each.get_state() for each in (one, other))
    for name in ARRAYS:
        np.testing.assert_array_equal(one[name], other[name])


def worst(one: dict, other: dict, name: str) -> float:
    return float(np.abs(one[name] - other[name]).max())


@pytest.mark.parametrize("shape", SHAPES)
def test_one_update_of_the_cpu_learner_is_that_of_autodiff(shape):
    cpu, jax = (make(name, *shape) for name in ("cpu", "jax"))
    assert_same(cpu, jax)
    batch = random_batch(cpu, 0)
    seen, wanted = cpu.update(batch), jax.update(batch)
    for field in ("critic_loss", "q_mean", "actor_loss", "entropy", "temperature"):
        assert getattr(seen, field) == pytest.approx(getattr(wanted, field), rel=1e-5, abs=1e-5)
    after, oracle = cpu.get_state(), jax.get_state()
    for name in ("m", "v", "target"):
        assert worst(after, oracle, name) < 1e-5, name
    # Adam's first step is the gradient's sign, which rounding decides where a gradient is almost 0
    apart = np.abs(after["theta"] - oracle["theta"])
    clear = np.abs(oracle["m"]) > 1e-7
    assert apart[clear].max() < 1e-5
    assert apart.max() <= 2 * cpu.config.learning_rate
    assert clear.mean() > 0.3  # the others are dead units of the smallest networks
    assert after["count"] == oracle["count"] == 1


@pytest.mark.parametrize("shape", SHAPES)
def test_fifty_updates_drift_apart_by_rounding_only(shape):
    """Adam turns the sign of a gradient near 0 into a whole step, so that rounding can grow.

    Stated drift over 50 updates: all parameters and targets stay within 1.5e-3, and 99.9 % of them
    within 1e-4 (fifty steps of Adam could move each by 1.5e-2).
    """
    cpu, jax = (make(name, *shape) for name in ("cpu", "jax"))
    for step in range(50):
        batch = random_batch(cpu, step)
        cpu.update(batch)
        jax.update(batch)
    after, oracle = cpu.get_state(), jax.get_state()
    for name in ("theta", "target"):
        assert worst(after, oracle, name) < 1.5e-3
        assert np.quantile(np.abs(after[name] - oracle[name]), 0.999) < 1e-4


@pytest.fixture
def eager(monkeypatch):
    """Threads even where they are not worth it."""
    monkeypatch.setattr(cpu_module, "GRAIN", 1e-9)


@pytest.mark.usefixtures("eager")
@pytest.mark.parametrize("precision", PRECISIONS)
@pytest.mark.parametrize("threads", [2, 3, 4, 6])
@pytest.mark.parametrize("shape", SHAPES[:4])
def test_any_number_of_threads_gives_the_same_bits(shape, threads, precision):
    alone, team = (make("cpu", *shape, threads=n, precision=precision) for n in (1, threads))
    assert isinstance(team, CpuLearner)
    assert team.threads == threads
    for step in range(3):
        batch = random_batch(alone, step)
        assert alone.update(batch) == team.update(batch)
    assert_same(alone, team)
    team.close()


@pytest.mark.usefixtures("eager")
@pytest.mark.parametrize("precision", PRECISIONS)
@pytest.mark.parametrize("threads", [1, 2, 3])
def test_an_update_that_begins_early_gives_the_same_bits(threads, precision):
    shape = (11, 3, (40, 24), 70)
    alone, team = (make("cpu", *shape, threads=n, precision=precision) for n in (1, threads))
    assert team.starts_early == (threads > 1)
    batch, noise = random_batch(alone, 100), np.ones((2, 3, 70), np.float32)
    for step in range(6):
        team.batch[:] = random_batch(alone, step)
        team.begin()
        if step == 2:  # what was begun is not what comes
            assert alone.update(batch) == team.update(batch)
        else:
            assert alone.update(random_batch(alone, step)) == team.update(team.batch)
    team.begin()
    assert alone.update(batch, noise) == team.update(batch, noise)
    team.begin()
    team.set_state(alone.get_state())
    assert alone.update(batch) == team.update(batch)
    assert_same(alone, team)
    team.begin()
    team.close()  # does not wait for an update that never comes


def test_small_networks_are_left_to_one_thread():
    small = make("cpu", 11, 3, (32, 32), 64, threads=2)
    wide = make("cpu", 11, 3, (256, 256), 256, threads=2)
    assert isinstance(small, CpuLearner)
    assert isinstance(wide, CpuLearner)
    assert (small.threads, wide.threads) == (1, 2)
    wide.close()


@pytest.mark.usefixtures("eager")
def test_threads_end_with_their_learner():
    before = threading.active_count()
    learner = make("cpu", 3, 1, (8,), 4, threads=3)
    learner.update(random_batch(learner, 0))
    assert threading.active_count() == before + 2
    del learner
    gc.collect()
    deadline = time.monotonic() + 5
    while threading.active_count() > before and time.monotonic() < deadline:
        time.sleep(0.01)
    assert threading.active_count() == before


# ------------------------------------------------------------------ gradients in float64


def mlp(layers, x):
    for layer in layers[:-1]:
        x = np.maximum(x @ layer[:-1] + layer[-1], 0)
    return x @ layers[-1][:-1] + layers[-1][-1]


def policy(config, layers, observation, noise):
    mean, log_std = np.split(mlp(layers, observation), 2, axis=-1)
    log_std = np.clip(log_std, config.log_std_min, config.log_std_max)
    u = mean + np.exp(log_std) * noise
    gaussian = -(noise**2) / 2 - log_std - np.log(2 * np.pi) / 2
    return np.tanh(u), (gaussian - np.log1p(-(np.tanh(u) ** 2))).sum(-1)


def slopes(function, theta, begin, end, step=1e-6):
    found = np.empty(end - begin)
    for i in range(begin, end):
        ahead, behind = theta.copy(), theta.copy()
        ahead[i] += step
        behind[i] -= step
        found[i - begin] = (function(ahead) - function(behind)) / (2 * step)
    return found


@pytest.mark.parametrize("name", ["cpu", "jax"])
@pytest.mark.parametrize(
    ("hidden", "bounds"), [((5, 4), (-10.0, 2.0)), ((6,), (-0.3, 0.3)), ((3, 4, 3), (-10.0, 2.0))]
)
def test_gradients_agree_with_finite_differences(name, hidden, bounds):
    """The first step of Adam leaves m = 0.1 × gradient; losses written once more in float64."""
    limits = {"log_std_min": bounds[0], "log_std_max": bounds[1]}
    learner = make(name, 3, 2, hidden, 6, **limits)
    layout, config = learner.layout, learner.config
    state = learner.get_state()  # with biases of 0, some units sit on the kink of their ReLU
    state["theta"] += 0.1 * np.random.default_rng(4).standard_normal(layout.size).astype(np.float32)
    learner.set_state(state)
    batch = random_batch(learner, 3)
    noise = np.random.default_rng(5).standard_normal((2, 2, 6)).astype(np.float32)
    old, target = state["theta"].astype(float), state["theta"].astype(float)
    target[layout.critic_begin : layout.log_temperature] = state["target"]
    learner.update(batch, noise)
    new = learner.get_state()
    gradient = new["m"].astype(float) / 0.1

    action, observation, following, rest = np.split(batch.astype(float), [2, 5, 8], axis=1)
    reward, mask = rest.T
    temperature = np.exp(old[layout.log_temperature])

    def q(theta, action, observation):
        x = np.concatenate([action, observation], 1)
        return np.stack([mlp(layout.layers(theta, t), x)[:, 0] for t in layout.critics])

    actor = layout.layers(old, layout.actor)
    next_action, next_log_prob = policy(config, actor, following, noise[1].T)
    y = reward + config.gamma * mask * (
        q(target, next_action, following).min(0) - temperature * next_log_prob
    )

    def critic_loss(theta):
        return ((q(theta, action, observation) - y) ** 2).mean(1).sum()

    updated = new["theta"].astype(float)

    def actor_loss(theta):
        layers = layout.layers(theta, layout.actor)
        action, log_prob = policy(config, layers, observation, noise[0].T)
        return (temperature * log_prob - q(updated, action, observation).min(0)).mean()

    begin, end = layout.critic_begin, layout.log_temperature
    exact = slopes(critic_loss, old, begin, end)
    np.testing.assert_allclose(gradient[begin:end], exact, rtol=1e-3, atol=2e-5)
    exact = slopes(actor_loss, old, 0, begin)
    np.testing.assert_allclose(gradient[:begin], exact, rtol=1e-3, atol=2e-5)
    entropy = -policy(config, actor, observation, noise[0].T)[1].mean()
    assert gradient[end] == pytest.approx(temperature * (entropy + 1), rel=1e-4)
    assert np.abs(exact).max() > 0.01


@pytest.mark.parametrize("precision", PRECISIONS)
def test_targets_follow_by_tau(precision):
    learner = make("cpu", 3, 2, (8, 8), 4, tau=0.25, precision=precision)
    layout, before = learner.layout, learner.get_state()
    learner.update(random_batch(learner, 0))
    after = learner.get_state()
    critics = after["theta"][layout.critic_begin : layout.log_temperature]
    np.testing.assert_allclose(
        after["target"], 0.25 * critics + 0.75 * before["target"], rtol=1e-5, atol=1e-7
    )


# ------------------------------------------------------------------ acting


@pytest.mark.parametrize("name", ["cpu", "jax"])
def test_actions_have_the_policy_s_distribution(name):
    learner = make(name, 4, 2, (16, 16), 4)
    layout = learner.layout
    observation = np.array([0.3, -1.0, 0.2, 0.9], np.float32)
    actor = [x.astype(float) for x in layout.layers(learner.get_state()["theta"], layout.actor)]
    mean, log_std = np.split(mlp(actor, observation.astype(float)), 2)
    mode = learner.act(observation, deterministic=True)
    np.testing.assert_allclose(mode, np.tanh(mean), atol=1e-5)
    draws = np.array([learner.act(observation) for _ in range(2000)], float)
    z = (np.arctanh(draws) - mean) / np.exp(log_std)
    assert np.abs(z.mean(0)).max() < 4 / np.sqrt(2000)
    assert np.abs((z**2).mean(0) - 1).max() < 4 * np.sqrt(2 / 2000)


def test_both_learners_act_alike_from_the_same_seed():
    cpu, jax = (make(name, 4, 2, (16, 16), 4, seed=7) for name in ("cpu", "jax"))
    for _ in range(5):
        observation = np.random.default_rng(1).standard_normal(4)
        np.testing.assert_allclose(cpu.act(observation), jax.act(observation), atol=1e-5)


def test_initial_weights_are_orthogonal():
    for rows, columns in ((11, 256), (256, 256), (256, 3)):
        matrix = orthogonal(np.random.default_rng(0), rows, columns, 1.5).astype(float)
        small = matrix @ matrix.T if rows < columns else matrix.T @ matrix
        np.testing.assert_allclose(small, 2.25 * np.eye(len(small)), atol=1e-5)
    layout = Layout(11, 3, (256, 256))
    for gain in (1.0, 2**0.5):
        theta = layout.initial(np.random.default_rng(0), 0.5, gain)
        head = layout.layers(theta, layout.actor)[-1]
        for half, scale in ((head[:-1, :3], gain), (head[:-1, 3:], 1.0)):
            np.testing.assert_allclose(half.T @ half, scale**2 * np.eye(3), atol=1e-5)
        last = layout.layers(theta, layout.critics[0])[-1]
        np.testing.assert_allclose((last[:-1] ** 2).sum(), 2, rtol=1e-5)
        assert theta[-1] == pytest.approx(np.log(0.5))
    assert SACConfig().head_gain == 1.0  # jaxrl's
    actor, critic = 12 * 256 + 257 * 256 + 257 * 6, 15 * 256 + 257 * 256 + 257
    assert layout.size == actor + 2 * critic + 1


# ------------------------------------------------------------------ state


@settings(max_examples=15)
@given(
    st.integers(1, 9),
    st.integers(1, 4),
    st.lists(st.integers(1, 20), min_size=1, max_size=3).map(tuple),
    st.integers(1, 40),
    st.integers(0, 4),
    st.integers(1, 3),
    st.sampled_from(PRECISIONS),
)
def test_a_restored_learner_goes_on_to_the_bit(
    observed, acted, hidden, batch, before, after, precision
):
    one = make("cpu", observed, acted, hidden, batch, seed=1, precision=precision)
    batches = [random_batch(one, i) for i in range(before + after)]
    for rows in batches[:before]:
        one.update(rows)
        one.act(np.ones(observed))
    state, streams = one.get_state(), one.streams.get_state()
    other = make("cpu", observed, acted, hidden, batch, seed=1, precision=precision)
    other.update(random_batch(one, 99))  # somewhere else, and with streams that have moved on
    other.act(np.zeros(observed))
    other.set_state(state)
    other.streams.set_state(streams)
    for rows in batches[before:]:
        assert one.update(rows) == other.update(rows)
        np.testing.assert_array_equal(one.act(np.ones(observed)), other.act(np.ones(observed)))
    assert_same(one, other)


def test_a_state_is_a_copy():
    learner = make("cpu", 3, 1, (8,), 4)
    state = learner.get_state()
    kept = state["theta"].copy()
    learner.update(random_batch(learner, 0))
    np.testing.assert_array_equal(state["theta"], kept)


def test_learners_go_on_with_each_other_s_state():
    cpu, jax = (make(name, 3, 1, (8,), 4) for name in ("cpu", "jax"))
    cpu.update(random_batch(cpu, 0))
    jax.set_state(cpu.get_state())
    jax.streams.set_state(cpu.streams.get_state())
    assert_same(jax, cpu)
    assert jax.count == 1
    batch = random_batch(cpu, 1)
    assert jax.update(batch).critic_loss == pytest.approx(cpu.update(batch).critic_loss, rel=1e-5)


@pytest.mark.parametrize(("name", "precision"), KINDS)
@pytest.mark.parametrize("where", [0, 3, 5, -2])
def test_a_bad_number_in_a_batch_stops_the_learner_before_it_spoils_it(name, precision, where):
    learner = make(name, 3, 1, (8,), 4, precision=precision)
    learner.update(random_batch(learner, 0))
    before = learner.get_state()
    batch = random_batch(learner, 1)
    batch[2, where] = np.nan
    with pytest.raises(RollinError, match="at update 2: the learner diverged"):
        learner.update(batch)
    assert_same(before, learner)
    assert learner.count == 1
    learner.update(random_batch(learner, 2))


@pytest.mark.usefixtures("eager")
def test_a_closed_team_is_refused_and_not_waited_for():
    learner = make("cpu", 3, 1, (8,), 64, threads=2)
    learner.update(random_batch(learner, 0))
    learner.close()
    with pytest.raises(RollinError, match="threads have ended"):
        learner.update(random_batch(learner, 1))


def test_networks_beyond_bounds_are_refused_before_they_are_made():
    with pytest.raises(
        RollinError, match=r"of 27,\d+,\d+,\d+,\d+ parameters, and at most 33,554,432"
    ):
        make("cpu", 3, 1, (3_000_000, 3_000_000), 4)
    with pytest.raises(RollinError, match="choose smaller layers"):
        make("cpu", 3, 1, (5_000_000,), 4)


@pytest.mark.usefixtures("eager")
@pytest.mark.parametrize("precision", PRECISIONS)
def test_a_diverged_team_of_threads_can_go_on(precision):
    learner = make("cpu", 3, 1, (8,), 64, threads=2, precision=precision)
    batch = random_batch(learner, 0)
    batch[40, -2] = np.inf
    with pytest.raises(RollinError, match="critics' loss"):
        learner.update(batch)
    learner.update(random_batch(learner, 1))
    learner.close()


@pytest.mark.parametrize(("name", "precision"), KINDS)
def test_an_actor_that_diverges_is_stopped_too(name, precision):
    learner = make(name, 3, 1, (8,) * 12, 4, learning_rate=1e6, precision=precision)
    before = learner.get_state()
    with pytest.raises(RollinError, match=r"The actor's loss is not a finite number at update 1"):
        learner.update(random_batch(learner, 0))
    after = learner.get_state()
    begin = learner.layout.critic_begin
    np.testing.assert_array_equal(before["theta"][:begin], after["theta"][:begin])
    assert learner.count == 0


@pytest.mark.parametrize("name", ["cpu", "jax"])
def test_wrong_shapes_and_types_are_named(name):
    learner = make(name, 3, 1, (8,), 4)
    with pytest.raises(RollinError, match=r"noise must have shape \(2, 1, 4\), got \(1, 4\)"):
        learner.update(random_batch(learner, 0), np.zeros((1, 4), np.float32))
    with pytest.raises(RollinError, match=r"shape \(4, 9\).*got float32 of shape \(5, 9\)"):
        learner.update(np.zeros((5, 9), np.float32))
    with pytest.raises(RollinError, match="got float64 of shape"):
        learner.update(np.zeros((4, 9)))  # pyright: ignore[reportArgumentType]
    with pytest.raises(RollinError, match=r"3 real numbers.*got float64 of shape \(4,\)"):
        learner.act(np.zeros(4))
    with pytest.raises(RollinError, match="got object"):
        learner.act(np.array(["a", None, 1], object))
    with pytest.raises(RollinError, match="a network of other sizes"):
        learner.set_state(make(name, 4, 1, (8,), 4).get_state())
    state = learner.get_state()
    del state["count"]
    with pytest.raises(RollinError, match="lacks its count"):
        learner.set_state(state)
    state = learner.get_state()
    state["v"][3] = np.inf
    with pytest.raises(RollinError, match="v holds NaN or infinity"):
        learner.set_state(state)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"hidden": ()}, "at least one layer"),
        ({"hidden": (8, 0)}, "hidden must be at least 1, got 0"),
        ({"batch": 0}, "batch must be at least 1"),
        ({"threads": 0}, "threads must be at least 1"),
        ({"update_every": 0}, "update_every must be at least 1, got 0"),
        ({"update_every": 2.5}, "update_every must be a whole number, got 2.5"),
        ({"updates_per_step": -1}, "updates_per_step must be at least 1, got -1"),
        ({"updates_per_step": 10**7}, "updates_per_step must be at most 1,000,000"),
        ({"gamma": 1.5}, r"gamma must lie in \[0, 1\], got 1.5"),
        ({"tau": 0.0}, r"tau must lie in \(0, 1\]"),
        ({"learning_rate": float("nan")}, "learning_rate must be a finite number"),
        ({"initial_temperature": -1.0}, "initial_temperature"),
        ({"target_entropy": float("inf")}, "target_entropy must be finite"),
        ({"log_std_min": 3.0}, "log_std_min must be smaller"),
    ],
)
def test_bad_hyperparameters_are_refused(options, message):
    with pytest.raises(RollinError, match=message):
        SACConfig(**options)


def test_the_cpu_learner_is_what_it_is_called_and_an_unknown_one_is_named():
    assert isinstance(make("cpu", 3, 1, (8,), 4), CpuLearner)
    with pytest.raises(RollinError, match="The learner must be cpu or jax, got 'torch'"):
        make("torch", 3, 1, (8,), 4)


def test_without_jax_the_error_says_what_to_install(monkeypatch):
    monkeypatch.delitem(sys.modules, "rollin.sac.jax")
    monkeypatch.setitem(sys.modules, "jax", None)
    with pytest.raises(
        RollinError, match=r"'\.\[jax\]' in a clone of rollin, or use --learner cpu"
    ):
        make("jax", 3, 1, (8,), 4)


@pytest.mark.parametrize("name", ["cpu", "jax"])
def test_a_reset_learner_is_a_new_one_with_other_first_weights(name):
    config, streams = SACConfig(hidden=(8,), batch=4), Streams(3)
    learner = make_learner(name, 3, 1, config, streams)
    first = learner.get_state()
    batch = np.random.default_rng(0).uniform(-1, 1, (4, learner.layout.row)).astype(np.float32)
    learner.update(batch)
    learner.reset()
    again = learner.get_state()
    assert again["count"] == 0
    assert not again["m"].any()
    assert not again["v"].any()
    assert not np.array_equal(again["theta"], first["theta"])
    begin, end = learner.layout.critic_begin, learner.layout.log_temperature
    np.testing.assert_array_equal(again["target"], again["theta"][begin:end])
    drawn = Streams(3)
    gains = config.initial_temperature, config.head_gain
    learner.layout.initial(drawn["init"], *gains)
    expected = learner.layout.initial(drawn["init"], *gains)
    np.testing.assert_array_equal(again["theta"], expected)  # the next draw of the stream
