"""Stable-Baselines3 on the standard tasks: the same episodes as ours, and resumable runs."""

import numpy as np
import pytest
from studies.standard_alternatives import COLUMNS, Job

from rollin.deep.evaluate import evaluate_context
from rollin.envs.registry import make_contextual
from rollin.paper.standard import TASKS
from studies import standard_alternatives as study


@pytest.mark.parametrize(
    ("task", "method"),
    [("point-maze-umaze", "sac-her"), ("fetch-push", "sac-her"), ("sparse-goals", "sac"),
     ("sparse-goals", "sac-her"), ("mountain-car", "sac")],
)  # fmt: skip
def test_evaluations_are_the_same_episodes_as_ours(task: str, method: str) -> None:
    ours = make_contextual(TASKS[task].task)
    theirs = study.make_env(task, method)
    assert ours.curriculum is not None
    act = np.linspace(-0.5, 1.0, ours.action_size, dtype=np.float32)
    expected = evaluate_context(ours, lambda seen: act, ours.curriculum.contexts[-1], 3)
    success, total = study.play(theirs, lambda seen: act, 3)
    assert total == pytest.approx(expected.mean, rel=1e-5)
    assert success == expected.success
    ours.close()
    theirs.close()


@pytest.mark.parametrize("task", ["fetch-push", "sparse-goals"])
def test_hindsight_has_the_rewards_of_the_env_and_no_other_goal_in_sight(task: str) -> None:
    env = study.make_env(task, "sac-her")
    seen, _ = env.reset(seed=5)
    # the height of a goal on the table is also that of the object
    assert not np.isin(seen["desired_goal"][:2], seen["observation"]).any()
    batch, rewards = [], []
    for _ in range(20):
        seen, reward, *_ = env.step(env.action_space.sample())
        batch.append((seen["achieved_goal"], seen["desired_goal"]))
        rewards.append(reward)
    achieved, drawn = map(np.stack, zip(*batch, strict=True))
    compute = env.get_wrapper_attr("compute_reward")
    np.testing.assert_array_equal(compute(achieved, drawn, {}), rewards)
    np.testing.assert_array_equal(compute(achieved, achieved, {}), np.zeros(20))
    env.close()


def test_every_task_has_something_to_compare_with() -> None:
    assert set(study.METHODS) == set(TASKS)
    planned = list(study.jobs(list(TASKS), 30, 5))
    assert len({job.key for job in planned}) == len(planned) == 5 * 10
    assert [job.seed for job in planned] == sorted(job.seed for job in planned)


def test_finished_and_committed_runs_are_left_out(tmp_path) -> None:
    planned = [Job("mountain-car", "sac", seed, 100) for seed in range(3)]
    row = ["mountain-car", "sac", 0, 100, 1, 90.5, 3.2, "x 1", "a CPU"]
    (tmp_path / planned[0].file).write_text(",".join(COLUMNS) + "\n" + ",".join(map(str, row)))
    committed = tmp_path / "results" / "alternatives.csv"
    assert study.left(planned, tmp_path, committed) == planned[1:]
    assert study.collect(planned, tmp_path, committed) == 1
    assert committed.read_text().splitlines()[1] == ",".join(map(str, row))
    (tmp_path / planned[0].file).unlink()
    assert study.left(planned, tmp_path, committed) == planned[1:]
    row[2] = 1  # another machine's run, beside the committed one
    (tmp_path / planned[1].file).write_text(",".join(COLUMNS) + "\n" + ",".join(map(str, row)))
    assert study.collect(planned, tmp_path, committed) == 2


def test_a_short_run_writes_a_row_at_its_end(tmp_path) -> None:
    pytest.importorskip("stable_baselines3")
    job = Job("mountain-car", "sac", 0, 40)
    study.run(job, tmp_path)
    ((key, rows),) = study.rows_of(tmp_path / job.file).items()
    assert key == ("mountain-car", "sac", "0")
    assert [row["step"] for row in rows] == ["40"]
    assert "stable-baselines3" in rows[0]["version"]
