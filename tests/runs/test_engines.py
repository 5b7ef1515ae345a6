"""A new engine is a file and a line in the register; no command knows it by name."""

import ast
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import pytest

import rollin
from rollin.checks import at_least
from rollin.cli import main
from rollin.errors import RollinError
from rollin.runs import driver
from rollin.runs.directory import RunDirectory
from rollin.runs.driver import Driver
from rollin.runs.engines import MODULES, Engine, engine, engine_for, read_record, run, spec_of
from rollin.runs.files import read_json
from rollin.runs.metrics import Metric
from rollin.runs.records import MetricAt
from rollin.runs.spec import RunConfig, RunSpec
from rollin.streams import Streams
from rollin.sweeps.study import Study
from tests.killing import same_run, stop_at

SOURCE = Path(rollin.__file__).parent

# ------------------------------------------------------------------ the new engine


@dataclass(frozen=True)
class SearchConfig(RunConfig):
    """Options of random search."""

    engine: ClassVar[str] = "search"
    steps: int = 100
    seed: int = 0
    spread: float = 1.0
    log_every: int = 10

    def __post_init__(self) -> None:
        at_least(1, "--steps", self.steps)


METRICS = (Metric("return", lambda run: float(run.best), result=True),)


class SearchRun(Driver[SearchConfig]):
    """Draws points, and keeps the one nearest to (1, 2)."""

    def __init__(self, spec: RunSpec[SearchConfig], directory: RunDirectory) -> None:
        super().__init__(spec, directory)
        self.streams, self.draws, self.best = Streams(spec.config.seed), 0, -1e9
        self.declare(METRICS)

    @property
    def step(self) -> int:
        return self.draws

    def events(self) -> Iterator[None]:
        while True:
            point = self.streams["search"].normal(size=2) * self.config.spread
            self.draws, self.best = self.draws + 1, max(self.best, -abs(point - (1, 2)).sum())
            yield

    def get_state(self) -> dict[str, Any]:
        return {"streams": self.streams.get_state(), "at": [self.draws, float(self.best)]}

    def set_state(self, state: dict[str, Any]) -> None:
        self.streams.set_state(state["streams"])
        self.draws, self.best = state["at"]


class SearchEngine(Engine[SearchConfig]):
    """Random search on a toy task."""

    name, config_class, step_words, walks = "search", SearchConfig, "draws", False
    tasks, about, metrics = ("toy",), "toy", METRICS

    def run(self, spec: RunSpec[SearchConfig], at: RunDirectory, **given: Any) -> SearchRun:
        return SearchRun(spec, at)


ENGINE = SearchEngine()


@pytest.fixture(autouse=True)
def registered(monkeypatch) -> None:
    """The line in the register."""
    monkeypatch.setitem(MODULES, "search", __name__)


# ------------------------------------------------------------------ it is trained, resumed, swept


def test_a_new_engine_is_found_by_its_task_and_its_runs() -> None:
    assert engine_for("toy") is ENGINE
    assert engine("search") is ENGINE
    with pytest.raises(RollinError, match=r"Unknown task 'toi'\. Did you mean toy\?.*; toy; or "):
        engine_for("toi")


def test_a_new_engine_is_trained_listed_and_resumed_by_the_commands(tmp_path, capsys) -> None:
    out = tmp_path / "a"
    assert main(["train", "toy", "--steps", "50", "--spread", "1/2", "--out", str(out)]) == 0
    assert "return = -" in capsys.readouterr().out
    assert read_json(out / "config.json")["config"]["spread"] == 0.5
    assert main(["list", str(tmp_path)]) == 0
    assert "50/50" in capsys.readouterr().out
    assert main(["resume", str(out)]) == 0
    assert "already finished" in capsys.readouterr().out
    assert main(["evaluate", str(out)]) == 2
    assert "is a run of the engine search" in capsys.readouterr().err
    assert main(["train", "toy", "--help"]) == 0
    assert "--spread" in capsys.readouterr().out
    assert main(["train", "toy", "--steps", "0", "--out", str(tmp_path / "b")]) == 2
    assert "--steps must be at least 1, got 0." in capsys.readouterr().err


def test_a_run_of_a_new_engine_goes_on_bit_for_bit(tmp_path, monkeypatch) -> None:
    spec = RunSpec("toy", SearchConfig(steps=200))
    run(spec, tmp_path / "whole")
    monkeypatch.setattr(driver, "STATUS_SECONDS", -1.0)  # ask after every step
    for step in (37, 150):
        stop_at(spec, tmp_path / "parts", step)
    assert spec_of(RunDirectory(tmp_path / "parts")) == spec
    assert main(["resume", str(tmp_path / "parts")]) == 0
    same_run(tmp_path / "whole", tmp_path / "parts")


@pytest.mark.usefixtures("jobs_here")
def test_a_new_engine_is_swept_compared_and_reported(tmp_path, capsys) -> None:
    arguments = ["--grid", "spread=1,3", "--steps", "60", "--seeds", "3", "--against", "spread=1"]
    assert main(["sweep", "toy", *arguments, "--out", str(tmp_path / "s")]) == 0
    said = capsys.readouterr().out
    assert said.count("finished ") == 6
    page = (tmp_path / "s" / "report.html").read_text(encoding="utf-8")
    assert "toy" in page
    assert main(["report", str(tmp_path / "s")]) == 0
    assert main(["list", str(tmp_path / "s")]) == 0
    record = read_record(RunDirectory(tmp_path / "s" / "spread=3" / "seed=2"))
    assert (record.labels, record.engine, record.seed) == ({"spread": "3"}, "search", 2)
    assert record.options["spread"] == 3
    assert record.key == Study.grid("x", "toy", spread=[3]).conditions[0].key()
    value = record.value(MetricAt("return"))
    assert value == pytest.approx(read_json(tmp_path / "s/spread=3/seed=2/result.json")["return"])


# ------------------------------------------------------------------ nobody knows an engine by name

ABOUT_TABULAR = {"cli/theory.py", "analysis/maps.py"}  # which are about tabular runs only
NAMES = {"tabular", "rollin", "sac", "until-solved"}
CONFIGS = {"TabularConfig", "RollinConfig", "SACRunConfig", "UntilSolvedConfig"}


def branches(tree: ast.AST) -> list[str]:
    """Comparisons of an engine with a name, and questions for the class of an engine's options."""
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Compare | ast.Match) and _names_an_engine(node):
            found.append(ast.unparse(node).splitlines()[0])
        if isinstance(node, ast.Call) and ast.unparse(node.func) in ("isinstance", "issubclass"):
            asked = {n.id for n in ast.walk(node.args[1]) if isinstance(n, ast.Name)}
            asked |= {n.attr for n in ast.walk(node.args[1]) if isinstance(n, ast.Attribute)}
            if asked & CONFIGS:
                found.append(ast.unparse(node))
    return found


def _names_an_engine(node: ast.Compare | ast.Match) -> bool:
    parts = list(ast.walk(node if isinstance(node, ast.Compare) else node.subject))
    words = list(ast.walk(node))
    about = any(isinstance(part, ast.Attribute) and part.attr == "engine" for part in parts)
    about = about or any(isinstance(part, ast.Name) and part.id == "engine" for part in parts)
    return about and any(isinstance(w, ast.Constant) and w.value in NAMES for w in words)


def test_no_module_branches_on_an_engine() -> None:
    found = {}
    for path in sorted(SOURCE.rglob("*.py")):
        name = path.relative_to(SOURCE).as_posix()
        if not name.startswith("runs/engines/") and name not in ABOUT_TABULAR:
            found[name] = branches(ast.parse(path.read_text(encoding="utf-8")))
    assert len(found) > 100
    assert {name: seen for name, seen in found.items() if seen} == {}


@pytest.mark.parametrize(
    "text",
    [
        'if spec.config.engine == "tabular": pass',
        'x = "sac" != record.engine',
        'if record.engine in ("sac", "rollin"): pass',
        'if engine not in ("sac", "rollin"): pass',
        'match run.engine:\n    case "sac": pass',
        "isinstance(config, TabularConfig)",
        "isinstance(config, options.RollinConfig | None)",
        "issubclass(kind, (int, SACRunConfig))",
    ],
)
def test_a_branch_on_an_engine_would_be_noticed(text) -> None:
    assert branches(ast.parse(text))


def test_the_register_is_no_cycle_of_its_own() -> None:
    assert sys.modules[__name__].ENGINE is ENGINE
    assert list(MODULES)[:4] == ["tabular", "until-solved", "sac", "rollin"]
