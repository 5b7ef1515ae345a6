"""Public names: their help, their text, what they refuse; old names work and warn."""

import inspect
import pydoc
import re
import sys
from collections.abc import Iterator
from importlib import import_module
from typing import Any

import gymnasium
import numpy as np
import pytest

import rollin
from rollin import RollinError
from rollin.deprecated import MOVED, RENAMED
from rollin.envs.point_umaze import PointUmaze
from tests.toys import Line

# ------------------------------------------------------------------ old names

END = rollin.EpisodeEnd(1, 1, 0, None, "train", True, 3, 4, 0.0, 2.0, 5, True, True, False)


@pytest.mark.parametrize(("name", "new"), RENAMED.items())
def test_old_names_work_and_warn(name, new):
    with pytest.warns(DeprecationWarning, match=f"rollin.{name} is now called") as told:
        found = getattr(rollin, name)
    assert found is getattr(rollin, new)
    assert told[0].filename == __file__


def test_old_names_of_fields_work_and_warn():
    with pytest.warns(DeprecationWarning, match=r"Plan\(ticket=…\) is now called plan_id=…"):
        plan = rollin.Plan(ticket=3, context=None)  # pyright: ignore[reportCallIssue]
    assert plan == rollin.Plan(3, None)
    with pytest.warns(DeprecationWarning, match=r"Plan.ticket is now called plan_id"):
        assert plan.ticket == 3  # pyright: ignore[reportAttributeAccessIssue]


def test_a_name_that_never_was_is_an_attribute_error():
    with pytest.raises(AttributeError, match="module 'rollin' has no attribute 'Course'"):
        _ = rollin.Course  # pyright: ignore[reportAttributeAccessIssue]


@pytest.mark.parametrize("name", MOVED)
def test_modules_that_moved_are_found_by_their_old_names(name):
    with pytest.warns(DeprecationWarning, match=f"{name} is now called {MOVED[name]}") as caught:
        __import__(name)
    assert sys.modules[name] is import_module(MOVED[name])
    if name == "rollin.school":
        assert sys.modules[name].School is rollin.CurriculumCoordinator
    assert caught[0].filename == __file__


def test_old_names_of_steps_work_and_warn():
    env = rollin.RollIn(gymnasium.make("CartPole-v1"))
    info = env.reset(seed=0)[1]
    for old, new in {"hidden": "rollin_steps", "cut": "failed_rollin_steps"}.items():
        with pytest.warns(DeprecationWarning, match=rf'\["{old}"\] is now called \["{new}"\]'):
            assert info["rollin_start"][old] == info["rollin_start"][new] == 0
        with pytest.warns(DeprecationWarning, match=f"EpisodeEnd.{old} is now called {new}"):
            assert getattr(END, old) == getattr(END, new)
        with pytest.warns(DeprecationWarning, match=f"CurriculumCoordinator.{old} is now called"):
            assert getattr(rollin.CurriculumCoordinator, old).fget(END) == getattr(END, new)
    with pytest.raises(KeyError):
        info["rollin_start"]["other"]
    with pytest.warns(DeprecationWarning, match="RollIn.enrol is now called attach_env"):
        env.enrol(0, 0)  # pyright: ignore[reportAttributeAccessIssue]


# ------------------------------------------------------------------ help

NAMES = sorted({*rollin.__all__} - {"__version__"})
INTERNAL = r"see above|see below|older name|pseudocode|docs/|\b(of )?ours\b|help texts? of"
ELSEWHERE = {"Box", "Dict", "Discrete", "TimeLimit", "None", "True", "False"}
"""Names in capitals that help may refer to, besides ours."""


def texts(name: str) -> Iterator[tuple[str, str]]:
    """What help shows of a name and of the members that our classes give it."""
    thing = getattr(rollin, name)
    yield name, inspect.getdoc(thing) or ""
    if not inspect.isclass(thing):
        return
    for base in thing.__mro__:
        for member in vars(base) if base.__module__.startswith("rollin") else ():
            if member == "__init__" or not member.startswith("_"):
                text = inspect.getdoc(getattr(thing, member, None))
                yield f"{name}.{member}", text or ""


@pytest.mark.parametrize("name", NAMES)
def test_help_has_no_internal_notes(name: str) -> None:
    for place, text in texts(name):
        assert not re.search(INTERNAL, text), f"{place}: {text}"


@pytest.mark.parametrize("name", NAMES)
def test_help_refers_to_public_names(name: str) -> None:
    for place, text in texts(name):
        text = text.split(">>>")[0]
        for path in re.findall(r"`rollin\.([\w.]+)", text):
            known = path.split(".")[0] in (*rollin.__all__, "teachers", "sb3")
            assert known, f"{place} refers to rollin.{path}, which is internal"
        for word in re.findall(r"`([A-Z][a-z]\w+)", text):
            known = word in rollin.__all__ or word in ELSEWHERE
            assert known, f"{place} refers to {word}, which rollin does not export"


@pytest.mark.parametrize("name", NAMES)
def test_help_of_a_constructor_is_about_its_arguments(name: str) -> None:
    thing = getattr(rollin, name)
    shown = pydoc.plain(pydoc.render_doc(thing))
    assert " at 0x" not in shown.split("\n\n")[1].splitlines()[0]
    if inspect.isclass(thing) and not issubclass(thing, Exception):
        text = inspect.getdoc(thing.__init__) or ""
        wrong = set(re.findall(r"^(\w+): ", text)) - {*inspect.signature(thing).parameters}
        assert not wrong, text


@pytest.mark.parametrize("field", rollin.Trained.__dataclass_fields__)
def test_help_explains_what_training_returns(field: str) -> None:
    assert re.search(rf"\b{field}\b[\w, ]*:\s", rollin.Trained.__doc__ or "")


# ------------------------------------------------------------------ text

RNG = np.random.default_rng(0)
FEW: Any = {"warmup": 60, "hidden": (8, 8), "batch": 16, "steps": 100}
WAY = rollin.Curriculum.along([[0, 0], [8, 0]], delta=1 / 96, rule=lambda kappa: 80 * kappa)
ROOMS = rollin.four_rooms("hard")
LONG = 160  # characters

MADE: dict[str, Any] = {
    **{n: getattr(rollin, n) for n in ("Bold", "EarlyGap", "Gap", "Halving", "Plateau")},
    **{n: getattr(rollin, n) for n in ("StepGap", "SuccessRate")},
    "BatchSPG": lambda: rollin.BatchSPG(ROOMS, 0.01),
    "Contextual": lambda: rollin.Contextual(
        gymnasium.make("Pendulum-v1"), gymnasium.spaces.Box(0, 1, (1,)), np.equal
    ),
    "ContextualMDP": lambda: ROOMS,
    "Curriculum": lambda: WAY,
    "ExactPG": lambda: rollin.ExactPG(ROOMS, 0.01),
    "GoalView": lambda: rollin.GoalView(PointUmaze()),
    "Grid": lambda: rollin.Grid(3, 3),
    "NaturalPG": lambda: rollin.NaturalPG(ROOMS, 0.01),
    "RandomHorizonSPG": lambda: rollin.RandomHorizonSPG(ROOMS, 0.1, lambda t: (1, 1.0)),
    "Replay": lambda: rollin.Replay(rollin.RowLayout(3, 1), 4),
    "ReturnThreshold": lambda: rollin.ReturnThreshold(lambda kappa: 80 * kappa),
    "RollIn": lambda: rollin.RollIn(PointUmaze()),
    "RowLayout": lambda: rollin.RowLayout(3, 1),
    "Solution": lambda: rollin.solve(rollin.corridor(8), steps=2),
    "Streams": lambda: rollin.Streams(0),
    "Study": lambda: rollin.Study.grid("mine", "point-umaze", beta=[0, 0.1, 0.2], gamma=[0.9]),
    "SubOptimality": lambda: rollin.SubOptimality(0.1),
    "ReachedGoalsTeacher": lambda: rollin.ReachedGoalsTeacher(
        WAY, to_context=np.asarray, fulfils=np.equal
    ),
    "SequentialTeacher": lambda: rollin.SequentialTeacher(WAY),
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
    assert repr(ROOMS) == "ContextualMDP(states=144, actions=105, K=16, gamma=0.95)"
    assert repr(rollin.SequentialTeacher(WAY, 0.25)) == "SequentialTeacher(k=0, K=96, beta=0.25)"
    assert repr(rollin.Gap(0.5, window=4)) == "Gap(share=0.5, window=4)"


def test_many_numbers_are_cut_off() -> None:
    wide = rollin.Curriculum.listed(np.zeros((2, 500)), 1.0)
    assert len(repr(wide)) <= LONG


# ------------------------------------------------------------------ wrong types and names

API: Any = rollin  # whose types are not checked here
TWO = rollin.Curriculum.listed([[0.0], [1.0]], 1.0)
MDP = rollin.corridor(4)


DIRECT = """Bold EarlyGap Gap GoalContext GoalView Halving Plateau ReturnThreshold RollIn
SequentialTeacher StepGap Streams SubOptimality SuccessRate check_env combination_lock corridor
four_rooms prepare solve square_grid train"""
CALLS: dict[str, Any] = {
    **{name: getattr(rollin, name) for name in DIRECT.split()},
    "BatchSPG": lambda x: rollin.BatchSPG(x, 0.1),
    "Contextual": lambda x: rollin.Contextual(x, gymnasium.spaces.Box(0, 1, (1,))),
    "ContextualMDP": lambda x: rollin.ContextualMDP(x, MDP.rewards, 0.9, MDP.rho),
    "Curriculum": lambda x: rollin.Curriculum(x, (0.0, 1.0), None),
    "ExactPG": lambda x: rollin.ExactPG(x, 0.1),
    "Grid": lambda x: rollin.Grid(x, 3),
    "NaturalPG": lambda x: rollin.NaturalPG(x, 0.1),
    "Policy": rollin.Policy.load,
    "RandomHorizonSPG": lambda x: rollin.RandomHorizonSPG(x, 0.1, lambda t: (1, 1.0)),
    "Replay": lambda x: rollin.Replay(x, 4),
    "RowLayout": lambda x: rollin.RowLayout(x, 4),
    "SACConfig": lambda x: rollin.SACConfig(hidden=x),
    "CurriculumCoordinator": lambda x: API.CurriculumCoordinator(x, None),
    "Study": lambda x: rollin.Study("mine", x),
    "ReachedGoalsTeacher": lambda x: rollin.ReachedGoalsTeacher(
        x, to_context=np.asarray, fulfils=np.equal
    ),
    "Wall": lambda x: rollin.Wall(x, 1),
    "analyse": lambda x: rollin.analyse(x, 0.1, 0.5),
    "attach": lambda x: rollin.attach(x, rollin.SequentialTeacher(TWO), lambda actor, seen: actor),
    "evaluate": lambda x: rollin.evaluate(lambda seen, context: [0.0], x),
    "grid_world": lambda x: rollin.grid_world(x, [(0, 0)], lambda d: d),
    "make_learner": lambda x: rollin.make_learner(x, 3, 1, rollin.SACConfig(), rollin.Streams(0)),
    "random_mdp": lambda x: rollin.random_mdp(x, seed=0),
    "relabel": lambda x: API.relabel(x, *[RNG] * 4),
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
        "max_episode_steps": "horizon", "train_freq": "update_every",
        "gradient_steps": "updates_per_step",
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
