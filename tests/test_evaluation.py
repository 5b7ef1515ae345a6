"""`rollin.evaluate`, policies as files, names of tasks, and where modules are looked for."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest

import rollin
from rollin import Policy, RollinError
from rollin.__main__ import main
from rollin.runs.directory import RunDirectory
from tests.toys import Line

SMALL: dict[str, Any] = {"warmup": 60, "batch": 16, "hidden": (8, 8), "steps": 400}


@pytest.fixture(scope="module")
def policy() -> Policy:
    return rollin.train(Line, **SMALL).policy


# ------------------------------------------------------------------ evaluate


def test_the_command_line_and_python_give_the_same_numbers(tmp_path):
    files: dict[str, Any] = {"log_every": 200, "eval_episodes": 1}
    trained = rollin.train(Line, out=tmp_path / "a", **SMALL, **files)
    table = tmp_path / "table.json"
    some = ["--episodes", "3", "--seed", "5", "--json", str(table)]
    assert main(["evaluate", str(tmp_path / "a"), *some]) == 0
    found = rollin.evaluate(trained.policy, Line, episodes=3, seed=5)
    told = json.loads(table.read_text())["contexts"]
    assert [row["returns"] for row in told] == [result.returns for result in found]
    assert [row["success"] for row in told] == [result.success for result in found]
    assert [tuple(row["context"]) for row in told] == [result.context for result in found]
    assert found[1].seeds == (5, 6, 7)
    assert found[1].measured.keys() == {"place", "push"}
    assert main(["evaluate", str(tmp_path / "a"), "--context", "2", *some]) == 0
    assert json.loads(table.read_text())["contexts"] == [told[2]]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--context", "9"], "--context must lie between 0 and 3, the last one, got 9."),
        (["--context", "1", "--contexts", "last"], "both choose contexts: use one."),
    ],
)
def test_a_context_that_is_not_there_is_refused(options, message, tmp_path, capsys):
    rollin.train(Line, out=tmp_path / "a", log_every=400, eval_episodes=1, **SMALL)
    assert main(["evaluate", str(tmp_path / "a"), *options]) == 2
    assert message in capsys.readouterr().err


def test_functions_and_agents_of_all_kinds_are_evaluated(policy):
    class Predicts:
        def predict(self, observation, deterministic=False):
            assert deterministic
            return policy.act(observation), None

    class Acts:
        def act(self, observation, context, deterministic=False):
            assert deterministic
            return policy.act(observation, context)

    kinds = [policy.act, Predicts(), Acts()]
    found = [rollin.evaluate(kind, Line(), [[0.4]], episodes=4)[0].returns for kind in kinds]
    assert found[0] == found[1] == found[2]
    mine = rollin.evaluate(policy, Line, [[0.4]], episodes=4)[0]
    np.testing.assert_allclose(mine.returns, found[0], atol=1e-4)  # scaled in float32 or float64


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"policy": 3}, "a function of (observation, context), got int"),
        ({"env": gymnasium.make("Pendulum-v1")}, "is not a contextual env"),
        ({"contexts": [[99.0]]}, "lies outside"),
        ({"episodes": 0}, "episodes must be at least 1, got 0"),
        ({"env": "point-umaze"}, "was trained on another environment"),
    ],
)
def test_bad_arguments_are_refused(arguments, message, policy):
    with pytest.raises(RollinError) as caught:
        rollin.evaluate(**{"policy": policy, "env": Line, **arguments})
    assert message in str(caught.value)


# ------------------------------------------------------------------ policies as files


def test_a_policy_is_saved_and_loaded(policy, tmp_path):
    path = tmp_path / "mine.safetensors"
    policy.save(path)
    policy.save(path)  # replaced
    loaded = Policy.load(path)
    seen, contexts = np.random.default_rng(0).normal(size=(20, 2)), [[0.4]]
    np.testing.assert_array_equal(loaded.act(seen, contexts), policy.act(seen, contexts))
    assert loaded.k == policy.k
    np.testing.assert_array_equal(loaded.contexts, policy.contexts)
    assert [entry.name for entry in tmp_path.iterdir()] == ["mine.safetensors"]
    with pytest.raises(RollinError, match="could not be written: no such file"):
        policy.save(tmp_path / "nowhere" / "a")


def test_links_in_a_run_directory_are_not_followed(policy, tmp_path):
    real, link = tmp_path / "real", tmp_path / "link"
    policy.save(real)
    try:
        link.symlink_to(real)
    except OSError:
        pytest.skip("no links here")
    assert Policy.load(link).k == policy.k  # the user names it
    run = tmp_path / "run"
    run.mkdir()
    (run / "policy.safetensors").symlink_to(real)
    with pytest.raises(RollinError, match="is a link: replace it with a copy"):
        Policy.load(run)
    before = real.read_bytes()
    policy.save(link)
    assert not link.is_symlink()
    assert real.read_bytes() == before


def test_without_a_context_the_last_is_meant(policy):
    seen = np.zeros(2)
    np.testing.assert_array_equal(policy.act(seen), policy.act(seen, policy.contexts[-1]))
    np.testing.assert_array_equal(policy.act(seen, "last"), policy.act(seen))
    other = {"observation": seen, "context": [0.4]}
    np.testing.assert_array_equal(policy.act(other), policy.act(seen, [0.4]))


@pytest.mark.parametrize("contextual", [True, False])
def test_onnx_gives_the_same_actions(contextual, policy, tmp_path):
    pytest.importorskip("onnx")
    reference = pytest.importorskip("onnx.reference")
    if not contextual:  # as plain SAC leaves it
        policy = Policy(
            policy.layers, policy.low, policy.high, policy.log_std, np.zeros((0, 0), np.float32), 0
        )
    path = tmp_path / "policy.onnx"
    policy.save_onnx(path)
    generator = np.random.default_rng(1)
    seen = generator.normal(size=(50, policy.observation_size)).astype(np.float32)
    given = {"observation": seen}
    if contextual:
        given["context"] = generator.uniform(-4, 4, (50, 1)).astype(np.float32)
    (found,) = reference.ReferenceEvaluator(str(path)).run(None, given)
    expected = policy.act(seen, given["context"]) if contextual else policy.act(seen)
    assert found.shape == expected.shape
    np.testing.assert_allclose(found, expected, atol=1e-5)
    assert (found >= policy.low).all()
    assert (found <= policy.high).all()


def test_onnx_says_which_extra_it_needs(policy, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "onnx", None)
    with pytest.raises(RollinError, match=r"pip install '\.\[onnx\]'"):
        policy.save_onnx(tmp_path / "a")


# ------------------------------------------------------------------ events, names, modules


def test_events_are_told_with_a_run_directory(tmp_path):
    events: list[Any] = []
    files: dict[str, Any] = {"log_every": 200, "eval_episodes": 1}
    rollin.train(Line, out=tmp_path / "a", on_event=events.append, **SMALL, **files)
    assert [event.step for event in events] == list(range(1, 401))
    plain: list[Any] = []
    rollin.train(Line, on_event=plain.append, **SMALL)
    assert [event.reward for event in plain] == [event.reward for event in events]


@pytest.mark.parametrize("imported", ["gymnasium, rollin", "rollin, gymnasium, rollin.envs"])
def test_an_import_registers_our_environments(imported):
    code = f"import {imported}; gymnasium.make('rollin/PointUmaze-v0')"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_a_run_has_the_plain_name_and_its_hash(tmp_path):
    few: dict[str, Any] = {"warmup": 64, "batch": 16, "hidden": (8, 8), "steps": 200}
    files: dict[str, Any] = {"log_every": 200, "eval_episodes": 1}
    hashes = []
    for i, name in enumerate(("point-umaze", "rollin/PointUmaze-v0")):
        rollin.train(name, out=tmp_path / str(i), **few, **files)
        described = RunDirectory(tmp_path / str(i)).config
        assert described.task == "point-umaze"
        hashes.append(described.spec_hash)
    options = [f"--{key.replace('_', '-')}" for key in (*few, *files)]
    values = [["64"], ["16"], ["8", "8"], ["200"], ["200"], ["1"]]
    words = [w for o, v in zip(options, values, strict=True) for w in (o, *v)]
    out = ["--out", str(tmp_path / "2")]
    assert main(["train", "rollin/PointUmaze-v0", *words, *out]) == 0
    hashes.append(RunDirectory(tmp_path / "2").config.spec_hash)
    assert len(set(hashes)) == 1


MASS = """
import tests.toys

def _helper(): ...

def make_env():
    return tests.toys.Line()
"""


def test_a_module_s_name_is_answered_with_its_factory(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    Path("mass.py").write_text("raise SystemExit('run')\n" + MASS)  # it is read, not run
    for name in ("mass", "mass.py"):
        assert main(["train", name]) == 2
        assert "Did you mean mass:make_env?" in capsys.readouterr().err
    with pytest.raises(RollinError, match=r"Did you mean mass:make_env\?"):
        rollin.train("mass")
    Path("broken.py").write_text("def make(:")
    assert main(["train", "broken"]) == 2
    assert "Did you mean" not in capsys.readouterr().err


def test_runs_of_own_environments_are_found_from_where_their_module_is(
    tmp_path, monkeypatch, capsys
):
    here, elsewhere = tmp_path / "here", tmp_path / "elsewhere"
    here.mkdir()
    elsewhere.mkdir()
    (here / "mass_elsewhere.py").write_text(MASS)
    monkeypatch.chdir(here)
    few = ["--steps", "100", "--warmup", "64", "--batch", "16", "--hidden", "8", "8"]
    run = str(tmp_path / "run")
    more = ["--log-every", "100", "--eval-episodes", "1", "--out", run]
    assert main(["train", "mass_elsewhere:make_env", *few, *more]) == 0
    monkeypatch.chdir(elsewhere)
    monkeypatch.delitem(sys.modules, "mass_elsewhere")
    for command in ("evaluate", "resume"):
        assert main([command, run]) == 2
        said = capsys.readouterr().err
        assert f"looked for in {elsewhere} and where Python looks (PYTHONPATH" in said
        assert "go to the directory of mass_elsewhere.py" in said
    monkeypatch.syspath_prepend(str(here))
    assert main(["evaluate", run, "--episodes", "1"]) == 0
    assert main(["resume", run]) == 0


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"log_every": 0, "out": "x"}, "log_every must be at least 1"),
        ({"threshold_slope": 1.0}, "threshold_slope belongs to a return threshold: it needs thre"),
        ({"path": [[0], [1]], "contexts": [[0], [1]]}, "path, contexts and literal are three ways"),
        ({"literal": True}, "literal takes a curriculum as the paper prints it"),
    ],
)
def test_errors_in_python_name_arguments_not_flags(options, message):
    with pytest.raises(RollinError) as caught:
        rollin.train(Line, **{**SMALL, **options})
    assert str(caught.value).startswith(message)
    assert "--" not in str(caught.value)
