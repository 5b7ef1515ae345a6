"""`rollin compare`: a curriculum and its control side by side, resumed, with a verdict."""

import csv
from html import unescape
from pathlib import Path

import pytest

from rollin.cli import main
from rollin.cli.compare import CONTROLS, CompareOptions, make_comparison
from rollin.runs.files import read_json
from rollin.runs.spec import flat
from tests.undrawn import undrawn

SMALL = [
    "--steps", "300", "--learning-starts", "100", "--batch-size", "16", "--hidden-sizes", "8", "8",
    "--log-every", "150", "--eval-episodes", "1",
]  # fmt: skip
LINE = "tests.toys:Line"  # a sparse reward on the way to 1.2
NEAR = "tests.toys:rated_line"  # random actions earn rewards on the final context


def compare(*more: str, task: str = LINE) -> int:
    return main(["compare", task, "--jobs", "1", *more])


def results(out: Path) -> dict[str, int]:
    """When each run below a directory was finished."""
    found = out.rglob("result.json")
    return {path.parent.relative_to(out).as_posix(): path.stat().st_mtime_ns for path in found}


@pytest.mark.usefixtures("jobs_here")
@undrawn()
def test_both_sides_are_run_and_more_seeds_are_added(tmp_path, capsys) -> None:
    out = tmp_path / "c"
    assert compare("--adaptive", *SMALL, "--seeds", "2", "--out", str(out)) == 0
    text = capsys.readouterr().out
    assert text.count("finished ") == 4
    assert "Note:" not in text
    assert "2 seeds decide nothing: compare at least 5 of each condition. So far: success" in text
    assert f"Report: {(out / 'report.html').resolve()}" in text
    first = results(out)
    assert set(first) == {f"method={m}/seed={s}" for m in ("curriculum", "scratch") for s in (0, 1)}

    assert compare("--adaptive", *SMALL, "--seeds", "5", "--out", str(out)) == 0
    text = capsys.readouterr().out
    assert text.count("finished ") == 6
    assert {place: results(out)[place] for place in first} == first
    (said,) = [line for line in text.splitlines() if "over 5 seeds" in line]
    page = (out / "report.html").read_text(encoding="utf-8")
    assert f'<p class="verdict">{said}</p>' in unescape(page)

    assert compare("--adaptive", *SMALL, "--seeds", "5", "--out", str(out)) == 0
    again = capsys.readouterr().out
    assert said in again
    assert "finished " not in again
    assert main(["report", str(out)]) == 0  # the directory holds what the verdict needs
    assert said in unescape((out / "report.html").read_text(encoding="utf-8"))

    with (out / "runs.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    mean = {
        side: sum(float(r["success_final"]) for r in rows if r["condition"] == f"method={side}") / 5
        for side in ("curriculum", "scratch")
    }
    assert f"{mean['curriculum']:.2f} against {mean['scratch']:.2f} from scratch" in said


@pytest.mark.usefixtures("jobs_here")
@undrawn()
def test_controls_share_the_runs_of_the_curriculum_in_one_directory(
    tmp_path, monkeypatch, capsys
) -> None:
    monkeypatch.chdir(tmp_path)
    some = ["--adaptive", "--beta", "0.2", *SMALL, "--seeds", "1"]
    for against in CONTROLS:
        assert compare(*some, "--against", against) == 0
    assert capsys.readouterr().out.count("finished ") == 1 + len(CONTROLS)
    (place,) = (tmp_path / "runs").iterdir()
    assert set(results(place)) == {f"method={m}/seed=0" for m in ("curriculum", *CONTROLS)}
    assert compare(*some, "--first-seed", "7") == 0
    (other,) = set((tmp_path / "runs").iterdir()) - {place}
    assert set(results(other)) == {f"method={m}/seed=7" for m in ("curriculum", "scratch")}


@pytest.mark.usefixtures("jobs_here")
@undrawn()
def test_rewards_everywhere_are_judged_by_the_return(tmp_path, capsys) -> None:
    assert compare(*SMALL, "--seeds", "1", "--out", str(tmp_path / "c"), task=NEAR) == 0
    assert "So far: median return on the last context" in capsys.readouterr().out
    (entry,) = read_json(tmp_path / "c" / "sweep.json")["studies"]
    assert entry["readings"][0] == ["return_final", None]
    assert entry["kind"] == "comparison"


@pytest.mark.parametrize(
    "given",
    [
        {"adaptive": True},
        {"threshold": 0.5, "delta": "1/24", "better": 0.25, "relabel": True},
        {"teacher": "plr", "beta": 0.2},
        {"teacher": "visited", "relabel": True},
        {"spacing": "even", "rule": "success", "hidden": 32, "method": "baseline"},
    ],
)
def test_a_control_is_the_same_learner_without_what_only_the_curriculum_has(given) -> None:
    ours, control = make_comparison(CompareOptions("point-umaze", first_seed=3), given).conditions
    apart = {
        name: value
        for name, value in flat(control.config).items()
        if value != flat(ours.config)[name]
    }
    assert apart == {"method": "scratch"} | ({"teacher": "walk"} if "teacher" in given else {})
    assert list(ours.seeds(2)) == list(control.seeds(2)) == [3, 4]


def test_uniform_contexts_need_no_rule_and_no_steps() -> None:
    options = CompareOptions("point-umaze", against="uniform")
    ours, control = make_comparison(options, {"adaptive": True, "gamma": 0.98}).conditions
    assert (control.config.teacher, control.config.rule, control.config.stride) == (
        "uniform", None, None,
    )  # fmt: skip
    assert control.config.sac == ours.config.sac
    assert control.config.sac.gamma == 0.98
