"""ROLLIN around Stable-Baselines3's PPO and SAC on point-umaze: does roll-in help them?

    python -m studies.foreign run --out runs/foreign --jobs 1      # goes on with what is missing
    python -m studies.foreign collect --out runs/foreign           # into results/foreign-agents
    python -m studies.foreign run --out runs/try --seeds 1 --steps 5000

Arms: bare, the curriculum without roll-in (β = 0); rollin, hidden roll-ins and one learner (level
1); fresh, a fresh explorer after the roll-in (level 2, off-policy alone). Steps are those of the
environment, hidden ones too. A run leaves one file when it is done; one that was stopped begins
again. Seeds come one after the other, all conditions of each, so that a stop leaves equal seeds.
"""

import argparse
import multiprocessing
import statistics
import time
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

import rollin
from rollin.analysis.sheets import markdown
from rollin.analysis.statistics import outcomes
from rollin.envs.point_umaze import RADIUS, PointUmaze
from rollin.runs.files import make_directory, read_json, write_json
from rollin.runs.records import Costs, Curve, MetricAt, Record, Switch, read_records
from rollin.runs.systems import processor, versions
from studies.shared import RESULTS, keep

FAMILY, TASK, ENGINE = "foreign-agents", "point-umaze", "stable-baselines3"
BETA, GAMMA, EVALUATION_SEED, EPISODES = 0.2, 0.97, 10_000, 5
ARMS = {"ppo": ("bare", "rollin"), "sac": ("bare", "rollin", "fresh")}


@dataclass(frozen=True)
class Job:
    """One run: an algorithm, an arm, a step of the curriculum and a seed."""

    agent: str
    arm: str
    delta: str
    seed: int
    steps: int

    @property
    def labels(self) -> dict[str, str]:
        """The condition's name."""
        beta = "0" if self.arm == "bare" else f"{BETA:g}"
        return {"agent": self.agent, "arm": self.arm, "delta": self.delta, "beta": beta}

    @property
    def file(self) -> str:
        """Where its result is kept."""
        delta = self.delta.replace("/", "-")
        return f"{self.agent}-{self.arm}-{delta}-{self.steps}-seed={self.seed}.json"


def jobs(agents: list[str], deltas: list[str], seeds: int, steps: int) -> Iterator[Job]:
    """All runs, seed by seed."""
    for seed in range(seeds):
        for delta in deltas:
            for agent in agents:
                for arm in ARMS[agent]:
                    yield Job(agent, arm, delta, seed, steps)


def model_for(job: Job, teacher: rollin.SequentialTeacher) -> Any:
    """A fresh learner; SAC with the networks and batches of our own engine on this maze."""
    from stable_baselines3 import PPO, SAC
    from stable_baselines3.common.env_util import make_vec_env

    def make() -> Any:
        return rollin.RollIn(PointUmaze())

    if job.agent == "sac":
        return SAC(
            "MultiInputPolicy", rollin.RollIn(PointUmaze(), teacher), gamma=GAMMA, batch_size=64,
            learning_starts=2000, ent_coef="auto_0.1", buffer_size=job.steps,
            policy_kwargs={"net_arch": [32, 32]}, seed=job.seed, device="cpu",
        )  # fmt: skip
    return PPO(
        "MultiInputPolicy", make_vec_env(make, 4, seed=job.seed), gamma=GAMMA, n_steps=512,
        batch_size=128, ent_coef=0.003, seed=job.seed, device="cpu",
    )  # fmt: skip


def play(job: Job) -> dict[str, Any]:
    """Learn until the environment has taken the steps, hidden ones too; what came of it."""
    import torch
    from stable_baselines3.common.callbacks import BaseCallback

    from rollin.sb3 import RollInCallback

    class Stop(BaseCallback):
        def _on_step(self) -> bool:
            return teacher.steps < job.steps

    torch.set_num_threads(1)
    curriculum = PointUmaze(delta=float(Fraction(job.delta))).curriculum
    assert curriculum is not None
    teacher = rollin.SequentialTeacher(
        curriculum.changed(start="delta"), 0.0 if job.arm == "bare" else BETA
    )
    callback = RollInCallback(teacher, level=2 if job.arm == "fresh" else 1, seed=job.seed)
    model = model_for(job, teacher)
    begun = time.process_time()
    model.learn(job.steps, callback=[callback, Stop()])
    seconds = time.process_time() - begun
    assert callback.coordinator is not None
    explorer = callback.explorer
    explored = 0 if explorer is None else explorer.agent._n_updates
    return {
        "seconds": seconds,
        "steps": teacher.steps,
        "hidden": callback.coordinator.unseen_steps,
        "updates": int(model._n_updates) + explored,
        "advances": [[a.step, a.k, a.reason] for a in teacher.progress.advances],
        "completed": teacher.progress.completed.step if teacher.progress.completed else None,
        "K": curriculum.K - 1,
        **examined(model, teacher.curriculum),
        "versions": versions(),
        "processor": processor(),
    }


def examined(model: Any, curriculum: rollin.Curriculum) -> dict[str, float]:
    """Deterministic episodes on 24 goals: how many are held at the end, and the last one's return.

    A goal is solved if the point is there on the last step of at least 4 of 5 episodes.
    """
    env = PointUmaze()
    path = curriculum.path
    assert path is not None
    solved, total = 0, 0.0
    for i in range(1, 25):
        goal, held = np.asarray(path(i / 24)), 0
        for episode in range(EPISODES):
            seen, _ = env.reset(seed=EVALUATION_SEED + episode, options={"context": goal})
            over, reward = False, 0.0
            while not over:
                seen, r, _, over, _ = env.step(model.predict(seen, deterministic=True)[0])
                reward += r
            held += np.linalg.norm(seen["observation"][:2] - goal) <= RADIUS
            total += reward / EPISODES if i == 24 else 0.0
        solved += held >= 4
    return {"goals": solved / 24, "return_final": total}


def record_of(job: Job, result: dict[str, Any]) -> Record:
    """A finished run as a record."""
    top = int(result["K"])
    switches = [Switch(0, 0, {"kappa": 0.0})]
    switches += [Switch(k, step, {"kappa": k / top}) for step, k, _ in result["advances"]]
    last, end = switches[-1].k, int(result["steps"])
    quantities = {"kappa": last / top} | {n: float(result[n]) for n in ("goals", "return_final")}
    curve = Curve(np.array([float(end)]), {n: np.array([v]) for n, v in quantities.items()})
    costs = Costs(result["seconds"], end, result["hidden"], result["updates"])
    return Record(
        TASK, ENGINE, job.seed, job.steps, end, True, costs, curve, "", "", k=last, K=top,
        switches=tuple(switches), completed=result["completed"], labels=job.labels, family=FAMILY,
        version=result["versions"]["rollin"], processor=result["processor"],
    )  # fmt: skip


def run(job: Job, out: Path) -> str:
    """Do a run, unless it is done."""
    target = out / job.file
    if not target.exists():
        write_json(target, play(job))
    result = read_json(target)
    rate = result["steps"] / result["seconds"]
    k = len(result["advances"])
    return f"{job.file}: k = {k} of {result['K']}, goals {result['goals']:.2f}, {rate:.0f} steps/s"


def _run(given: tuple[Job, Path]) -> str:
    return run(*given)


# ------------------------------------------------------------------ table

WORDS = {
    "bare": "the curriculum alone, β = 0",
    "rollin": "`RollIn`, one learner (`level=1`)",
    "fresh": "`RollIn` and a fresh explorer (`level=2`)",
}
NAMES = {"ppo": "PPO", "sac": "SAC"}

Key = tuple[str, str, str]


@cache
def runs() -> dict[Key, list[Record]]:
    """Finished runs by agent, Δ and arm."""
    found: dict[Key, list[Record]] = {}
    for record in read_records(RESULTS / FAMILY):
        labels = record.labels
        found.setdefault((labels["agent"], labels["delta"], labels["arm"]), []).append(record)
    deltas = sorted({delta for _, delta, _ in found})
    keys = [(agent, delta, arm) for agent in ARMS for delta in deltas for arm in ARMS[agent]]
    return {key: found[key] for key in keys if key in found}


def table() -> str:
    """How far every arm came, with the number of its seeds."""
    head = ["learner", "Δ", "with", "seeds", "last context k of K, by seed", "mean κ",
            "goals solved, of 24"]  # fmt: skip
    rows: list[list[str]] = []
    for (agent, delta, arm), records in runs().items():
        ks = outcomes([record.k or 0 for record in records])
        kappa = statistics.mean(record.kappa_at(record.step) for record in records)
        solved = [24 * (record.value(MetricAt("goals")) or 0.0) for record in records]
        cells = [f"{ks} of {records[0].K}", f"{kappa:.2f}", f"{statistics.mean(solved):.1f}"]
        rows.append([NAMES[agent], delta, WORDS[arm], str(len(records)), *cells])
    return markdown(head, rows)


def texts() -> dict[str, str]:
    """What stands in the page, by the name of its markers."""
    return {"foreign-agents": table()}


# ------------------------------------------------------------------ command


def main() -> None:
    parser = argparse.ArgumentParser(description="ROLLIN around PPO and SAC of others.")
    parser.add_argument("what", choices=["run", "collect"])
    parser.add_argument("--out", type=Path, default=Path("runs/foreign"))
    parser.add_argument("--results", type=Path, default=Path("results") / FAMILY)
    parser.add_argument("--agents", nargs="+", choices=list(ARMS), default=list(ARMS))
    parser.add_argument("--deltas", nargs="+", default=["1/12", "1/24"])
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--steps", type=int, default=300_000)
    parser.add_argument("--jobs", type=int, default=1)
    given = parser.parse_args()
    make_directory(given.out)
    planned = list(jobs(given.agents, given.deltas, given.seeds, given.steps))
    if given.what == "run":
        with multiprocessing.get_context("spawn").Pool(given.jobs, maxtasksperchild=1) as pool:
            for line in pool.imap(_run, [(job, given.out) for job in planned]):
                print(line, flush=True)
        return
    done = [job for job in planned if (given.out / job.file).exists()]
    keep([record_of(job, read_json(given.out / job.file)) for job in done], given.results)
    print(f"{len(done)} of {len(planned)} runs in {given.results}")


if __name__ == "__main__":
    main()
