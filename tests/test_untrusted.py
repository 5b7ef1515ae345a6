"""Only regular files of sane size are read, wherever a path comes from; text of files is shown."""

import codecs
import csv
import io
import os
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import save

from rollin.cli.console import make_console
from rollin.errors import RollinError, one_line, plainly, visible
from rollin.policy import Policy
from rollin.runs.checkpoint import read_checkpoint, remove_checkpoint
from rollin.runs.files import own_directory, read_json, write_json
from rollin.tabular.families import four_rooms
from rollin.tabular.mdp import ContextualMDP
from rollin.untrusted import check_regular, csv_rows, csv_text, open_regular, read_bounded
from tests.killing import needs_signals

pytestmark = needs_signals  # Windows has neither pipes nor links for everybody


def tensors() -> dict[str, np.ndarray]:
    return {
        "actor.0": np.zeros((3, 2), np.float32),
        "action_low": -np.ones(1, np.float32),
        "action_high": np.ones(1, np.float32),
        "log_std": np.array([-1, 1], np.float32),
    }


@pytest.fixture
def place(tmp_path) -> Path:
    (tmp_path / "file").write_bytes(b"12345")
    (tmp_path / "link").symlink_to(tmp_path / "file")
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "directory").mkdir()
    (tmp_path / "device").symlink_to("/dev/zero")
    return tmp_path


def test_what_is_read_is_a_regular_file(place) -> None:
    assert read_bounded(place / "file") == b"12345"
    assert read_bounded(place / "link", follow=True) == b"12345"
    with pytest.raises(RollinError, match="5 bytes, and rollin reads at most 4 of such a file"):
        read_bounded(place / "file", 4)
    for name in ("link", "loop", "pipe", "directory", "device"):
        with pytest.raises(RollinError, match=r"is a link|is not a regular file"):
            read_bounded(place / name)
        with pytest.raises(RollinError, match=r"is a link|is not a regular file"):
            check_regular(place / name)
        with pytest.raises(RollinError, match=r"is a link|is not a regular file"):
            os.close(open_regular(place / name, os.O_WRONLY | os.O_CREAT))
    for name in ("pipe", "directory", "device", "loop"):
        with pytest.raises(RollinError, match=r"is a link|is not a regular file"):
            read_bounded(place / name, follow=True)
    with pytest.raises(RollinError, match="could not be read"):
        read_bounded(place / "zero\0byte")
    with pytest.raises(RollinError, match="no such file"):
        read_bounded(place / "nothing")


def test_a_policy_is_a_regular_file_of_the_run(place) -> None:
    (place / "p.safetensors").write_bytes(save(tensors()))
    (place / "named").symlink_to(place / "p.safetensors")
    assert Policy.load(place / "named").k == 0  # the user names it
    run = place / "run"
    run.mkdir()
    (run / "policy.safetensors").symlink_to(place / "p.safetensors")
    with pytest.raises(RollinError, match="is a link"):
        Policy.load(run)
    for name in ("pipe", "device"):
        with pytest.raises(RollinError, match="is not a regular file"):
            Policy.load(place / name)
    with pytest.raises(RollinError, match="not a policy of a deep run, or is damaged"):
        Policy.load(place / "file")


def test_an_mdp_is_a_regular_file(place) -> None:
    four_rooms("easy").save(place / "m.npz")
    assert ContextualMDP.load(place / "m.npz").K == 16
    for name in ("pipe", "directory", "device", "file"):
        with pytest.raises(RollinError):
            ContextualMDP.load(place / name)


def test_a_link_to_a_directory_is_left_alone(place) -> None:
    (place / "elsewhere").symlink_to(place / "directory")
    (place / "directory" / "state-1.safetensors").touch()
    for refuse in (
        own_directory,
        remove_checkpoint,
        lambda path: read_checkpoint(path, ""),
    ):
        with pytest.raises(RollinError, match="is a link"):
            refuse(place / "elsewhere")
    assert (place / "directory" / "state-1.safetensors").exists()


def test_half_a_letter_is_refused(tmp_path) -> None:
    (tmp_path / "a.json").write_text('{"a": "\\ud800"}')
    with pytest.raises(RollinError, match="half of a letter"):
        read_json(tmp_path / "a.json")
    (tmp_path / "a.json").write_text('{"a": "\\ud83d\\ude00 \\u00e9"}')
    assert read_json(tmp_path / "a.json") == {"a": "😀 é"}
    write_json(tmp_path / "a.json", {"path": "a\udcffb"})
    assert read_json(tmp_path / "a.json") == {"path": "a?b"}


def test_control_characters_are_shown(capsys) -> None:
    assert visible("a\x1b[2J\x07\u202eb\nc") == "a\\x1b[2J\\x07\\u202eb\nc"
    assert one_line("a\nb" + "c" * 9, 6) == "a bcc…"
    make_console().print("\x1b]0;title a[b]")
    assert capsys.readouterr().out == "\\x1b]0;title a[b]\n"


def test_letters_become_ascii_where_an_encoding_lacks_them() -> None:
    codecs.register_error("rollin-test", plainly)
    assert "κ ≤ 1 – 中".encode("ascii", "rollin-test") == b"kappa <= 1 - ?"
    assert "κ ± é".encode("latin-1", "rollin-test") == "kappa ± é".encode("latin-1")


FORMULAS = [f"{first}HYPERLINK(0)" for first in "=+-@\t\r\n＝＋－＠"]


@pytest.mark.parametrize("cell", [*FORMULAS, "-1+cmd|' /C calc'!A0", "-", "- 1", "-1 -x"])
def test_no_cell_of_a_csv_begins_like_a_formula(cell) -> None:
    text = csv_text([["name", cell], [f"'{cell}", f"''{cell}"], [f"a\r{cell}", "x"]])
    assert list(csv_rows(io.StringIO(text, newline=""))) == [
        ["name", cell],
        [f"'{cell}", f"''{cell}"],
        [f"a\r{cell}", "x"],
    ]
    for row in csv.reader(io.StringIO(text, newline="")):  # as other programs read it
        assert all(first[0] not in "=+-@\t\r\n＝＋－＠" for first in row)


def test_numbers_of_a_csv_stay_numbers() -> None:
    row = [-1, -2.5, "-0.5", "-1e-05", "-1.5e+20", "-inf", "+5", "-1.2 -3", "'a", "", "a, b"]
    text = csv_text([row])
    assert text == '-1,-2.5,-0.5,-1e-05,-1.5e+20,-inf,+5,-1.2 -3,\'a,,"a, b"\n'
    assert list(csv_rows(io.StringIO(text, newline=""))) == [[str(cell) for cell in row]]


HIDDEN = (*range(0x200B, 0x2010), *range(0x2028, 0x202F), *range(0x2060, 0x2070), 0xFEFF, 0xAD,
          0x61C, 0x180E, 0x34F, 0x3164, 0xFE0F, 0xE0041, 0xE0100, 0xFFF9)  # fmt: skip


@pytest.mark.parametrize("code", HIDDEN)
def test_what_has_no_width_or_turns_text_is_shown_by_its_code(code, capsys) -> None:
    letter = chr(code)
    assert visible(f"runs{letter}/a") == f"runs{letter.encode('unicode_escape').decode()}/a"
    make_console().print(f"runs{letter}/a")
    assert letter not in capsys.readouterr().out


def test_letters_and_spaces_of_any_language_stay() -> None:
    name = "é e\u0301 ñ 中文 日本語\u3000a\u00a0b हिन्दी 😀 שלום −½"
    assert visible(name) == name
