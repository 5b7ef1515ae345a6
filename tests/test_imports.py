"""Arrows between modules: each imports its own package and lower ranks, and none in a circle.

Imports inside functions and for type checkers count like all others.
"""

import ast
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path

import pytest

import rollin

pytestmark = pytest.mark.xdist_group("imports")  # every module is parsed once
ROOT = Path(rollin.__file__).parent
RANKS = {
    "curriculum": 1,
    "tabular": 2, "sac": 2, "envs": 2, "teachers": 2,
    "deep": 3,
    "agents": 4,
    "runs": 5,
    "sweeps": 6, "api": 6, "evaluation": 6, "sb3": 6,
    "analysis": 7,
    "paper": 8, "report": 8,
    "complexity": 9,
    "cli": 10,
}  # fmt: skip
"""Of packages, and of single modules that are not base; equals do not see each other."""
BASE = {"errors", "checks", "untrusted", "streams", "compiling", "llvm",
        "policy", "tasks", "train_options", "deprecated"}  # fmt: skip
EXTRAS = {
    "jax": "jax", "mujoco": "mujoco", "onnx": "onnx", "ray": "ray", "imageio": "video",
    "gymnasium_robotics": "robotics", "torch": "sb3",
    "stable_baselines3": "sb3", "wandb": "wandb", "mlflow": "mlflow",
}  # fmt: skip
"""What is imported only where somebody asks for it, and the extra that it belongs to."""
PACKAGES = {"PIL": "pillow"}  # of modules with another name
FRONT = {"rollin", "rollin.__main__"}  # public names, and python -m rollin


def name_of(path: Path) -> str:
    parts = ("rollin", *path.relative_to(ROOT).with_suffix("").parts)
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


@cache
def modules() -> dict[str, Path]:
    return {name_of(path): path for path in sorted(ROOT.rglob("*.py"))}


def imports(tree: ast.AST, module: str, is_package: bool) -> Iterator[str]:
    """All that a module names in an import, wherever in it that stands."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            above = module.split(".")
            above = above[: len(above) - node.level + is_package] if node.level else []
            home = ".".join([*above, *([node.module] if node.module else [])])
            for alias in node.names:
                inside = f"{home}.{alias.name}"
                yield inside if inside in modules() else home


@cache
def tree(module: str) -> ast.Module:
    return ast.parse(modules()[module].read_text(encoding="utf-8"))


@cache
def arrows() -> dict[str, set[str]]:
    """Modules of ours by who imports them."""
    found = {}
    for module, path in modules().items():
        named = imports(tree(module), module, path.name == "__init__.py")
        found[module] = {name for name in named if name in modules()} - {module}
    return found


def part_of(module: str) -> str:
    """The package of a module, or the module itself if it stands beside the packages."""
    return module.split(".")[1]


def rank(part: str) -> int:
    return RANKS.get(part, 0)


def wrong(found: dict[str, set[str]]) -> list[str]:
    """Arrows that do not point to the own package or to a lower rank."""
    return [
        f"{module} imports {other}"
        for module, others in found.items()
        for other in sorted(others)
        if not may_see(part_of(module), part_of(other))
    ]


def may_see(part: str, other: str) -> bool:
    lower = rank(other) < rank(part)
    return part == other or lower or (part in BASE and other in BASE)


def circles(found: dict[str, set[str]]) -> list[list[str]]:
    """Modules that import each other, be it by way of others: Tarjan's components."""
    index: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    components: list[list[str]] = []

    def visit(module: str) -> None:
        index[module] = low[module] = len(index)
        stack.append(module)
        for other in sorted(found.get(module, ())):
            if other not in index:
                visit(other)
                low[module] = min(low[module], low[other])
            elif other in stack:
                low[module] = min(low[module], index[other])
        if low[module] == index[module]:
            at = stack.index(module)
            components.append(sorted(stack[at:]))
            del stack[at:]

    for module in found:
        if module not in index:
            visit(module)
    return [component for component in components if len(component) > 1]


def without_front(found: dict[str, set[str]]) -> dict[str, set[str]]:
    return {module: others - FRONT for module, others in found.items() if module not in FRONT}


def test_every_module_has_a_rank() -> None:
    parts: Iterable[str] = {part_of(module) for module in modules() if module not in FRONT}
    assert set(parts) == BASE | RANKS.keys()


def test_modules_import_their_own_package_and_lower_ranks() -> None:
    assert wrong(without_front(arrows())) == []


def test_no_modules_import_each_other_in_a_circle() -> None:
    assert circles(without_front(arrows())) == []


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("from rollin.errors import RollinError", {"rollin.errors"}),
        ("from rollin.runs import driver", {"rollin.runs.driver"}),
        ("def f():\n    import rollin.sac.jax", {"rollin.sac.jax"}),
        ("if TYPE_CHECKING:\n    from rollin.runs.spec import RunSpec", {"rollin.runs.spec"}),
        ("from . import driver\nfrom .spec import digest",
         {"rollin.runs.driver", "rollin.runs.spec"}),
        ("import numpy as np", {"numpy"}),
    ],
)  # fmt: skip
def test_imports_of_every_form_are_seen(text: str, found: set[str]) -> None:
    assert set(imports(ast.parse(text), "rollin.runs.directory", is_package=False)) == found


def test_bad_arrows_and_circles_would_be_noticed() -> None:
    assert wrong({"rollin.runs.a": {"rollin.cli.b"}}) == ["rollin.runs.a imports rollin.cli.b"]
    assert wrong({"rollin.report.a": {"rollin.paper.b"}})  # equals
    assert wrong({"rollin.errors": {"rollin.runs.b"}})
    assert not wrong({"rollin.cli.a": {"rollin.runs.b", "rollin.cli.c", "rollin.errors"}})
    assert circles({"a": {"b"}, "b": {"c"}, "c": {"a"}, "d": {"a"}}) == [["a", "b", "c"]]
    assert circles({"a": {"b", "c"}, "b": {"c"}, "c": set()}) == []


LIGHT = [
    "RollIn",
    "SequentialTeacher",
    "Plan",
    "attach",
    "CurriculumCoordinator",
    "Curriculum",
    "Contextual",
    "GoalContext",
]


@pytest.mark.parametrize(
    ("names", "absent"),
    [
        ([], {"numpy", "gymnasium", "torch"}),
        (LIGHT, {"torch", "jax", "scipy", "numba", "matplotlib", "mujoco", "ray"}),
        (rollin.__all__, {"torch", "jax", "matplotlib", "mujoco", "ray"}),
    ],
    ids=["nothing", "wrapper", "everything"],
)
def test_what_is_heavy_is_imported_when_it_is_used(names: list[str], absent: set[str]) -> None:
    loaded = modules_after(f"for name in {names!r}: getattr(rollin, name)")
    assert not loaded & absent


def test_a_run_imports_no_library_of_others_agents(tmp_path) -> None:
    run = "rollin.train('point-umaze', steps=30, warmup=20, batch=8, hidden=(8,), out=sys.argv[1])"
    assert not modules_after(run, str(tmp_path / "a")) & {"torch", "jax", "matplotlib", "ray"}


def modules_after(program: str, *arguments: str) -> set[str]:
    """What a process has imported that ran a program."""
    code = f"import sys, rollin\n{program}\nprint(*sys.modules)"
    command = [sys.executable, "-c", code, *arguments]
    out = subprocess.run(command, capture_output=True, text=True, check=True)
    loaded = set(out.stdout.split())
    assert "rollin" in loaded
    return loaded


def test_without_the_extra_mujoco_all_but_one_robot_can_be_imported() -> None:
    robots = {"mujoco", "gymnasium.envs.mujoco", "gymnasium.envs.mujoco.mujoco_env"}
    found = set()
    for module, path in modules().items():  # not inside functions, nor for type checkers
        for node in tree(module).body:
            at_once = isinstance(node, ast.Import | ast.ImportFrom)
            if at_once and robots & set(imports(node, module, path.name == "__init__.py")):
                found.add(module)
    assert found == {"rollin.envs.ant_umaze"}
    assert not [module for module, named in arrows().items() if named & found]


def test_what_is_imported_is_what_a_plain_install_or_an_extra_brings() -> None:
    project = tomllib.loads((ROOT.parents[1] / "pyproject.toml").read_text("utf-8"))["project"]
    plain = {re.split(r"[<>=\[]", text)[0].lower() for text in project["dependencies"]}
    used = set()
    for module, path in modules().items():
        named = imports(tree(module), module, path.name == "__init__.py")
        used |= {name.partition(".")[0] for name in named}
    foreign = {PACKAGES.get(name, name) for name in used - set(sys.stdlib_module_names)}
    brought = {"rollin", "llvmlite"}  # numba asks for the one llvmlite that it works with
    assert foreign - set(EXTRAS) - brought == plain
    assert not plain & set(EXTRAS)
    assert set(EXTRAS.values()) <= set(project["optional-dependencies"])
