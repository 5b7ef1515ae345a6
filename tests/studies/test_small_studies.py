"""Tables on visited places and on MDPs without a threshold: what the committed records say."""

import pytest

from studies import curricula_page, tabular_gap


def test_every_arm_has_its_seeds_and_the_mean_of_its_goals() -> None:
    rows = [line.strip("| ").split(" | ") for line in curricula_page.visited().splitlines()[2:]]
    assert len(rows) == len(curricula_page.ARMS)
    for name, seeds, solved, mean, _ in rows:
        goals = [int(text) for text in solved.partition(" (")[0].split(", ")]
        assert name in curricula_page.ARMS.values()
        assert len(goals) == int(seeds) == 5
        assert float(mean) == pytest.approx(sum(goals) / 5)


def test_every_mdp_is_solved_with_either_rule() -> None:
    rows = [line.strip("| ").split(" | ") for line in tabular_gap.table().splitlines()[2:]]
    assert len(rows) == len(tabular_gap.FAMILIES.conditions) / 2
    for *_, known, gap, ratio in rows:
        steps = [int(text.replace(",", "")) for text in (known, gap)]
        assert float(ratio) == pytest.approx(steps[1] / steps[0], abs=0.02)
