"""The sdist and the wheel: what is inside, what they ask for, and what they say of the release.

Both are made once, as `python -m build` makes them: the sdist of this tree, the wheel of the
unpacked sdist. Nothing is fetched, because hatchling is one of the extra dev.
"""

import os
import re
import tarfile
import tomllib
import zipfile
from dataclasses import dataclass
from email.message import Message
from email.parser import Parser
from pathlib import Path, PurePosixPath

import hatchling.build
import pytest

import rollin

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
pytestmark = pytest.mark.xdist_group("packaging")


@dataclass
class Built:
    sdist: set[str]
    wheel: dict[str, bytes]

    def metadata(self) -> Message:
        (text,) = (self.wheel[name] for name in self.wheel if name.endswith(".dist-info/METADATA"))
        return Parser().parsestr(text.decode())


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Built:
    out, before = tmp_path_factory.mktemp("dist"), Path.cwd()
    try:
        os.chdir(ROOT)
        with tarfile.open(out / hatchling.build.build_sdist(str(out))) as packed:
            (top,) = {name.partition("/")[0] for name in packed.getnames()}
            inside = {member.name.partition("/")[2] for member in packed if member.isfile()}
            packed.extractall(out, filter="data")
        os.chdir(out / top)
        with zipfile.ZipFile(out / hatchling.build.build_wheel(str(out))) as archive:
            return Built(inside, {name: archive.read(name) for name in archive.namelist()})
    finally:
        os.chdir(before)


def files(folder: str) -> set[str]:
    """What a folder of this tree holds, without what interpreter and compiler leave there."""
    found = {path for path in (ROOT / folder).rglob("*") if path.is_file()}
    kept = {path for path in found if "__pycache__" not in path.parts}
    return {path.relative_to(ROOT).as_posix() for path in kept}


def test_the_wheel_holds_the_package_and_nothing_else(built: Built) -> None:
    inside = {name for name in built.wheel if ".dist-info/" not in name}
    assert inside == {name.removeprefix("src/") for name in files("src/rollin")}
    assert {"rollin/py.typed", "rollin/report/templates/report.html.j2"} <= inside
    for name in inside:
        assert built.wheel[name] == (ROOT / "src" / name).read_bytes(), name


def test_the_sdist_holds_what_its_tests_and_pages_need(built: Built) -> None:
    folders = ("src", "tests", "benchmarks", "studies", "results", "policies", "docs", "examples")
    for folder in folders:
        assert files(folder) <= built.sdist, folder
    top = {name for name in built.sdist if "/" not in name}
    pages = {path.name for path in ROOT.glob("*.md")}
    assert {"pyproject.toml", "Makefile", "LICENSE", "CITATION.cff"} | pages <= top
    strange = {PurePosixPath(name).parts[0] for name in built.sdist - top} - set(folders)
    assert not strange


def test_the_metadata_say_what_is_installed_and_how_it_is_started(built: Built) -> None:
    told = built.metadata()
    assert (told["Name"], told["Version"]) == ("rollin", rollin.__version__)
    assert (told["License-Expression"], told["Requires-Python"]) == ("MIT", "<3.15,>=3.11")
    assert told.get_payload() == (ROOT / "README.md").read_text(encoding="utf-8")
    started = [text for name, text in built.wheel.items() if name.endswith("entry_points.txt")]
    assert started == [b"[console_scripts]\nrollin = rollin.__main__:run\n"]
    extras = set(PROJECT["project"]["optional-dependencies"])
    assert set(told.get_all("Provides-Extra", [])) == extras


def test_every_requirement_has_both_bounds(built: Built) -> None:
    asked = built.metadata().get_all("Requires-Dist", [])
    own = [text for text in asked if not text.startswith("rollin[")]
    unbounded = [text for text in own if not re.match(r"[\w.-]+(\[\w+\])?<[\d.]+,>=[\d.]+", text)]
    assert not unbounded


def test_version_changelog_and_citation_are_of_one_release() -> None:
    changelog = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    headings = re.findall(r"^## \[(.+?)\](?: - (\S+))?$", changelog, re.MULTILINE)
    assert headings[0] == ("Unreleased", "")
    version, date = headings[1]
    assert version == rollin.__version__
    citation = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    assert re.findall(r"^version: (.+)$", citation, re.MULTILINE) == [version]
    assert re.findall(r"^date-released: (.+)$", citation, re.MULTILINE) == [date]
    assert (ROOT / "tests" / "golden" / version).is_dir()
