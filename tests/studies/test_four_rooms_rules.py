"""What the page of four rooms says about other rules of success, computed and run again."""

from itertools import islice

import numpy as np
import pytest
from studies.four_rooms_page import texts

import rollin
from rollin.tabular import algorithm1, soft
from rollin.tabular.families import COLLECT, GRID, four_rooms, path
from studies import four_rooms_returns as exact


def test_the_printed_rule_makes_easy_and_hard_returns_equal() -> None:
    goal = [exact.discounted(task, exact.goal_collector(task)) for task in last_tasks()]
    assert goal == pytest.approx([sum(0.95**t for t in range(16, 50))] * 2)  # 16 steps, then 1
    assert goal[0] == pytest.approx(7.26, abs=0.005)
    edge = [exact.discounted(task, exact.edge_collector(task)) for task in last_tasks()]
    assert edge[0] / edge[1] == pytest.approx(9.95, rel=0.01)


def last_tasks():
    return [four_rooms(reward).task(16) for reward in ("easy", "hard")]


@pytest.mark.parametrize(("reward", "last"), [("easy", 5), ("hard", 4)])
def test_the_first_contexts_pay_in_the_start_cell(reward: str, last: int) -> None:
    mdp = four_rooms(reward)
    paid = [k for k in range(17) if mdp.task(k).r[GRID.state((0, 0)), COLLECT] > 0]
    assert paid == list(range(last + 1))


def test_a_context_in_another_room_can_be_mastered_from_the_first() -> None:
    mdp = four_rooms("easy")
    state = algorithm1.TabularState.initial(mdp)
    learner = rollin.BatchSPG(mdp, 0.001, 0)
    steps = algorithm1.rollin(mdp, learner, 0.75, rollin.SuccessRate(0.5), state)
    next(step for step in islice(steps, 9000) if step.k == 15 and step.advance)
    assert path()[15] == (8, 7)
    log_pi = state.policies[15]
    visits = soft.visitation(mdp, log_pi, mdp.rho)
    first = np.array([max(GRID.cell(s)) <= 5 for s in range(GRID.n_states)])
    assert visits[first].sum() == pytest.approx(0.97, abs=0.005)
    collects = visits * np.exp(log_pi[:, COLLECT]) * (mdp.task(15).r[:, COLLECT] > 0)
    assert collects[GRID.state((5, 5))] / collects.sum() == pytest.approx(0.79, abs=0.005)


def test_the_tables_hold_the_published_values_and_every_setting() -> None:
    shown = texts()
    row = "| hard, α = 0.001 | 0.856 → 1.000 | 13×10 → 16×10 | 4×2 → 5×2 |"
    assert row in shown["rooms-success"]
    assert shown["rooms-success-from"].count("\n") == 4
    assert shown["rooms-mu"].count("\n") == 6
