"""Guides in NumPy act as the models they are frozen from; others stay in their process."""

import pickle
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces
from scipy.stats import chisquare, kstest, norm

import rollin
from rollin import RollIn, RollinError, SequentialTeacher
from rollin.agents.numpy_guide import NumpyGuide, Statistics

torch = pytest.importorskip("torch")
pytest.importorskip("stable_baselines3")

from stable_baselines3 import A2C, DDPG, DQN, PPO, SAC, TD3  # noqa: E402
from stable_baselines3.common.torch_layers import BaseFeaturesExtractor  # noqa: E402
from stable_baselines3.common.vec_env import (  # noqa: E402
    DummyVecEnv,
    SubprocVecEnv,
    VecFrameStack,
    VecNormalize,
)

from rollin.sb3 import RollInCallback  # noqa: E402
from rollin.sb3.guide import JaxGuide, NotDenseError, TorchGuide, freeze, from_jax  # noqa: E402  # noqa: E402
from tests.sb3.test_sb3 import easy  # noqa: E402
from tests.toys import Line  # noqa: E402

pytestmark = pytest.mark.xdist_group("torch")

VECTOR = spaces.Box(-3, 3, (5,), np.float32)
SEVERAL = spaces.Dict(
    place=spaces.Box(-2, 2, (2, 3), np.float64), room=spaces.Discrete(4),
    flags=spaces.MultiBinary(3), dials=spaces.MultiDiscrete([2, 3]), context=VECTOR,
)  # fmt: skip
ACTIONS = spaces.Box(np.array([-1, 0], np.float32), np.array([2, 0.5], np.float32))
CASES: dict[str, tuple[Any, Any, Any]] = {
    "PPO": (PPO, ACTIONS, {"activation_fn": torch.nn.ReLU}),
    "PPO discrete": (PPO, spaces.Discrete(4), {}),
    "PPO several": (PPO, spaces.MultiDiscrete([3, 2, 4]), {"share_features_extractor": False}),
    "PPO bits": (PPO, spaces.MultiBinary(5), {"net_arch": []}),
    "A2C": (A2C, ACTIONS, {"net_arch": {"pi": [7, 6], "vf": [5]}}),
    "SAC": (SAC, ACTIONS, {}),
    "SAC tanh": (SAC, ACTIONS, {"activation_fn": torch.nn.Tanh, "net_arch": [9]}),
    "TD3": (TD3, ACTIONS, {"activation_fn": torch.nn.SiLU}),
    "DDPG": (DDPG, ACTIONS, {"activation_fn": torch.nn.ELU}),
    "DQN": (DQN, spaces.Discrete(4), {}),
}


class Spaces(gymnasium.Env[Any, Any]):
    """An env of any spaces, where nothing matters."""

    def __init__(self, observed: Any, actions: Any) -> None:
        self.observation_space, self.action_space = observed, actions

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        super().reset(seed=seed)
        return self.observation_space.sample(), {}

    def step(self, action: Any) -> Any:
        return self.observation_space.sample(), 0.0, False, False, {}


def shaken(name: str, observed: Any, **options: Any) -> Any:
    """A model with parameters that all differ from zero, as after training."""
    kind, actions, net = CASES[name]
    policy = "MultiInputPolicy" if isinstance(observed, spaces.Dict) else "MlpPolicy"
    env = options.pop("env", None) or Spaces(observed, actions)
    model = kind(policy, env, policy_kwargs={"net_arch": [16, 8], **net}, seed=0, device="cpu")
    with torch.no_grad():
        for value in model.policy.parameters():
            value += 0.3 * torch.randn_like(value)
    return model


@pytest.mark.parametrize("observed", [VECTOR, SEVERAL], ids=["vector", "dict"])
@pytest.mark.parametrize("name", CASES)
def test_a_numpy_guide_is_the_model_it_was_frozen_from(name, observed):
    model = shaken(name, observed)
    guide = freeze(model)
    assert isinstance(guide, NumpyGuide)
    observed.seed(1)
    modes = []
    for _ in range(40):
        seen = observed.sample()
        expected = model.predict(seen, deterministic=True)[0]
        action = guide.act(seen)
        np.testing.assert_allclose(action, expected, rtol=1e-4, atol=1e-5)
        assert model.action_space.contains(action)
        _check_distribution(model, guide, seen)
        modes.append(str(action))
    assert len(set(modes)) > 1  # no constant, which would agree with anything constant


def _check_distribution(model: Any, guide: NumpyGuide, seen: Any) -> None:
    """What the actions are drawn from is the same."""
    policy = model.policy
    tensors, _ = policy.obs_to_tensor(seen)
    out = guide.outputs(seen)
    with torch.no_grad():
        if guide.head == "greedy":
            found, expected = out, policy.q_net(tensors)[0].numpy()
        elif guide.head == "squashed":
            mean, log_std, _ = policy.actor.get_action_dist_params(tensors)
            found = np.concatenate([out[:2], np.clip(out[2:], *guide.log_std)])
            expected = torch.cat([mean, log_std], -1)[0].numpy()
        elif guide.head == "tanh":
            found, expected = np.tanh(out), policy.actor(tensors)[0].numpy()
        else:
            drawn = policy.get_distribution(tensors).distribution
            if guide.head == "gaussian":
                found = np.concatenate([out, np.exp(guide.log_std)])
                expected = torch.cat([drawn.mean, drawn.stddev], -1)[0].numpy()
            elif guide.head == "bernoulli":
                found, expected = 1 / (1 + np.exp(-out)), drawn.probs[0].numpy()
            else:
                several = drawn if isinstance(drawn, list) else [drawn]
                found = np.concatenate([np.exp(p) / np.exp(p).sum() for p in guide._choices(out)])
                expected = torch.cat([one.probs[0] for one in several]).numpy()
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", ["PPO", "SAC", "PPO several", "PPO bits"])
def test_draws_of_a_numpy_guide_have_the_distribution_of_the_model_s(name):
    guide: Any = freeze(shaken(name, VECTOR))
    seen = 0.3 * np.ones(5, np.float32)
    guide.begin(5)
    drawn = np.array([guide(seen, None) for _ in range(3000)], float)
    out = guide.outputs(seen)
    if name == "PPO several":
        for i, logits in enumerate(guide._choices(out)):
            share = np.exp(logits.astype(float)) / np.exp(logits.astype(float)).sum()
            counts = np.bincount(drawn[:, i].astype(int), minlength=len(share))
            assert chisquare(counts, 3000 * share).pvalue > 0.001
    elif name == "PPO bits":
        share = 1 / (1 + np.exp(-out))
        assert np.abs(drawn.mean(0) - share).max() < 4 * 0.5 / np.sqrt(3000)
    else:
        low, high = ACTIONS.low, ACTIONS.high
        mean, log_std = (out, guide.log_std) if name == "PPO" else np.split(out, 2)
        for i in range(2):
            column = drawn[:, i]
            if name == "SAC":
                column = np.arctanh(2 * (column - low[i]) / (high[i] - low[i]) - 1)
            inside = (drawn[:, i] > low[i]) & (drawn[:, i] < high[i])  # PPO's are clipped
            law = norm(mean[i], np.exp(np.clip(log_std[i], -20, 2)))
            ends = law.cdf([low[i], high[i]]) if name == "PPO" else np.array([0.0, 1.0])
            uniform = (law.cdf(column[inside]) - ends[0]) / (ends[1] - ends[0])
            assert kstest(uniform, "uniform").pvalue > 0.001
            assert inside.mean() == pytest.approx(ends[1] - ends[0], abs=0.04)


def test_a_numpy_guide_normalises_as_the_normaliser_did_when_it_was_frozen():
    envs = VecNormalize(DummyVecEnv([lambda: Line(12)]), clip_obs=3.0)
    model = shaken("SAC", envs.observation_space, env=envs)
    envs.reset()
    for _ in range(15):
        envs.step(np.ones((1, 1), np.float32))
    guide: Any = freeze(model)
    seen = {"observation": np.array([0.3, 0.5]), "context": np.array([0.2])}
    then = guide.act(seen)
    expected = model.predict(envs.normalize_obs(seen), deterministic=True)[0]
    np.testing.assert_allclose(then, expected, rtol=1e-4, atol=1e-5)
    for _ in range(15):
        envs.step(-np.ones((1, 1), np.float32))
    assert guide.act(seen) == then  # and the statistics have moved since
    moved = model.predict(envs.normalize_obs(seen), deterministic=True)[0]
    assert np.abs(moved - then).max() > 1e-3


def test_a_pickled_guide_acts_the_same_where_there_is_no_torch(tmp_path):
    model = shaken("SAC", SEVERAL)
    guide = freeze(model)
    SEVERAL.seed(2)
    seen = [SEVERAL.sample() for _ in range(3)]
    (tmp_path / "guide").write_bytes(pickle.dumps((guide, seen)))
    code = (
        "import sys, pickle, pathlib\n"
        "sys.modules['torch'] = sys.modules['stable_baselines3'] = sys.modules['jax'] = None\n"
        "guide, seen = pickle.loads(pathlib.Path(sys.argv[1]).read_bytes())\n"
        "guide.begin(3)\n"
        "print([guide(one, None).tolist() for one in seen])\n"
    )
    where = str(Path(rollin.__file__).parents[1])
    out = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path / "guide")], capture_output=True, text=True,
        env={"PYTHONPATH": where, "PATH": ""},
    )  # fmt: skip
    guide.begin(3)
    assert out.stdout.strip() == str([guide(one, None).tolist() for one in seen]), out.stderr


def test_parameters_of_a_guide_can_be_kept_and_must_fit():
    one: Any = freeze(shaken("PPO", VECTOR))
    other: Any = freeze(shaken("A2C", VECTOR))
    net = {"net_arch": [16, 8], "activation_fn": torch.nn.ReLU}
    model = PPO("MlpPolicy", Spaces(VECTOR, ACTIONS), device="cpu", policy_kwargs=net)
    again: Any = freeze(model)
    seen = np.ones(5, np.float32)
    assert not np.array_equal(again.act(seen), one.act(seen))
    again.take(one.tensors())
    np.testing.assert_array_equal(again.act(seen), one.act(seen))
    with pytest.raises(RollinError, match="make the model as it was when it was saved"):
        other.take(one.tensors())


# ------------------------------------------------------------------ what is no such network


class Summed(BaseFeaturesExtractor):
    """Sums of observations: a network of somebody's own."""

    def __init__(self, space: Any) -> None:
        super().__init__(space, 1)

    def forward(self, observations: Any) -> Any:
        return sum(part.flatten(1).sum(-1, keepdim=True) for part in observations.values())


OWN = {"features_extractor_class": Summed, "net_arch": [8]}


def own(env: Any, kind: Any = PPO, **options: Any) -> Any:
    return kind(
        "MultiInputPolicy", env, policy_kwargs=dict(OWN), seed=0, device="cpu", gamma=0.7, **options
    )


def test_a_network_of_one_s_own_is_a_frozen_copy_that_acts_in_this_process():
    walk = SequentialTeacher(easy(), beta=0.6)
    model = own(RollIn(Line(12), walk), n_steps=32, batch_size=16)
    callback = RollInCallback(walk)
    model.learn(150, callback=callback)
    guide = callback.guide
    assert isinstance(guide, TorchGuide)
    assert callback.coordinator is not None
    assert (walk.k, callback.coordinator.rollin_steps > 0) == (2, True)
    seen = {"observation": np.ones(2), "context": np.ones(1)}
    before = torch.random.get_rng_state()
    guide.begin(3)
    drawn = [guide(seen, None).tolist() for _ in range(4)]
    assert torch.equal(torch.random.get_rng_state(), before)  # it draws from a stream of its own
    guide.begin(3)
    assert [guide(seen, None).tolist() for _ in range(4)] == drawn
    assert len(set(map(str, drawn))) > 1
    kept = {name: value.copy() for name, value in guide.tensors().items()}
    model.learn(100, callback=callback, reset_num_timesteps=False)
    for name, value in guide.tensors().items():
        np.testing.assert_array_equal(value, kept[name])


def test_a_network_of_one_s_own_is_refused_in_other_processes_before_it_learns():
    words = r"features extractor Summed cannot act in another process.*use DummyVecEnv"
    envs = SubprocVecEnv([lambda: RollIn(Line(12))], start_method="forkserver")
    try:
        with pytest.raises(RollinError, match=words):
            own(envs).learn(10, callback=RollInCallback(SequentialTeacher(easy())))
        walk = SequentialTeacher(easy(), beta=0.0)  # needs no guide
        model = own(envs, n_steps=32, batch_size=16)
        model.learn(64, callback=RollInCallback(walk))
        assert walk.steps > 0
    finally:
        envs.close()
    with pytest.raises(RollinError, match=words):
        pickle.dumps(freeze(model))


@pytest.mark.parametrize(
    ("kind", "observed", "options", "why"),
    [
        (PPO, VECTOR, {"use_sde": True}, "state-dependent noise"),
        (SAC, VECTOR, {"use_sde": True}, "state-dependent noise"),
        (PPO, VECTOR, {"policy_kwargs": {"activation_fn": torch.nn.GELU}}, "the layer GELU"),
        (PPO, spaces.Box(0, 255, (40, 40, 3), np.uint8), {}, "observations in Box"),
    ],
)  # fmt: skip
def test_what_else_is_no_plain_network_is_named(kind, observed, options, why):
    env = Spaces(observed, ACTIONS)
    more: dict[str, Any] = {"buffer_size": 10} if kind is SAC else {}
    guide = freeze(kind("MlpPolicy", env, device="cpu", **options, **more))
    assert isinstance(guide, TorchGuide)
    assert why in guide.why


def test_frames_that_are_stacked_outside_are_told_with_the_fix():
    walk = SequentialTeacher(easy(), beta=0.6)
    envs = VecFrameStack(DummyVecEnv([lambda: RollIn(Line(12))]), 2)
    model = PPO("MultiInputPolicy", envs, n_steps=32, batch_size=16, gamma=0.7, device="cpu")
    with pytest.raises(RollinError, match=r"6 numbers and receives 3.*must lie inside RollIn"):
        model.learn(200, callback=RollInCallback(walk))


# ------------------------------------------------------------------ SBX, by its interface


def relu(x: Any) -> Any:
    return np.maximum(x, 0)


def sbx_like(policy: str, network: str, actions: Any, observed: Any = VECTOR, **more: Any) -> Any:
    """A policy with the names and parameters that SBX's have, of 5 inputs and 6 hidden units."""
    draws = np.random.default_rng(0)
    outputs = {"SACPolicy": (2, 2), "DQNPolicy": (4,), "TD3Policy": (2,), "PPOPolicy": (2,)}[policy]
    sizes = [(5, 6), *((6, n) for n in outputs)]
    params: dict[str, Any] = {
        f"Dense_{i}": {"kernel": draws.normal(size=size), "bias": draws.normal(size=size[1])}
        for i, size in enumerate(sizes)
    }
    if policy == "PPOPolicy":
        params["log_std"] = np.array([-1.0, 0.5])
    net = type(network, (), {"log_std_min": -20, "log_std_max": 2})()
    state = SimpleNamespace(params={"params": params})
    found: dict[str, Any] = {
        "action_space": actions, "observation_space": observed, "activation_fn": relu,
        "use_sde": False, **more,
    }  # fmt: skip
    places = ("qf", "qf_state") if policy == "DQNPolicy" else ("actor", "actor_state")
    return type(policy, (), {**found, places[0]: net, places[1]: state})()


def test_guides_of_sbx_are_read_from_its_parameters():
    seen = np.linspace(-1, 1, 5).astype(np.float32)

    def layer(params: Any, i: int, x: Any) -> Any:
        return x @ params[f"Dense_{i}"]["kernel"] + params[f"Dense_{i}"]["bias"]

    low, high = ACTIONS.low, ACTIONS.high
    for policy, network in (
        ("SACPolicy", "SquashedGaussianActor"), ("TD3Policy", "Actor"), ("PPOPolicy", "Actor"),
        ("DQNPolicy", "QNetwork"),
    ):  # fmt: skip
        actions = spaces.Discrete(4) if policy == "DQNPolicy" else ACTIONS
        like = sbx_like(policy, network, actions)
        state = like.qf_state if policy == "DQNPolicy" else like.actor_state
        params = state.params["params"]
        out = layer(params, 1, relu(layer(params, 0, seen)))
        expected = {"DQNPolicy": np.argmax(out), "PPOPolicy": np.clip(out[:2], low, high)}.get(
            policy, low + 0.5 * (np.tanh(out[:2]) + 1) * (high - low)
        )
        guide = pickle.loads(pickle.dumps(from_jax(like, None)))
        np.testing.assert_allclose(guide.act(seen), expected, rtol=1e-5)
        if policy == "SACPolicy":
            log_std = layer(params, 2, relu(layer(params, 0, seen)))
            np.testing.assert_allclose(guide.outputs(seen), [*out, *log_std], rtol=1e-5)
        if policy == "PPOPolicy":
            assert guide.log_std.tolist() == [-1.0, 0.5]


@pytest.mark.parametrize(
    ("given", "why"),
    [
        ({"network": "SimbaSquashedGaussianActor"}, "network SimbaSquashedGaussianActor"),
        ({"use_sde": True}, "state-dependent noise"),
        ({"activation_fn": lambda x: x}, "the activation"),
        ({"observed": spaces.Discrete(5)}, "observations in Discrete"),
    ],
)
def test_networks_of_sbx_that_are_not_plain_are_named(given, why):
    told: dict[str, Any] = {"network": "SquashedGaussianActor", **given}
    with pytest.raises(NotDenseError, match=why):
        from_jax(sbx_like("SACPolicy", told.pop("network"), ACTIONS, **told), None)


def test_a_policy_of_sbx_that_is_not_plain_stays_here():
    like = sbx_like("SACPolicy", "Simba", ACTIONS)
    like.predict = lambda seen, deterministic: (np.asarray(seen)[:2], None)
    model = SimpleNamespace(policy=like, get_vec_normalize_env=lambda: None)
    guide = freeze(model)
    assert isinstance(guide, JaxGuide)
    assert guide(np.arange(5.0), None).tolist() == [0.0, 1.0]
    with pytest.raises(RollinError, match=r"network Simba cannot act in another process"):
        pickle.dumps(guide)
    statistics = Statistics({"": (np.ones(5), np.ones(5))}, 0.0, 10.0)
    guide.statistics = statistics
    assert guide(np.arange(5.0), None).tolist() == [-1.0, 0.0]
