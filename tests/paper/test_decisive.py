"""The study of AntMaze with seeds: what it runs, on which seeds, and what it must not change."""

from pathlib import Path

import numpy as np
import pytest

from rollin.envs.registry import make_contextual
from rollin.paper import antmaze, decisive
from rollin.runs.curricula import curriculum_of
from rollin.runs.records import MetricAt
from rollin.runs.spec import flat

STUDIES = decisive.studies()
EVERY = [condition for study in STUDIES.values() for condition in study.conditions]
OWN = {
    "antmaze-decisive": {"beta", "method", "delta"},
    "antmaze-tuning": {"rule", "stride", "counted", "better", "gamma"},
    "antmaze-adaptive": {"rule", "stride", "counted", "better", "gamma", "beta", "method"},
    "antmaze-scratch": {"method", "gamma", "beta"},
}
"""Options in which a study may differ from the paper's preset, besides those of all runs."""


@pytest.mark.parametrize("name", STUDIES)
def test_runs_have_the_papers_options_but_for_what_is_studied(name) -> None:
    plain = flat(EVERY[0].engine.preset(antmaze.TASK))
    for condition in STUDIES[name].conditions:
        told = flat(condition.config)
        shared = {**decisive.OPTIONS, "goals": 12 if name == "antmaze-decisive" else 24}
        differing = {n for n, v in told.items() if v != {**plain, **shared}[n]}
        assert differing <= OWN[name]
        assert condition.steps == 3_000_000
        assert str(told["beta"]) in (condition.labels["beta"], "0.0")


def test_the_decisive_conditions_are_cells_of_the_papers_table() -> None:
    """Goals and rows of metrics apart: the same task, curriculum, method and β."""
    printed = {c.labels["beta"]: c for c in antmaze.conditions()
               if (c.labels["setting"], c.labels["sampling"], c.labels["delta"])
               == ("vanilla", "uniform", "1/12")}  # fmt: skip
    for condition in STUDIES["antmaze-decisive"].conditions:
        cell = printed[condition.labels["beta"]]
        goals = condition.engine.canonical(condition.task, condition.config)
        paper = condition.engine.canonical(cell.task, cell.config)
        differing = {n for n, v in flat(goals).items() if v != flat(paper)[n]}
        assert differing <= {"goals", *decisive.NUMERICS}
        at_end = MetricAt("kappa", 3_000_000)
        assert condition.published[at_end] == cell.published[at_end]


def test_goals_stand_on_the_contexts_of_the_curriculum() -> None:
    config = STUDIES["antmaze-decisive"].conditions[0].config
    env = make_contextual(antmaze.TASK)
    curriculum = curriculum_of(env, config)
    env.close()
    assert len(curriculum.contexts) == config.goals == 12
    assert curriculum.path is not None
    goals = [np.ravel(curriculum.path((i + 1) / 12)) for i in range(12)]
    np.testing.assert_allclose(goals, curriculum.contexts, atol=1e-9)


def test_no_seed_is_both_tuned_on_and_reported() -> None:
    def seeds(name: str) -> set[int]:
        study = STUDIES[name]
        return {seed for c in study.conditions for seed in c.seeds(study.seeds)}

    tuned = seeds("antmaze-tuning")
    for name in ("antmaze-decisive", "antmaze-adaptive", "antmaze-scratch"):
        assert not tuned & seeds(name)
    assert len(seeds("antmaze-decisive")) == len(seeds("antmaze-adaptive")) == 4


def test_a_stop_leaves_equal_seeds_and_runs_of_all_lengths_are_the_same() -> None:
    study = STUDIES["antmaze-decisive"]
    jobs = study.jobs(Path("somewhere"), study.seeds, until=decisive.AT)
    whole = study.jobs(Path("somewhere"), study.seeds)
    assert [job.spec.config.seed for job in jobs] == [10] * 3 + [11] * 3 + [12] * 3 + [13] * 3
    assert [job.spec.hash for job in jobs] == [job.spec.hash for job in whole]
    assert {job.until for job in jobs} == {1_500_000}
