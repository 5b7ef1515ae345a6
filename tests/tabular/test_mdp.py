import itertools

import numpy as np
import pytest

from rollin.errors import RollinError
from rollin.tabular.families import COLLECT, GRID, MOVES, Grid, Wall, four_rooms, grid_world, path
from rollin.tabular.mdp import ContextualMDP
from tests.conftest import random_log_pi, random_mdp


def test_policy_kernel_and_expected_next_agree_between_table_and_probabilities() -> None:
    table = random_mdp(1, S=5, A=4, deterministic=True)
    dense = table.replace(transitions=np.eye(5)[table.transitions])
    pi = np.exp(random_log_pi(table, 2))
    values = np.arange(5.0)
    np.testing.assert_allclose(table.policy_kernel(pi), dense.policy_kernel(pi), atol=1e-15)
    np.testing.assert_allclose(table.expected_next(values), dense.expected_next(values))
    np.testing.assert_allclose(table.policy_kernel(pi).sum(1), 1)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"rewards": np.full((2, 2, 1), -0.1)}, r"rewards must lie in \[0, 1\].*-0.1"),
        ({"rewards": np.full((2, 2, 1), 1.5)}, r"rewards must lie in \[0, 1\].*1.5"),
        ({"rewards": np.full((2, 2, 1), np.nan)}, r"rewards must lie in \[0, 1\]"),
        ({"rewards": np.zeros((1, 2, 1))}, "at least two contexts"),
        ({"rewards": np.zeros((2, 2))}, r"shape \(K\+1, S, A\)"),
        ({"gamma": 1.0}, r"gamma must lie in \[0, 1\), got 1.0"),
        ({"gamma": -0.1}, "gamma must lie"),
        ({"rho": np.array([0.5, 0.4])}, "rho.* must sum to 1, got 0.9"),
        ({"rho": np.array([1.5, -0.5])}, "rho must hold finite values ≥ 0"),
        ({"rho": np.ones(3) / 3}, r"rho must have shape \(2,\)"),
        ({"transitions": np.full((2, 1, 2), 0.6)}, r"transitions row \(0, 0\) must sum to 1"),
        ({"transitions": np.array([[0], [2]])}, "Next states must lie in 0 … 1"),
        ({"transitions": np.array([[0.0], [1.0]])}, "must hold integers"),
        ({"transitions": np.zeros((3, 1), int)}, r"shape \(2, 1\)"),
        ({"contexts": np.zeros((3, 2))}, "contexts must be 2 finite vectors"),
        ({"success": np.zeros((2, 2, 1))}, "success must hold booleans"),
    ],
)
def test_bad_input_is_named(change: dict[str, object], words: str) -> None:
    good = {
        "transitions": np.array([[1], [0]]),
        "rewards": np.ones((2, 2, 1)),
        "gamma": 0.9,
        "rho": np.array([1.0, 0.0]),
    }
    ContextualMDP(**good)  # type: ignore[arg-type]
    with pytest.raises(RollinError, match=words):
        ContextualMDP(**{**good, **change})  # type: ignore[arg-type]


def test_save_and_load_round_trip(tmp_path, mdp: ContextualMDP) -> None:
    mdp.save(tmp_path / "mdp.npz")
    back = ContextualMDP.load(tmp_path / "mdp.npz")
    assert back.fingerprint() == mdp.fingerprint()


def test_load_names_what_is_missing_or_broken(tmp_path) -> None:
    np.savez(tmp_path / "half.npz", rewards=np.zeros((2, 1, 1)))
    with pytest.raises(RollinError, match="must hold transitions, rewards, gamma, rho"):
        ContextualMDP.load(tmp_path / "half.npz")
    (tmp_path / "not.npz").write_text("hello")
    with pytest.raises(RollinError, match=r"cannot be read as an \.npz"):
        ContextualMDP.load(tmp_path / "not.npz")


def test_smooth_rho_mixes_in_a_uniform_share() -> None:
    mdp = four_rooms().smooth_rho(0.01)
    assert mdp.rho[0] == pytest.approx(0.99 + 0.01 / 144)
    assert mdp.rho[5] == pytest.approx(0.01 / 144)
    with pytest.raises(RollinError, match=r"\[0, 1\]"):
        four_rooms().smooth_rho(1.1)


def test_walls_block_and_doors_let_pass() -> None:
    grid = Grid(4, 3, walls=(Wall("x", 1, doors=(2,)),))
    right, up = MOVES[0], MOVES[2]
    assert grid.blocked((1, 0), right)
    assert grid.blocked((2, 1), MOVES[1])
    assert not grid.blocked((1, 2), right)
    assert not grid.blocked((0, 0), right)
    assert grid.blocked((3, 0), right)
    assert not grid.blocked((1, 0), up)
    table = grid.transitions(dummy_actions=2)
    assert table.shape == (12, 7)
    assert (table[:, COLLECT:] == np.arange(12)[:, None]).all()
    assert table[grid.state((1, 0)), 0] == grid.state((1, 0))
    assert table[grid.state((1, 2)), 0] == grid.state((2, 2))


@pytest.mark.parametrize(
    ("build", "words"),
    [
        (lambda: Grid(0, 3), "width must be at least 1"),
        (lambda: Grid(3, 3, (Wall("z", 0),)), "axis"),
        (lambda: Grid(3, 3, (Wall("x", 2),)), "must lie at 0 … 1"),
        (lambda: Grid(3, 3, (Wall("x", 1, (3,)),)), "Doors"),
        (lambda: Grid(3, 3).state((3, 0)), "outside"),
        (lambda: Grid(3, 3).transitions(-1), "dummy"),
        (lambda: grid_world(Grid(2, 1), [(0, 0), (1, 0)], np.ones_like, success="x"), "success"),
        (lambda: four_rooms("medium"), "easy"),
    ],
)
def test_bad_grids_are_named(build, words: str) -> None:
    with pytest.raises(RollinError, match=words):
        build()


def test_four_rooms_is_the_papers() -> None:
    mdp = four_rooms("hard")
    assert (mdp.n_states, mdp.n_actions, mdp.K) == (144, 105, 16)
    goals = path()
    assert goals[0] == (0, 0)
    assert goals[-1] == (8, 8)
    for (x, y), (u, v) in itertools.pairwise(goals):
        assert abs(x - u) + abs(y - v) == 1
        assert not GRID.blocked((x, y), (u - x, v - y))  # the path passes through doors
    last = mdp.task(16)
    assert last.r[GRID.state((8, 8)), COLLECT] == 1
    assert last.r[GRID.state((8, 6)), COLLECT] == 0.25
    assert last.r[GRID.state((6, 6)), COLLECT] == 0.5**4
    assert last.r[GRID.state((5, 6)), COLLECT] == 0  # five steps away: beyond the threshold
    easy = four_rooms("easy").task(16)
    assert easy.r[GRID.state((5, 6)), COLLECT] == pytest.approx(0.9**5)
    assert easy.r[GRID.state((4, 6)), COLLECT] == 0
    assert last.r[:, [0, 1, 2, 3, *range(5, 105)]].sum() == 0


def test_success_rules() -> None:
    rewarded, goal = four_rooms("easy"), four_rooms("easy", success="goal")
    assert (rewarded.success == (rewarded.rewards > 0)).all()
    assert goal.success.sum() == 17
    assert goal.success[16, GRID.state((8, 8)), COLLECT]


def test_reaching_the_goal_is_being_there_at_any_time() -> None:
    """Beside trajectories played by hand, of which some end on the goal without acting there."""
    mdp = four_rooms("hard", success="reached")
    rng = np.random.default_rng(0)
    reached = set()
    for k in (0, 1, 5):
        goal = GRID.state(path()[k])
        for _ in range(200):
            states, hit, s = [0], False, 0
            for a in rng.integers(0, len(MOVES), 8):
                hit |= bool(mdp.success[k, s, a])
                s = int(mdp.transitions[s, a])
                states.append(s)
            assert hit == (goal in states)
            reached.add((k, hit, states.index(goal) if hit else None))
    assert {(0, True, 0), (5, False, None)} <= reached
    assert any(at == 8 for _, _, at in reached)  # after the last action
    with pytest.raises(RollinError, match='"rewarded", "goal" or "reached"'):
        four_rooms("hard", success="near")
