"""Coordinators of Gymnasium's vector envs: every end once, on its own context, in every mode."""

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from gymnasium.vector import AsyncVectorEnv, AutoresetMode, SyncVectorEnv
from gymnasium.wrappers import TimeLimit
from hypothesis import example, given, settings
from hypothesis import strategies as st

from rollin import (
    Curriculum,
    CurriculumCoordinator,
    EpisodeEnd,
    Plan,
    RollIn,
    RollinError,
    SequentialTeacher,
    attach,
)
from rollin.agents.coordinator import FrozenActor
from rollin.teachers import Frontier, Uniform
from tests.agents.chain import Lengths, act
from tests.toys import PlansEach

MODES = tuple(AutoresetMode)


class Watched(SequentialTeacher):
    """A walk that keeps every plan and every end."""

    def __init__(self, contexts: int, episodes: int, beta: float) -> None:
        listed = [[float(i)] for i in range(contexts)]
        super().__init__(Curriculum.listed(listed, -1.0, episodes=episodes), beta)
        self.given: dict[int, Plan] = {}
        self.ends: list[tuple[int, EpisodeEnd]] = []  # k before the step, and an end in it
        self.before = 0

    def sample(self, env: int = 0) -> Plan:
        plan = super().sample(env)
        self.given[plan.plan_id] = plan
        return plan

    def update(self, end: EpisodeEnd) -> str | None:
        self.ends.append((self.before, end))
        return super().update(end)


class Once(Watched):
    """Another plan for every episode."""

    def sample(self, env: int = 0) -> Plan:
        plan = super().sample(env)
        return Plan(plan.plan_id, plan.context, standing=False)


def make(longest: int) -> Any:
    return RollIn(Lengths(longest))


def played(teacher: Any, count: int, mode: AutoresetMode, longest: int, steps: int, **how: Any):
    """Walk some steps; returns the coordinator and how many episodes ended, as the env tells."""
    processes = how.pop("processes", False)
    kind: Any = AsyncVectorEnv if processes else SyncVectorEnv
    if processes:  # other tests may have started threads of JAX, with which a fork is not safe
        how["context"] = "forkserver"
    envs = kind([lambda: make(longest)] * count, autoreset_mode=mode, **how)
    coordinator = attach(envs, teacher, act, gamma=0.7, seed=1)
    if coordinator.switched:
        coordinator.freeze(1)
    envs.reset(seed=3)
    ended, dones = 0, np.zeros(count, bool)
    for _ in range(steps):
        if mode is AutoresetMode.DISABLED and dones.any():
            coordinator.after_reset(envs.reset(options={"reset_mask": dones})[1])
        *_, terminated, truncated, infos = envs.step(np.zeros((count, 1), np.float32))
        dones = terminated | truncated
        teacher.before = teacher.k
        ends = coordinator.after_step(infos)
        assert len(ends) == dones.sum()
        ended += len(ends)
        if coordinator.switched:
            coordinator.freeze(teacher.k)
    envs.close()
    return coordinator, ended


def check(teacher: Watched, count: int, ended: int) -> None:
    ends = [end for _, end in teacher.ends]
    assert len(ends) == ended
    uses = [(end.env, end.plan_id, end.serial) for end in ends]
    assert len(set(uses)) == len(uses), "twice"
    late = np.zeros((count, teacher.curriculum.K + 1), int)
    for env in range(count):
        mine = [(k, end) for k, end in teacher.ends if end.env == env]
        plans = [end.plan_id for _, end in mine]
        assert plans == sorted(plans)
        for plan_id in set(plans):  # none lost: serials without a gap
            serials = [end.serial for _, end in mine if end.plan_id == plan_id]
            assert serials == list(range(1, len(serials) + 1))
        for k, end in mine:
            late[env, k] += teacher.context_of(end.plan_id) != k
    assert late.max() <= 1, "more than one old plan after the step of a switch"
    assert late.sum() <= teacher.late
    for end in ends:
        planned = teacher.given[end.plan_id].context
        assert end.context.tolist() == planned.tolist()
        assert end.total == planned[0] * end.length  # the reward is the context
        assert end.prefix_return == planned[0] * end.rollin_steps


@pytest.mark.parametrize("mode", MODES)
def test_episodes_that_look_ahead_are_played_under_the_final_context(mode: AutoresetMode) -> None:
    teacher = Watched(contexts=9, episodes=40, beta=0.5)
    teacher.look_every = 7
    _, ended = played(teacher, 3, mode, longest=6, steps=150)
    uses = {(end.env, end.plan_id, end.serial) for _, end in teacher.ends}
    assert len(uses) == len(teacher.ends) == ended
    for _, end in teacher.ends:
        assert end.context == teacher.curriculum.contexts[teacher.context_of(end.plan_id)]
    looks = [end for k, end in teacher.ends if end.context[0] == 8.0 and k < 8]
    assert len(looks) >= 3
    assert not any(end.rolled_in for end in looks)
    first = teacher.progress.advances[-1]  # every reward exceeds R, so that three looks lead there
    assert (first.k, teacher.k) == (8, 8)
    assert first.reason.endswith("under the final context, looked at ahead")


@settings(max_examples=25, deadline=None)
@given(
    st.integers(1, 8), st.integers(1, 7), st.sampled_from(MODES), st.integers(1, 3),
    st.sampled_from([0.0, 0.5, 0.9]), st.booleans(),
)  # fmt: skip
@example(3, 1, AutoresetMode.SAME_STEP, 1, 0.9, False)
@pytest.mark.filterwarnings("ignore:.*roll-ins ended")
def test_every_end_is_booked_once_and_on_its_own_context(n, longest, mode, episodes, beta, once):
    teacher = (Once if once else Watched)(4, episodes, beta)
    coordinator, ended = played(teacher, n, mode, longest, 40)
    if once:  # a plan in stock is one more that is old
        uses = {(end.env, end.plan_id) for _, end in teacher.ends}
        assert len(uses) == ended
        assert all(end.serial == 1 for _, end in teacher.ends)
    else:
        check(teacher, n, ended)
    assert (coordinator.episodes, coordinator.abandoned) == (ended, 0)
    assert coordinator.steps == teacher.steps


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.filterwarnings("ignore:.*roll-ins ended")
def test_envs_in_other_processes_do_as_those_in_this_one(mode):
    there, here = Watched(4, 2, 0.5), Watched(4, 2, 0.5)
    _, ended = played(there, 2, mode, 5, 30, processes=True)
    check(there, 2, ended)
    assert there.k == 3
    _, same = played(here, 2, mode, 5, 30)
    assert same == ended
    key = [(end.as_info(), k) for k, end in there.ends]
    for (one, k), (end_k, end) in zip(key, here.ends, strict=True):
        other = end.as_info()
        assert one.pop("context") == other.pop("context")
        assert (one, k) == (other, end_k)


def test_a_second_reset_that_burns_a_plan_abandons_it():
    teacher = Watched(2, 100, 0.0)
    envs = SyncVectorEnv([lambda: make(50)] * 2)
    coordinator = attach(envs, teacher, act)
    envs.reset(seed=0)
    _, infos = envs.reset()
    ends = coordinator.after_reset(infos)
    assert [(end.abandoned, end.length) for end in ends] == [(True, 0)] * 2
    assert (coordinator.abandoned, teacher.window.seen) == (2, 0)
    envs.close()


def test_a_guide_must_be_frozen_at_a_switch_and_is_needed_at_once_when_going_on():
    teacher = Watched(3, 1, 0.5)
    envs = SyncVectorEnv([lambda: make(1)])
    coordinator = attach(envs, teacher, act)
    envs.reset(seed=0)
    infos: Mapping[str, Any] = envs.step(np.zeros((1, 1), np.float32))[-1]
    coordinator.after_step(infos)
    assert coordinator.switched == "mean return 0 of the last 1 episodes > -1"
    with pytest.raises(
        RollinError, match=r"moved on \(mean return 0.*coordinator.freeze\(deepcopy"
    ):
        coordinator.after_step({})
    coordinator.freeze(1)
    assert (coordinator.switched, coordinator.version) == (None, 1)
    later = Watched(3, 1, 0.5)
    state = coordinator.get_state()
    again = CurriculumCoordinator(later, coordinator.link, 0.7, act=act)
    again.set_state(state)
    again.begin()
    assert (later.k, again.switched) == (1, "it begins there")
    again.freeze(1)
    envs.reset()
    with pytest.raises(RollinError, match="saved with 1 envs and resumes with 2"):
        attach(SyncVectorEnv([lambda: make(1)] * 2), Watched(3, 1, 0.5), act).set_state(state)


def looped(envs: Any, coordinator: CurriculumCoordinator, steps: int) -> list[EpisodeEnd]:
    """Some steps of the loop in the documentation; returns the ends."""
    ends: list[EpisodeEnd] = []
    for _ in range(steps):
        ends += coordinator.after_step(envs.step(np.zeros((envs.num_envs, 1), np.float32))[-1])
        if coordinator.switched:
            coordinator.freeze(1)
    return ends


@pytest.mark.parametrize("kind", [Watched, Once])
@pytest.mark.parametrize("mode", [AutoresetMode.NEXT_STEP, AutoresetMode.SAME_STEP])
@pytest.mark.filterwarnings("ignore:.*roll-ins ended")
def test_a_coordinator_resumes_from_a_state_in_other_envs_and_in_its_own(kind, mode):
    def begun() -> tuple[Any, CurriculumCoordinator]:
        envs = SyncVectorEnv([lambda: make(6)] * 2, autoreset_mode=mode)
        coordinator = attach(envs, kind(4, 10, 0.5), act, gamma=0.7)
        envs.reset(seed=0)
        return envs, coordinator

    envs, coordinator = begun()
    looped(envs, coordinator, 30)
    state = json.loads(json.dumps(coordinator.get_state()))
    first, steps = state["teacher"]["next_id"], state["counts"][0]
    assert state["guide"] == (1 if kind is Watched else 0)
    looped(envs, coordinator, 40)
    found = []
    for places, again in (begun(), (envs, coordinator)):
        again.set_state(state)
        if state["guide"]:
            again.load(FrozenActor(act, 1), state["guide"])
        again.begin()
        assert again.switched is None
        places.reset(seed=5)
        ends = looped(places, again, 60)
        assert min(end.plan_id for end in ends) == first
        assert again.steps == steps + sum(end.steps for end in ends)
        found.append(
            [(end.env, end.plan_id, end.serial, end.total, end.rollin_steps) for end in ends]
        )
    assert found[0] == found[1]


def test_infos_that_are_passed_twice_are_refused():
    envs = SyncVectorEnv([lambda: make(1)])
    coordinator = attach(envs, Watched(2, 100, 0.0), act)
    envs.reset(seed=0)
    infos = envs.step(np.zeros((1, 1), np.float32))[-1]
    coordinator.after_step(infos)
    with pytest.raises(RollinError, match="ended plan 1, use 1, twice"):
        coordinator.after_step(infos)


def test_a_time_limit_outside_is_told_with_the_fix():
    envs = SyncVectorEnv([lambda: TimeLimit(make(10**6), 4)])
    coordinator = attach(envs, Watched(2, 100, 0.0), act)
    envs.reset(seed=0)

    def five() -> None:
        for _ in range(6):
            coordinator.after_step(envs.step(np.zeros((1, 1), np.float32))[-1])

    with pytest.raises(RollinError, match=r"after 4 steps by a wrapper outside.*TimeLimit inside"):
        five()


def test_vector_envs_without_the_wrapper_and_other_things_are_refused():
    with pytest.raises(RollinError, match=r"must be wrapped in rollin.RollIn"):
        attach(SyncVectorEnv([lambda: Lengths()]), Watched(2, 1, 0.0), act)
    lengths: Any = make(3)
    with pytest.raises(RollinError, match=r"vector env of Gymnasium is needed, got RollIn"):
        attach(lengths, Watched(2, 1, 0.0), act)
    nothing: Any = None
    with pytest.raises(RollinError, match=r"act must be a function"):
        attach(SyncVectorEnv([lambda: make(3)]), Watched(2, 1, 0.0), nothing)
    with pytest.raises(RollinError, match=r"A teacher must have"):
        attach(SyncVectorEnv([lambda: make(3)]), nothing, act)


def test_two_teachers_for_one_env_are_refused_and_one_is_shared():
    walk = Watched(2, 1, 0.0)
    envs = SyncVectorEnv([lambda: RollIn(Lengths(2), walk)])
    with pytest.raises(RollinError, match=r"holds another teacher"):
        attach(envs, Watched(2, 1, 0.0), act)
    coordinator = attach(envs, walk, act)
    envs.reset(seed=0)
    coordinator.after_step(envs.step(np.zeros((1, 1), np.float32))[-1])
    viewer = RollIn(
        Lengths(1), walk
    )  # made for evaluation: the coordinator has claimed the teacher
    before = walk.get_state()
    viewer.reset(seed=0)
    viewer.step(np.zeros(1, np.float32))
    viewer.reset()
    assert walk.get_state() == before


def test_streams_of_envs_differ_by_their_index():
    class Fixed(Watched):
        def sample(self, env: int = 0) -> Plan:
            return Plan(super().sample(env).plan_id, np.ones(1), 0.5, guide=1)

    teacher = Fixed(2, 10**6, 0.0)
    envs = SyncVectorEnv([lambda: make(10**6)] * 2)
    coordinator = attach(envs, teacher, act, gamma=0.9)
    coordinator.freeze(1)
    hidden = np.array([envs.reset(seed=i)[1]["rollin_start"]["rollin_steps"] for i in range(30)])
    assert (hidden[:, 0] != hidden[:, 1]).any()


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.filterwarnings("ignore:.*roll-ins ended")
def test_plans_for_one_episode_each_may_follow_a_standing_one(mode):
    listed = Curriculum.listed([[float(i)] for i in range(4)], -1.0, episodes=5)
    teacher = PlansEach(listed, 0.5)
    coordinator, ended = played(teacher, 3, mode, longest=3, steps=60)
    assert (teacher.k, coordinator.episodes) == (3, ended)
    assert coordinator.rollin_steps > 0


class Winning(Uniform):
    """Draws contexts for a learner that always succeeds, so that more is mastered again and again.

    Each plan asks for the guide of its time.
    """

    def update(self, end: EpisodeEnd) -> str | None:
        return super().update(replace(end, success=True))


@pytest.mark.parametrize("mode", MODES)
def test_plans_in_stock_still_find_the_guide_that_they_were_made_for(mode):
    curriculum = Curriculum.listed([[float(i)] for i in range(97)], 0.0)
    teacher = Winning(curriculum, 0.5, np.random.default_rng(0))
    teacher.cells.slow = [0.35] * len(teacher.cells)  # all nearly mastered: news come in a row
    coordinator, ended = played(teacher, 8, mode, longest=6, steps=150)
    assert coordinator.episodes == ended
    assert coordinator.version > 3
    assert coordinator.rollin_steps > 0


class Asks(Watched):
    """Asks for three guides at the first three ends: the one that is loaded, and two others."""

    def sample(self, env: int = 0) -> Plan:
        plan = super().sample(env)
        guide = min(max(plan.plan_id - 5, 2), 4)  # the first six plans stand in stock
        return Plan(plan.plan_id, plan.context, 0.5, guide=guide, standing=False)


@pytest.mark.filterwarnings("ignore:.*roll-ins ended")
def test_all_guides_that_are_asked_for_in_one_step_are_loaded_and_older_ones_stay():
    envs = SyncVectorEnv([lambda: make(1)] * 3, autoreset_mode=AutoresetMode.SAME_STEP)
    coordinator = attach(envs, Asks(2, 10**6, 0.0), act)
    coordinator.freeze(1)
    assert coordinator.version == 2
    envs.reset(seed=0)
    ends = looped(envs, coordinator, 3)
    assert [end.plan_id for end in ends] == [1, 2, 3, 4, 5, 6, 7, 8, 9]
    assert coordinator.version == 4
    for seed in range(4):
        curriculum = Curriculum.listed([[float(i)] for i in range(97)], 0.0)
        teacher = Winning(curriculum, 0.5, np.random.default_rng(seed))
        teacher.cells.slow = [0.49] * len(teacher.cells)
        coordinator, ended = played(teacher, 8, AutoresetMode.SAME_STEP, longest=1, steps=30)
        assert (coordinator.episodes, ended) == (240, 240)


@pytest.mark.parametrize("kind", [Uniform, Frontier])
def test_a_guide_that_is_needed_after_the_teacher_advanced_is_asked_for_in_words(kind):
    curriculum = Curriculum.listed([[float(i)] for i in range(97)], 0.0)
    teacher = kind(curriculum, 0.5, np.random.default_rng(0))
    teacher.cells.slow[0] = 0.9
    assert teacher._judge()  # it has advanced
    draws = iter([0, 0, *[50] * 99])  # the first cell's plans need none
    teacher._draw = lambda: next(draws)
    envs = SyncVectorEnv([lambda: make(1)])
    coordinator = attach(envs, teacher, act)
    assert coordinator.switched is None
    envs.reset(seed=0)
    coordinator.after_step(envs.step(np.zeros((1, 1), np.float32))[-1])
    assert coordinator.switched == "its plans need a guide"
    coordinator.freeze(1)
    looped(envs, coordinator, 20)
    assert coordinator.version == 2
    assert coordinator.rollin_steps + coordinator.failed_rollin_steps > 0
