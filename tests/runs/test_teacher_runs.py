"""Runs whose contexts other teachers choose: interrupted and resumed to the bit, and bad input."""

import pytest

import rollin
from rollin.cli import main
from rollin.envs.point_umaze import PointUmaze
from rollin.runs.directory import RunDirectory
from rollin.runs.engines import engine, spec_of
from rollin.runs.files import read_json
from rollin.runs.spec import RunSpec, configured
from rollin.teachers import TEACHERS
from tests.toys import Line

FEW = {"hidden": (8, 8), "batch": 16, "warmup": 200, "window": 3, "goals": 4,
       "env_options": ("horizon=40",), "log_every": 600, "eval_episodes": 1}  # fmt: skip


def stop_after(episodes):
    left = [episodes]

    def should_stop():
        left[0] -= 1
        return left[0] < 0

    return should_stop


@pytest.mark.parametrize("name", [*TEACHERS, "visited"])
def test_a_run_is_resumed_to_the_bit(name, tmp_path):
    beta = 0.0 if name in ("reverse", "fixed") else 0.3
    options = {**FEW, "teacher": name, "beta": beta, "steps": 1800}
    rollin.train("point-umaze", out=tmp_path / "whole", **options)
    parts = tmp_path / "parts"
    for episodes in (9, 22):
        rollin.train("point-umaze", out=parts, should_stop=stop_after(episodes), **options)
    rollin.train("point-umaze", out=parts, **options)
    for file in ("metrics.csv", "episodes.csv", "policy.safetensors"):
        assert (parts / file).read_bytes() == (tmp_path / "whole" / file).read_bytes()
    result = read_json(parts / "result.json")
    assert result["K"] == 96
    assert 0 <= result["goals"] <= 1


def test_a_start_is_taken_where_it_is_named():
    env = PointUmaze()
    place = [8.0, 4.0]
    observed, _ = env.reset(seed=0, options={"start": place})
    assert abs(observed["observation"][:2] - place).max() <= 0.1
    again, _ = env.reset(seed=0)
    assert abs(again["observation"][:2]).max() <= 0.1


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--teacher", "alp-gm"], "--teacher"),
        (["--teacher", "plr", "--rule", "success"], "--rule belongs to a walk"),
        (["--teacher", "plr", "--method", "scratch"], "leave one out"),
        (["--teacher", "plr", "--delta", "1/24"], "--delta belongs to a walk"),
        (["--teacher", "plr", "--counted", "main"], "--counted belongs to a walk"),
        (["--teacher", "plr", "--better", "0.25"], "--better belongs to a walk"),
    ],
)
def test_options_that_do_not_go_together_are_refused(words, said, capsys):
    assert main(["train", "point-umaze", *words]) == 2
    told = capsys.readouterr().err
    assert said in told
    assert len(told.strip().splitlines()) == 1


class StartAndGoal(Line):
    """Nothing is known but a start and a goal."""

    def __init__(self):
        super().__init__()
        self.curriculum = rollin.Curriculum.between(start=[0.0], goal=[3.0])


def test_a_start_and_a_goal_are_enough_for_visited_places(tmp_path):
    options = {**FEW, "env_options": (), "steps": 1800}
    trained = rollin.train(StartAndGoal, teacher="visited", out=tmp_path, **options)
    moves = [advance["reason"] for advance in read_json(tmp_path / "result.json")["advances"]]
    assert moves
    assert all("; on to (" in move or ": back to " in move for move in moves)
    assert trained.K == 96
    run = RunDirectory.open(tmp_path)
    record = engine("rollin").record(run, spec_of(run), [])
    ks = [switch.k for switch in record.switches]
    assert ks == sorted(set(ks))  # how far was mastered, each once
    assert len(ks) <= len(moves)


def test_visited_places_need_outcomes_that_stand_for_contexts():
    class Blind(Line):
        can_relabel = False

    with pytest.raises(rollin.RollinError, match="cannot be relabelled"):
        rollin.prepare(Blind, teacher="visited")


def test_an_environment_that_cannot_be_begun_elsewhere_is_told_how():
    with pytest.raises(rollin.RollinError, match="takes_start = True"):
        rollin.prepare(Line, teacher="reverse", beta=0.0)


def test_conditions_of_other_steps_or_teachers_have_other_fingerprints():
    """A sweep computes one for each set of options that make the curriculum."""
    runs = engine("rollin")
    preset = runs.preset("point-umaze")
    specs = [RunSpec("point-umaze", configured(preset, given)) for given in
             ({}, {"stride": "halving"}, {"teacher": "uniform"})]  # fmt: skip
    keys = [runs.fingerprint_key(spec.config) for spec in specs]
    found = [runs.fingerprint(spec) for spec in specs]
    assert len(set(keys)) == 3
    assert found[0] != found[1]


def test_a_baseline_is_one_condition_whatever_its_roll_ins_would_have_been():
    runs, preset = engine("rollin"), engine("rollin").preset("point-umaze")
    plain = configured(preset, {"method": "baseline"})
    other = configured(preset, {"method": "baseline", "guide": "frozen", "prefix": "hidden"})
    assert runs.canonical("point-umaze", plain) == runs.canonical("point-umaze", other)


def test_a_finer_step_than_the_usual_grid_is_kept():
    few = {"hidden": (8, 8), "batch": 16, "warmup": 200}
    state = rollin.prepare("point-umaze", adaptive=True, delta=1 / 200, **few)
    state.close()
    assert state.curriculum.K == 200


def test_a_teacher_without_any_success_does_not_speak_of_thresholds(tmp_path, capsys):
    words = ["train", "point-umaze", "--teacher", "uniform", "--beta", "0", "--steps", "1200",
             "--env-options", "horizon=10", "--warmup", "100", "--hidden", "8", "--batch", "16",
             "--window", "3", "--seed", "1", "--path", "[[6, 0], [8, 0]]"]  # fmt: skip
    assert main([*words, "--threshold", "1", "--out", str(tmp_path / "x")]) == 2
    assert main([*words, "--out", str(tmp_path / "run")]) == 0
    told = read_json(tmp_path / "run" / "result.json")["warning"]
    assert told == (
        "The teacher uniform has seen no success in 120 episodes: try more --steps, "
        "--relabel or another --teacher."
    )
    capsys.readouterr()
