"""ROLLIN around Stable-Baselines3: every learner, vector env and level; saving; bad input."""

import json
from collections.abc import Iterator
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces
from gymnasium.wrappers import TimeLimit

from rollin import Curriculum, GoalView, RollIn, RollinError, SequentialTeacher
from tests.toys import Line, PlansEach, PointGoal

torch = pytest.importorskip("torch")
sb3 = pytest.importorskip("stable_baselines3")

from stable_baselines3 import A2C, DQN, PPO, SAC, TD3, HerReplayBuffer  # noqa: E402
from stable_baselines3.common.callbacks import (  # noqa: E402
    BaseCallback,
    CheckpointCallback,
    EvalCallback,
)
from stable_baselines3.common.evaluation import evaluate_policy  # noqa: E402
from stable_baselines3.common.logger import KVWriter, Logger  # noqa: E402
from stable_baselines3.common.monitor import Monitor  # noqa: E402
from stable_baselines3.common.vec_env import (  # noqa: E402
    DummyVecEnv,
    SubprocVecEnv,
    VecNormalize,
)

import rollin.sb3  # noqa: E402
from rollin.agents.numpy_guide import Statistics  # noqa: E402
from rollin.sb3 import check_version, files  # noqa: E402
from rollin.sb3.explorer import Explorer, twin  # noqa: E402
from rollin.sb3.guide import TorchGuide, freeze  # noqa: E402
from rollin.teachers import Uniform  # noqa: E402

ANY: Any = lambda value: value  # noqa: E731
RollInCallback: Any = rollin.sb3.RollInCallback  # with a coordinator, a guide, an explorer
OFF: dict[str, Any] = {"learning_starts": 20, "batch_size": 8, "buffer_size": 2000}
KINDS: dict[str, tuple[Any, dict[str, Any]]] = {
    "PPO": (PPO, {"n_steps": 32, "batch_size": 16, "n_epochs": 2}),
    "A2C": (A2C, {"n_steps": 16}),
    "SAC": (SAC, OFF),
    "TD3": (TD3, OFF),
    "DQN": (DQN, {**OFF, "train_freq": 1}),
}
pytestmark = [
    pytest.mark.filterwarnings("ignore:.*roll-ins ended"),
    pytest.mark.xdist_group("torch"),
]


class Steps(Line):
    """The line with three actions."""

    def __init__(self, length: int | None = None) -> None:
        super().__init__(length)
        self.action_space = spaces.Discrete(3)

    def step(self, action: Any) -> Any:
        return super().step(np.array([2.0 * (int(action) - 1)]))


class Keeps(KVWriter):
    """Keeps what is logged."""

    def __init__(self) -> None:
        self.values: dict[str, Any] = {}

    def write(self, key_values: Any, key_excluded: Any, step: int = 0) -> None:
        self.values |= key_values

    def close(self) -> None:
        pass


def easy(episodes: int = 3, R: float = -1.0) -> Curriculum:
    return Curriculum.listed([[0.0], [0.2], [0.4]], R, episodes=episodes)


def env_of(name: str, teacher: Any = None) -> RollIn:
    return RollIn(Steps(12) if name == "DQN" else Line(12), teacher)


def model_of(name: str, env: Any, **options: Any) -> Any:
    kind, own = KINDS[name]
    net = {"policy_kwargs": {"net_arch": [8]}}
    told: dict[str, Any] = {"gamma": 0.7, "seed": 0, "device": "cpu", **net, **own, **options}
    return kind("MultiInputPolicy", env, **told)


def taught(
    name: str, episodes: int = 3, beta: float = 0.6, shared: bool = True, **options: Any
) -> tuple[Any, Any, Any]:
    """A teacher, a model, and their callback; shared: the env holds the teacher as well."""
    walk = SequentialTeacher(easy(episodes), beta)
    model = model_of(name, env_of(name, walk if shared else None))
    return walk, model, RollInCallback(walk, **options)


def parameters(module: Any) -> list[bytes]:
    return [value.detach().numpy().tobytes() for value in module.state_dict().values()]


def bits(guide: Any) -> dict[str, bytes]:
    return {name: value.tobytes() for name, value in guide.tensors().items()}


@pytest.fixture(autouse=True)
def _one_thread() -> None:
    torch.set_num_threads(1)


# ------------------------------------------------------------------ learners


@pytest.mark.parametrize("name", KINDS)
def test_every_learner_walks_a_curriculum_with_roll_ins(name):
    walk = SequentialTeacher(easy(), beta=0.6)
    model = model_of(name, env_of(name, walk))
    callback, kept = RollInCallback(walk), Keeps()
    model.set_logger(Logger(None, [kept]))
    model.learn(150, callback=callback)
    coordinator = callback.coordinator
    assert walk.k == 2
    assert coordinator.rollin_steps > 0
    logged = {**kept.values, **model.logger.name_to_value}
    names = (
        "k",
        "kappa",
        "window",
        "threshold",
        "env_steps",
        "rollin_steps",
        "failed_rollin_steps",
        "abandoned",
        "late",
    )
    assert {f"rollin/{name}" for name in names} <= logged.keys()
    assert logged["rollin/kappa"] == 1.0
    ended = [episode["l"] for episode in model.ep_info_buffer]
    assert coordinator.steps == coordinator.rollin_steps + coordinator.failed_rollin_steps + sum(
        ended
    )
    on_policy = name in ("PPO", "A2C")
    assert logged["rollin/level"] == (1 if on_policy else 2)
    guide = callback.guide
    before, updates = bits(guide), model._n_updates
    model.learn(1600 if on_policy else 200, callback=callback, reset_num_timesteps=False)
    assert model._n_updates >= updates + 100
    assert callback.guide is guide
    assert bits(guide) == before
    assert bits(freeze(model)) != before


def test_a_teacher_that_plans_each_episode_passes_its_switches():
    walk = PlansEach(easy(), beta=0.6)
    callback = RollInCallback(walk)
    model_of("PPO", DummyVecEnv([lambda: env_of("PPO")] * 2)).learn(300, callback=callback)
    assert walk.k == 2
    assert callback.coordinator.episodes > 20


@pytest.mark.parametrize("name", ["PPO", "SAC", "TD3", "DQN"])
def test_without_roll_in_a_learner_ends_with_the_bits_of_the_bare_env(name):
    def learned(env: Any, callback: Any = None) -> Any:
        env.unwrapped.context = np.array([0.4])
        model = model_of(name, env)
        model.learn(80, callback=callback)
        return parameters(model.policy)

    bare = learned(Steps(12) if name == "DQN" else Line(12))
    stays = Curriculum.listed([[0.4], [0.8]], 1e9)
    walk = SequentialTeacher(stays, beta=0.5)
    assert learned(env_of(name, walk), RollInCallback(walk)) == bare
    assert (
        learned(env_of(name), RollInCallback(SequentialTeacher(stays))) == bare
    )  # plans after the reset


@pytest.mark.parametrize("kind", [DummyVecEnv, SubprocVecEnv])
def test_vector_envs_with_a_normaliser_roll_in_with_the_statistics_of_then(kind):
    walk = SequentialTeacher(easy(4), beta=0.6)
    options = {"start_method": "forkserver"} if kind is SubprocVecEnv else {}
    envs = VecNormalize(kind([lambda: RollIn(Line(12))] * 2, **options))
    model = model_of("PPO", envs)
    callback = RollInCallback(walk)
    model.learn(200, callback=callback)
    coordinator = callback.coordinator
    assert (walk.k, coordinator.rollin_steps > 0) == (2, True)
    assert walk.late <= 4  # an env each, at each of two switches
    assert callback.guide.statistics is not None
    envs.close()


def test_frozen_statistics_normalise_as_the_normaliser_did():
    envs = VecNormalize(DummyVecEnv([lambda: RollIn(Line(12))]), clip_obs=2.0)
    envs.reset()
    for _ in range(20):
        envs.step(np.ones((1, 1), np.float32))
    seen = {"observation": np.array([0.3, 0.5]), "context": np.array([0.2])}
    frozen = Statistics.of(envs)
    assert frozen is not None
    then: Any = envs.normalize_obs(seen)
    for _ in range(20):
        envs.step(-np.ones((1, 1), np.float32))
    for again in (frozen, Statistics.of_tensors(frozen.tensors())):
        assert again is not None
        for key, part in again(seen).items():
            np.testing.assert_array_equal(part, then[key])
    assert not np.array_equal(ANY(envs.normalize_obs(seen))["observation"], then["observation"])


def test_hindsight_replay_learns_behind_a_hidden_roll_in():
    walk = SequentialTeacher(easy(), beta=0.6)
    env = RollIn(GoalView(Line(12)), walk)
    model = model_of("SAC", env, replay_buffer_class=HerReplayBuffer, learning_starts=40)
    callback = RollInCallback(walk)
    model.learn(150, callback=callback)
    assert walk.k == 2
    assert callback.coordinator.rollin_steps > 0


def test_a_goal_view_keeps_rewards_and_refuses_what_has_no_contexts():
    env = GoalView(Line(3))
    observed, _ = env.reset(seed=0, options={"context": [0.2]})
    assert env.observation_space.contains(observed)
    observed, reward, *_ = env.step(np.ones(1, np.float32))
    given = observed["achieved_goal"], observed["desired_goal"]
    assert env.compute_reward(*given, {}) == pytest.approx(reward)
    with pytest.raises(RollinError, match="is not a contextual env"):
        GoalView(PointGoal())


def test_roll_ins_can_be_kept_in_the_replay_in_the_order_of_their_steps():
    _, model, callback = taught("SAC", beta=0.7, prefix="replay")
    model.learn(150, callback=callback)
    buffer = model.replay_buffer
    hidden = buffer.pos - 150
    counted = callback.training_env.env_method("counts")[0]
    assert 0 < hidden <= counted["rollin_steps"] + counted["failed_rollin_steps"]
    seen, after = buffer.observations["observation"][:, 0], buffer.next_observations["observation"]
    dones = buffer.dones[:, 0]
    for i in range(buffer.pos - 1):  # an episode goes on from row to row, prefix and all
        if not dones[i]:
            np.testing.assert_array_equal(after[i, 0], seen[i + 1])


# ------------------------------------------------------------------ level 2


class Looks(BaseCallback):
    """Keeps what the explorer did at each step."""

    def __init__(self, callback: Any) -> None:
        super().__init__()
        self.callback, self.seen = callback, []

    def _on_step(self) -> bool:
        explorer = self.callback.explorer
        self.seen.append((explorer.acted.copy(), explorer.rows, self.callback.teacher.k))
        return True


@pytest.mark.parametrize(("name", "count"), [("SAC", 1), ("SAC", 2), ("TD3", 1), ("DQN", 1)])
def test_a_fresh_explorer_acts_after_roll_ins_learns_from_its_rows_and_begins_anew(name, count):
    walk = SequentialTeacher(easy(8), beta=0.6)
    envs = DummyVecEnv([lambda: Monitor(env_of(name)) for _ in range(count)])
    model = model_of(name, envs)
    kind = type(model)
    callback = RollInCallback(walk, level=2)
    looks = Looks(callback)
    model.learn(260, callback=[callback, looks])
    assert type(model) is kind
    assert walk.k >= 1
    acted = np.array([one for one, _, _ in looks.seen])
    assert 0 < acted.mean() < 1
    explorer = callback.explorer
    ks = np.array([k for _, _, k in looks.seen])
    rows = np.array([rows for _, rows, _ in looks.seen])
    switches = np.flatnonzero(np.diff(ks)) + 1
    assert (rows[switches] == 0).all()
    since = switches[-1] + 1
    assert explorer.rows == acted[since:].sum()  # its own rows alone, since the last switch
    assert explorer.agent._n_updates > 0
    assert model._n_updates + explorer.agent._n_updates < 260
    assert parameters(model.policy) != parameters(explorer.agent.policy)


def test_a_model_is_saved_without_its_explorer_while_it_learns(tmp_path):
    walk = SequentialTeacher(easy(), beta=0.6)
    model = model_of("SAC", env_of("SAC", walk))
    own_train = model.train
    model.train = lambda *args, **kwargs: own_train(*args, **kwargs)  # as a user may patch it
    patched = model.train
    saves = CheckpointCallback(100, str(tmp_path))
    model.learn(150, callback=[RollInCallback(walk, level=2), saves])
    assert model.train is patched
    assert {"_on_step", "_sample_action", "_rollin_explorer"}.isdisjoint(vars(model))
    del model.train
    loaded = SAC.load(tmp_path / "rl_model_100_steps")
    assert vars(loaded).keys() <= vars(model).keys()


class Own(SAC):
    """Somebody's own, which may need more to be made."""


def test_the_level_suits_the_learner(capsys):
    def level(model: Any, **options: Any) -> int:
        callback = RollInCallback(SequentialTeacher(easy()), **options)
        model.learn(1, callback=callback)
        return callback.level

    few = {**OFF, "gamma": 0.7, "device": "cpu"}
    assert level(model_of("PPO", env_of("PPO"))) == 1
    assert level(model_of("TD3", env_of("TD3")), verbose=1) == 2
    said = "rollin: level 2 for TD3, with a fresh explorer after the roll-in\n"
    assert capsys.readouterr().out == said
    assert level(model_of("SAC", env_of("SAC")), level=1) == 1
    her = model_of("SAC", RollIn(GoalView(Line(12))), replay_buffer_class=HerReplayBuffer)
    assert level(her) == 1
    assert level(Own("MultiInputPolicy", env_of("SAC"), **few)) == 1
    assert level(Own("MultiInputPolicy", env_of("SAC"), **few), level=2) == 2


class Breaks(BaseCallback):
    """As if somebody had pressed Ctrl-C after some steps."""

    def _on_step(self) -> bool:
        if self.n_calls == 60:
            raise KeyboardInterrupt
        return True


@pytest.mark.parametrize("resets", [False, True])
def test_a_learner_that_was_broken_off_goes_on_with_the_same_callback(resets):
    _, model, callback = taught("SAC", 4)
    with pytest.raises(KeyboardInterrupt):
        model.learn(200, callback=[callback, Breaks()])
    before = model._n_updates
    explorer = callback.explorer
    model.learn(100, callback=callback, reset_num_timesteps=resets)
    assert type(model) is SAC
    assert callback.explorer is explorer
    assert before + 20 < model._n_updates < before + 100
    assert explorer.agent._n_updates > 0


def test_a_learner_that_was_broken_off_goes_on_with_one_explorer():
    walk, model, callback = taught("SAC", 4)
    with pytest.raises(KeyboardInterrupt):
        model.learn(200, callback=[callback, Breaks()])
    other = RollInCallback(walk)  # the teacher goes on, as after a cell that was interrupted
    model.learn(100, callback=other, reset_num_timesteps=False)
    assert type(model) is SAC
    assert type(other.explorer.agent) is SAC
    callback.model.learn(40, callback=other, reset_num_timesteps=False)
    assert type(model) is SAC


class Begins(BaseCallback):
    """Keeps who is to act when learning begins, and whose episodes rolled in."""

    def __init__(self, callback: Any) -> None:
        super().__init__()
        self.callback, self.seen = callback, []

    def _on_training_start(self) -> None:
        explorer, envs = self.callback.explorer, ANY(self.training_env)
        hidden = [info["rollin_start"]["rollin_steps"] for info in envs.reset_infos]
        self.seen.append((explorer.acting.tolist(), [steps > 0 for steps in hidden]))

    def _on_step(self) -> bool:
        return True


def test_a_further_learn_books_what_its_reset_cut_off_and_sees_who_rolled_in():
    fine = Curriculum.along([[0.0], [1.0]], delta=1 / 24, rule=0.0)
    teacher = Uniform(fine, 0.6, np.random.default_rng(0))  # a plan for each episode
    teacher.cells.slow = [0.9] * len(teacher.cells)
    model = model_of("SAC", DummyVecEnv([lambda: env_of("SAC")] * 3))
    callback = RollInCallback(teacher, level=2)
    begins = Begins(callback)
    for learned in range(8):
        model.learn(48, callback=[callback, begins])
        assert callback.coordinator.abandoned == teacher.abandoned == 3 * learned
    model.learn(48, callback=[callback, begins], reset_num_timesteps=False)
    assert callback.coordinator.abandoned == 21  # its envs went on
    assert all(acting == rolled_in for acting, rolled_in in begins.seen)
    assert len({str(rolled_in) for _, rolled_in in begins.seen}) > 1


class Targets(BaseCallback):
    """Keeps at which of its own steps the explorer's target network was another."""

    def __init__(self, callback: Any) -> None:
        super().__init__()
        self.callback, self.moved, self.before = callback, [], []

    def _on_step(self) -> bool:  # the last step's updates are done
        agent = self.callback.explorer.agent
        now = parameters(agent.q_net_target)
        if self.before and now != self.before:
            self.moved.append(agent._n_calls)
        self.before = now
        return True


def test_the_explorer_of_a_dqn_moves_its_target_by_its_own_steps():
    walk = SequentialTeacher(Curriculum.listed([[0.0], [0.2]], -1.0, episodes=3), beta=0.6)
    model = model_of("DQN", env_of("DQN", walk), target_update_interval=20)
    callback = RollInCallback(walk, level=2)
    model.learn(60, callback=callback)
    assert walk.k == 1  # the last switch, and with it the last fresh explorer
    explorer, targets = callback.explorer, Targets(callback)
    before = parameters(explorer.agent.q_net_target)
    model.learn(300, callback=[callback, targets], reset_num_timesteps=False)
    assert callback.explorer is explorer
    assert parameters(explorer.agent.q_net_target) != before
    steps = explorer.agent._n_calls
    assert 100 < steps == explorer.rows < 360
    assert targets.moved == list(range(20 * (targets.moved[0] // 20), steps + 1, 20))
    assert explorer.get_state()[1]["calls"] == steps


def test_the_explorer_shares_updates_by_steps():
    model = model_of("SAC", env_of("SAC"))
    explorer = Explorer(model, np.random.default_rng(0))
    explorer.acting = np.array([True, False, False])
    total = np.zeros(2, int)
    for _ in range(30):
        explorer.acted = explorer.acting
        explorer._steps += (2, 1)
        total += explorer.share(1)
    assert total.tolist() == [20, 10]


# A GPU is not needed for these: what would go wrong there is seen here, too.


def test_a_fresh_explorer_and_a_guide_seed_no_gpu_and_draw_as_before(monkeypatch):
    model = model_of("SAC", env_of("SAC"))
    torch.manual_seed(7)
    wanted = parameters(model.policy_class(*spaces_of(model), **model.policy_kwargs))
    draws = torch.random.get_rng_state()
    seeded: list[int] = []
    monkeypatch.setattr(torch.cuda, "manual_seed_all", seeded.append)
    agent = twin(model, SAC, 7)
    assert parameters(agent.policy) == wanted
    assert agent.device == model.device
    guide = TorchGuide.of(model.policy, None, "")
    guide.begin(5)
    assert torch.equal(torch.random.get_rng_state(), draws)
    assert seeded == []
    assert torch.equal(guide._draws, torch.manual_seed(5).get_state())
    assert seeded == [5]  # the test can fail


def spaces_of(model: Any) -> tuple[Any, ...]:
    return model.observation_space, model.action_space, model.lr_schedule


def test_state_is_brought_to_the_cpu_before_it_becomes_arrays(monkeypatch):
    explorer = Explorer(model_of("SAC", env_of("SAC")), np.random.default_rng(0))
    brought: list[Any] = []
    cpu, numpy = torch.Tensor.cpu, torch.Tensor.numpy

    def bring(tensor: Any) -> Any:
        brought.append(cpu(tensor))
        return brought[-1]

    def become(tensor: Any) -> Any:
        assert any(tensor is one for one in brought)
        return numpy(tensor)

    monkeypatch.setattr(torch.Tensor, "cpu", bring)
    monkeypatch.setattr(torch.Tensor, "numpy", become)
    assert "log_ent_coef" in explorer.get_state()[0]
    assert len(brought) > 10


# ------------------------------------------------------------------ evaluation, saving


def test_evaluation_on_an_env_of_the_same_factory_leaves_the_teacher_as_it_was():
    def learned(evaluates: bool) -> Any:
        walk = SequentialTeacher(easy(), beta=0.5)
        model = model_of("PPO", env_of("PPO", walk))
        callbacks: list[Any] = [RollInCallback(walk)]
        if evaluates:
            other = Monitor(env_of("PPO", walk))
            other.reset(seed=0, options={"context": [0.4]})
            callbacks.append(EvalCallback(other, n_eval_episodes=2, eval_freq=40, verbose=0))
        return walk, model.learn(120, callback=callbacks)

    walk, model = learned(True)
    assert learned(False)[0].steps == walk.steps
    before = walk.get_state()
    evaluate_policy(model, Monitor(RollIn(Line(12), walk, reports=False)), n_eval_episodes=2)
    assert walk.get_state() == before


@pytest.mark.parametrize(("name", "level"), [("PPO", 1), ("SAC", 1), ("SAC", 2), ("DQN", 2)])
def test_loading_goes_on_at_the_same_context_window_and_guide(name, level, tmp_path):
    walk, model, callback = taught(name, 6, level=level)
    model.learn(130, callback=callback)
    assert walk.k >= 1
    assert callback.save(tmp_path / "model.zip") == tmp_path / "model.rollin.safetensors"
    model.save(tmp_path / "model.zip")
    state = walk.get_state()
    guide, explorer = callback.guide, callback.explorer

    walk = SequentialTeacher(easy(6), beta=0.6)
    again = type(model).load(tmp_path / "model.zip", env=env_of(name, walk))
    loaded = RollInCallback(walk).load(tmp_path / "model.zip")  # level, too
    assert walk.get_state() == state
    again.learn(0, callback=loaded, reset_num_timesteps=False)
    assert walk.progress.get_state() == state["progress"]
    assert walk.window.get_state() == state["window"]
    assert bits(loaded.guide) == bits(guide)
    kept = files.read(files.beside(tmp_path / "model.zip"))[1]["school"]
    assert kept["envs"] == callback.coordinator.get_state()["envs"]
    assert kept["counts"][:1] == [callback.coordinator.steps] == [loaded.coordinator.steps]
    if explorer is not None:
        one, told = explorer.get_state()
        other, also = loaded.explorer.get_state()
        assert told == also
        assert {n: v.tobytes() for n, v in one.items()} == {
            n: v.tobytes() for n, v in other.items()
        }
    again.learn(60, callback=loaded, reset_num_timesteps=False)
    assert walk.steps > state["steps"]


def test_what_is_kept_has_its_shape_again_single_numbers_too(tmp_path):
    envs = VecNormalize(DummyVecEnv([lambda: RollIn(Line(12))]), clip_obs=2.0)
    envs.reset()
    statistics = Statistics.of(envs)
    assert statistics is not None
    given = {**statistics.tensors(), "turned": np.arange(6.0).reshape(2, 3).T}
    files.write(tmp_path / "file", given, {"told": 1})
    found, told = files.read(tmp_path / "file")
    assert told["told"] == 1
    for name, value in given.items():
        assert found[name].shape == np.shape(value)
        np.testing.assert_array_equal(found[name], value)
    again = Statistics.of_tensors({n: v for n, v in found.items() if n != "turned"})
    assert again is not None
    assert (again.clip, again.epsilon) == (2.0, statistics.epsilon)


def test_bad_files_are_refused(tmp_path):
    callback = RollInCallback(SequentialTeacher(easy()))
    with pytest.raises(RollinError, match=r"does not exist: callback.save"):
        callback.load(tmp_path / "model")
    (tmp_path / "model.rollin.safetensors").write_bytes(b"nothing of ours")
    with pytest.raises(RollinError, match="is damaged, or was not written by a callback"):
        callback.load(tmp_path / "model")
    with pytest.raises(RollinError, match="nothing to save before learn"):
        callback.save(tmp_path / "model")


def safetensors(dtype: str, size: int, text: str) -> bytes:
    """A file of one tensor of one number, and some metadata."""
    tensor = {"dtype": dtype, "shape": [1], "data_offsets": [0, size]}
    header = json.dumps({"__metadata__": {"rollin": text}, "x": tensor}).encode()
    return len(header).to_bytes(8, "little") + header + bytes(size)


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (safetensors("BF16", 2, "{}"), r"is damaged, or was not written by a callback.*BF16"),
        (safetensors("F8_E4M3", 1, "{}"), r"is damaged, or was not written by a callback.*F8"),
        (safetensors("F32", 4, "[" * 10**5), r"nested more than 64 levels deep"),
        (safetensors("F32", 4, "no JSON"), r"was not written by RollInCallback.save"),
        (safetensors("F32", 4, '{"format": 1}'), r"a format that this version does not know"),
        (safetensors("F32", 4, '{"format": 2}'), r"missing required field `school`"),
        (bytes(3), r"is damaged"),
    ],
    ids=["bfloat16", "float8", "deep", "text", "format", "alone", "short"],
)
def test_files_that_no_callback_wrote_are_refused_in_one_sentence(data, words, tmp_path):
    (tmp_path / "model.rollin.safetensors").write_bytes(data)
    with pytest.raises(RollinError, match=words):
        RollInCallback(SequentialTeacher(easy())).load(tmp_path / "model")


def test_a_file_that_is_too_large_or_a_link_is_not_read(tmp_path, monkeypatch):
    place = tmp_path / "model.rollin.safetensors"
    place.write_bytes(bytes(100))
    monkeypatch.setattr(files, "LARGEST_BUFFER", 99)
    with pytest.raises(RollinError, match="100 bytes, and rollin reads at most 99"):
        files.read(place)
    (tmp_path / "link").symlink_to(place)
    with pytest.raises(RollinError, match="is a link"):
        files.read(tmp_path / "link")


def test_files_whose_values_do_not_fit_are_refused_in_one_sentence(tmp_path):
    walk, model, callback = taught("SAC", 6, shared=False, level=2)
    model.learn(120, callback=callback)
    place = callback.save(tmp_path / "model")

    def changes() -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
        for part, name, value in (
            ("explorer", "pos", 10**6),
            ("explorer", "pos", 1),
            ("explorer", "full", True),
            ("explorer", "due", [1e300, 0.0]),
            ("explorer", "updates", "many"),
            ("school", "teacher", {}),
            ("school", "teacher", {**walk.get_state(), "window": 3}),
            ("school", "counts", [1, 2]),
            ("school", "envs", []),
        ):
            tensors, told = files.read(place)
            yield tensors, {**told, part: {**told[part], name: value}}
        for name, value in {"stream": [2**70] * 6, "explorer": None, "level": 3, "b": 1}.items():
            tensors, told = files.read(place)
            yield tensors, {**told, name: value}
        for name in ("explorer.buffer.actions", "explorer.log_ent_coef", "guide.0.bias"):
            tensors, told = files.read(place)
            yield {**tensors, name: np.zeros((3, 3, 3))}, told
        for name in ("explorer.buffer.actions", "explorer.policy.actor.mu.bias", "guide.0.bias"):
            tensors, told = files.read(place)
            yield {n: value for n, value in tensors.items() if n != name}, told

    def goes_on() -> None:
        again = RollInCallback(SequentialTeacher(easy(6), beta=0.6)).load(tmp_path / "model")
        model.learn(0, callback=again, reset_num_timesteps=False)

    for tensors, told in [*changes()]:
        files.write(place, tensors, told)
        with pytest.raises(RollinError):
            goes_on()
    callback.save(tmp_path / "model")
    goes_on()


def test_a_learn_that_could_not_take_back_what_was_saved_is_not_gone_on_with(tmp_path):
    _, model, callback = taught("SAC", shared=False)
    model.learn(60, callback=callback)
    place = callback.save(tmp_path / "model")
    tensors, told = files.read(place)
    files.write(place, {n: v for n, v in tensors.items() if n != "explorer.buffer.dones"}, told)
    again = RollInCallback(SequentialTeacher(easy(), beta=0.6)).load(tmp_path / "model")
    for _ in range(2):
        with pytest.raises(RollinError, match="does not hold what this callback keeps"):
            model.learn(10, callback=again, reset_num_timesteps=False)


# ------------------------------------------------------------------ bad input


def test_a_learner_that_is_loaded_without_its_teacher_is_refused(tmp_path):
    walk = SequentialTeacher(easy())
    model = model_of("PPO", env_of("PPO", walk))
    model.learn(64, callback=RollInCallback(walk))
    model.save(tmp_path / "model")
    other = SequentialTeacher(easy())
    again = PPO.load(tmp_path / "model", env=env_of("PPO", other))
    with pytest.raises(RollinError, match=r"This PPO has learned before.*callback.load\(path\)"):
        again.learn(10, callback=RollInCallback(other))
    again = PPO.load(tmp_path / "model", env=env_of("PPO", other))
    again.learn(10, callback=RollInCallback(other, anew=True))


def test_levels_and_prefixes_that_do_not_fit_the_learner_are_refused():
    walk = SequentialTeacher(easy())
    cases = [
        ("PPO", {}, {"level": 2}, r"level=2 needs an off-policy learner.*got PPO"),
        ("PPO", {}, {"prefix": "replay"}, r"replay buffer of an off-policy learner.*got PPO"),
    ]
    for name, options, given, words in cases:
        with pytest.raises(RollinError, match=words):
            model_of(name, env_of(name), **options).learn(8, callback=RollInCallback(walk, **given))
    her = model_of("SAC", RollIn(GoalView(Line(12))), replay_buffer_class=HerReplayBuffer)
    with pytest.raises(RollinError, match=r"neither HerReplayBuffer nor n_steps"):
        her.learn(8, callback=RollInCallback(walk, level=2))
    with pytest.raises(RollinError, match=r"level must be 1 .* or 2 .* got 3: leave it out"):
        RollInCallback(walk, level=ANY(3))
    with pytest.raises(RollinError, match=r"prefix must be one of hidden, replay"):
        RollInCallback(walk, prefix=ANY("shown"))


def test_envs_without_the_wrapper_or_in_the_wrong_order_are_refused():
    walk = SequentialTeacher(easy())
    with pytest.raises(RollinError, match=r"must be wrapped in rollin.RollIn"):
        model_of("PPO", Line(12)).learn(8, callback=RollInCallback(walk))
    with pytest.raises(RollinError, match=r"Monitor lies inside RollIn"):
        RollIn(Monitor(Line(12)))
    outside = model_of("PPO", TimeLimit(RollIn(Line(50)), 5))
    with pytest.raises(RollinError, match=r"after 5 steps by a wrapper outside RollIn"):
        outside.learn(32, callback=RollInCallback(walk))


@pytest.mark.parametrize("beta", [0.0, 0.5])
def test_an_env_that_ignores_contexts_is_refused_before_the_first_step(beta):
    walk = SequentialTeacher(easy(), beta)
    model = PPO("MlpPolicy", DummyVecEnv([lambda: RollIn(gymnasium.make("CartPole-v1"))]))
    with pytest.raises(RollinError, match=r"CartPole-v1 cannot follow the contexts of a Seq"):
        model.learn(512, callback=RollInCallback(walk))
    assert (model.num_timesteps, walk.steps) == (0, 0)


def test_a_teacher_that_is_copied_into_a_process_is_refused():
    walk = SequentialTeacher(easy())
    walk.home -= 1
    with pytest.raises(RollinError, match=r"copy in another process"):
        model_of("PPO", env_of("PPO", walk)).learn(8, callback=RollInCallback(walk))


@pytest.mark.parametrize("version", ["2.3.2", "3.0.0", None])
def test_other_versions_of_stable_baselines3_are_refused(version, monkeypatch):
    import rollin.sb3 as module

    def found(name: str) -> str:
        if version is None:
            raise module.metadata.PackageNotFoundError(name)
        return version

    monkeypatch.setattr(module.metadata, "version", found)
    with pytest.raises(RollinError, match=r"needs Stable-Baselines3.*pip install"):
        check_version()


def test_sbx_walks_a_curriculum_where_it_is_installed():
    sbx = pytest.importorskip("sbx")
    walk = SequentialTeacher(easy(), beta=0.6)
    model = sbx.SAC(
        "MultiInputPolicy", env_of("SAC", walk), gamma=0.7, seed=0, learning_starts=20,
        batch_size=8, policy_kwargs={"net_arch": [8]},
    )  # fmt: skip
    callback = RollInCallback(walk)
    model.learn(120, callback=callback)
    assert (walk.k, callback.coordinator.rollin_steps > 0) == (2, True)
