"""Files that are too large are refused before they are read, and large ones are read in parts."""

import os
import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from unittest import mock

import numpy as np
import pytest

from rollin import untrusted
from rollin.checks import at_least
from rollin.cli import main
from rollin.errors import RollinError
from rollin.policy import Policy
from rollin.runs import driver
from rollin.runs.checkpoint import Checkpoint, read_checkpoint, write_checkpoint
from rollin.runs.directory import RunDirectory
from rollin.runs.engines.tabular import TabularConfig
from rollin.runs.files import RowsCounted, file_sha256, read_json, sha256, write_json
from rollin.runs.metrics import counted_part, read_columns, read_metrics
from rollin.runs.records import read_records
from rollin.runs.spec import configured
from rollin.sac.replay import Replay, RowLayout
from rollin.sweeps.study import study_from
from rollin.tabular import mdp
from rollin.tabular.families import four_rooms
from rollin.tabular.mdp import ContextualMDP
from tests.killing import stop_at
from tests.runs.mutations import SPECS

SPARSE = 7 << 40  # bytes of a file that takes none on the disk


@contextmanager
def little_memory(most: int = 4 << 20) -> Iterator[None]:
    """Inside, Python and NumPy take no more bytes than this at a time."""
    tracemalloc.start()
    try:
        yield
        assert tracemalloc.get_traced_memory()[1] < most
    finally:
        tracemalloc.stop()


def sparse(path: Path, size: int = SPARSE) -> Path:
    """A file of that size, which begins as it did if it was there."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.touch()
    os.truncate(path, size)
    return path


READERS: dict[str, Callable[[Path], object]] = {
    "config.json": read_json,
    "status.json": lambda path: RunDirectory(path.parent).status(),
    "metrics.csv": read_metrics,
    "episodes.csv": lambda path: counted_part(path, RowsCounted(3)),
    "runs.csv": lambda path: read_records(path.parent),
    "policy.safetensors": lambda path: Policy.load(path.parent),
    "mdp.npz": ContextualMDP.load,
    "study.toml": study_from,
}


@pytest.mark.parametrize("name", READERS)
def test_a_file_that_is_too_large_is_refused_unread(name, tmp_path) -> None:
    path = sparse(tmp_path / name)
    with little_memory(), pytest.raises(RollinError) as refused:
        READERS[name](path)
    assert f"{name} has {SPARSE:,} bytes, and rollin reads at most " in str(refused.value)


def test_arrays_of_a_checkpoint_and_a_replay_that_are_too_large_are_refused(tmp_path) -> None:
    write_checkpoint(tmp_path / "c", Checkpoint(3, "h", {"a": np.ones(2)}, {"k": 1}))
    sparse(tmp_path / "c" / "state-3.safetensors")
    with little_memory(), pytest.raises(RollinError, match="rollin reads at most 2,147,483,648"):
        read_checkpoint(tmp_path / "c", "h")
    found = read_checkpoint(tmp_path / "c", "h", arrays=False)
    assert found is not None
    assert found.values == {"k": 1}
    assert not found.arrays
    replay = Replay(RowLayout(1, 1), 4, tmp_path / "replay.f32")
    replay.append([0.0], [0.0], 0.0, [0.0], terminated=False, truncated=False)
    state = replay.get_state()
    sparse(tmp_path / "replay.f32")
    with pytest.raises(RollinError, match="rollin reads at most 68,719,476,736"):
        replay.set_state(state)


def test_a_file_is_summed_part_by_part(tmp_path) -> None:
    data = bytes(8 << 20)
    (tmp_path / "file").write_bytes(data)
    with little_memory():
        assert file_sha256(tmp_path / "file", len(data)) == sha256(data)
    with pytest.raises(RollinError, match="rollin reads at most"):
        file_sha256(tmp_path / "file", len(data) - 1)


def test_what_grows_while_it_is_read_is_not_read_further(tmp_path, monkeypatch) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"12345")
    check = untrusted.check_size

    def grown(*about) -> None:
        check(*about)
        path.write_bytes(b"12345678")

    monkeypatch.setattr(untrusted, "check_size", grown)
    assert untrusted.read_bounded(path, 6) == b"123456"


def test_tables_take_no_more_memory_than_their_numbers(tmp_path) -> None:
    path = tmp_path / "metrics.csv"
    path.write_bytes(b"step," + b",".join(b"%d" % i for i in range(99)) + b"\n"
                     + b"".join(b"%d," % i + b",".join([b"0.12345"] * 99) + b"\n"
                                for i in range(200)))  # fmt: skip
    with little_memory(5 * 8 * 20_000):  # as text it would be ten times as much
        columns = read_columns(path, {})
    assert len(columns) == 100
    assert columns["7"].tolist() == [0.12345] * 200
    path.write_bytes(b"\n" * (1 << 16))
    with little_memory(1 << 18), pytest.raises(RollinError, match="not match its checksum"):
        counted_part(path, RowsCounted((1 << 16) - 1, "other"))
    path.write_bytes(b"step\n" + b"1" * (1 << 20) + b"\n")
    with pytest.raises(RollinError, match="a line has more than 1,048,576 bytes"):
        read_metrics(path)


def test_an_mdp_that_unpacks_to_too_much_is_refused_packed(tmp_path, monkeypatch) -> None:
    many = {"transitions": np.zeros((1000, 1000), np.int64)}
    np.savez_compressed(tmp_path / "m.npz", allow_pickle=False, **many)
    monkeypatch.setattr(mdp, "LARGEST_POLICY", 100_000)
    assert (tmp_path / "m.npz").stat().st_size < 20_000
    with little_memory(1 << 20), pytest.raises(RollinError, match=r"m\.npz, unpacked, has 8,000,"):
        ContextualMDP.load(tmp_path / "m.npz")
    monkeypatch.undo()
    four_rooms("easy").save(tmp_path / "m.npz")
    assert ContextualMDP.load(tmp_path / "m.npz").K == 16


@pytest.fixture(scope="module")
def unfinished(tmp_path_factory) -> Path:
    place = tmp_path_factory.mktemp("runs") / "run"
    with mock.patch.object(driver, "STATUS_SECONDS", -1.0):
        stop_at(SPECS["tabular"], place, 6)
    return place


def test_one_file_that_is_too_large_leaves_the_other_runs_in_the_list(tmp_path, capsys) -> None:
    for name in "ab":
        RunDirectory.claim(tmp_path / name, SPECS["tabular"], None, "")
    sparse(tmp_path / "a" / "status.json")
    assert main(["list", str(tmp_path)]) == 0
    told = capsys.readouterr().out
    assert "rollin reads at most 1,048,576" in told
    assert "waiting" in told


def test_a_curve_is_drawn_without_a_look_at_the_arrays(unfinished, tmp_path) -> None:
    state = next((unfinished / "checkpoint").glob("state-*"))
    size = state.stat().st_size
    sparse(state)
    try:
        out = tmp_path / "curves.png"
        assert main(["plot", str(unfinished), "--out", str(out)]) == 0
        assert main(["resume", str(unfinished)]) == 2
    finally:
        os.truncate(state, size)


HEAD = 'task = "point-umaze"\n'
BETAS = [number / 1000 for number in range(100)]
STUDIES = {
    "conditions": (f"grid = {{beta = {BETAS}, gamma = {BETAS}}}", "at most 5,000 conditions"),
    "seeds": ("seeds = 1000000000\ngrid = {beta = [0, 0.1]}", "at most 100,000 runs, got 2 "),
    "blocks": ("[[block]]\n" * 5001, "at most 5,000 conditions, got 5,001"),
    "name": (f'name = "{"x" * 5000}"', "of length <= 4096, at name"),
    "readings": (f"readings = {['kappa'] * 300}", "of length <= 256, at readings"),
    "reading": (f'readings = ["kappa@{"9" * 4000}"]', "A reading must be a quantity"),
    "digits": (f"seeds = {'9' * 5000}", "a whole number of more than 40 digits"),
    "fewer digits": (f"seeds = {'9' * 400}", "a whole number of more than 40 digits"),
    "deep": (f"options = {{path = {'[' * 900}{']' * 900}}}", "nested more than 64 levels deep"),
    "less deep": (f"options = {{path = {'[' * 70}{']' * 70}}}", "nested more than 64 levels deep"),
    "dotted": (f"options.{'a.' * 100_000}a = 1", "nested more than 64 levels deep"),
    "nan": ("options = {beta = nan}", "beta must be a finite number, got nan"),
}  # fmt: skip


@pytest.mark.parametrize("name", STUDIES)
def test_a_study_beyond_bounds_is_refused_before_it_is_made(name, tmp_path) -> None:
    text, words = STUDIES[name]
    (tmp_path / "s.toml").write_text(HEAD + text)
    with pytest.raises(RollinError) as refused:
        study_from(tmp_path / "s.toml")
    assert words in str(refused.value)
    assert len(str(refused.value)) < 5000


DEEP = "[" * 2000 + "]" * 2000
DIGITS = "[" + "9" * 5000 + "]"


@pytest.mark.parametrize("text", [DEEP, DIGITS, "[" * 70 + "]" * 70, "[[0, 0], [1e999, 0]]"])
@pytest.mark.parametrize("option", ["path", "contexts", "env_options"])
def test_json_in_an_option_is_bounded(option, text, tmp_path, capsys) -> None:
    given = f"R={text}" if option == "env_options" else text
    flag = "--" + option.replace("_", "-")
    words = [flag, given] if option == "env_options" else [flag, given, "--threshold", "1"]
    assert main(["train", "point-umaze", *words, "--out", str(tmp_path / "run")]) == 2
    told = capsys.readouterr().err
    assert told.startswith("rollin: ")
    assert told.count("\n") == 1
    assert "1e999" in text or "levels deep" in told or "40 digits" in told


def test_a_whole_number_that_no_float_holds_is_refused() -> None:
    with pytest.raises(RollinError, match="steps must be a whole number, got 1000"):
        configured(TabularConfig(), {"steps": 10**400})
    with pytest.raises(RollinError, match="must be at most"):
        at_least(1, "n", 10**400)


def test_a_long_status_is_listed_in_few_words(tmp_path, capsys) -> None:
    run = RunDirectory.claim(tmp_path / "a", SPECS["tabular"], None, "")
    run.write_status("failed", error="x" * 100_000)
    assert (tmp_path / "a" / "status.json").stat().st_size < 5000
    told = {**read_json(tmp_path / "a" / "status.json"), "error": "x" * 1_000_000}
    write_json(tmp_path / "a" / "status.json", told)
    assert main(["list", str(tmp_path)]) == 0
    assert len(capsys.readouterr().out) < 10_000
    many = {**told, "error": "", "shown": {str(number): "" for number in range(100)}}
    write_json(tmp_path / "a" / "status.json", many)
    assert main(["list", str(tmp_path)]) == 0
    assert "of length <= 64, at shown" in " ".join(capsys.readouterr().out.split())


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["point-umaze", "--eval-episodes", "1000000000"], "--eval-episodes must be at most 1,000"),
        (["point-umaze", "--hidden", "10000000"], "batch times the sum of hidden must be at most"),
        (["point-umaze", "--hidden", "5000", "5000"], "and at most 33,554,432 can be trained"),
        (["point-umaze", "--batch", "10000000", "--warmup", "10000000"], "choose a smaller batch"),
        (["four-rooms", "--horizon", "1000000"], "--batch-size times --horizon must be at most"),
        (["four-rooms", "--batch", "100000000"], "--batch-size must be at most 10,000,000"),
        (["combination-lock", "--n", "1000000000"], "choose a smaller n"),
        (["corridor", "--n", "10000"], "choose a smaller n"),
        (["square-grid", "--n", "10000"], "choose a smaller n"),
        (["random-mdp", "--n", "100000"], "choose a smaller n"),
        (["combination-lock", "--batch", "100000000"], "--batch-size must be at most 10,000,000"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_what_options_would_allocate_is_bounded(words, sentence, tmp_path, capsys) -> None:
    with little_memory(256 << 20):
        assert main(["train", *words, "--out", str(tmp_path / "run")]) == 2
    assert sentence in capsys.readouterr().err
