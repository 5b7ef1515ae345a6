"""Why roll-in helps, if it does: how often the next goal is touched, and from where.

    python -m studies.mechanism results/mechanism

Trains ROLLIN on point-umaze; at every switch to a context ω_k, before anything is learned on it,
episodes are played to count how many touch the new goal (come within its reward radius):

- main: π_main(·|ω_k) from the start, what the baseline explores with;
- fresh: a new π_exp from the start, what the ablation explores with;
- rollin: π_main(·|ω_{k-1}) for a geometric number of steps, then a new π_exp, as ROLLIN does.

The counts are numbers of the switches in the records. It is a script and no sweep, because it looks
into the run while that goes on: a run directory would have to name code to be called, and to save
that code's state. The probe draws from streams of its own, so that the runs are those of
studies/point_umaze.toml to the bit.
"""

import argparse
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np

import rollin
from rollin.deep.state import DeepState
from rollin.envs.context_env import ContextEnv
from rollin.envs.point_umaze import PointUmaze
from rollin.runs.files import make_directory, write_atomically, write_json
from rollin.runs.records import Costs, Curve, Record, Switch, write_records
from rollin.runs.systems import processor, versions
from rollin.sac import make_learner
from rollin.streams import Streams
from rollin.sweeps.condition import Condition
from rollin.sweeps.study import Study
from rollin.sweeps.sweep import SWEEP_FILE

EPISODES = 200
WAYS = ("main", "fresh", "rollin")
CONDITION = Condition({"method": "rollin", "beta": "0.1"}, "point-umaze", {"beta": 0.1})
STUDY = Study("mechanism", (CONDITION,), title="Who touches the next goal on point-umaze?")


class Probe:
    """Plays episodes with copies of the agents, on its own env and random numbers."""

    def __init__(self, state: DeepState, seed: int) -> None:
        self.state, self.env = state, ContextEnv(PointUmaze())
        self.streams = Streams(1000 + seed)
        layout, config = state.main.layout, state.main.config
        sizes = layout.observation_size, layout.action_size
        self.main = make_learner("cpu", *sizes, config, self.streams.under("main"))
        self.exp = make_learner("cpu", *sizes, config, self.streams.under("exp"))
        self.stop = 1 - config.gamma

    def touches(self, way: str, k: int, episodes: int) -> int:
        """How many episodes of a way touch the goal of context k."""
        self.main.set_state(self.state.main.get_state())
        return sum(self._touches(way, k) for _ in range(episodes))

    def _touches(self, way: str, k: int) -> bool:
        contexts = self.state.curriculum.contexts.astype(np.float32)
        self.exp.reset()  # another fresh agent each time
        s, _ = self.env.reset(contexts[k], int(self.streams["env"].integers(2**31)))
        rolling, over = way == "rollin", False
        while not over:
            agent = self.exp if way != "main" and not rolling else self.main
            told = contexts[k - 1] if rolling else contexts[k]
            seen = self.env.step(agent.act(np.concatenate((s, told))))
            if self.env.is_success(seen.outcome, contexts[k]):
                return True
            s, over = seen.observation, seen.truncated
            rolling = rolling and self.streams["stop"].random() >= self.stop
        return False


def measure(seed: int, episodes: int) -> Record:
    """One run until it comes to its last context; its switches tell touches of the goal, by way."""
    began = time.perf_counter()
    spec = CONDITION.spec(seed)
    state = rollin.prepare(spec.task, **CONDITION.options, seed=seed)
    probe, switches = Probe(state, seed), [Switch(0, 0, {})]
    for event in rollin.train_rollin(state):
        if event.mastered and event.k < state.curriculum.K:
            counts = {way: probe.touches(way, event.k + 1, episodes) for way in WAYS}
            switches.append(Switch(event.k + 1, event.step, {"episodes": episodes, **counts}))
            print(seed, switches[-1], flush=True)
        if event.step == spec.config.steps or state.progress.finished:
            break
    seconds = time.perf_counter() - began
    return record(
        seed, state.curriculum.K, state.step, switches, Costs(seconds), rollin.__version__
    )


def record(
    seed: int, top: int, step: int, switches: Sequence[Switch], costs: Costs, version: str
) -> Record:
    """A run as a record."""
    spec, k = CONDITION.spec(seed), switches[-1].k
    return Record(
        task=spec.task, engine=spec.config.engine, seed=seed, steps=spec.config.steps, step=step,
        finished=True, costs=costs, spec_hash=spec.hash, key=CONDITION.key(), k=k, K=top,
        curve=Curve(np.array([float(step)]), {"kappa": np.array([k / top])}),
        switches=tuple(switches), labels=CONDITION.labels, family=STUDY.shared, version=version,
        processor=processor(),
    )  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description="How often the next goal is touched.")
    parser.add_argument("out", type=Path)
    parser.add_argument("--seeds", type=int, default=STUDY.seeds)
    parser.add_argument("--episodes", type=int, default=EPISODES)
    options = parser.parse_args()
    records = [measure(seed, options.episodes) for seed in range(options.seeds)]
    make_directory(options.out)
    for name, data in write_records(records).items():
        write_atomically(options.out / name, data)
    command = f"python -m studies.mechanism {options.out}"
    about = {"family": STUDY.shared, "scale": 1.0, "commands": [command], "runs": {}}
    write_json(options.out / SWEEP_FILE, {**about, "versions": versions()})


if __name__ == "__main__":
    main()
