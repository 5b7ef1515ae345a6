"""Public names called with a wrong type for their main argument: one sentence each."""

from typing import Any

import gymnasium
import numpy as np
import pytest

import rollin
from rollin import RollinError
from tests.toys import Line

API: Any = rollin  # whose types are not checked here
TWO = rollin.Curriculum.listed([[0.0], [1.0]], 1.0)
RNG = np.random.default_rng(0)
MDP = rollin.corridor(4)


CALLS: dict[str, Any] = {
    "BatchSPG": lambda x: rollin.BatchSPG(x, 0.1),
    "Contextual": lambda x: rollin.Contextual(x, gymnasium.spaces.Box(0, 1, (1,))),
    "ContextualMDP": lambda x: rollin.ContextualMDP(x, MDP.rewards, 0.9, MDP.rho),
    "Curriculum": lambda x: rollin.Curriculum(x, (0.0, 1.0), None),
    "ExactPG": lambda x: rollin.ExactPG(x, 0.1),
    "Gap": rollin.Gap,
    "GoalContext": rollin.GoalContext,
    "GoalView": rollin.GoalView,
    "Grid": lambda x: rollin.Grid(x, 3),
    "Halving": rollin.Halving,
    "NaturalPG": lambda x: rollin.NaturalPG(x, 0.1),
    "Plateau": rollin.Plateau,
    "Policy": rollin.Policy.load,
    "RandomHorizonSPG": lambda x: rollin.RandomHorizonSPG(x, 0.1, lambda t: (1, 1.0)),
    "Replay": lambda x: rollin.Replay(x, 4),
    "ReturnThreshold": rollin.ReturnThreshold,
    "RollIn": rollin.RollIn,
    "RowLayout": lambda x: rollin.RowLayout(x, 4),
    "SACConfig": lambda x: rollin.SACConfig(hidden=x),
    "School": lambda x: API.School(x, None),
    "StepGap": rollin.StepGap,
    "Streams": rollin.Streams,
    "Study": lambda x: rollin.Study("mine", x),
    "SubOptimality": rollin.SubOptimality,
    "SuccessRate": rollin.SuccessRate,
    "Visited": lambda x: rollin.Visited(x, to_context=np.asarray, fulfils=np.equal),
    "Walk": rollin.Walk,
    "Wall": lambda x: rollin.Wall(x, 1),
    "analyse": lambda x: rollin.analyse(x, 0.1, 0.5),
    "attach": lambda x: rollin.attach(x, rollin.Walk(TWO), lambda actor, seen: actor),
    "check_env": rollin.check_env,
    "combination_lock": rollin.combination_lock,
    "corridor": rollin.corridor,
    "evaluate": lambda x: rollin.evaluate(lambda seen, context: [0.0], x),
    "four_rooms": rollin.four_rooms,
    "grid_world": lambda x: rollin.grid_world(x, [(0, 0)], lambda d: d),
    "make_learner": lambda x: rollin.make_learner(x, 3, 1, rollin.SACConfig(), rollin.Streams(0)),
    "prepare": rollin.prepare,
    "random_mdp": lambda x: rollin.random_mdp(x, seed=0),
    "relabel": lambda x: API.relabel(x, *[RNG] * 4),
    "solve": rollin.solve,
    "square_grid": rollin.square_grid,
    "train": rollin.train,
    "train_rollin": lambda x: next(rollin.train_rollin(x)),
    "evaluate a policy": lambda x: rollin.evaluate(x, "point-umaze"),
    "train with on_event": lambda x: API.train(Line, on_event=x or "no"),
    "Study.grid": lambda x: rollin.Study.grid("mine", x),
    "teachers.Uniform": lambda x: rollin.teachers.Uniform(x, 0.0, RNG),
    "teachers.make_teacher": lambda x: rollin.teachers.make_teacher(x, TWO, 0.0, RNG),
    "teachers.options_of": rollin.teachers.options_of,
}
DATA = {"Agent", "ContextualEnv", "EpisodeEnd", "Plan", "RollinError", "Solution", "Teacher"}
DATA |= {"Trained", "Transition", "__version__"}
"""Names that users subclass or receive, and plain data."""
FITTING = {("StepGap", "None"), ("Study.grid", "'four-rooms'"), ("Policy", "'four-rooms'")}


def test_every_public_name_is_called() -> None:
    assert {name.split(".")[0] for name in CALLS} - {"teachers"} >= set(rollin.__all__) - DATA


@pytest.mark.parametrize(
    "value", ["four-rooms", None, {"a": 1}, object()], ids=lambda v: str(v)[:9]
)
@pytest.mark.parametrize("name", CALLS)
def test_a_wrong_type_gets_one_sentence(name: str, value: Any) -> None:
    if (name, repr(value)) in FITTING:
        pytest.skip("it fits")
    with pytest.raises(RollinError) as caught:
        CALLS[name](value)
    said = str(caught.value)
    assert said.endswith((".", "?"))
    assert any(words in said for words in ("got", "no teacher", "is a tabular MDP", "Unknown task"))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: API.solve("four-rooms"), 'such as rollin.four_rooms("hard").'),
        (lambda: API.solve("random-mdp"), "got 'random-mdp': pass an MDP, such as rollin.random_"),
        (lambda: API.solve(MDP, rule=0.5), "rule must have a method mastered"),
        (lambda: API.solve(MDP, learner="exact"), "learner must be a policy-gradient learner"),
        (lambda: API.train("four-rooms"), "four-rooms is a tabular MDP: use rollin.solve(mdp)"),
        (lambda: API.train(42), "or the name of a task such as point-umaze, got 42."),
        (lambda: API.train(Line, out=3), "out must be the path of a run directory, got 3."),
    ],
)
def test_the_sentence_says_what_to_do(call: Any, message: str) -> None:
    with pytest.raises(RollinError) as caught:
        call()
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("name", "meant"),
    {
        "total_timesteps": "steps", "learning_starts": "warmup", "batch_size": "batch",
        "buffer_size": "capacity", "net_arch": "hidden", "lr": "learning_rate",
        "ent_coef": "initial_temperature", "tensorboard_log": "out", "callback": "on_event",
        "max_episode_steps": "horizon",
    }.items(),
)  # fmt: skip
def test_names_of_stable_baselines3_are_translated(name: str, meant: str) -> None:
    given: Any = {name: 1}
    with pytest.raises(RollinError, match=rf"no option {name}: it is called {meant} here\."):
        rollin.train(Line, **given)


@pytest.mark.parametrize(
    ("name", "meant"),
    {"hiden": "hidden", "on_evnt": "on_event", "curiculum": "curriculum", "adaptve": "adaptive",
     "verbos": "verbose"}.items(),
)  # fmt: skip
def test_a_misspelt_name_is_guessed(name: str, meant: str) -> None:
    given: Any = {name: 1}
    with pytest.raises(RollinError, match=rf"n has no option {name}\. Did you mean {meant}\?"):
        rollin.train(Line, **given)
    known = meant not in ("on_event", "verbose")  # to prepare, too
    with pytest.raises(RollinError) as caught:
        rollin.prepare(Line, **given)
    guess = f" Did you mean {meant}?" if known else ""
    assert str(caught.value) == f"rollin.prepare has no option {name}.{guess}"


def test_names_that_need_no_translation_are_taken() -> None:
    few: Any = {"gamma": 0.9, "learning_rate": 1e-3, "tau": 0.01, "target_entropy": -1.0}
    rollin.prepare(Line, **few).close()
