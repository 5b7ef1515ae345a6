"""Public objects are shown on one short line."""

from typing import Any

import gymnasium
import numpy as np
import pytest

import rollin
from rollin.envs.point_umaze import PointUmaze
from tests.toys import Line

FEW: Any = {"warmup": 60, "hidden": (8, 8), "batch": 16, "steps": 100}
WAY = rollin.Curriculum.along([[0, 0], [8, 0]], delta=1 / 96, rule=lambda kappa: 80 * kappa)
MDP = rollin.four_rooms("hard")
RNG = np.random.default_rng(0)
LONG = 160  # characters

MADE: dict[str, Any] = {
    "BatchSPG": lambda: rollin.BatchSPG(MDP, 0.01),
    "Contextual": lambda: rollin.Contextual(
        gymnasium.make("Pendulum-v1"), gymnasium.spaces.Box(0, 1, (1,)), np.equal
    ),
    "ContextualMDP": lambda: MDP,
    "Curriculum": lambda: WAY,
    "ExactPG": lambda: rollin.ExactPG(MDP, 0.01),
    "Gap": rollin.Gap,
    "GoalView": lambda: rollin.GoalView(PointUmaze()),
    "Grid": lambda: rollin.Grid(3, 3),
    "Halving": rollin.Halving,
    "NaturalPG": lambda: rollin.NaturalPG(MDP, 0.01),
    "Plateau": rollin.Plateau,
    "RandomHorizonSPG": lambda: rollin.RandomHorizonSPG(MDP, 0.1, lambda t: (1, 1.0)),
    "Replay": lambda: rollin.Replay(rollin.RowLayout(3, 1), 4),
    "ReturnThreshold": lambda: rollin.ReturnThreshold(lambda kappa: 80 * kappa),
    "RollIn": lambda: rollin.RollIn(PointUmaze()),
    "RowLayout": lambda: rollin.RowLayout(3, 1),
    "Solution": lambda: rollin.solve(rollin.corridor(8), steps=2),
    "StepGap": rollin.StepGap,
    "Streams": lambda: rollin.Streams(0),
    "Study": lambda: rollin.Study.grid("mine", "point-umaze", beta=[0, 0.1, 0.2], gamma=[0.9]),
    "SubOptimality": lambda: rollin.SubOptimality(0.1),
    "SuccessRate": rollin.SuccessRate,
    "Visited": lambda: rollin.Visited(WAY, to_context=np.asarray, fulfils=np.equal),
    "Walk": lambda: rollin.Walk(WAY),
    "Wall": lambda: rollin.Wall("x", 1),
    "analyse": lambda: rollin.analyse(rollin.corridor(4), 0.1, 0.5),
    "evaluate": lambda: rollin.evaluate(lambda seen, context: [0.0, 0.0], PointUmaze, [[1, 1]])[0],
    "prepare": lambda: rollin.prepare(Line, **FEW),
    "teachers": lambda: rollin.teachers.Uniform(WAY, 0.1, RNG),
    "train": lambda: rollin.train(Line, **FEW),
    "Policy": lambda: rollin.train(Line, **FEW).policy,
    "progress": lambda: WAY.progress(),
}  # fmt: skip


@pytest.mark.parametrize("name", MADE)
def test_a_repr_is_one_short_line(name: str) -> None:
    shown = repr(MADE[name]())
    assert "\n" not in shown
    assert " at 0x" not in shown
    assert len(shown) <= LONG


def test_a_repr_has_what_one_looks_for() -> None:
    assert repr(WAY) == (
        "Curriculum(K=96, first=[0, 0], final=[8, 0], rule=ReturnThreshold(R=<lambda>))"
    )
    assert repr(MDP) == "ContextualMDP(states=144, actions=105, K=16, gamma=0.95)"
    assert repr(rollin.Walk(WAY, 0.25)) == "Walk(k=0, K=96, beta=0.25)"
    assert repr(rollin.Gap(0.5, window=4)) == "Gap(share=0.5, window=4)"


def test_many_numbers_are_cut_off() -> None:
    wide = rollin.Curriculum.listed(np.zeros((2, 500)), 1.0)
    assert len(repr(wide)) <= LONG
