"""Drives the tabular loop: builds a run from its spec, logs, checkpoints, resumes, finishes.

Killed at any moment and started again, a run ends in the same metrics, parameters and result as one
that was never interrupted (same machine, versions and threads).
"""

import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from safetensors.numpy import save
from threadpoolctl import threadpool_limits

from rollin.curriculum import SuccessRate
from rollin.runs.checkpoint import Checkpoint, read_checkpoint, remove_checkpoint, write_checkpoint
from rollin.runs.files import remove_temporaries, write_atomically
from rollin.runs.loggers import TensorBoardLogger
from rollin.runs.spec import RunSpec, TabularConfig
from rollin.runs.store import MetricsWriter, RunDirectory
from rollin.runs.tasks import mdp_of
from rollin.runs.versions import versions
from rollin.tabular import soft
from rollin.tabular.mdp import Array, ContextualMDP
from rollin.tabular.policy_gradient import (
    BatchSPG,
    ExactPG,
    Learner,
    NaturalPG,
    RandomHorizonSPG,
    StepInfo,
    constant_schedule,
    two_phase_schedule,
)
from rollin.tabular.rollin import RollinState, rollin
from rollin.tabular.start import Start, roll_in

COLUMNS = (
    "step",
    "k",
    "kappa",
    "success",
    "return_horizon",
    "return_infinite",
    "return_current",
    "entropy",
    "env_steps",
    "rollin_steps",
)
CHECKPOINT_SECONDS = 20.0
STATUS_SECONDS = 1.0

OnStatus = Callable[[dict[str, Any]], None]


def make_learner(mdp: ContextualMDP, config: TabularConfig) -> Learner:
    """The learner that a configuration names."""
    rate = config.learning_rate
    common: dict[str, Any] = {"horizon": config.horizon}
    match config.algorithm:
        case "batch-spg":
            return BatchSPG(
                mdp,
                config.alpha,
                config.seed,
                batch=config.batch,
                learning_rate=1e-3 if rate is None else rate,
                reset_adam=config.reset_adam,
                exact=config.gradient == "exact",
                **common,
            )
        case "pg":
            return ExactPG(mdp, config.alpha, learning_rate=1.0 if rate is None else rate, **common)
        case "npg":
            return NaturalPG(mdp, config.alpha, learning_rate=rate, **common)
    eta = 0.1 if rate is None else rate
    if config.algorithm == "two-phase-spg":
        schedule = two_phase_schedule(
            config.phase1_steps, config.batch, config.phase2_batch, eta, config.t0
        )
    else:
        schedule = constant_schedule(config.batch, eta)
    printed = config.estimator == "printed"
    return RandomHorizonSPG(mdp, config.alpha, schedule, config.seed, printed=printed, **common)


@dataclass
class Counters:
    """Sums over the run so far, and over the steps since the last row of metrics."""

    env_steps: int = 0
    rollin_steps: int = 0
    rollin_steps_expected: float = 0.0
    seconds: float = 0.0
    successes: float = 0.0
    since: int = 0
    last_success: float = 0.0


@dataclass
class TabularRun:
    """One run: its MDP, learner, place in the curriculum and counters."""

    spec: RunSpec
    directory: RunDirectory
    counters: Counters = field(default_factory=Counters)

    def __post_init__(self) -> None:
        self.mdp = mdp_of(self.spec)
        self.learner = make_learner(self.mdp, self.config)
        self.state = RollinState.initial(self.mdp)
        self.metrics = MetricsWriter(self.directory.path / "metrics.csv", COLUMNS)

    @property
    def config(self) -> TabularConfig:
        """The run's options."""
        return self.spec.config

    def execute(
        self,
        on_status: OnStatus = lambda status: None,
        should_stop: Callable[[], bool] = lambda: False,
    ) -> bool:
        """Run to the end, or until `should_stop`; returns whether it finished."""
        with threadpool_limits(1):
            try:
                return self._execute(on_status, should_stop)
            except KeyboardInterrupt:
                self.directory.write_status("interrupted", **self._status(0.0))
                raise
            except BaseException as error:
                self.directory.write_status("failed", error=str(error) or type(error).__name__)
                raise

    def _execute(self, on_status: OnStatus, should_stop: Callable[[], bool]) -> bool:
        for directory in (self.directory.path, self.directory.checkpoint):
            remove_temporaries(directory)
        self._restore()
        board = TensorBoardLogger(self.directory.path, self.state.step)
        try:
            finished = self._loop(board, on_status, should_stop)
        finally:
            board.close()
        if finished:
            self._finish()
        else:
            self.directory.write_status("interrupted", **self._status(0.0))
        return finished

    def _loop(
        self, board: TensorBoardLogger, on_status: OnStatus, should_stop: Callable[[], bool]
    ) -> bool:
        """Consume the algorithm's events until the last step or a stop; True at the last step."""
        config = self.config
        began, spent_before = time.perf_counter(), self.counters.seconds
        last_status, last_checkpoint = -np.inf, began
        warm: tuple[int, float] | None = None  # after the first step, which may compile kernels
        loop = rollin(
            self.mdp,
            self.learner,
            config.beta,
            SuccessRate(config.threshold),
            self.state,
            recursive=config.mu == "recursive",
            sampled=config.rollin == "sampled",
        )
        stopped = False
        while self.state.step < config.steps and not stopped:
            event = next(loop)
            self._count(event.k, event.info)
            if event.step % config.log_every == 0 or event.step == config.steps:
                row = self._row()
                self.metrics.write(row)
                board.write(row)
            now = time.perf_counter()
            self.counters.seconds = spent_before + now - began
            warm = warm or (event.step, now)
            if now - last_status > STATUS_SECONDS:
                last_status = now
                rate = (event.step - warm[0]) / (now - warm[1]) if now > warm[1] else 0.0
                status = self._status(rate)
                self.directory.write_status("running", **status)
                on_status(status)
                stopped = should_stop()
            if stopped or now - last_checkpoint > CHECKPOINT_SECONDS:
                last_checkpoint = now
                self._checkpoint()
        return not stopped

    def _count(self, k: int, info: StepInfo) -> None:
        counters = self.counters
        counters.env_steps += info.env_steps
        counters.rollin_steps += info.rollin_steps
        counters.rollin_steps_expected += info.trajectories * self._expected_roll_in(k)
        counters.successes += info.success
        counters.since += 1
        counters.last_success = info.success

    def _expected_roll_in(self, k: int) -> float:
        """Roll-in steps that sampling μ_k costs per trajectory on average: Σ_i β^i γ/(1-γ)."""
        depth = k if self.config.mu == "recursive" else min(k, 1)
        powers = sum(self.config.beta**i for i in range(1, depth + 1))
        return powers * self.mdp.gamma / (1 - self.mdp.gamma)

    def _row(self) -> dict[str, Any]:
        log_pi, k = self.learner.log_pi, self.state.progress.k
        row = {
            "step": self.state.step,
            "k": k,
            "kappa": self.state.progress.kappa,
            "success": self.counters.successes / self.counters.since,
            **returns(self.mdp, log_pi, k, self.config.horizon),
            "entropy": float(-(np.exp(log_pi) * log_pi).sum(1).mean()),
            "env_steps": self.counters.env_steps,
            "rollin_steps": self.counters.rollin_steps,
        }
        self.counters.successes, self.counters.since = 0.0, 0
        return row

    def _status(self, rate: float) -> dict[str, Any]:
        left = self.config.steps - self.state.step
        return {
            "step": self.state.step,
            "steps": self.config.steps,
            "k": self.state.progress.k,
            "K": self.mdp.K,
            "kappa": self.state.progress.kappa,
            "success": self.counters.last_success,
            "steps_per_second": round(rate, 1),
            "eta_seconds": round(left / rate, 1) if rate else None,
        }

    def _checkpoint(self) -> None:
        self.metrics.flush()
        arrays = {"start.mu": self.state.start.mu}
        arrays |= {f"policies.{k}": p for k, p in enumerate(self.state.policies)}
        arrays |= {f"chain.{i}": p for i, p in enumerate(self.state.start.chain)}
        values: dict[str, Any] = {
            "progress": self.state.progress.get_state(),
            "beta": self.state.start.beta,
            "metrics": self.metrics.get_state(),
            "counters": asdict(self.counters),
            "learner": {},
        }
        for name, value in self.learner.get_state().items():
            if isinstance(value, np.ndarray):
                arrays[f"learner.{name}"] = value
            else:
                values["learner"][name] = value
        write_checkpoint(
            self.directory.checkpoint,
            Checkpoint(self.state.step, self.spec.hash, arrays, values),
        )

    def _restore(self) -> None:
        """Go back to the last checkpoint, if there is one."""
        saved = read_checkpoint(self.directory.checkpoint, self.spec.hash)
        if saved is None:
            self.metrics.set_state({"rows": 0})
            return
        arrays, values = saved.arrays, saved.values
        self.state.step = saved.step
        self.state.progress.set_state(values["progress"])
        self.state.policies = _numbered(arrays, "policies.")
        chain = tuple(_numbered(arrays, "chain."))
        self.state.start = Start(arrays["start.mu"], chain, values["beta"])
        self.metrics.set_state(values["metrics"])
        self.counters = Counters(**values["counters"])
        learner = {n[8:]: a for n, a in arrays.items() if n.startswith("learner.")}
        self.learner.begin(self.mdp.task(self.state.progress.k), self.state.start)
        self.learner.set_state({**learner, **values["learner"]})

    def _finish(self) -> None:
        self.metrics.flush()
        progress, counters = self.state.progress, self.counters
        log_pi = self.learner.log_pi
        value = returns(self.mdp, log_pi, progress.k, self.config.horizon)
        starts = start_distributions(self.mdp, self.state.policies, self.config)
        switches = []
        for advance in progress.advances:
            task, policy = self.mdp.task(advance.k), self.state.policies[advance.k - 1]
            chance = [
                soft.success_probability(task, policy, mu, self.config.horizon)
                for mu in (self.mdp.rho, starts[advance.k].mu)
            ]
            switches.append({**asdict(advance), "success_rho": chance[0], "success_mu": chance[1]})
        tensors = {"theta": np.asarray(self.learner.theta, np.float32)}
        if self.state.policies:
            tensors["log_policies"] = np.stack(self.state.policies).astype(np.float32)
        write_atomically(self.directory.path / "policy.safetensors", save(tensors))
        self.directory.write_result(
            {
                "kappa": progress.kappa,
                "k": progress.k,
                "K": progress.K,
                "final_return": value["return_horizon"],
                "final_return_infinite": value["return_infinite"],
                "success": counters.last_success,
                "gradient_steps": self.state.step,
                "env_steps": counters.env_steps,
                "rollin_steps": counters.rollin_steps,
                "rollin_steps_expected": round(counters.rollin_steps_expected),
                "seconds": round(counters.seconds, 3),
                "switches": switches,
                "spec_hash": self.spec.hash,
                "versions": versions(),
            }
        )
        self.directory.write_status("finished", **self._status(0.0))
        remove_checkpoint(self.directory.checkpoint)


def returns(mdp: ContextualMDP, log_pi: Array, k: int, horizon: int) -> dict[str, float]:
    """Exact discounted returns from ρ without entropy.

    On the last context over the horizon and for ever, and on context k over the horizon.
    """
    last, current = mdp.task(mdp.K), mdp.task(k)
    return {
        "return_horizon": float(mdp.rho @ soft.evaluate(last, log_pi, 0.0, horizon).v),
        "return_infinite": float(mdp.rho @ soft.evaluate(last, log_pi).v),
        "return_current": float(mdp.rho @ soft.evaluate(current, log_pi, 0.0, horizon).v),
    }


def start_distributions(
    mdp: ContextualMDP, policies: list[Array], config: TabularConfig
) -> list[Start]:
    """μ_0 … μ_k of a run, from the policies at its switches."""
    starts = [Start(mdp.rho)]
    for log_pi in policies:
        recursive = config.mu == "recursive"
        starts.append(roll_in(mdp, starts[-1], log_pi, config.beta, recursive=recursive))
    return starts


def _numbered(arrays: dict[str, Any], prefix: str) -> list[Array]:
    count = sum(name.startswith(prefix) for name in arrays)
    return [arrays[f"{prefix}{i}"] for i in range(count)]


def run(
    spec: RunSpec,
    out: Path,
    command: str = "",
    on_status: OnStatus = lambda status: None,
    should_stop: Callable[[], bool] = lambda: False,
) -> bool:
    """Run a spec in a directory, or go on with it; a finished one is left as it is."""
    directory = RunDirectory(out)
    prepared = TabularRun(spec, directory)  # a bad task is refused before anything is written
    RunDirectory.prepare(out, spec, prepared.mdp.fingerprint(), command)
    with directory.lock():
        if directory.finished:
            remove_checkpoint(directory.checkpoint)  # if a kill came just before that
            return True
        return prepared.execute(on_status, should_stop)
