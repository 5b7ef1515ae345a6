"""Copies of run directories: only what is new is sent, and what arrives can be gone on with."""

import shutil
from pathlib import Path

import pytest

from rollin.runs.directory import LOCK
from rollin.runs.engines import run
from rollin.sweeps import cluster_worker
from rollin.sweeps.cluster_worker import Piece, Sender, receive
from tests.killing import same_run, stop_at
from tests.runs.test_rollin_runs import line


def contents(directory: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(directory)): path.read_bytes()
        for path in directory.rglob("*")
        if path.is_file() and path.name != LOCK
    }


@pytest.fixture
def pair(tmp_path) -> tuple[Path, Path]:
    here, there = tmp_path / "here", tmp_path / "there"
    (here / "checkpoint").mkdir(parents=True)
    (here / "metrics.csv").write_text("step\n1\n")
    (here / "replay.f32").write_bytes(bytes(300_000))
    (here / "checkpoint" / "manifest.json").write_text("{}")
    (here / LOCK).write_text("1")
    return here, there


def test_a_copy_is_the_same_but_for_the_lock(pair) -> None:
    here, there = pair
    receive(there, Sender(here).pieces())
    assert contents(there) == contents(here)
    assert not (there / LOCK).exists()


def test_only_what_is_new_is_sent(pair) -> None:
    here, there = pair
    sender = Sender(here)
    receive(there, sender.pieces())
    assert list(sender.pieces()) == []
    with (here / "replay.f32").open("ab") as file:
        file.write(b"abcd")
    (piece,) = sender.pieces()
    assert piece.data is not None
    assert len(piece.data) == cluster_worker.OVERLAP + 4
    receive(there, [piece])
    assert contents(there) == contents(here)
    shutil.rmtree(here / "checkpoint")
    (gone,) = sender.pieces()
    assert gone == Piece("checkpoint/manifest.json")
    receive(there, [gone])
    assert contents(there) == contents(here)


def test_the_last_row_may_be_written_again(pair) -> None:
    """A replay corrects the flag of its last row when an episode was broken off."""
    here, there = pair
    sender = Sender(here)
    receive(there, sender.pieces())
    with (here / "replay.f32").open("r+b") as file:
        file.seek(300_000 - 3000)
        file.write(b"x" * 6000)
    receive(there, sender.pieces())
    assert contents(there) == contents(here)


@pytest.mark.parametrize("size", [10, 250_000, 300_000, 400_000])
def test_rows_that_were_cut_back_and_written_otherwise_are_sent_whole(pair, size) -> None:
    here, there = pair
    receive(there, Sender(here).pieces())
    sender = Sender(here, same=True)  # as on a machine that goes on with a run
    (here / "replay.f32").write_bytes(b"y" * size)
    receive(there, sender.pieces())
    assert contents(there) == contents(here)


def test_files_larger_than_a_piece_arrive_whole(pair, monkeypatch) -> None:
    monkeypatch.setattr(cluster_worker, "CHUNK", 1000)
    here, there = pair
    (here / "checkpoint" / "state-7.safetensors").write_bytes(bytes(range(256)) * 40)
    (here / "empty.csv").write_text("")
    receive(there, Sender(here).pieces())
    assert contents(there) == contents(here)
    (here / "checkpoint" / "state-7.safetensors").write_bytes(b"short")
    receive(there, Sender(here).pieces())
    assert contents(there) == contents(here)


def test_a_copy_that_was_cut_off_at_any_piece_can_be_gone_on_with(tmp_path, monkeypatch) -> None:
    """The copy of a run at one checkpoint is brought to the next, and the transfer breaks off."""
    monkeypatch.setattr("rollin.runs.driver.STATUS_SECONDS", 0.0)
    whole = line(steps=360)
    first, second = tmp_path / "first", tmp_path / "second"
    stop_at(whole, first, 160)
    sender = Sender(first)
    receive(second, sender.pieces())
    stop_at(whole, first, 310)
    pieces = list(sender.pieces())
    names = [Path(piece.name).name for piece in pieces if piece.data is not None]
    assert names[-1] == "manifest.json"
    run(whole, first)
    for count in range(len(pieces) + 1):
        copy = tmp_path / f"copy-{count}"
        shutil.copytree(second, copy)
        receive(copy, pieces[:count])
        assert run(whole, copy)
        same_run(first, copy)


def test_a_first_copy_that_was_cut_off_can_be_gone_on_with(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr("rollin.runs.driver.STATUS_SECONDS", 0.0)
    whole = line(steps=260)
    first = tmp_path / "first"
    stop_at(whole, first, 160)
    pieces = list(Sender(first).pieces())
    assert pieces[0].name == "config.json"
    run(whole, first)
    for count in range(len(pieces) + 1):
        copy = tmp_path / f"copy-{count}"
        receive(copy, pieces[:count])
        assert run(whole, copy)
        same_run(first, copy)
