"""Runs without a threshold and without a step: command line, records, what is told of them."""

import csv
import json

import numpy as np
import pytest
from gymnasium import spaces

import rollin
from rollin.cli import main
from rollin.runs.directory import RunDirectory
from rollin.runs.engines import engine, spec_of
from rollin.runs.files import read_json
from rollin.runs.metrics import read_metrics
from rollin.runs.records import MetricAt
from tests.toys import Line

FEW = ["--hidden", "16", "16", "--batch", "16", "--gamma", "0.9", "--warmup", "100",
       "--window", "3", "--eval-episodes", "2", "--log-every", "500"]  # fmt: skip

BARE = "tests.runs.test_adaptive_runs:make_bare"


class Bare(Line):
    """The line with a start and a goal, and nothing else that is set by hand."""

    def __init__(self) -> None:
        super().__init__()
        self.curriculum = rollin.Curriculum.between(start=[0.0], goal=[1.2])


def make_bare() -> Bare:
    return Bare()


@pytest.fixture(scope="module")
def adaptive(tmp_path_factory):
    """A finished run with all options of ours."""
    out = tmp_path_factory.mktemp("runs") / "mine"
    words = ["train", "point-umaze", "--env-options", "horizon=40", "--adaptive", "--goals", "6"]
    words += ["--steps", "8000", *FEW]
    assert main([*words, "--better", "0.5", "--out", str(out)]) == 0
    return out


def test_the_short_form_is_written_out_and_gives_way(adaptive):
    config = read_json(adaptive / "config.json")["config"]
    assert (config["rule"], config["stride"]) == ("early-gap", "bold")
    assert config["algorithm"]["counted"] == "main"
    assert config["algorithm"]["better"] == 0.5


def test_moves_have_reasons_and_the_curriculum_no_thresholds(adaptive):
    result = read_json(adaptive / "result.json")
    assert result["curriculum"]["thresholds"] == []
    assert result["K"] == 96
    assert result["advances"]
    assert all("way from" in a["reason"] or "back to" in a["reason"] for a in result["advances"])
    assert 0 <= result["goals"] <= 1


def test_the_record_tells_how_many_goals_were_solved(adaptive):
    run = RunDirectory.open(adaptive)
    record = engine("rollin").record(run, spec_of(run), [])
    columns = read_metrics(adaptive / "goals.csv")
    goals = [columns[f"success_{i + 1}"][-1] for i in range(6)]
    solved = sum(share >= 0.8 for share in goals) / 6
    assert read_json(adaptive / "result.json")["goals"] == pytest.approx(solved)
    assert record.value(MetricAt("goals")) == pytest.approx(solved)


def test_it_is_evaluated_listed_and_reported(adaptive, tmp_path, capsys):
    table = tmp_path / "table.json"
    assert main(["evaluate", str(adaptive), "--episodes", "1", "--json", str(table)]) == 0
    rows = json.loads(table.read_text())["contexts"]
    assert 25 <= len(rows) <= 26  # not all 97
    assert {row["threshold"] for row in rows} == {None}
    assert main(["list", str(adaptive.parent)]) == 0
    assert main(["report", str(adaptive), "--out", str(tmp_path / "report.html")]) == 0
    with (tmp_path / "runs.csv").open() as file:
        (row,) = csv.DictReader(file)
    assert row["goals"] != ""
    assert "Traceback" not in capsys.readouterr().err


def test_an_environment_with_a_start_and_a_goal_needs_nothing_more(tmp_path):
    out = tmp_path / "bare"
    words = ["train", BARE, "--steps", "800", *FEW]
    assert main([*words, "--out", str(out)]) == 0
    result = read_json(out / "result.json")
    assert result["K"] == 96
    assert result["curriculum"]["contexts"][-1] == [1.2]


class Unbatched(Bare):
    """Its reward takes one outcome at a time."""

    def compute_reward(self, outcome, context):
        apart = abs(float(np.asarray(outcome)[0]) - float(np.asarray(context)[0]))
        return np.array(1 - apart if apart <= 0.5 else 0.0)


def test_without_rewards_for_a_batch_the_first_episodes_are_the_base_and_it_is_told(
    tmp_path, capsys
):
    task, out = "tests.runs.test_adaptive_runs:Unbatched", tmp_path / "a"
    assert main(["train", task, "--steps", "400", *FEW, "--out", str(out)]) == 0
    said = "the threshold of a context is taken from the first episodes there"
    assert said in read_json(out / "result.json")["warning"]
    assert said in capsys.readouterr().err
    with pytest.warns(UserWarning, match=said):
        state = rollin.prepare(Unbatched, hidden=(8, 8), batch=16, warmup=100)
    assert state.teacher.wants == frozenset()
    state.close()


@pytest.mark.parametrize("option", [["--relabel"], ["--teacher", "visited"]])
def test_what_cannot_do_without_batches_says_so_before_anything_is_run(option, tmp_path, capsys):
    task = "tests.runs.test_adaptive_runs:Unbatched"
    assert main(["train", task, *option, "--steps", "800", *FEW, "--out", str(tmp_path / "a")]) == 2
    told = capsys.readouterr().err
    assert "batch" in told
    assert len(told.strip().splitlines()) == 1
    assert not (tmp_path / "a").exists()


class Constant(Bare):
    """Every step pays the same."""

    def compute_reward(self, outcome, context):
        return np.ones(np.shape(outcome)[:-1])


def test_rewards_that_never_vary_are_told(tmp_path, capsys):
    task, out = "tests.runs.test_adaptive_runs:Constant", tmp_path / "a"
    words = ["train", task, "--horizon", "5", "--steps", "400", *FEW, "--out", str(out)]
    assert main(words) == 0
    assert "rewards there seem out of reach, or never vary" in capsys.readouterr().err
    assert read_json(out / "result.json")["k"] == 0


class Narrow(Bare):
    """Outcomes lie outside the space of contexts: no place can stand for one."""

    def __init__(self):
        super().__init__()
        self.context_space = spaces.Box(0.0, 1.2, (1,), np.float64)
        observed = spaces.Box(-np.inf, np.inf, (2,), np.float64)
        self.observation_space = spaces.Dict(observation=observed, context=self.context_space)

    def to_context(self, outcome):
        return np.asarray(outcome) + 100


def test_places_outside_the_space_of_contexts_are_never_given(tmp_path):
    options = {"hidden": (8, 8), "batch": 16, "warmup": 100, "window": 3, "log_every": 400}
    rollin.train(Narrow, teacher="visited", steps=400, out=tmp_path, **options)
    assert read_json(tmp_path / "result.json")["advances"] == []


def test_a_threshold_beside_a_rule_that_needs_none_is_refused(capsys):
    words = ["train", "point-umaze", "--rule", "gap", "--threshold", "80"]
    assert main(words) == 2
    told = capsys.readouterr().err
    assert "--rule gap needs no threshold" in told
    assert len(told.strip().splitlines()) == 1


def test_a_study_takes_the_short_form_and_another_first_seed(tmp_path):
    file = tmp_path / "mine.toml"
    file.write_text(
        'task = "point-umaze"\nseeds = 2\nfirst_seed = 30\n'
        "[[block]]\noptions = { adaptive = true, better = 0.5 }\n"
    )
    from rollin.sweeps.study import study_from

    (condition,) = study_from(file).conditions
    assert list(condition.seeds(2)) == [30, 31]
    assert condition.config.stride == "bold"
    assert condition.config.algorithm.better == 0.5


class Costly(Line):
    """Every episode succeeds at its last step, and the farther the goal, the less it earns."""

    can_relabel = False

    def __init__(self, define: bool = True) -> None:
        super().__init__()
        self.curriculum = rollin.Curriculum.between(start=[0.0], goal=[1.2])
        self.define, self.count = define, 0

    def reset(self, **how):
        self.count = 0
        return super().reset(**how)

    def step(self, action):
        observed, _, _, _, info = super().step(action)
        self.count += 1
        over = self.count == 5
        told = {"is_success": over} if self.define else {}
        return observed, (10.0 - self.context[0]) * over, over, False, {**info, **told}


COSTLY = ["tests.runs.test_adaptive_runs:Costly", "--steps", "1000", *FEW]


def test_a_solved_context_is_left_though_its_returns_never_rise(tmp_path, capsys):
    assert main(["train", *COSTLY, "--adaptive", "--out", str(tmp_path / "a")]) == 0
    result = read_json(tmp_path / "a" / "result.json")
    assert result["advances"][0]["reason"] == "the last episodes ended in success"
    assert result["completed"] is not None
    assert result["warning"] is None
    capsys.readouterr()


def test_without_a_definition_of_success_a_stall_is_told_with_what_to_do(tmp_path, capsys):
    words = ["train", *COSTLY, "--adaptive", "--env-options", "define=0"]
    assert main([*words, "--out", str(tmp_path / "a")]) == 0
    told = read_json(tmp_path / "a" / "result.json")["warning"]
    assert told.startswith("Context 0 of 96 was not mastered in ")
    assert "none of which earned more than" in told
    assert told in capsys.readouterr().err


def test_the_threshold_is_shown_as_what_must_be_exceeded(adaptive):
    shown = read_json(adaptive / "status.json")["shown"]["training mean / threshold"]
    assert " / > " in shown or "episodes" in shown


@pytest.mark.parametrize(
    ("options", "advice"),
    [
        (
            ["--rule", "success", "--threshold", "0.5"],
            "Try --relabel, --adaptive or an easier first context.",
        ),
        (["--threshold", "5", "--relabel"], "Try --adaptive or an easier first context."),
        (["--rule", "gap"], "Try --relabel or an easier first context."),
    ],
)
def test_where_nothing_succeeds_no_smaller_threshold_is_advised(options, advice, tmp_path, capsys):
    words = ["train", "point-umaze", "--env-options", "horizon=10", "--path", "[[6, 0], [8, 0]]"]
    words += ["--steps", "1200", *FEW, *options]
    assert main([*words, "--out", str(tmp_path / "a")]) == 0
    err = capsys.readouterr().err
    assert ("none of them succeeded" if "success" in options else "earned any reward") in err
    assert advice in err
    assert "smaller --threshold" not in err
