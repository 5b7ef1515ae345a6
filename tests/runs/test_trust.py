"""A stranger's file never runs code: every command meets directories that name some."""

import json
import os
import shutil
import stat
import sys
from pathlib import Path

import pytest

from rollin.cli import main
from rollin.cli.watch import Watched
from rollin.runs.engines import run
from rollin.runs.engines.rollin_options import RollinConfig
from rollin.runs.engines.sac import SACRunConfig
from rollin.runs.engines.tabular import TabularConfig
from rollin.runs.spec import RunSpec, configured, digest
from rollin.untrusted import check_code, only_named
from tests.made_runs import STUDIES

DEEP = {"hidden": (8, 8), "batch": 16, "eval_episodes": 1, "warmup": 32, "steps": 60}
SPECS = {
    "rollin": RunSpec(
        "tests.toys:Line", configured(RollinConfig(), {**DEEP, "log_every": 30, "threshold": 9.0})
    ),
    "sac": RunSpec("tests.toys:Walk-v0", configured(SACRunConfig(), {**DEEP, "log_every": 30})),
    "tabular": RunSpec("four-rooms", TabularConfig(steps=2, batch=10, log_every=1)),
}
CANARY = """
from pathlib import Path
Path("sung").touch()
def make(**options):
    raise KeyError("called")
"""


@pytest.fixture(scope="module")
def runs(tmp_path_factory) -> Path:
    place = tmp_path_factory.mktemp("trust")
    for name, spec in SPECS.items():
        run(spec, place / name)
    return place


def rename(path: Path, task: str, **options: object) -> None:
    """Have a run name another task, with a hash that fits, as who ships it would."""
    config = json.loads((path / "config.json").read_text())
    config["task"] = task
    config["config"] |= options
    spec = {name: config[name] for name in ("engine", "task", "config")}
    (path / "config.json").write_text(json.dumps(config | {"spec_hash": digest(spec)}))


def refused(capsys, arguments: list[str]) -> str:
    assert main(arguments) == 2
    (line,) = capsys.readouterr().err.splitlines()
    return line


@pytest.mark.parametrize("command", ["resume", "evaluate", "theory"])
@pytest.mark.parametrize("engine", SPECS)
@pytest.mark.parametrize("signed", [True, False], ids=["its own signature", "none"])
def test_a_run_of_somebody_else_runs_no_code(
    runs, tmp_path, capsys, monkeypatch, engine, command, signed
) -> None:
    monkeypatch.chdir(tmp_path)
    shutil.copytree(runs / engine, tmp_path / "theirs")
    rename(tmp_path / "theirs", f"canary_{engine}:make")
    if not signed:
        config = json.loads((tmp_path / "theirs" / "config.json").read_text())
        config.pop("signature", None)
        (tmp_path / "theirs" / "config.json").write_text(json.dumps(config))
    (tmp_path / f"canary_{engine}.py").write_text(CANARY)
    line = refused(capsys, [command, "theirs"])
    assert not (tmp_path / "sung").exists()
    if (command, engine) in (("resume", engine), ("evaluate", "rollin"), ("theory", "tabular")):
        assert "--trust" in line
        trusted = refused(capsys, [command, "theirs", "--trust"])
        assert "--trust" not in trusted
        assert (tmp_path / "sung").exists()
        sys.modules.pop(f"canary_{engine}")


@pytest.mark.parametrize("trust", [[], ["--trust"]])
@pytest.mark.parametrize(
    ("task", "options"),
    [
        ("subprocess:run", ["args=touch sung", "shell=true"]),
        ("os:system", ["command=touch sung"]),
        ("builtins:exec", ["source=1"]),
        ("webbrowser:open", ["url=x"]),
    ],
)
def test_names_of_the_standard_library_are_never_factories(
    runs, tmp_path, capsys, monkeypatch, task, options, trust
) -> None:
    monkeypatch.chdir(tmp_path)
    shutil.copytree(runs / "rollin", tmp_path / "theirs")
    rename(tmp_path / "theirs", task, env_options=options)
    for command in ("resume", "evaluate"):
        line = refused(capsys, [command, "theirs", *trust])
        assert ("standard library" if trust else "--trust") in line
    assert "standard library" in refused(capsys, ["train", task, "--out", "mine"])
    assert os.listdir(tmp_path) == ["theirs"]


@pytest.mark.parametrize("engine", ["rollin", "sac"])
def test_a_run_of_ones_own_needs_no_trust(runs, tmp_path, capsys, engine) -> None:
    shutil.copytree(runs / engine, tmp_path / "moved")
    assert main(["resume", str(tmp_path / "moved")]) == 0
    capsys.readouterr()
    config = json.loads((tmp_path / "moved" / "config.json").read_text())
    config["signature"] = "0" * 64
    (tmp_path / "moved" / "config.json").write_text(json.dumps(config))
    assert "--trust" in refused(capsys, ["resume", str(tmp_path / "moved")])
    assert main(["resume", str(tmp_path / "moved"), "--trust"]) == 0


def test_the_key_is_the_users_alone_and_needed(runs, tmp_path, capsys, monkeypatch) -> None:
    key = Path(os.environ["XDG_STATE_HOME"]) / "rollin" / "key"
    assert len(key.read_bytes()) == 32
    if os.name == "posix":
        assert stat.S_IMODE(key.stat().st_mode) == 0o600
    shutil.copytree(runs / "sac", tmp_path / "a")
    for content in (None, b"", b"x" * 32, b"x" * 33):  # of another user, or damaged
        monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
        if content is not None:
            (tmp_path / "state" / "rollin").mkdir(parents=True, exist_ok=True)
            (tmp_path / "state" / "rollin" / "key").write_bytes(content)
        assert "--trust" in refused(capsys, ["resume", str(tmp_path / "a")])


def test_a_state_directory_that_cannot_be_written_leaves_a_run_unsigned(
    tmp_path, capsys, monkeypatch
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "file"))
    run(SPECS["sac"], tmp_path / "a")
    assert "signature" not in json.loads((tmp_path / "a" / "config.json").read_text())
    assert "--trust" in refused(capsys, ["resume", str(tmp_path / "a")])


def test_looking_at_runs_runs_nothing(runs, tmp_path, capsys, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "canary_look.py").write_text(CANARY)
    for engine in SPECS:
        shutil.copytree(runs / engine, tmp_path / "theirs" / engine)
        rename(tmp_path / "theirs" / engine, "canary_look:make")
    names = ("family", "scale", "commands", "runs", "versions", "studies", "tables")
    one = {"labels": {"a": "b"}, "task": "canary_look:make", "options": {}, "key": ""}
    study = {"name": "s", "readings": [["kappa", 5]], "seeds": 1, "conditions": [one]}
    sweep = dict(zip(names, ("s", 1.0, [], {}, {}, [study], []), strict=True))
    (tmp_path / "theirs" / "sweep.json").write_text(json.dumps(sweep))
    for command in (["list", "theirs"], ["report", "theirs"], ["plot", "theirs"]):
        assert main(command) in (0, 2)
    with only_named():
        Watched([Path("theirs")], STUDIES).refresh()
    assert len(capsys.readouterr().err.splitlines()) <= 3
    assert not (tmp_path / "sung").exists()


def test_a_study_file_runs_the_code_that_it_names_only_if_trusted(
    tmp_path, capsys, monkeypatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "canary_study.py").write_text(CANARY)
    (tmp_path / "s.toml").write_text('task = "canary_study:make"\n[grid]\nbeta = [0, 0.1]\n')
    assert "--trust" in refused(capsys, ["sweep", "s.toml"])
    assert not (tmp_path / "sung").exists()
    main(["sweep", "s.toml", "--trust", "--seeds", "1", "--retries", "0", "--jobs", "1"])
    assert (tmp_path / "sung").exists()


def test_a_module_that_exits_is_no_success(tmp_path, capsys, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "leaver.py").write_text("import sys\nsys.exit(0)\n")
    (tmp_path / "leaver2.py").write_text("import sys\ndef make(): sys.exit(0)\n")
    for command, task in (
        ("train", "leaver:make"),
        ("sweep", "leaver:make"),
        ("theory", "leaver:make"),
        ("train", "leaver2:make"),
        ("theory", "leaver2:make"),
    ):
        more = ["--grid", "beta=0,0.1"] if command == "sweep" else []
        assert "sys.exit(0)" in refused(capsys, [command, task, *more]), (command, task)


def test_in_python_whoever_calls_names_the_code() -> None:
    check_code("tests.toys:Line")
    with only_named(), pytest.raises(Exception, match="not you"):
        check_code("tests.toys:Line")
