"""Batches drawn before the environment's step: nothing but the time may change."""

from itertools import islice

import gymnasium
import numpy as np
import pytest

from rollin.deep.plain_sac import train_sac
from rollin.envs.box_env import BoxEnv
from rollin.sac import make_learner
from rollin.sac.config import SACConfig
from rollin.sac.cpu import learner as cpu
from rollin.sac.replay import Prefetcher, Replay, RowLayout
from rollin.streams import Streams


def train(threads: int, capacity: int, p: float | None) -> tuple[list[object], np.ndarray]:
    """Events of a short run, and its weights."""
    streams = Streams(5)
    config = SACConfig(hidden=(16, 16), batch=32, threads=threads)
    learner = make_learner("cpu", 3, 1, config, streams)
    assert learner.starts_early == (threads > 1)
    env, replay = BoxEnv(gymnasium.make("Pendulum-v1")), Replay(RowLayout(3, 1), capacity)
    events = list(islice(train_sac(env, learner, replay, streams, warmup=40, p=p), 300))
    theta = learner.get_state()["theta"]
    learner.close()
    env.close()
    return list(events), theta


# with few rows the newest is often among those drawn, and the oldest is overwritten
@pytest.mark.parametrize(("capacity", "p"), [(1000, None), (35, None), (1000, 0.005)])
def test_two_threads_train_as_one(monkeypatch, capacity, p):
    monkeypatch.setattr(cpu, "GRAIN", 1e-9)  # threads even where they are not worth it
    (one, theta), (two, same) = (train(threads, capacity, p) for threads in (1, 2))
    assert one == two
    np.testing.assert_array_equal(theta, same)


def test_an_update_begins_early_unless_the_row_to_come_is_in_it(monkeypatch):
    monkeypatch.setattr(cpu, "GRAIN", 1e-9)
    streams, replay = Streams(0), Replay(RowLayout(2, 1), 200)
    learner = make_learner("cpu", 2, 1, SACConfig(hidden=(8,), batch=8, threads=2), streams)
    rows = np.random.default_rng(0).uniform(-1, 1, (150, 2)).astype(np.float32)
    begun: list[bool] = []
    monkeypatch.setattr(learner, "begin", lambda: begun.append(True))
    ahead, other = Prefetcher(learner, replay, streams, None), Streams(0)
    for step, row in enumerate(rows):
        before = len(begun)
        if step >= 20:
            ahead.begin()
        replay.append(row, row[:1], 1.0, row, terminated=False, truncated=False)
        if step >= 20:
            ahead.update()
            picked = replay.draw(8, other["replay"])
            assert (len(begun) > before) == (step not in picked)
            wanted = replay.gather(picked, np.empty((8, 7), np.float32))
            np.testing.assert_array_equal(learner.batch, wanted)
    assert 0 < len(begun) < 130
    learner.close()
