"""A policy taken out of its run: what is in it, that it plays the same, and what is refused."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest

import rollin
from rollin.cli import main
from rollin.cli.export import code
from rollin.runs import driver
from rollin.runs.exported import ABOUT, CARD, ExportedPolicy, is_exported
from rollin.runs.files import seal
from tests.killing import stop_at
from tests.runs.test_rollin_runs import line

FILES = [CARD, ABOUT, "policy.safetensors"]


@pytest.fixture(scope="module")
def made(tmp_path_factory) -> Path:
    """A run of some hundred steps, and its policy beside it."""
    place = tmp_path_factory.mktemp("exported")
    few = ["--steps", "400", "--warmup", "100", "--hidden", "8", "8", "--batch", "16"]
    assert main(["train", "point-umaze", *few, "--out", str(place / "run")]) == 0
    assert main(["export", str(place / "run"), "--out", str(place / "policy"),
                 "--episodes", "2"]) == 0  # fmt: skip
    return place


def test_it_holds_the_actor_alone_with_a_page_and_no_code(made) -> None:
    assert sorted(path.name for path in (made / "policy").iterdir()) == FILES
    own, given = (rollin.Policy.load(made / name) for name in ("run", "policy"))
    assert own.tensors().keys() == given.tensors().keys()
    for name, tensor in own.tensors().items():
        np.testing.assert_array_equal(tensor, given.tensors()[name])
    size = (made / "policy" / "policy.safetensors").stat().st_size
    assert size < (made / "run" / "policy.safetensors").stat().st_size / 2  # without critics


def test_it_is_evaluated_like_its_run_and_as_its_page_says(made, tmp_path, capsys) -> None:
    tables = []
    for name in ("run", "policy"):
        told = tmp_path / f"{name}.json"
        assert main(["evaluate", str(made / name), "--episodes", "2", "--json", str(told)]) == 0
        tables.append(json.loads(told.read_text()))
    run, policy = tables
    assert run["contexts"] == policy["contexts"]
    assert (run["step"], run["k"]) == (policy["step"], policy["k"])
    about = json.loads((made / "policy" / ABOUT).read_text())
    assert about["evaluation"] == policy["contexts"]
    page = (made / "policy" / CARD).read_text()
    for row in about["evaluation"]:
        assert f"| {row['k']} | {row['kappa']:.3f} |" in page
        assert f"| {row['return_mean']:.2f} |" in page
    assert "`rollin train point-umaze --steps 400" in page
    assert about["sha256"] in page
    assert "hidden = (8, 8), batch = 16" in page
    capsys.readouterr()


def test_a_run_that_is_not_finished_gives_its_last_checkpoint(
    tmp_path, capsys, monkeypatch
) -> None:
    monkeypatch.setattr(driver, "STATUS_SECONDS", -1.0)
    stop_at(line(300), tmp_path / "run", 150)
    out = tmp_path / "policy"
    assert main(["export", str(tmp_path / "run"), "--out", str(out), "--episodes", "1"]) == 0
    about = ExportedPolicy.open(out).about
    assert 0 < about.step < 300
    assert is_exported(out)
    assert not is_exported(tmp_path / "run")
    assert main(["evaluate", str(out), "--episodes", "1"]) == 0
    assert f"step {about.step}" in capsys.readouterr().out


def refused(capsys, *arguments: object) -> str:
    assert main([str(argument) for argument in arguments]) == 2
    (line_,) = capsys.readouterr().err.splitlines()
    return line_


def test_what_is_there_is_not_overwritten(made, tmp_path, capsys) -> None:
    told = refused(capsys, "export", made / "run", "--out", made / "policy")
    assert "exists and is not empty" in told
    (tmp_path / "mine.txt").write_text("x")
    assert "is not empty" in refused(capsys, "export", made / "run", "--out", tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["mine.txt"]
    left = tmp_path / "left"  # by an export that was killed before its last file
    left.mkdir()
    (left / "policy.safetensors").write_bytes(b"half")
    assert main(["export", str(made / "run"), "--out", str(left), "--episodes", "1"]) == 0
    assert ExportedPolicy.open(left)


def test_what_cannot_be_done_is_said(made, tmp_path, capsys) -> None:
    assert "resume the run directory that it was exported from" in refused(
        capsys, "resume", made / "policy"
    )
    assert "has no config.json" in refused(
        capsys, "export", made / "policy", "--out", tmp_path / "again"
    )
    assert not (tmp_path / "again").exists()
    assert "--episodes" in refused(capsys, "export", made / "run", "--episodes", "0")
    main(["train", "four-rooms", "--steps", "2", "--batch", "8", "--out", str(tmp_path / "rooms")])
    capsys.readouterr()
    told = refused(capsys, "export", tmp_path / "rooms", "--out", tmp_path / "p")
    assert "is a run of the engine tabular" in told
    assert not (tmp_path / "p").exists()


@pytest.mark.parametrize(
    ("name", "change", "said"),
    [
        (ABOUT, lambda t: t.replace('"step": 400', '"step": 401'), "does not match its checksum"),
        (ABOUT, lambda t: t.replace('"format": 1', '"format": 2'), "this version reads format 1"),
        (ABOUT, lambda t: t[:-40], "is not valid JSON"),
        ("policy.safetensors", lambda t: t[:-1] + "\x01", "does not match its checksum"),
    ],
)
def test_a_changed_file_is_refused(made, tmp_path, capsys, name, change, said) -> None:
    copy = shutil.copytree(made / "policy", tmp_path / "copy")
    text = (copy / name).read_bytes().decode("latin-1")
    (copy / name).write_bytes(change(text).encode("latin-1"))
    assert said in refused(capsys, "evaluate", copy)


def test_code_of_a_stranger_is_not_run(tmp_path, capsys, monkeypatch) -> None:
    monkeypatch.setattr(driver, "STATUS_SECONDS", -1.0)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "theirs"))
    stop_at(line(120), tmp_path / "run", 100)
    out = tmp_path / "policy"
    assert main(["export", str(tmp_path / "run"), "--out", str(out), "--episodes", "1"]) == 0
    assert main(["evaluate", str(out), "--episodes", "1"]) == 0  # whoever made it may
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "mine"))
    capsys.readouterr()
    assert "If you trust it, add --trust" in refused(capsys, "evaluate", out)
    assert main(["evaluate", str(out), "--episodes", "1", "--trust"]) == 0


def test_another_option_is_seen_even_with_a_checksum_that_fits(made, tmp_path, capsys) -> None:
    copy = shutil.copytree(made / "policy", tmp_path / "copy")
    told = json.loads((copy / ABOUT).read_text())
    told["run"]["config"]["horizon"] = 7
    del told["checksum"]
    (copy / ABOUT).write_text(json.dumps({**told, "checksum": seal(told)}))
    assert "does not match its spec_hash" in refused(capsys, "evaluate", copy)


@pytest.mark.parametrize(
    "text", ["a", "`a`", "a``b", "<img src=x>", "a|b", "", "x\ny\x1b[0m", "``"]
)
def test_what_comes_from_a_file_stays_code(text) -> None:
    shown = code(text)
    fence = shown[: len(shown) - len(shown.lstrip("`"))]
    inside = shown[len(fence) : -len(fence)]
    assert shown.endswith(fence)
    assert fence not in inside
    assert not {"|", "\n", "\x1b"} & set(shown)
