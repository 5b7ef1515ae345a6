"""Teachers and envs that do not suit each other are refused before an episode is played."""

from dataclasses import replace
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces
from gymnasium.vector import AsyncVectorEnv, SyncVectorEnv
from gymnasium.wrappers import FlattenObservation, TransformObservation

from rollin import (
    Contextual,
    Curriculum,
    Plan,
    ReachedGoalsTeacher,
    RollIn,
    RollinError,
    SequentialTeacher,
    Teacher,
    attach,
)
from rollin.envs.point_umaze import PointUmaze
from rollin.teachers import TEACHERS, make_teacher
from tests.agents.chain import Lengths, Stateless, act, still
from tests.toys import Line, PointGoal

NOT_CONTEXTUAL = (
    r"CartPole-v1 cannot follow the contexts of a {}, because its context_space must be a "
    r"one-dimensional Box, got None: rollin\.Contextual\(env, context_space, …\) makes"
)


def way(*contexts: list[float], R: float = -1.0) -> Curriculum:
    return Curriculum.listed(contexts or ([0.0], [1.0], [2.0]), R, episodes=2)


def cart() -> Any:
    return gymnasium.make("CartPole-v1")


def teachers() -> list[Teacher]:
    stream = np.random.default_rng(0)
    visited = ReachedGoalsTeacher(
        way(), to_context=np.asarray, fulfils=lambda o, c: np.ones((len(o), len(c)))
    )
    return [SequentialTeacher(way(), beta=0.0), SequentialTeacher(way(), beta=0.5), visited] + [
        make_teacher(name, way(), 0.0, stream) for name in TEACHERS
    ]


@pytest.mark.parametrize("teacher", teachers(), ids=lambda teacher: type(teacher).__name__)
def test_every_teacher_refuses_an_env_that_ignores_contexts_when_it_is_wrapped(teacher):
    words = NOT_CONTEXTUAL.format(type(teacher).__name__)
    with pytest.raises(RollinError, match=words):
        RollIn(cart(), teacher)
    with pytest.raises(RollinError, match=words):
        RollIn(cart(), teacher, reports=False)
    with pytest.raises(RollinError, match=words):
        attach(SyncVectorEnv([lambda: RollIn(cart())] * 2), teacher, act)


def test_a_coordinator_refuses_an_env_that_ignores_contexts_in_another_process():
    envs = AsyncVectorEnv([lambda: RollIn(cart())], context="forkserver")
    try:
        with pytest.raises(RollinError, match=NOT_CONTEXTUAL.format("SequentialTeacher")):
            attach(envs, SequentialTeacher(way()), act)
    finally:
        envs.close()


def test_a_goal_env_and_contexts_that_are_no_vectors_are_refused():
    with pytest.raises(
        RollinError, match=r"PointGoal cannot.*rollin\.GoalContext\(env\) of a goal"
    ):
        RollIn(PointGoal(), SequentialTeacher(way()))
    levels: Any = Lengths()
    levels.context_space = spaces.Discrete(3)
    with pytest.raises(RollinError, match=r"one-dimensional Box, got Discrete\(3\)"):
        RollIn(levels, SequentialTeacher(way()))


@pytest.mark.parametrize(
    ("contexts", "words"),
    [
        (([0.0], [101.0]), r"follow context 1 of .* The context \[101.0\] lies outside the "),
        (([-1.0], [1.0], [2.0]), r"follow context 0 of .* The context \[-1.0\] lies outside"),
        (([0.0, 0.0], [1.0, 1.0]), r"Lengths cannot .* must have shape \(1,\), .* got \(2,\)"),
    ],
)
def test_a_curriculum_that_does_not_fit_the_context_space_is_refused_as_a_whole(contexts, words):
    with pytest.raises(RollinError, match=words):
        RollIn(Lengths(), SequentialTeacher(way(*contexts)))
    with pytest.raises(RollinError, match=words):
        attach(SyncVectorEnv([lambda: RollIn(Lengths())]), SequentialTeacher(way(*contexts)), act)


def test_the_bounds_of_the_space_are_inside_in_its_own_precision():
    env: Any = Lengths()
    env.context_space = spaces.Box(0.0, 0.1, (1,), np.float32)
    env.observation_space["context"] = env.context_space
    RollIn(env, SequentialTeacher(way([0.0], [0.1])))  # as float32, 0.1 lies above 0.1


def test_observations_without_a_place_for_the_guide_s_context_are_refused_at_once():
    def flat(env: Any) -> Any:
        seen = spaces.Box(0, 1e9, (1,), np.float64)
        return TransformObservation(env, lambda found: found["observation"], seen)

    with pytest.raises(RollinError, match=r"observations of Lengths have no place for it.*show="):
        RollIn(flat(Lengths()), SequentialTeacher(way(), beta=0.5))
    with pytest.raises(RollinError, match="have no place for it"):
        attach(
            SyncVectorEnv([lambda: RollIn(flat(Lengths()))]),
            SequentialTeacher(way(), beta=0.5),
            act,
        )
    RollIn(flat(Lengths()), SequentialTeacher(way(), beta=0.0))
    RollIn(flat(Lengths()), SequentialTeacher(way(), beta=0.5), show=False)
    RollIn(
        flat(Lengths()),
        SequentialTeacher(way(), beta=0.5),
        show=lambda observation, context: observation,
    )
    RollIn(flat(Lengths()), SequentialTeacher(way(), beta=0.5), reports=False)
    RollIn(FlattenObservation(Lengths()), SequentialTeacher(way(), beta=0.5))


def test_observations_that_show_contexts_of_another_size_are_refused_at_once():
    env: Any = Lengths()
    env.observation_space["context"] = spaces.Box(0, 1, (4,), np.float64)  # such as one-hot
    with pytest.raises(RollinError, match=r"of Lengths show contexts of shape \(4,\): give both"):
        RollIn(env, SequentialTeacher(way(), beta=0.5))
    RollIn(env, SequentialTeacher(way(), beta=0.0))


def test_a_teacher_that_sets_starts_refuses_an_env_that_takes_none():
    stream = np.random.default_rng(0)
    with pytest.raises(RollinError, match=r"Reverse chooses where episodes begin, and Line cannot"):
        RollIn(Line(), make_teacher("reverse", way(), 0.0, stream))
    maze = PointUmaze()
    assert maze.curriculum is not None
    RollIn(maze, make_teacher("reverse", maze.curriculum, 0.0, stream))


class Alternates(Stateless):
    """A teacher without a curriculum."""

    def __init__(self, *contexts: Any) -> None:
        self.contexts = contexts

    def sample(self, env: int = 0) -> Plan:
        self.plans += 1
        context = self.contexts[self.plans % len(self.contexts)]
        return Plan(self.plans, context, standing=False)


def test_plans_of_a_teacher_without_a_curriculum_are_checked_one_by_one():
    with pytest.raises(RollinError, match=r"CartPole-v1 cannot follow the context \[1.0\]"):
        RollIn(cart(), Alternates([1.0])).reset(seed=0)
    with pytest.raises(RollinError, match="cannot follow the context"):
        attach(SyncVectorEnv([lambda: RollIn(cart())]), Alternates([1.0]), act)
    with pytest.raises(RollinError, match=r"\[-1.0\] lies outside"):
        RollIn(Lengths(), Alternates([-1.0])).reset(seed=0)
    RollIn(cart(), Alternates(None)).reset(seed=0)
    with pytest.raises(RollinError, match=r"CartPole-v1 cannot follow the context \[1.0\]"):
        RollIn(cart()).set_context([1.0])
    RollIn(cart()).reset(seed=0, options={"context": [1.0]})  # the env's own affair


def test_an_env_that_has_contexts_and_ignores_the_option_is_refused_at_its_first_reset():
    class Ignores(Lengths):
        def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
            return super().reset(seed=seed)

    env = RollIn(Ignores(), SequentialTeacher(way([1.0], [2.0]), beta=0.0))
    with pytest.raises(RollinError, match=r"Ignores was given the context \[1.0\] and shows \[0.0"):
        env.reset(seed=0)


def test_what_the_message_advises_works():
    gravity = spaces.Box(1.0, 20.0, (1,), np.float64)
    made = Contextual(cart(), gravity, context="gravity")
    walk = SequentialTeacher(way([5.0], [9.8]), beta=0.5)
    env = RollIn(made, walk, guide=lambda observation, context: 0, gamma=0.5)
    observed, _ = env.reset(seed=0)
    assert observed["context"].tolist() == [5.0]
    assert env.get_wrapper_attr("gravity") == 5.0


def test_an_offer_is_what_a_coordinator_reads():
    env = RollIn(PointUmaze(), guide=still)
    assert env.offer == replace(
        env.offer, space=PointUmaze().context_space, shows=True, starts=True
    )
    assert env.offer.place == (2,)
