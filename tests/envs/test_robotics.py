"""Envs of Gymnasium-Robotics that the pages name can be made with what the extra installs."""

import re
from pathlib import Path
from typing import Any

import gymnasium
import gymnasium_robotics
import numpy as np
import pytest
from docs.pages import ROOT

import rollin
from rollin.envs.box_env import ROBOTICS

gymnasium.register_envs(gymnasium_robotics)

PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
PAGES += sorted((ROOT / "examples").glob("*.py"))
ID = re.compile(rf"\b(?:{'|'.join(ROBOTICS)})\w*-v\d+")


def named(pages: list[Path]) -> list[str]:
    """The ids in some files."""
    texts = [page.read_text(encoding="utf-8") for page in pages]
    return sorted({name for text in texts for name in ID.findall(text)})


def test_the_pages_name_point_maze() -> None:
    assert "PointMaze_UMaze-v3" in named(PAGES)


@pytest.mark.parametrize("name", sorted({"FetchReach-v4", *named(PAGES)}))
def test_what_the_pages_name_can_be_made_and_takes_a_context(name: str) -> None:
    env = rollin.GoalContext(gymnasium.make(name))
    try:
        env.reset(seed=0)
        inner: Any = env.env
        goal = np.array(inner.unwrapped.goal)
        observed, _ = env.reset(seed=1, options={"context": goal})
        np.testing.assert_allclose(observed["context"], goal)
        env.step(env.action_space.sample())
    finally:
        env.close()
