"""One contestant learns one task: its return against the CPU time that training took.

    python learn.py CONTESTANT TRIAL-AS-JSON

Prints the versions of its libraries, then a line per evaluation: step, CPU seconds, mean return.
The clock counts the CPU time of all threads in training steps after the first update, so that
neither starting nor compiling is in it, nor evaluation. Settings are each package's own, but for
networks of (256, 256), batches of 256 and the random steps at first; CrossQ keeps its networks.
"""
# pyright: reportMissingImports=false

import importlib
import json
import os
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any, Protocol

sys.path.insert(0, str(Path(__file__).parents[3]))

from benchmarks.peers.sac.case import Case, make

EVALUATION_SEED = 10_000  # of the first episode; the same episodes for everybody


@dataclass(frozen=True)
class Trial:
    """What is to be learned and how it is watched."""

    env: str
    seed: int
    warmup: int
    """Uniformly random steps before the first update."""
    every: int
    """Steps between evaluations."""
    episodes: int
    """Of an evaluation."""
    target: float
    """Training ends when two evaluations in a row reach this mean return,"""
    seconds: float
    """or when this much CPU time is used."""

    @property
    def case(self) -> Case:
        """Its sizes, on one thread."""
        return Case(self.env, (256, 256), 256, 1)


class Pupil(Protocol):
    """A library that learns: its constructor takes a trial."""

    libraries: tuple[str, ...]

    def steps(self, count: int) -> None:
        """So many training steps, finished when this returns."""
        ...

    def act(self, observation: Any) -> Any:
        """The deterministic action."""
        ...


def evaluate(pupil: Pupil, trial: Trial) -> float:
    """The mean return of deterministic episodes, always from the same first states."""
    env, returns = make(trial.env), []
    for i in range(trial.episodes):
        observation, _ = env.reset(seed=EVALUATION_SEED + i)
        total, done = 0.0, False
        while not done:
            observation, reward, terminated, truncated, _ = env.step(pupil.act(observation))
            total += float(reward)
            done = terminated or truncated
        returns.append(total)
    return sum(returns) / len(returns)


def curve(pupil: Pupil, trial: Trial) -> Iterator[tuple[int, float, float]]:
    """Step, CPU seconds and mean return of every evaluation."""
    pupil.steps(trial.warmup + 2)  # to the first update, which may compile
    step, used, reached = trial.warmup + 2, 0.0, 0
    while used < trial.seconds and reached < 2:
        count = trial.every - step % trial.every
        began = time.process_time()
        pupil.steps(count)
        used += time.process_time() - began
        step += count
        mean = evaluate(pupil, trial)
        reached = reached + 1 if mean >= trial.target else 0
        yield step, used, mean


PUPILS = {
    "rollin cpu": ("learn_ours", "Rollin"),
    "RLtools": ("learn_peers", "RLtools"),
    "SBX SAC": ("learn_peers", "SBX"),
    "SBX CrossQ": ("learn_peers", "CrossQ"),
    "SB3": ("learn_peers", "SB3"),
}


def main() -> None:
    name, text = sys.argv[1:]
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)  # what libraries print is no answer
    module, kind = PUPILS[name]
    trial = Trial(**json.loads(text))
    pupil = getattr(importlib.import_module(f"benchmarks.peers.sac.{module}"), kind)(trial)
    libraries = (*pupil.libraries, "gymnasium", "mujoco")
    print(", ".join(f"{library} {version(library)}" for library in libraries), file=answers)
    for step, used, mean in curve(pupil, trial):
        print(step, round(used, 3), round(mean, 2), file=answers)


if __name__ == "__main__":
    main()
