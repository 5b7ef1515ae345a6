"""Updates per environment step: `update_every` and `updates_per_step`, in both deep loops."""

import copy
from dataclasses import replace
from itertools import islice
from typing import Any

import gymnasium
import numpy as np
import pytest

from rollin.deep.plain_sac import train_sac
from rollin.deep.rollin_sac import train_rollin
from rollin.envs.box_env import BoxEnv
from rollin.runs.engines import engine_for
from rollin.runs.engines.rollin_options import RollinConfig
from rollin.runs.engines.sac import SACRunConfig
from rollin.runs.spec import RunSpec, configured
from rollin.sac import make_learner
from rollin.sac.config import LearnerName, SACConfig
from rollin.sac.cpu import learner as cpu
from rollin.sac.learner import SACLearner, UpdateInfo
from rollin.sac.replay import Replay, RowLayout
from rollin.streams import Streams
from tests.deep.test_rollin_sac import TINY, begin

EVERY, TIMES, WARMUP = 7, 3, 40
OFTEN = {"update_every": EVERY, "updates_per_step": TIMES}
Appended = list[tuple[tuple[Any, ...], dict[str, Any]]]


def spy_on_rows(replay: Replay) -> Appended:
    """Record the arguments of every `append`."""
    rows: Appended = []
    append = replay.append

    def spied(*parts: Any, **more: Any) -> None:
        rows.append(copy.deepcopy((parts, more)))
        append(*parts, **more)

    replay.append = spied  # pyright: ignore[reportAttributeAccessIssue]
    return rows


def spy_on_updates(learner: SACLearner) -> tuple[list[np.ndarray], list[UpdateInfo]]:
    """Record batch and result of every update."""
    batches: list[np.ndarray] = []
    infos: list[UpdateInfo] = []
    update = learner.update

    def spied(batch: Any) -> UpdateInfo:
        batches.append(batch.copy())
        infos.append(update(batch))
        return infos[-1]

    learner.update = spied  # pyright: ignore[reportAttributeAccessIssue]
    return batches, infos


def same_state(one: SACLearner, other: SACLearner) -> None:
    first, second = one.get_state(), other.get_state()
    assert first["count"] == second["count"]
    for name in ("theta", "m", "v", "target"):
        np.testing.assert_array_equal(first[name], second[name])


def drawn_again(
    learner: SACLearner, rows: Appended, replay: Replay, p: float | None
) -> list[UpdateInfo | None]:
    """Separate updates from the recorded rows; the last result of every step, None without one."""
    batch = np.empty((learner.config.batch, replay.layout.batch_width), np.float32)
    last: list[UpdateInfo | None] = []
    for step, (parts, more) in enumerate(rows, 1):
        replay.append(*parts, **more)
        info = None
        if step > WARMUP and step in range(EVERY, 10_000, EVERY):
            for _ in range(TIMES):
                picked = replay.draw(len(batch), learner.streams["replay"], p)
                info = learner.update(replay.gather(picked, batch))
        last.append(info)
    return last


# few rows, and recent ones, often hold the newest, which a prefetched batch must wait for
@pytest.mark.parametrize(
    ("name", "threads", "capacity", "p"),
    [
        ("cpu", 1, 1000, None),
        ("cpu", 2, 1000, None),
        ("cpu", 2, 35, None),
        ("cpu", 2, 1000, 0.005),
        ("jax", 1, 1000, None),
    ],
)
def test_plain_sac_makes_the_updates_of_an_own_loop_to_the_bit(
    monkeypatch: Any, name: LearnerName, threads: int, capacity: int, p: float | None
) -> None:
    monkeypatch.setattr(cpu, "GRAIN", 1e-9)  # threads even where they are not worth it
    plain = SACConfig(hidden=(16, 16), batch=32)
    often = replace(plain, threads=threads, **OFTEN)
    streams, layout = Streams(5), RowLayout(3, 1)
    learner, replay = make_learner(name, 3, 1, often, streams), Replay(layout, capacity)
    assert learner.starts_early == (threads > 1)
    rows, env = spy_on_rows(replay), BoxEnv(gymnasium.make("Pendulum-v1"))
    events = list(islice(train_sac(env, learner, replay, streams, warmup=WARMUP, p=p), 300))
    other = make_learner(name, 3, 1, plain, Streams(5))
    last = drawn_again(other, rows, Replay(layout, capacity), p)
    assert [event.update for event in events] == last
    assert learner.count == TIMES * (300 // EVERY - WARMUP // EVERY) == 111
    same_state(learner, other)
    for part in (learner, other, env):
        part.close()


@pytest.mark.parametrize("threads", [1, 2])
def test_rollin_makes_the_updates_of_an_own_loop_to_the_bit(monkeypatch: Any, threads: int) -> None:
    monkeypatch.setattr(cpu, "GRAIN", 1e-9)
    state = begin(sac=replace(TINY, threads=threads, **OFTEN), beta=0.0, warmup=WARMUP)
    rows = spy_on_rows(state.D)
    events = list(islice(train_rollin(state), 300))
    other = begin(sac=TINY)
    assert [event.main for event in events] == drawn_again(other.main, rows, other.D, None)
    same_state(state.main, other.main)
    state.close()


@pytest.mark.parametrize("updates", ["detailed", "short"])
@pytest.mark.parametrize("prefix", ["replay", "hidden"])
def test_agents_learn_at_multiples_of_the_run_s_steps_and_so_often(
    updates: str, prefix: str
) -> None:
    short = updates == "short"
    sac = replace(TINY, **OFTEN)
    state = begin(sac=sac, warmup=WARMUP, updates=updates, prefix=prefix, beta=0.7)
    spied = {name: spy_on_updates(state.agents[name]) for name in ("main", "exp")}
    made = dict.fromkeys(spied, 0)
    explored = 0
    for event in islice(train_rollin(state), 1500):
        explored += event.actor == "exp"
        learning = event.step > WARMUP and event.step % EVERY == 0
        learning = learning and not (prefix == "hidden" and event.actor == "rollin")
        expected = {
            "main": learning and (short or event.actor == "main"),
            "exp": learning and (short or event.actor == "exp") and explored > 0,
        }
        for name, (batches, infos) in spied.items():
            made[name] += TIMES * expected[name]
            assert len(infos) == made[name], (name, event)
            assert getattr(event, name) == (infos[-1] if expected[name] else None)
            if expected["main"] and name == "main":
                assert not np.array_equal(batches[-1], batches[-2])  # each draws its own
        if event.mastered and event.k < 3:
            explored = 0
    assert made["exp"] > 20 * TIMES
    if short and prefix == "replay":
        assert made["main"] == TIMES * (1500 // EVERY - WARMUP // EVERY)


@pytest.mark.parametrize("options", [{"relabel": True}, {"better": 0.5}], ids=["relabel", "better"])
def test_every_update_has_a_batch_of_its_own_and_is_one_of_the_learner(options: Any) -> None:
    sac = replace(TINY, batch=12, update_every=5, updates_per_step=4)
    state = begin(sac=sac, warmup=WARMUP, **options)
    batches, infos = spy_on_updates(state.main)
    list(islice(train_rollin(state), 400))
    assert len(batches) > 100
    at_a_step = np.array(batches).reshape(-1, 4, batches[0].size)
    assert all(len(np.unique(step, axis=0)) == 4 for step in at_a_step)
    other = begin(sac=replace(TINY, batch=12), warmup=WARMUP)
    assert [other.main.update(batch) for batch in batches] == infos
    same_state(state.main, other.main)


# ------------------------------------------------------------------ options


@pytest.mark.parametrize("every", [1, 2, 7, 40, 41, 1000])
@pytest.mark.parametrize("warmup", [0, 39, 40, 41])
def test_the_first_update_is_at_the_first_multiple_after_the_random_steps(
    every: int, warmup: int
) -> None:
    steps = (step for step in range(1, 2000) if step > warmup and step % every == 0)
    assert SACConfig(update_every=every).first_update(warmup) == next(steps)


@pytest.mark.parametrize(
    ("task", "config"), [("point-umaze", RollinConfig()), ("Pendulum-v1", SACRunConfig())]
)
def test_the_defaults_leave_hashes_and_others_make_conditions(task: str, config: Any) -> None:
    def hashed(**options: Any) -> str:
        return RunSpec(task, configured(config, options)).hash

    assert hashed(update_every=1, updates_per_step=1) == RunSpec(task, config).hash
    others = [{"update_every": 20_000}, {"updates_per_step": 2}, {"updates_per_step": 3}]
    assert len({hashed(), *(hashed(**options) for options in others)}) == 4
    engine = engine_for(task)
    conditions = [engine.canonical(task, configured(config, options)) for options in ({}, *others)]
    assert [conditions.count(one) for one in conditions] == [1] * 4
