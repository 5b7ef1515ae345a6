"""The command line as a user meets it: output, exit codes, one clear sentence for bad input."""

import ast
import itertools
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

import rollin
from rollin.cli import COMMANDS, main
from rollin.cli.evaluate import panel_title
from rollin.cli.train import parse_run
from rollin.runs.directory import RunDirectory
from rollin.runs.engines.sac import SACRunConfig
from rollin.runs.files import read_json
from rollin.runs.spec import RunSpec
from tests.conftest import random_mdp
from tests.forks import forking

CLI = Path(rollin.__file__).parent / "cli"
ENGINES = CLI.parent / "runs" / "engines"
PARTS = [CLI.parent / "deep" / "options.py", CLI.parent / "sac" / "config.py"]
OPTIONS = [*CLI.glob("[a-z]*.py"), *ENGINES.glob("*_options.py"), *PARTS]


def call(capsys, *arguments: object) -> tuple[int, str, str]:
    try:
        code = main([str(a) for a in arguments])
    except SystemExit as stop:  # the option parser's own exit
        code = int(stop.code or 0)
    out = capsys.readouterr()
    return code, out.out, out.err


def test_help_names_every_command(capsys) -> None:
    code, out, _ = call(capsys)
    assert code == 0
    assert all(name in out for name in COMMANDS)
    assert call(capsys, "--version")[1].startswith("rollin 0.")


@pytest.mark.parametrize("path", OPTIONS, ids=lambda path: path.stem)
def test_every_option_has_a_help_text(path: Path) -> None:
    """A field of an options class is followed by the docstring that becomes its help."""
    for node in ast.walk(ast.parse(path.read_text())):
        if not (isinstance(node, ast.ClassDef) and node.name.endswith(("Options", "Config"))):
            continue
        for here, after in itertools.pairwise([*node.body, ast.Pass()]):
            if not isinstance(here, ast.AnnAssign):
                continue
            kind = ast.unparse(here.annotation)
            if not kind.endswith(
                ("Config", "RollinOptions", "PlaceOptions", "AgentOptions")
            ) and not kind.startswith("ClassVar"):
                documented = isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant)
                assert documented, f"{node.name}.{ast.unparse(here.target)}"


def test_train_writes_a_result_and_says_where(tmp_path, capsys) -> None:
    out = tmp_path / "run"
    arguments = ("train", "four-rooms", "--reward", "hard", "--alpha", 0.001, "--beta", 0.75,
                 "--steps", 60, "--batch", 100, "--seed", 0, "--out", out)  # fmt: skip
    code, text, _ = call(capsys, *arguments)
    assert code == 0
    assert str(out / "result.json") in text
    assert read_json(out / "result.json")["step"] == 60
    assert read_json(out / "config.json")["command"].startswith("rollin train four-rooms")
    assert "already finished" in call(capsys, *arguments)[1]
    assert "already finished" in call(capsys, "resume", out)[1]
    code, text, _ = call(capsys, "list", tmp_path)
    assert code == 0
    assert "finished" in text
    assert "60/60" in text


def test_whole_numbers_are_taken_in_other_ways_of_writing(tmp_path, capsys) -> None:
    few = ("train", "four-rooms", "--steps", "2e1", "--batch=1_0", "--log-every", "2.0e+1")
    assert call(capsys, *few, "--out", tmp_path)[0] == 0
    config = read_json(tmp_path / "config.json")["config"]
    assert (config["steps"], config["batch"], config["log_every"]) == (20, 10, 20)


@pytest.mark.parametrize(
    "command",
    [*([name] for name in COMMANDS), ["train", "point-umaze"], ["train", "Hopper-v5"]],
    ids=" ".join,
)
def test_every_command_has_help_in_plain_words(command: list[str], capsys) -> None:
    code, text, _ = call(capsys, *command, "--help")
    assert code == 0
    assert text.startswith(f"usage: rollin {command[0]} ")
    assert not re.search(r"\bSTR\b|\{None\}|None\b|config\.|config options", text)
    older = "batch|hidden|warmup|cells" + "|against" * (command[0] != "compare")
    assert not re.search(rf"if not given|by default\b|--({older}) ", text)
    assert "Show this help and exit." in text or command == ["train"]
    assert max(map(len, text.splitlines())) <= 100
    if command[0] in ("train", "sweep", "compare", "theory"):
        assert text.startswith(f"usage: rollin {command[0]} TASK [options]\n")


def test_conventional_names_and_those_before_are_the_same_options() -> None:
    new = "--batch-size 8 --hidden-sizes 9 9 --learning-starts 10 --buffer-size 11 --as-printed"
    old = "--batch=8 --hidden 9 9 --warmup 10 --capacity=11 --literal"
    new += " --geometric-p 1/8 --average-over 1_2 --log-every 2e1"
    old += " --p 0.125 --last 12 --log_every 20"
    runs = [parse_run(["hopper", *text.split()])[0] for text in (new, old)]
    assert runs[0] == runs[1]
    assert (runs[0].config.sac.hidden, runs[0].config.algorithm.p) == ((9, 9), 0.125)


def test_options_that_are_given_precede_what_a_short_form_stands_for() -> None:
    for words in (["--adaptive", "--better", "0.5"], ["--better=1/2", "--adaptive"]):
        config = parse_run(["point-umaze", *words])[0].config
        assert (config.rule, config.stride, config.algorithm.better) == ("early-gap", "bold", 0.5)


def test_help_without_a_task_shows_the_families_of_tasks(capsys) -> None:
    code, text, _ = call(capsys, "train", "--help")
    assert code == 0
    assert len(text.splitlines()) < 80
    for family in ("Tabular policy gradients:", "Plain SAC:", "ROLLIN:"):
        assert f"\n{family}\n" in text
    assert "--adaptive" in text
    assert "--phase1-steps" not in text
    assert "rollin train hopper --help" in text
    # every task that the error about an unknown one lists
    code, _, error = call(capsys, "train", "nothing")
    assert code == 2
    listed = re.findall(r"\b(?:four-rooms|[a-z]+(?:-[a-z]+)+|hopper|walker|humanoid|ant)\b", error)
    assert {"random-mdp", "dead-end", "ant"} < set(listed)
    assert [task for task in listed if task not in text] == []


def test_pictures_name_a_context_by_index_and_value() -> None:
    trained = cast(Any, SimpleNamespace(contexts=[[0.1], [8.0, 2.0]]))
    assert [panel_title(trained, k) for k in (0, 1)] == ["k = 0, ω = 0.1", "k = 1, ω = 8, 2"]


def test_an_unwritable_directory_is_named(tmp_path, capsys) -> None:
    (tmp_path / "file").write_text("in the way")
    code, _, err = call(capsys, "train", "four-rooms", "--steps", 1, "--out", tmp_path / "file/x")
    assert code == 2
    assert "could not be made" in err
    assert (tmp_path / "file").read_text() == "in the way"


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs /dev/full")
def test_a_full_disk_ends_with_2(tmp_path, capsys, monkeypatch) -> None:
    from rollin.runs import metrics

    monkeypatch.setattr(metrics.MetricsWriter, "flush", _flush_to_full_disk)
    out = tmp_path / "run"
    code, _, err = call(capsys, "train", "four-rooms", "--steps", 5, "--batch", 10, "--out", out)
    assert code == 2
    assert "no space left on device" in err.lower()
    assert read_json(out / "status.json")["state"] == "failed"
    assert not (out / "result.json").exists()


def _flush_to_full_disk(self) -> None:
    with open("/dev/full", "w") as file:
        file.write("x" * 100_000)


def test_theory_prints_its_tables_and_writes_json(tmp_path, capsys) -> None:
    out = tmp_path / "theory.json"
    code, text, _ = call(
        capsys, "theory", "four-rooms", "--reward", "easy", "--alpha", 0.01,
        "--smooth-rho", 0.01, "--json", out,
    )  # fmt: skip
    assert code == 0
    for word in ("Assumptions", "ε_0", "C_δ⁰", "T_1", "B_2", "Mismatch ratio", "Lemmas", "worse"):
        assert word in text
    data = json.loads(out.read_text())
    assert len(data["bounds"]) == 80
    rolled, plain = (data[f"constants_{law}"][16]["mismatch"]["log"] for law in ("mu", "rho"))
    assert rolled > plain
    assert data["constants_rho"][16]["T1"].keys() == {"loglog"}
    assert "μ_k is recursive" in text
    assert "roll_in_discount" in data
    assert data["mu"] == "recursive"
    assert data["run"] is None
    assert data["step_size"]["binding"] == "log T_1/(T_1 L)"
    assert data["step_size"]["limit"] == pytest.approx(1.026e-7, rel=1e-3)
    assert [c["verdict"] for c in data["totals"]["contexts"]] == ["no"] * 17
    assert data["totals"]["samples_mu"]["log"] > data["totals"]["samples_rho"]["log"]
    assert {row["quantity"] for row in data["scaling"]} >= {"T_1", "T_2", "B_2", "K T_2"}
    assert len(data["predictor"]["rolled"]) == 17
    assert data["smallest_probability"][16]["tracked"] is None


def test_theory_on_an_mdp_of_ones_own(tmp_path, capsys) -> None:
    random_mdp(0).save(tmp_path / "mine.npz")
    code, text, _ = call(capsys, "theory", tmp_path / "mine.npz", "--alpha", 0.5)
    assert code == 0
    assert "S = 4, A = 3, K = 2" in text


def test_theory_of_a_run_shows_what_it_recorded(tmp_path, capsys) -> None:
    random_mdp(0).smooth_rho(0.5).save(tmp_path / "mine.npz")
    out, told = tmp_path / "run", tmp_path / "theory.json"
    call(
        capsys, "train", tmp_path / "mine.npz", "--algorithm", "two-phase-spg", "--alpha", 0.5,
        "--steps", 40, "--batch", 50, "--threshold", 0.2, "--phase1-steps", 7, "--mu", "recursive",
        "--learning-rate", 0.3, "--out", out,
    )  # fmt: skip
    result = json.loads((out / "result.json").read_text())
    assert result["k"] >= 1
    code, printed, _ = call(capsys, "theory", out, "--json", told)
    text = " ".join(printed.split())  # where lines break depends on the directory's name
    assert code == 0
    assert "α = 0.5" in text
    assert "η = 0.3 does not meet the condition" in text
    assert "R with the run's own policies" in text
    data = json.loads(told.read_text())
    assert [s["tracked"] for s in data["smallest_probability"][: result["k"] + 1]] == (
        result["log_min_pi"]
    )
    assert data["step_size"]["T1"] == 7
    assert data["run"]["learning_rate"] == 0.3
    assert len(data["run"]["predictor"]) == result["k"] + 1
    code, _, err = call(capsys, "theory", out, "--alpha", 0.1)
    assert (code, "was run with alpha = 0.5, got --alpha 0.1" in err) == (2, True)
    random_mdp(1).save(tmp_path / "mine.npz")
    assert "no longer the task" in call(capsys, "theory", out)[2]
    (out / "result.json").unlink()
    assert "is not finished: rollin resume" in call(capsys, "theory", out)[2]
    deep = RunSpec("Hopper-v5", SACRunConfig())
    RunDirectory.claim(tmp_path / "deep", deep, None, "")
    assert "the theory is about finite MDPs" in call(capsys, "theory", tmp_path / "deep")[2]


def test_a_step_size_beyond_the_theorem_is_said_and_taken(tmp_path, capsys) -> None:
    code, _, err = call(
        capsys, "train", "four-rooms", "--algorithm", "two-phase-spg", "--steps", 2, "--batch", 10,
        "--learning-rate", 0.1, "--out", tmp_path / "run",
    )  # fmt: skip
    assert code == 0
    assert "--learning-rate 0.1 is above what the theorem allows in phase 1, η ≤ log T_1" in err


@pytest.mark.parametrize("width", [80, 118])
def test_theory_fits_its_width(tmp_path, capsys, monkeypatch, width) -> None:
    from rollin.cli import theory

    random_mdp(0).save(tmp_path / "mine.npz")
    monkeypatch.setattr(theory, "WIDTH", width)
    code, text, _ = call(capsys, "theory", tmp_path / "mine.npz", "--alpha", 0.5)
    assert code == 0
    assert max(map(len, text.splitlines())) <= width
    assert "…" not in text.replace("ω_0 …", "")  # nothing is cut off


def test_reproduce_runs_all_cells_and_reports(tmp_path, capsys, monkeypatch) -> None:
    monkeypatch.setattr("rollin.sweeps.local.LocalExecutor", forking)
    out = tmp_path / "sweep"
    code, text, _ = call(
        capsys, "reproduce", "four-rooms", "--seeds", 1, "--steps", 10, "--jobs", 2, "--out", out
    )
    assert code == 0
    assert "κ at 10 steps: published over measured" in text
    assert len(list(out.rglob("result.json"))) == 28
    page = (out / "report.html").read_text()
    assert "0.562 ± 0.000" in page
    assert "Training shortened to 0.02 % of the paper" in page
    (table,) = out.glob("table-four-rooms-*.csv")
    assert table.read_text().count("\n") == 1 + 2 * 28


def test_listing_does_not_import_the_compiler(tmp_path) -> None:
    code = (
        "import sys; from rollin.cli import main; "
        "print(main(['list', sys.argv[1]]), 'numba' in sys.modules)"
    )
    command = [sys.executable, "-c", code, str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["2", "False"]
    assert "No runs below" in done.stderr


def test_theory_without_smoothing_says_what_is_missing_and_writes_json(tmp_path, capsys) -> None:
    out = tmp_path / "theory.json"
    code, text, _ = call(capsys, "theory", "four-rooms", "--json", out)
    assert code == 0
    assert "Add --smooth-rho" in text
    assert "Without ε_0 there is no phase 2" in text
    assert "nan" not in text
    data = json.loads(out.read_text())
    assert data["constants_rho"][16]["B2"] == {"log": None}
    assert data["constants_rho"][16]["mismatch"] == {"log": "inf"}
    assert data["totals"]["contexts"][1]["enters"] is None
    assert data["totals"]["steps"] == {"log": None}


def test_a_path_with_brackets_is_printed_as_it_is(tmp_path, capsys) -> None:
    out = tmp_path / "a[b]c"
    arguments = ("train", "four-rooms", "--steps", 3, "--batch", 10, "--out", out)
    assert "a[b]c/result.json" in call(capsys, *arguments)[1].replace("\n", "")
    assert "a[b]c is already finished" in call(capsys, *arguments)[1].replace("\n", "")
    (out / "status.json").write_text('{"state": "failed", "error": "[/x] oops"}')
    (out / "result.json").unlink()
    assert "failed: [/x] oops" in call(capsys, "list", tmp_path)[1]
    (out / "status.json").write_text(
        '{"state": "running", "pid": "x", "step": "y", "steps": 1, "k": 0, "K": 1, "kappa": 0, '
        '"success": 0}'
    )
    assert "broken: " in call(capsys, "list", tmp_path)[1]


def test_ctrl_c_ends_with_one_line_and_130(capsys, monkeypatch) -> None:
    from rollin.cli import theory

    def interrupt(*arguments: object, **options: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(theory, "analyse", interrupt)
    code, _, err = call(capsys, "theory", "four-rooms")
    assert code == 130
    assert err == "rollin: interrupted.\n"


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ("def make(x): return x", "broken:make failed: TypeError"),
        ("def make(): return 1 / 0", "broken:make failed: ZeroDivisionError"),
        ("def make(:", "broken:make cannot be loaded"),
    ],
)
def test_a_broken_factory_is_one_sentence(source, words, tmp_path, capsys, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delitem(sys.modules, "broken", raising=False)
    (tmp_path / "broken.py").write_text(source)
    code, _, err = call(capsys, "theory", "broken:make")
    monkeypatch.delitem(sys.modules, "broken", raising=False)
    assert code == 2
    assert words in err
