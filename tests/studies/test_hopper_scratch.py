"""Hopper from scratch: the same environment for both learners, and windows of their episodes."""

import numpy as np
import pytest

from rollin.envs.registry import make_contextual
from rollin.runs.metrics import read_metrics
from studies import hopper_scratch


@pytest.mark.parametrize("reward", hopper_scratch.REWARDS)
def test_both_learners_get_the_same_numbers(reward) -> None:
    """What Stable-Baselines3 sees is observation and context, as our learner sees them."""
    theirs = hopper_scratch.make_env(reward)
    ours = make_contextual("hopper", hopper_scratch.REWARDS[reward])
    assert ours.curriculum is not None
    context = ours.curriculum.contexts[-1]
    generator = np.random.default_rng(0)
    seen, _ = theirs.reset(seed=3)
    expected, _ = ours.reset(context, 3)
    paid, velocities, over, info = [], [], False, {}
    while not over:
        np.testing.assert_allclose(np.sort(seen), np.sort([*expected, *context]), rtol=1e-6)
        action = generator.uniform(-1, 1, 3).astype(np.float32)
        seen, reward_, terminated, truncated, info = theirs.step(action)
        step = ours.step(action)
        expected = step.observation
        assert reward_ == pytest.approx(step.reward)
        paid.append(step.reward)
        velocities.append(step.measured[0])
        over = terminated or truncated
        assert over == (step.terminated or step.truncated)
    told = sum(paid), len(paid), np.mean(velocities)
    assert info["episode_means"] == pytest.approx(told, rel=1e-5)


def test_windows_hold_the_episodes_that_ended_in_them(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(hopper_scratch, "WINDOW", 100)
    place = tmp_path / "agent=sb3,reward=half" / "seed=4"
    place.mkdir(parents=True)
    (place / "episodes.csv").write_text(
        "step,return,length,x_velocity\n60,6,60,1\n100,8,40,2\n180,1,80,3\n"
    )
    (place / "metrics.csv").write_text("step,eval_return\n100,5\n200,7\n")
    hopper_scratch.collect(tmp_path, tmp_path / "results")
    first, second = (tmp_path / "results" / "windows.csv").read_text().splitlines()[1:]
    # the x-velocity is a mean over steps: (60 · 1 + 40 · 2) / 100
    assert first.split(",")[:8] == ["sb3", "half", "4", "100", "7", "50", "1.4", "5"]
    assert second.split(",")[:8] == ["sb3", "half", "4", "200", "1", "80", "3", "7"]


def test_our_run_resumes(tmp_path) -> None:
    for steps in (150, 300):
        hopper_scratch.train_ours(tmp_path / "run", "gym", 0, steps)
        episodes = read_metrics(tmp_path / "run" / "episodes.csv")
        assert steps <= episodes["step"][-1] < steps + 150
