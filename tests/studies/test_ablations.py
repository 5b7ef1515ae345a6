"""The page on ablations: its runs are those of the study, and comparable with those it borrows."""

from dataclasses import replace
from pathlib import Path

import pytest

from rollin.runs.engines import condition_key
from rollin.runs.spec import RunSpec
from rollin.sweeps.study import study_from
from studies import ablations_page

STUDY = study_from(Path(__file__).parents[2] / "studies" / "ablations.toml")


def test_the_runs_are_those_of_the_study() -> None:
    found = ablations_page.runs()
    conditions = {(c.labels["delta"], c.labels["method"]): c for c in STUDY.conditions}
    assert found.keys() - conditions.keys() == {
        (delta, method)
        for delta in ablations_page.SETTINGS
        for method in ablations_page.SHARED
        if (delta, method) != ("1/24", "fresh")
    }
    for key, condition in conditions.items():
        records = found.get(key, [])
        assert [record.seed for record in records] == list(range(len(records)))
        assert {record.key for record in records} <= {condition.key()}
        assert [r.spec_hash for r in records] == [condition.spec(r.seed).hash for r in records]


def test_without_its_options_an_ablation_is_the_borrowed_rollin() -> None:
    paper = {"explorer": "fresh", "prefix": "replay", "guide": "current"}
    for condition in STUDY.conditions:
        if condition.labels["method"] == "relabelled":
            continue
        spec = condition.spec(0)
        plain = replace(spec.config, algorithm=replace(spec.config.algorithm, **paper))
        rollin = ablations_page.runs()[condition.labels["delta"], "rollin"]
        assert {record.key for record in rollin} == {condition_key(RunSpec(spec.task, plain))}
        assert condition.key() not in {record.key for record in rollin}


@pytest.mark.parametrize("delta", ablations_page.SETTINGS)
def test_all_methods_are_compared_on_the_same_seeds(delta: str) -> None:
    seeds = {
        tuple(sorted(record.seed for record in records))
        for (at, method), records in ablations_page.runs().items()
        if at == delta and method != "relabelled"
    }
    assert seeds == {tuple(range(ablations_page.seeds(delta)))}


@pytest.mark.parametrize(
    ("here", "words"),
    [
        ([9, 9, 9, 9], "further than the baseline, and not to be told from ROLLIN"),
        ([1, 1, 1, 1], "less far than ROLLIN, and not to be told from the baseline"),
        ([5, 5, 5, 5], "further than the baseline, and less far than ROLLIN"),
        ([1, 1, 9, 9], "4 seeds tell it neither from the baseline nor from ROLLIN"),
    ],
)
def test_verdicts_by_hand(here: list[int], words: str) -> None:
    """Four against four: only groups that do not overlap differ, with p = 2/70."""
    assert ablations_page._verdict(here, [1, 1, 1, 1], [9, 9, 9, 9]) == words
