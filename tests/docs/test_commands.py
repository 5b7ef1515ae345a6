"""Every command of the README and of the docs, as printed, in order, in one directory.

Long ones are shortened by more options at their end (`SHORT`), which take the place of those that
are printed; names and directories stay, so that two commands that collide are seen. What needs a
cluster, an extra or minutes is not run, but parsed (`ONLY_PARSED`).
"""

import re
import shlex
import shutil
from pathlib import Path

import pytest
from docs.pages import ROOT

import rollin
from rollin.cli import COMMANDS, main
from rollin.cli.evaluate import MOST
from tests.docs.blocks import write_files

PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
DEEP = ["--steps=400", "--warmup=150", "--batch=16", "--hidden", "8", "8", "--log-every=200",
        "--eval-episodes=1"]  # fmt: skip
SHORT: dict[tuple[str, str], list[str]] = {
    ("demo", ""): ["--steps=20", "--seeds=1"],
    ("train", "four-rooms"): ["--steps=20", "--batch=20"],
    ("train", "antmaze-umaze"): [*DEEP, "--steps=500", "--log-every=500"],  # one episode
    ("train", ""): DEEP,
    ("sweep", "four-rooms"): ["--steps=10", "--batch=10", "--seeds=1"],
    ("sweep", "mine.npz"): ["--steps=10", "--batch=10", "--seeds=1"],
    ("sweep", ""): [*DEEP, "--seeds=1"],
    ("compare", ""): [*DEEP, "--seeds=1"],
    ("reproduce", "four-rooms"): ["--cells=reward=hard,alpha=0.001,beta=0", "--seeds=1",
                                  "--steps=10"],
    ("evaluate", ""): ["--episodes=1"],
    ("export", ""): ["--episodes=1"],
}  # fmt: skip
"""By command and task (any, if empty): what makes it take a second."""
ONLY_PARSED = {
    "--backend ray": "a cluster",
    "--measure": "half a minute",
    "--learner jax": "an extra",
    ".mp4": "an extra",
    "reproduce complexity": "minutes",
    "velocity": "hours",
    "--until": "hours",
    "rollin watch": "a Ctrl-C",
    "--log wandb": "an extra",
}
"""Words of commands that are not run here, and what they take."""
MODULE = """
import gymnasium, numpy as np, rollin

def make_mdp():
    grid = rollin.Grid(4, 1)
    return rollin.grid_world(grid, [(x, 0) for x in range(4)], reward=lambda d: (d == 0) * 1.0)


def reward(outcome, context):
    return np.exp(-np.abs(outcome[..., 2] - context[..., 0]))


def make_env():
    env = gymnasium.make("Pendulum-v1", max_episode_steps=40)
    contexts = rollin.Curriculum.listed([[0.0], [1.0], [2.0]], rule=30.0)
    return rollin.Contextual(env, gymnasium.spaces.Box(-8, 8, (1,)), reward, curriculum=contexts)
"""


def printed(page: Path) -> list[str]:
    """The commands in a page's blocks, each in a line."""
    fenced = re.findall(r"^```([^\n]*)\n(.*?)^```$", page.read_text(), re.DOTALL | re.MULTILINE)
    lines = (
        "\n".join(text for language, text in fenced if not language)
        .replace("\\\n", " ")
        .splitlines()
    )
    return [line for line in lines if line.startswith("rollin ")]


COMMAND_LINES = {line: page.stem for page in PAGES for line in printed(page)}  # each once


def shortened(words: list[str]) -> list[str]:
    """The same command with fewer steps: options given again count in place of the first."""
    command, *rest = words
    task = rest[0] if rest and not rest[0].startswith("-") else ""
    more = SHORT.get((command, task), SHORT.get((command, ""), []))
    names = {word.partition("=")[0] for word in more if word.startswith("--")}
    kept: list[str] = []
    dropping = False
    for word in rest:
        dropping = word in names if word.startswith("--") else dropping
        if not dropping:
            kept.append(word)
    return [command, *kept, *more]


def test_the_pages_have_commands_of_every_kind() -> None:
    assert len(COMMAND_LINES) > 30
    assert {line.split()[1] for line in COMMAND_LINES} == set(COMMANDS)


@pytest.mark.usefixtures("jobs_here")
def test_every_printed_command_works_in_order_in_one_directory(
    tmp_path, monkeypatch, capsys
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setitem(MOST, ".gif", 0.3)  # pictures a second: a robot's take long
    monkeypatch.setattr("rollin.cli.evaluate.DRAWN", 3)  # pictures of outcomes
    monkeypatch.setattr("rollin.cli.evaluate.SOME", 3)  # contexts of a table, panels of a picture
    monkeypatch.syspath_prepend(str(tmp_path))
    (tmp_path / "my_module.py").write_text(MODULE)
    shutil.copytree(ROOT / "policies", tmp_path / "policies")  # as in a checkout
    assert "my_task" in write_files(PAGES, tmp_path)
    goals = [(x, 0) for x in range(4)]
    mdp = rollin.grid_world(rollin.Grid(4, 1), goals, reward=lambda d: (d == 0) * 1.0)
    for name in ("mine.npz", "my_mdp.npz"):
        mdp.save(tmp_path / name)
    for line, page in COMMAND_LINES.items():
        words = shlex.split(line, comments=True)[1:]
        if any(part in line for part in ONLY_PARSED):
            assert words[0] in COMMANDS
            continue
        code = main(shortened(words))
        told = capsys.readouterr()
        assert code == 0, f"{page}: {line}: {told.err}"
        assert told.out.strip(), line
        if words[0] in ("train", "resume"):
            assert "result.json" in told.out, line
        if words[0] in ("report", "sweep", "compare", "demo"):
            assert "Report: " in told.out, line
    assert len(list(tmp_path.rglob("report.html"))) >= 4
