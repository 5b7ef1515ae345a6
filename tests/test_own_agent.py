"""Agents of one's own in `rollin.train`: a tabular Q-learner with discrete actions."""

import copy
from typing import Any

import gymnasium
import numpy as np
import pytest

import rollin
from rollin import RollinError
from rollin.__main__ import main
from rollin.runs.directory import RunDirectory
from rollin.runs.engines import read_record
from rollin.runs.metrics import read_metrics
from tests.corridor import FAR, Corridor, QLearner, make_q


def test_a_q_learner_walks_the_curriculum():
    agent, events = QLearner(), []
    trained = rollin.train(Corridor, agent=agent, beta=0.3, steps=6000, on_event=events.append)
    assert trained.policy is agent
    assert (trained.k, trained.kappa) == (3, 1.0)
    assert [event.step for event in events] == list(range(1, 6001))
    found = rollin.evaluate(agent, Corridor, episodes=2)
    assert [result.success for result in found] == [1.0] * 4
    rolled = [event for event in events if event.actor == "rollin"]
    assert rolled
    assert all(event.k > 0 for event in rolled)
    ends = [event.episode for event in events if event.episode is not None]
    share = np.mean([end.rollin for end in ends if end.k > 0])
    assert 0.2 < share < 0.4  # β = 0.3
    assert len(agent.seen) == 6000 - len(rolled)  # the prefix is hidden
    assert not any(step.rolled for step in agent.seen)


def test_the_agent_receives_the_beginning_of_its_episodes():
    agent, events = QLearner(), []
    rollin.train(
        Corridor, agent=agent, beta=0.5, steps=3000, gamma=0.8, prefix="shown",
        on_event=events.append,
    )  # fmt: skip
    assert len(agent.seen) == 3000
    assert [step.rolled for step in agent.seen] == [event.actor == "rollin" for event in events]
    begins = [True, *(step.terminated or step.truncated for step in agent.seen[:-1])]
    assert [step.first for step in agent.seen] == begins
    lengths = [event.episode.rollin_steps for event in events if event.episode is not None]
    assert {length >= 1 for length in lengths if length} == {True}
    assert np.mean([length for length in lengths if length]) == pytest.approx(5, abs=2)  # 1/(1-γ)


def test_the_guide_is_frozen_and_sees_the_previous_context():
    told = []

    class Spied(QLearner):
        frozen = False

        def freeze(self):
            copied = copy.deepcopy(self)
            copied.frozen = True
            return copied

        def act(self, observation, context, deterministic=False):
            if self.frozen:
                told.append((float(context[0]), self.q.sum()))
            return super().act(observation, context, deterministic)

    events: list[Any] = []
    rollin.train(Corridor, agent=Spied(), beta=0.5, steps=4000, on_event=events.append)
    contexts = [FAR.contexts[event.k - 1, 0] for event in events if event.actor == "rollin"]
    assert [context for context, _ in told] == contexts
    by_guide: dict[float, set[float]] = {}
    for context, total in told:
        by_guide.setdefault(context, set()).add(total)
    assert all(len(totals) == 1 for totals in by_guide.values())  # it learns no more
    assert len(by_guide) >= 2


def test_a_baseline_never_rolls_in():
    events: list[Any] = []
    rollin.train(Corridor, agent=QLearner(), method="baseline", steps=2000, on_event=events.append)
    assert {event.actor for event in events} == {"main"}


FILES: dict[str, Any] = {"log_every": 500, "eval_episodes": 1}


def trained_in(out: Any, stop_after: int | None = None, agent: Any = make_q) -> rollin.Trained:
    seen = [0]

    def stop() -> bool:
        return stop_after is not None and seen[0] >= stop_after

    def count(event: Any) -> None:
        seen[0] = event.step

    return rollin.train(
        Corridor, agent=agent, beta=0.3, steps=3000, seed=4, out=out, on_event=count,
        should_stop=stop, **FILES,
    )  # fmt: skip


@pytest.fixture
def eager(monkeypatch):
    """Asks often whether to stop, where the episode lies that a checkpoint is written after."""
    monkeypatch.setattr("rollin.runs.driver.STATUS_SECONDS", 0.005)


def test_a_run_in_a_directory_resumes_bit_for_bit(tmp_path, eager, capsys):
    whole = trained_in(tmp_path / "a")
    assert whole.finished
    part = trained_in(tmp_path / "b", stop_after=1200)
    assert not part.finished
    assert read_record(RunDirectory(tmp_path / "b")).step >= 1200
    rest = trained_in(tmp_path / "b")
    assert rest.finished
    for name in ("metrics.csv", "episodes.csv"):
        assert (tmp_path / "a" / name).read_bytes() == (tmp_path / "b" / name).read_bytes()
    np.testing.assert_array_equal(whole.policy.q, rest.policy.q)
    again = trained_in(tmp_path / "a")  # finished: read, not trained
    np.testing.assert_array_equal(again.policy.q, whole.policy.q)
    assert again.k == whole.k
    record = read_record(RunDirectory(tmp_path / "a"))
    assert (record.engine, record.k, record.finished) == ("agent", whole.k, True)
    assert record.curve.quantities["kappa"][-1] == whole.kappa
    assert main(["list", str(tmp_path)]) == 0
    assert main(["resume", str(tmp_path / "a")]) == 0
    assert "κ = " in capsys.readouterr().out
    assert main(["evaluate", str(tmp_path / "a")]) == 2
    assert "by rollin.evaluate(agent, env)." in capsys.readouterr().err
    assert main(["report", str(tmp_path / "a"), "--out", str(tmp_path / "page.html")]) == 0


def test_a_run_resumes_from_the_command_line(tmp_path, eager):
    whole = trained_in(tmp_path / "a")
    trained_in(tmp_path / "b", stop_after=1200)
    assert main(["resume", str(tmp_path / "b")]) == 0
    episodes = [read_metrics(tmp_path / name / "episodes.csv") for name in "ab"]
    assert episodes[0] == episodes[1]
    np.testing.assert_array_equal(trained_in(tmp_path / "b").policy.q, whole.policy.q)


def test_without_a_state_a_stopped_run_starts_over(tmp_path, eager):
    class Plain:
        def __init__(self):
            self.inner = QLearner(seed=4)

        def act(self, observation, context, deterministic=False):
            return self.inner.act(observation, context, deterministic)

        def observe(self, transition):
            self.inner.observe(transition)

    whole = trained_in(tmp_path / "a", agent=Plain())
    assert not trained_in(tmp_path / "b", stop_after=1200, agent=Plain()).finished
    assert not (tmp_path / "b" / "checkpoint" / "manifest.json").exists()
    rest = trained_in(tmp_path / "b", agent=Plain())
    assert rest.finished
    assert rest.returns == whole.returns


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"agent": 3}, "agent must have the methods act"),
        ({"agent": lambda env, seed: "none"}, "observe(transition), got str"),
        ({"hidden": (8, 8)}, "rollin.train with agent has no option hidden"),
        ({"update_every": 5}, "rollin.train with agent has no option update_every"),
        ({"beta": 1.0}, "beta must lie in [0, 1)"),
        ({"gamma": 1.0}, "gamma must lie in [0, 1)"),
        ({"prefix": "seen"}, "prefix must be one of hidden, shown"),
        ({"curriculum": [[1.0], [2.0]]}, "must be a rollin.Curriculum, got list"),
        ({"env": gymnasium.make("CartPole-v1")}, "is not a contextual env"),
        ({"env": Corridor(), "out": "x"}, "env must be a function that makes the environment"),
        ({"log_every": 5}, "log_every can only be given with `out`"),
    ],
)
def test_bad_arguments_are_refused(arguments, message, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    given: Any = {"env": Corridor, "agent": QLearner(), "steps": 100, **arguments}
    with pytest.raises(RollinError) as caught:
        rollin.train(**given)
    assert message in str(caught.value)
    assert not (tmp_path / "x").exists()


def test_a_frozen_copy_that_cannot_be_saved_is_refused_at_once():
    class Light:
        def act(self, observation, context, deterministic=False):
            return 0

    class Frozen(QLearner):
        def freeze(self):
            return Light()

    with pytest.raises(RollinError, match="Light has no get_state and no set_state"):
        rollin.train(Corridor, agent=Frozen(), beta=0.3, steps=10)
    assert rollin.train(Corridor, agent=Frozen(), method="baseline", steps=10).k == 0
