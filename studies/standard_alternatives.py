"""What a user would use instead: Stable-Baselines3 on the tasks of `rollin reproduce standard`.

    python -m studies.standard_alternatives run --out runs/standard-alternatives
    python -m studies.standard_alternatives collect --out runs/standard-alternatives
    python -m studies.standard_alternatives run --tasks fetch-reach --seeds 1 --steps 3000

SAC, and SAC with hindsight replay (HER) on the goal envs, learn the full task with the defaults of
Stable-Baselines3 (the extra sb3), except for what our runs share with them: networks, γ, random
first steps, number of steps. On sparse-goals batch and updates are those of its paper. Policies are
evaluated as ours: deterministic episodes from the same seeds, which are a success if any step is.
A run writes one file when it is done, and is left out if that is there or its rows are committed.
`collect` adds the rows of full-length runs to results/standard/alternatives.csv.
"""

import argparse
import csv
import multiprocessing
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
from gymnasium.wrappers import FlattenObservation

from rollin.deep.evaluate import EVALUATION_SEED
from rollin.envs.goals import GoalView
from rollin.envs.registry import make_raw
from rollin.paper.standard import FIRST_SEED, SEEDS, TASKS
from rollin.runs.files import make_directory, write_atomically
from rollin.runs.systems import processor, versions
from rollin.untrusted import csv_text
from studies.shared import RESULTS

FILE = RESULTS / "standard" / "alternatives.csv"
COLUMNS = (
    "task", "method", "seed", "step", "success", "return", "cpu_seconds", "version", "processor"
)  # fmt: skip
"""Of a row for each evaluation; cpu_seconds: of the process, for training and evaluations."""
METHODS: Mapping[str, Sequence[str]] = {
    "mountain-car": ("sac",),
    "point-maze-umaze": ("sac", "sac-her"),
    "point-maze-medium": ("sac", "sac-her"),
    "fetch-reach": ("sac-her",),
    "fetch-push": ("sac-her",),
    "fetch-pick-and-place": ("sac-her",),
    "sparse-goals": ("sac", "sac-her"),
}
PUBLISHED: Mapping[str, Mapping[str, Any]] = {
    "sparse-goals": {"batch_size": 512, "train_freq": 5, "buffer_size": 200_000},
}
"""Options of a task's own paper."""
Env = gymnasium.Env[Any, Any]
Key = tuple[str, str, str]
"""Task, method and seed."""


@dataclass(frozen=True)
class Job:
    """One run; steps: fewer than the task has, for a try."""

    task: str
    method: str
    seed: int
    steps: int

    @property
    def key(self) -> Key:
        """Task, method and seed, as in the file of rows."""
        return self.task, self.method, str(self.seed)

    @property
    def file(self) -> str:
        """Name of the file with its rows."""
        return f"{self.task}-{self.method}-{self.steps}-seed={self.seed}.csv"


def jobs(
    tasks: Sequence[str], first_seed: int, seeds: int, steps: int | None = None
) -> Iterator[Job]:
    """Yield all runs, seed by seed."""
    for seed in range(first_seed, first_seed + seeds):
        for task in tasks:
            for method in METHODS[task]:
                yield Job(task, method, seed, steps or TASKS[task].steps)


class DrawnGoals(gymnasium.Wrapper[Any, Any, Any, Any]):
    """An env that draws its goals, with achieved and drawn goal as entries of their own."""

    def __init__(self, env: Any) -> None:
        super().__init__(env)
        self._size = env.drawn_goal.stop - env.drawn_goal.start
        whole = env.observation_space["observation"].shape[0]
        sizes = {"observation": whole - self._size}
        sizes |= dict.fromkeys(("achieved_goal", "desired_goal"), self._size)
        spaces = gymnasium.spaces
        self.observation_space = spaces.Dict(
            {name: spaces.Box(-np.inf, np.inf, (size,)) for name, size in sizes.items()}
        )

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> Any:
        """Begin an episode."""
        seen, info = self.env.reset(seed=seed, options=options)
        return self._parts(seen, info), info

    def step(self, action: Any) -> Any:
        """Act."""
        seen, *rest, info = self.env.step(action)
        return self._parts(seen, info), *rest, info

    def compute_reward(self, achieved_goal: Any, desired_goal: Any, info: Any) -> Any:
        """Return rewards (…) of achieved goals (…, G) for drawn goals (…, G)."""
        env: Any = self.env
        outcome = np.concatenate((achieved_goal, desired_goal), axis=-1)
        return np.asarray(env.context_reward(outcome, env.context))

    def _parts(self, seen: Any, info: dict[str, Any]) -> dict[str, Any]:
        env: Any = self.env
        achieved, drawn = np.split(info["outcome"].astype(np.float32), 2)
        rest = np.delete(seen["observation"], env.drawn_goal).astype(np.float32)
        return {"observation": rest, "achieved_goal": achieved, "desired_goal": drawn}


def make_env(task: str, method: str) -> Env:
    """Make the full task: as one vector, or with its goals in the open for HER."""
    env: Any = make_raw(TASKS[task].task)
    if method != "sac-her":
        return FlattenObservation(env)
    return GoalView(env) if env.drawn_goal is None else DrawnGoals(env)


def play(env: Env, act: Callable[[Any], Any], episodes: int) -> tuple[float, float]:
    """Return the share of successful episodes and the mean return."""
    successes, returns = [], []
    for episode in range(episodes):
        observation, _ = env.reset(seed=EVALUATION_SEED + episode)
        over, success, total = False, False, 0.0
        while not over:
            observation, reward, terminated, truncated, info = env.step(act(observation))
            total += float(reward)
            success = success or bool(info["is_success"])
            over = terminated or truncated
        successes.append(success)
        returns.append(total)
    return float(np.mean(successes)), float(np.mean(returns))


def make_model(job: Job) -> Any:
    """Return the untrained agent."""
    import torch  # an extra
    from stable_baselines3 import SAC, HerReplayBuffer

    torch.set_num_threads(1)
    options = TASKS[job.task].options
    hindsight = job.method == "sac-her"
    return SAC(
        "MultiInputPolicy" if hindsight else "MlpPolicy",
        make_env(job.task, job.method),
        replay_buffer_class=HerReplayBuffer if hindsight else None,
        gamma=options["gamma"],
        learning_starts=options["warmup"],
        policy_kwargs={"net_arch": list(options["hidden"])},
        seed=job.seed,
        device="cpu",
        **PUBLISHED.get(job.task, {}),
    )


def train(job: Job) -> list[Sequence[Any]]:
    """Train; return a row for each evaluation."""
    from stable_baselines3.common.callbacks import BaseCallback

    task = TASKS[job.task]
    env = make_env(job.task, job.method)
    rows: list[Sequence[Any]] = []
    libraries = versions() | {name: version(name) for name in ("stable-baselines3", "torch")}
    made = ", ".join(f"{name} {number}" for name, number in libraries.items())
    model = make_model(job)
    begun = time.process_time()

    class Recorder(BaseCallback):
        """Evaluates every `log_every` steps and at the end."""

        def _on_step(self) -> bool:
            step = self.num_timesteps
            if step % task.log_every == 0 or step == job.steps:
                act = lambda seen: self.model.predict(seen, deterministic=True)[0]  # noqa: E731
                success, total = play(env, act, task.eval_episodes)
                spent = time.process_time() - begun
                numbers = f"{success:g}", f"{total:.6g}", f"{spent:.1f}"
                rows.append((*job.key, step, *numbers, made, processor()))
            return step < job.steps

    model.learn(job.steps, callback=Recorder())
    env.close()
    return rows


def run(job: Job, out: Path) -> str:
    """Do a run and write its rows; return a line about it."""
    rows = train(job)
    write_atomically(out / job.file, csv_text([COLUMNS, *rows]).encode())
    last = dict(zip(COLUMNS, rows[-1], strict=True))
    rate = job.steps / float(last["cpu_seconds"])
    return f"{job.file}: success {last['success']}, {rate:.0f} steps per CPU second"


def _run(given: tuple[Job, Path]) -> str:
    return run(*given)


# ------------------------------------------------------------------ rows


def rows_of(path: Path) -> dict[Key, list[dict[str, str]]]:
    """Return the rows of a file by run; none if there is no such file."""
    found: dict[Key, list[dict[str, str]]] = {}
    if path.exists():
        with path.open(newline="") as file:
            for row in csv.DictReader(file):
                found.setdefault((row["task"], row["method"], row["seed"]), []).append(row)
    return found


def left(planned: Sequence[Job], out: Path, file: Path = FILE) -> list[Job]:
    """Return the runs that are neither done here nor committed."""
    committed = rows_of(file)
    return [job for job in planned if job.key not in committed and not (out / job.file).exists()]


def collect(planned: Sequence[Job], out: Path, file: Path = FILE) -> int:
    """Add the rows of finished runs to the committed ones; return how many runs there are now."""
    found = rows_of(file)
    for job in planned:
        found |= rows_of(out / job.file)
    ordered = sorted(found, key=lambda key: (list(METHODS).index(key[0]), key[1], int(key[2])))
    lines = [[row[name] for name in COLUMNS] for key in ordered for row in found[key]]
    make_directory(file.parent)
    write_atomically(file, csv_text([COLUMNS, *lines]).encode())
    return len(found)


def main() -> None:
    """Entry point."""
    parser = argparse.ArgumentParser(description="Stable-Baselines3 on the standard tasks.")
    parser.add_argument("what", choices=["run", "collect"])
    parser.add_argument("--out", type=Path, default=Path("runs/standard-alternatives"))
    parser.add_argument("--tasks", nargs="+", choices=list(METHODS), default=list(METHODS))
    parser.add_argument("--first-seed", type=int, default=FIRST_SEED)
    parser.add_argument("--seeds", type=int, default=SEEDS)
    parser.add_argument("--steps", type=int, help="fewer than a task has, for a try")
    parser.add_argument("--jobs", type=int, default=1)
    given = parser.parse_args()
    if given.what == "collect":
        whole = list(jobs(given.tasks, given.first_seed, given.seeds))
        print(f"{collect(whole, given.out)} runs in {FILE}")
        return
    make_directory(given.out)
    planned = list(jobs(given.tasks, given.first_seed, given.seeds, given.steps))
    todo = [(job, given.out) for job in left(planned, given.out)]
    with multiprocessing.get_context("spawn").Pool(given.jobs, maxtasksperchild=1) as pool:
        for line in pool.imap(_run, todo):
            print(line, flush=True)


if __name__ == "__main__":
    main()
