"""Environment steps of learners of Stable-Baselines3: roll-ins count, whatever `learn` counts."""

from typing import Any

import numpy as np
import pytest

from rollin import RollIn, RollinError, SequentialTeacher
from tests.toys import Line

torch = pytest.importorskip("torch")
pytest.importorskip("stable_baselines3")

from stable_baselines3 import PPO  # noqa: E402
from stable_baselines3.common.logger import Logger  # noqa: E402
from stable_baselines3.common.vec_env import DummyVecEnv, SubprocVecEnv  # noqa: E402

from rollin.sb3 import RollInCallback  # noqa: E402
from tests.sb3.test_sb3 import ANY, Keeps, easy, model_of  # noqa: E402

pytestmark = [
    pytest.mark.filterwarnings("ignore:.*roll-ins ended"),
    pytest.mark.xdist_group("torch"),
]


class Counted(Line):
    """Counts its own steps, in whatever process nobody else does."""

    steps_ever = 0

    def __init__(self) -> None:
        super().__init__(12)

    def step(self, action: Any) -> Any:
        type(self).steps_ever += 1
        return super().step(action)


@pytest.fixture(autouse=True)
def _from_zero() -> None:
    torch.set_num_threads(1)
    Counted.steps_ever = 0


def learned(name: str, beta: float, count: int, learn: int, **options: Any) -> tuple[Any, Any]:
    callback = RollInCallback(SequentialTeacher(easy(), beta), **options)
    model = model_of(name, DummyVecEnv([lambda: RollIn(Counted())] * count))
    model.learn(learn, callback=callback)
    return model, callback


@pytest.mark.parametrize(
    ("name", "count", "options"),
    [
        ("PPO", 1, {}), ("PPO", 3, {}), ("SAC", 1, {"level": 1}), ("SAC", 1, {"level": 2}),
        ("SAC", 2, {"level": 2}), ("TD3", 1, {"prefix": "replay"}),
    ],
)  # fmt: skip
def test_learn_stops_by_the_steps_of_the_envs_themselves(name, count, options):
    model, callback = learned(name, 0.6, count, 300, env_steps=300, **options)
    hidden = Counted.steps_ever - model.num_timesteps
    assert hidden > 30  # which learn does not count
    assert callback.env_steps == Counted.steps_ever
    assert 300 <= callback.env_steps < 300 + 13 * count  # a step, and a roll-in in each env
    Counted.steps_ever = 0
    bare, callback = learned(name, 0.0, count, 300, env_steps=300, **options)
    assert callback.env_steps == Counted.steps_ever == bare.num_timesteps == 300


def test_without_the_option_learn_counts_the_agent_s_steps_and_the_log_counts_all():
    callback, kept = RollInCallback(SequentialTeacher(easy(), 0.6)), Keeps()
    model = model_of("PPO", RollIn(Counted(), callback.teacher))
    model.set_logger(Logger(None, [kept]))
    model.learn(320, callback=callback)
    assert model.num_timesteps == 320 < Counted.steps_ever
    assert callback.env_steps == Counted.steps_ever
    logged = {**kept.values, **model.logger.name_to_value}["rollin/env_steps"]
    assert 320 - 12 < logged <= Counted.steps_ever


def test_envs_in_other_processes_are_counted_alike():
    envs = SubprocVecEnv([lambda: RollIn(Line(12))] * 2, start_method="forkserver")
    callback = RollInCallback(SequentialTeacher(easy(), 0.6), env_steps=300)
    model = model_of("PPO", envs)
    model.learn(300, callback=callback)
    here, same = learned("PPO", 0.6, 2, 300, env_steps=300)
    assert (callback.env_steps, model.num_timesteps) == (same.env_steps, here.num_timesteps)
    envs.close()


@pytest.mark.parametrize("resets", [True, False])
def test_further_learns_go_on_counting(resets):
    model, callback = learned("PPO", 0.6, 2, 100)
    for _ in range(3):
        model.learn(70, callback=callback, reset_num_timesteps=resets)
        assert callback.env_steps == Counted.steps_ever
    other = DummyVecEnv([lambda: RollIn(Counted())])
    again = model_of("PPO", other)
    again.set_parameters(model.get_parameters())
    again.learn(70, callback=callback)
    assert callback.env_steps == Counted.steps_ever


def test_what_was_saved_counts_when_learning_resumes(tmp_path):
    model, callback = learned("PPO", 0.6, 2, 100)
    model.save(tmp_path / "model.zip")
    callback.save(tmp_path / "model.zip")
    before = callback.env_steps
    loaded = PPO.load(tmp_path / "model.zip", env=DummyVecEnv([lambda: RollIn(Counted())] * 2))
    resumed = RollInCallback(SequentialTeacher(easy(), 0.6), env_steps=400).load(
        tmp_path / "model.zip"
    )
    loaded.learn(1000, callback=resumed, reset_num_timesteps=False)
    assert before < 400 <= resumed.env_steps < 430
    assert resumed.env_steps == Counted.steps_ever


@pytest.mark.parametrize("bad", [0, -5, 1.5, np.nan])
def test_env_steps_is_a_whole_number_from_1_on(bad):
    with pytest.raises(RollinError, match=r"env_steps must be (at least 1|a whole number), got"):
        RollInCallback(SequentialTeacher(easy()), env_steps=ANY(bad))


def test_roll_ins_are_shortened_without_another_discount_of_the_learner():
    lengths = {}
    for gamma in (None, 0.2):
        model, callback = learned("PPO", 0.6, 1, 300, gamma=gamma)
        assert model.gamma == model_of("PPO", RollIn(Counted())).gamma
        coordinator = callback.coordinator
        assert coordinator is not None
        lengths[gamma] = (
            coordinator.rollin_steps + coordinator.failed_rollin_steps
        ) / coordinator.episodes
    assert 0 < lengths[0.2] < lengths[None] / 2


@pytest.mark.parametrize("bad", [1.0, -0.1, np.nan])
def test_gamma_of_roll_ins_is_below_1(bad):
    with pytest.raises(RollinError, match=r"gamma must lie in \[0, 1\), got"):
        RollInCallback(SequentialTeacher(easy()), gamma=bad)
