"""A sample of all changes of files and options: one sentence, and never a traceback.

What is tried is always the same; ROLLIN_ALL_MUTATIONS=1 tries all, `make fuzz` at random for long.
"""

import random
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.killing import needs_signals
from tests.runs.mutations import (
    ALL,
    JSON_FILES,
    SPECS,
    Case,
    array_cases,
    attempt,
    call,
    csv_cases,
    forged,
    held_cases,
    json_cases,
    make_runs,
    node_cases,
    not_finite,
    policy_cases,
    resealed_csv_cases,
)
from tests.runs.other_mutations import (
    attempt_option,
    attempt_other,
    make_others,
    option_cases,
    other_cases,
)
from tests.undrawn import drawn_once

pytestmark = [pytest.mark.xdist_group("mutations"), needs_signals]  # Windows has no FIFO

SAMPLE = 8  # changes of each file of each run, if not all
OPTIONS = 25  # bad values of options of each engine, if not all


@pytest.fixture(scope="module")
def runs(tmp_path_factory) -> Iterator[Path]:
    """A finished and an unfinished run of each engine."""
    place = tmp_path_factory.mktemp("runs")
    make_runs(place)
    yield place
    shutil.rmtree(place)


@pytest.fixture(autouse=True)
def curves_drawn_once() -> Iterator[None]:
    """Most changes leave most curves as they were, and drawing them takes most of the time."""
    with drawn_once():
        yield


def sampled(cases: list[Case], seed: str) -> list[Case]:
    """The changes to try."""
    return cases if ALL else random.Random(seed).sample(cases, min(SAMPLE, len(cases)))


def check(runs: Path, engine: str, state: str, cases: list[Case], scratch: Path) -> None:
    wrong = [note for case in cases for note in attempt(runs, engine, state, case, scratch)]
    assert not wrong, f"{len(wrong)} of {len(cases)}:\n" + "\n".join(wrong[:10])


@pytest.mark.parametrize(
    ("engine", "state", "file"),
    [(e, s, f) for e in SPECS for s, files in JSON_FILES.items() for f in files],
)
def test_every_value_of_a_json_file(runs, tmp_path, engine, state, file) -> None:
    cases = json_cases(runs / engine / state, state, file)
    assert len(cases) > 100
    check(runs, engine, state, sampled(cases, f"{engine} {state} {file}"), tmp_path)


@pytest.mark.parametrize("state", ["finished", "unfinished"])
@pytest.mark.parametrize("engine", SPECS)
def test_every_csv(runs, tmp_path, engine, state) -> None:
    check(runs, engine, state, csv_cases(engine, state), tmp_path)


@pytest.mark.parametrize("engine", SPECS)
def test_a_csv_whose_checksum_fits_is_still_no_traceback(runs, tmp_path, engine) -> None:
    cases = resealed_csv_cases(engine)
    check(runs, engine, "resealed", sampled(cases, engine), tmp_path)


@pytest.mark.parametrize("engine", SPECS)
def test_other_things_in_the_place_of_files(runs, tmp_path, engine) -> None:
    for state in ("finished", "unfinished"):
        cases = node_cases(engine, state)
        check(runs, engine, state, sampled(cases, f"{engine} {state}"), tmp_path)


@pytest.mark.parametrize("engine", SPECS)
def test_a_link_to_a_directory_elsewhere_changes_nothing_there(runs, tmp_path, engine) -> None:
    check(runs, engine, "unfinished", held_cases(engine), tmp_path)


def test_a_deep_file_in_one_run_takes_down_no_listing(runs, tmp_path) -> None:
    for name in ("a", "b"):
        shutil.copytree(runs / "tabular" / "finished", tmp_path / name)
    for file in ("config.json", "result.json", "status.json"):
        (tmp_path / "a" / file).write_text('{"x": ' + "[" * 200_000)
    code, out, err = call("list", tmp_path, tmp_path)
    assert (code, err) == (0, "")
    assert "finished" in out
    assert "broken: " in out


@pytest.mark.parametrize("resealed", [False, True], ids=["plain", "resealed"])
@pytest.mark.parametrize("engine", SPECS)
def test_every_array_of_a_checkpoint(runs, tmp_path, engine, resealed) -> None:
    cases = array_cases(runs / engine / "unfinished", resealed=resealed)
    assert len(cases) > 30
    check(runs, engine, "unfinished", sampled(cases, f"{engine} {resealed}"), tmp_path)


def test_nan_in_the_law_of_first_states_crashes_nothing(runs, tmp_path) -> None:
    case = Case("mu", forged("start/mu", not_finite, resealed=True), frozenset({"resume"}))
    check(runs, "tabular", "unfinished", [case], tmp_path)


def test_every_tensor_of_a_policy(runs, tmp_path) -> None:
    cases = policy_cases(runs / "rollin" / "finished")
    check(runs, "rollin", "finished", sampled(cases, "policy"), tmp_path)


@pytest.mark.parametrize("engine", SPECS)
def test_whole_runs_are_taken_and_go_on_to_the_same_end(runs, tmp_path, engine) -> None:
    looks = {"finished": ("list", "report", "plot", "evaluate", "resume"), "unfinished": ("plot",)}
    for state, tried in looks.items():
        check(runs, engine, state, [Case("nothing", lambda run_: None, commands=tried)], tmp_path)
    for state in ("unfinished",):
        shutil.copytree(runs / engine / state, tmp_path / state)
        code, _, err = call("resume", tmp_path / state, tmp_path)
        assert (code, err) == (0, "")
        for name in ("metrics.csv", "episodes.csv", "policy.safetensors"):
            if (runs / engine / "finished" / name).exists():
                expected = (runs / engine / "finished" / name).read_bytes()
                assert (tmp_path / state / name).read_bytes() == expected


def test_a_temporary_file_that_a_kill_left_is_removed_at_the_next_look(runs, tmp_path) -> None:
    shutil.copytree(runs / "tabular" / "unfinished", tmp_path / "a")
    left = tmp_path / "a" / ".rollin-status.json.x1"
    left.write_text("{")
    assert call("list", tmp_path, tmp_path)[0] == 0
    assert not left.exists()


@pytest.fixture(scope="module")
def others(runs, tmp_path_factory) -> Path:
    place = tmp_path_factory.mktemp("others")
    make_others(place, runs)
    return place


@pytest.mark.parametrize("folder", ["records", "sweep", "mdp", "study"])
def test_every_file_that_is_no_run(others, tmp_path, folder) -> None:
    cases = sampled(other_cases(others)[folder], folder)
    wrong = [note for case in cases for note in attempt_other(others, folder, case, tmp_path)]
    assert not wrong, f"{len(wrong)} of {len(cases)}:\n" + "\n".join(wrong[:10])


@pytest.mark.parametrize("engine", SPECS)
def test_every_option(tmp_path, engine) -> None:
    cases = [words for name, words in option_cases() if name == engine]
    chosen = cases if ALL else random.Random(engine).sample(cases, OPTIONS)
    wrong = [note for words in chosen for note in attempt_option(words, tmp_path)]
    assert not wrong, f"{len(wrong)} of {len(chosen)}:\n" + "\n".join(wrong[:10])
