"""The Python API: `rollin.train`, the generator beneath it, the examples."""

import runpy
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest

import rollin
from rollin import RollinError
from rollin.cli import main
from rollin.runs import driver
from rollin.runs.engines.deep import _inward
from rollin.runs.files import read_json
from tests.toys import Line

EXAMPLES = Path(__file__).parents[1] / "examples"
TWO = rollin.Curriculum.listed([[0.0], [1.0]], 1.0)
SMALL: dict[str, Any] = {"warmup": 60, "hidden": (8, 8), "batch": 16, "threshold": -1.0}


def test_training_in_memory_and_in_a_directory_is_the_same(tmp_path):
    events = []
    one = rollin.train(Line, beta=0.3, steps=400, seed=2, on_event=events.append, **SMALL)
    other = rollin.train(Line, beta=0.3, steps=400, seed=2, out=tmp_path / "a", **SMALL)
    again = rollin.train(Line, beta=0.3, steps=400, seed=2, out=tmp_path / "a", **SMALL)
    assert len(events) == 400
    assert one.finished
    for trained in (other, again):  # the second one only reads
        assert trained.returns == one.returns
        assert trained.advances == one.advances
        assert trained.completed == one.completed
        assert (trained.kappa, trained.k, trained.K) == (1.0, 3, 3)
        for mine, theirs in zip(one.policy.layers, trained.policy.layers, strict=True):
            np.testing.assert_array_equal(mine, theirs)
    assert read_json(tmp_path / "a" / "config.json")["task"] == "tests.toys:Line"


def test_training_can_be_stopped_and_resumed(tmp_path, monkeypatch):
    monkeypatch.setattr(driver, "STATUS_SECONDS", -1.0)
    whole = rollin.train(Line, steps=400, **SMALL)
    status = tmp_path / "a" / "status.json"
    part = rollin.train(
        Line, steps=400, out=tmp_path / "a", **SMALL,
        should_stop=lambda: read_json(status)["step"] > 100,
    )  # fmt: skip
    assert not part.finished
    assert part.returns == whole.returns[: len(part.returns)]
    rest = rollin.train(Line, steps=400, out=tmp_path / "a", **SMALL)
    assert rest.finished
    assert rest.returns == whole.returns


def test_training_in_memory_can_be_stopped_at_the_end_of_an_episode():
    part = rollin.train(Line, steps=400, should_stop=lambda: True, **SMALL)
    assert not part.finished
    assert len(part.returns) == 1


def test_a_run_begun_in_python_resumes_on_the_command_line(tmp_path, monkeypatch, capsys):
    with monkeypatch.context() as patch:
        patch.setattr(driver, "STATUS_SECONDS", -1.0)
        arguments: Any = {"steps": 300, "out": tmp_path / "a", **SMALL}
        assert not rollin.train(Line, should_stop=lambda: True, **arguments).finished
    assert main(["resume", str(tmp_path / "a")]) == 0
    assert main(["evaluate", str(tmp_path / "a"), "--episodes", "1"]) == 0
    assert "step 300, context 3 reached" in capsys.readouterr().out
    rollin.train(partial(Line, 7), steps=300, out=tmp_path / "b", **SMALL)
    assert read_json(tmp_path / "b" / "config.json")["task"] == "partial"
    assert main(["resume", str(tmp_path / "b")]) == 2
    said = capsys.readouterr().err
    assert "started by rollin.train in Python is resumed by the same call" in said


def test_an_env_is_checked_before_it_is_trained_on():
    with pytest.raises(RollinError, match="compute_reward gives"):
        rollin.train(lambda: Line(breaks="disagrees"), steps=100, **SMALL)


def test_a_loop_of_one_s_own():
    curriculum = rollin.Curriculum.listed([[0.0], [1.0]], rule=2.0, episodes=2)
    state = rollin.prepare(Line(), curriculum, beta=0.2, seed=1, warmup=60, batch=16, hidden=(8,))
    steps = [event.step for event in islice(rollin.train_rollin(state), 120)]
    assert steps == list(range(1, 121))
    assert state.curriculum is curriculum or state.curriculum.contexts is curriculum.contexts


def test_numbers_of_numpy_and_lists_are_taken(tmp_path):
    numbers: Any = {"steps": np.int64(300), "seed": np.int64(1), "beta": np.float32(0.25)}
    curriculum = {"contexts": [np.array([0.0]), [np.float32(0.5)]], "env_options": ["length=7"]}
    more: Any = {**SMALL, "warmup": 6e1, "hidden": [np.int64(8), 8], **curriculum}
    trained = rollin.train(Line, out=tmp_path / "a", **numbers, **more)
    assert trained.K == 1
    config = read_json(tmp_path / "a" / "config.json")["config"]
    assert config["seed"] == 1
    assert config["env_options"] == ["length=7"]


def test_environments_that_we_made_are_closed(tmp_path):
    open_ones = []

    class Counted(Line):
        def __init__(self):
            super().__init__()
            open_ones.append(self)

        def close(self):
            open_ones.remove(self)

    rollin.train(Counted, steps=100, **SMALL)
    rollin.train(Counted, steps=100, out=tmp_path / "a", **SMALL)
    for out in (None, tmp_path / "b"):
        with pytest.raises(RollinError, match="lies outside"):
            rollin.train(Counted, steps=100, out=out, **SMALL, contexts=[[0.0], [99.0]])
    assert open_ones == []
    mine = Counted()
    rollin.train(mine, steps=100, **SMALL)
    assert open_ones == [mine]  # a given env stays open


def test_a_policy_stays_in_its_box_and_takes_what_an_env_gives():
    trained = rollin.train(Line, steps=100, **SMALL)
    policy = trained.policy
    observed, _ = Line().reset(seed=0)
    np.testing.assert_array_equal(
        policy.act(observed), policy.act(observed["observation"], observed["context"])
    )
    assert policy.act(observed["observation"], np.zeros((3, 1))).shape == (3, 1)
    with pytest.raises(RollinError, match=r"got shapes \(3, 2\) and \(2, 1\)"):
        policy.act(np.zeros((3, 2)), np.zeros((2, 1)))
    assert "layers" not in repr(trained)
    low, high = _inward(np.array([-0.1]), np.inf), _inward(np.array([0.1]), -np.inf)
    assert low.astype(float) >= -0.1
    assert high.astype(float) <= 0.1
    assert high.dtype == np.float32


def test_a_task_by_name_has_its_defaults():
    state = rollin.prepare("point-umaze", beta=0.1, steps=5000)
    assert state.main.config.gamma == 0.97
    assert state.options.warmup == 2000


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"env": Line(), "out": "x"}, "env must be a function that makes the environment"),
        ({"env": Line, "hiden": (8,)}, "rollin.train has no option hiden. Did you mean hidden?"),
        ({"env": lambda: 3}, "got int"),
        (
            {"env": None},
            "a function that makes one, or the name of a task such as point-umaze, got",
        ),
        ({"env": Line, "steps": 2.5e4 + 0.5}, "steps must be a whole number, got 25000.5"),
        ({"env": Line, "seed": None}, "seed must be a whole number, got None"),
        ({"env": Line, "hidden": 8}, "hidden must be a sequence of int, got 8"),
        ({"env": Line, "relabel": 1}, "relabel must be True or False, got 1"),
        ({"env": Line, "threshold": "5"}, "threshold must be a finite number or None, got '5'"),
        ({"env": Line, "log_every": 5}, "log_every can only be given with `out`"),
        ({"env": Line, "threshold": 10**400}, "threshold must be a finite number or None"),
        ({"env": Line, "env_options": ["length=7", "length=9"]}, "is given twice"),
        ({"env": "point-umaze", "env_options": ["horizon=2.5"]}, "a whole number, got 2.5"),
        ({"env": Line(), "env_options": ("R=1",)}, "env_options belong to a function"),
        ({"env": Line, "curriculum": [[0], [1]]}, "must be a rollin.Curriculum, got list"),
        ({"env": Line, "curriculum": TWO, "contexts": [[0], [1]]}, "is given twice"),
        ({"env": gymnasium.make("Pendulum-v1")}, "is not a contextual env"),
        ({"env": "point-umase"}, "Did you mean point-umaze?"),
    ],
)
def test_bad_arguments_are_refused(arguments, message, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    given: Any = {"steps": 20_000, **arguments}
    with pytest.raises(RollinError) as caught:
        rollin.train(**given)
    assert message in str(caught.value)
    assert not (tmp_path / "x").exists()


def test_the_example_of_an_own_environment_reaches_the_last_place(capsys):
    runpy.run_path(str(EXAMPLES / "own_env.py"))["main"](28_000)
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "baseline: context 1 of 12 in 28,000 steps"
    assert lines[1] == "ROLLIN:   context 12 of 12"
    assert lines[-1].startswith("kappa = 1.00")


def test_the_example_of_a_goal_env_learns_its_first_context(capsys):
    pytest.importorskip("gymnasium_robotics")
    runpy.run_path(str(EXAMPLES / "point_maze.py"))["main"](6_000)
    lines = capsys.readouterr().out.splitlines()
    assert "context 0 mastered" in lines[0]
    assert lines[-1].startswith("kappa = ")
    rollin.check_env(runpy.run_path(str(EXAMPLES / "point_maze.py"))["make_env"]())


def test_training_is_quiet_unless_asked(capsys):
    seen: list[int] = []
    quiet = rollin.train(Line, steps=400, **SMALL, on_event=lambda event: seen.append(event.step))
    assert capsys.readouterr() == ("", "")
    told = rollin.train(
        Line, steps=400, **SMALL, verbose=1, on_event=lambda event: seen.append(event.step)
    )
    assert seen == [*range(1, 401), *range(1, 401)]
    assert told.returns == quiet.returns
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == len(told.advances) + 1  # the final context is mastered once
    for line, advance in zip(lines, told.advances, strict=False):
        assert line == f"step {advance.step}, context {advance.k - 1}/3: {advance.reason}"
    with pytest.raises(RollinError, match="verbose must be at least 0, got -1"):
        rollin.train(Line, steps=400, **SMALL, verbose=-1)


@pytest.mark.parametrize("way", ["memory", "directory", "agent"])
def test_a_progress_bar_ends_with_the_run(way, tmp_path, capsys):
    class Still:
        def act(self, observation, context, deterministic=False):
            return np.zeros(1)

        def observe(self, transition):
            pass

    more: Any = {"agent": Still()} if way == "agent" else dict(SMALL)
    more |= {"out": tmp_path / "a"} if way == "directory" else {}
    trained = rollin.train(Line, steps=150, progress_bar=True, **more)
    shown = capsys.readouterr().out
    assert "150/150" in shown
    assert f"context {trained.k}/3" in shown
