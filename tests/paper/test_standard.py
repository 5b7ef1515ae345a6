"""The suite of standard tasks: what it runs, on which seeds, and that its hashes stay."""

import pytest

from rollin.envs.registry import make_contextual
from rollin.paper.standard import CURRICULA, SEEDS, TASKS, studies
from rollin.runs.curricula import curriculum_of
from rollin.runs.spec import flat

STUDIES = studies()
EVERY = STUDIES["standard"].conditions
OWN = {
    "scratch": {"method"},
    "hand": {"rule", "threshold", "delta"},
    "adaptive": {"rule", "stride", "counted", "better"},
    "relabel": {"rule", "stride", "counted", "better", "relabel"},
}
"""Options in which a curriculum may differ from the others of its task."""


def test_every_task_has_every_curriculum_that_it_can_have() -> None:
    found = {(c.labels["task"], c.labels["curriculum"]) for c in EVERY}
    assert len(found) == len(EVERY)
    for name, task in TASKS.items():
        expected = set(CURRICULA) - (set() if task.relabels else {"relabel"})
        assert {curriculum for at, curriculum in found if at == name} == expected


@pytest.mark.parametrize("name", TASKS)
def test_only_what_can_be_relabelled_is(name: str) -> None:
    env = make_contextual(TASKS[name].task)
    assert env.can_relabel == TASKS[name].relabels
    env.close()


@pytest.mark.parametrize("condition", EVERY, ids=lambda c: c.name)
def test_conditions_of_a_task_differ_in_the_curriculum_only(condition) -> None:
    plain = flat(condition.engine.preset(condition.task))
    shared = {**plain, **TASKS[condition.labels["task"]].shared, "beta": 0.0}
    differing = {n for n, v in flat(condition.config).items() if v != shared[n]}
    assert differing == OWN[condition.labels["curriculum"]]


def test_a_hand_set_curriculum_has_twelve_steps_and_an_adaptive_one_no_threshold() -> None:
    env = make_contextual(TASKS["mountain-car"].task)
    by_name = {c.labels["curriculum"]: c for c in EVERY if c.labels["task"] == "mountain-car"}
    hand = curriculum_of(env, by_name["hand"].config)
    assert (hand.K, hand.threshold(3)) == (12, 0.8)
    adaptive = curriculum_of(env, by_name["adaptive"].config)
    assert (adaptive.K, adaptive.rule) == (96, None)
    env.close()


def test_no_seed_is_both_tuned_on_and_reported() -> None:
    seeds = {name: set(study.conditions[0].seeds(SEEDS)) for name, study in STUDIES.items()}
    assert seeds == {"standard": set(range(30, 35)), "standard-tuning": set(range(5))}


def test_the_keys_of_conditions_stay() -> None:
    """Records are assigned by these keys: a changed one would lose the committed runs."""
    keys = {c.labels["curriculum"]: c.key() for c in EVERY if c.labels["task"] == "mountain-car"}
    assert keys == {
        "scratch": "a47bd6ce077fb5ad",
        "hand": "935cad80d094f7b3",
        "adaptive": "50e64d6a1a124019",
    }
