"""A run until the last context of an MDP is solved: its ascent, its rows of metrics, its result."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from rollin.curriculum.progress import Advance
from rollin.errors import RollinError
from rollin.runs.checkpoint import check_like
from rollin.runs.directory import RunDirectory
from rollin.runs.driver import Driver
from rollin.runs.engines.until_solved_options import UntilSolvedConfig
from rollin.runs.engines.until_solved_record import read_result
from rollin.runs.spec import RunSpec
from rollin.runs.versions import versions
from rollin.tabular.families import combination_lock, corridor, random_mdp, square_grid
from rollin.tabular.mdp import Array, ContextualMDP
from rollin.tabular.until_solved import Ascent, ExactAscent, Goal, mismatch_of, sampled_ascent

AT_ONCE = 5_000  # gradient steps between two looks at the clock: less than a second


def family_member(spec: RunSpec[UntilSolvedConfig]) -> ContextualMDP:
    """The MDP of a run."""
    config, gamma = spec.config, spec.config.gamma
    match spec.task:
        case "combination-lock":
            return combination_lock(config.n, gamma=gamma, uniform_rho=config.uniform_rho)
        case "corridor":
            return corridor(config.n, gamma=gamma)
        case "square-grid":
            return square_grid(config.n, gamma=gamma)
        case _:
            return random_mdp(config.n, config.seed, gamma=gamma)


def family_fingerprint(spec: RunSpec[UntilSolvedConfig]) -> str:
    """Tells the family from another of the same name, whatever the seed."""
    return family_member(RunSpec(spec.task, replace(spec.config, seed=0))).fingerprint()


class UntilSolvedRun(Driver[UntilSolvedConfig]):
    """One run: its MDP, and the ascent of its contexts."""

    columns = ("step", "k", "env_steps", "rollin_steps")

    def __init__(self, spec: RunSpec[UntilSolvedConfig], directory: RunDirectory) -> None:
        super().__init__(spec, directory)
        if spec.config.uniform_rho and spec.task != "combination-lock":
            raise RollinError("--uniform-rho belongs to combination-lock.")
        self.mdp = family_member(spec)
        scale = 1 - self.mdp.gamma if self.config.relative else 1.0
        self.learning_rate = self.config.learning_rate * scale
        self.ascent = self._make_ascent()

    def _make_ascent(self) -> Ascent:
        config, mdp = self.config, self.mdp
        method: dict[str, Any] = {
            "goal": Goal.of(mdp),
            "beta": config.beta,
            "recursive": config.mu == "recursive",
            "scratch": config.scratch,
            "gap": config.rule == "gap",
        }
        rates = config.alpha, self.learning_rate
        if config.gradient == "sampled":
            return sampled_ascent(mdp, *rates, batch=config.batch, seed=config.seed, **method)
        natural = config.gradient == "natural"
        return ExactAscent(mdp, *rates, natural=natural, predict=not natural, **method)

    @property
    def step(self) -> int:
        """Gradient steps so far."""
        return self.ascent.gradient_steps

    @property
    def advances(self) -> Sequence[Advance]:
        """Switches of context so far."""
        return self.ascent.progress.advances

    @property
    def at_end(self) -> bool:
        """Solved or cut off."""
        return self.ascent.solved or self.step >= self.config.steps

    def fingerprint(self) -> str:
        """Of the family."""
        return family_fingerprint(self.spec)

    def events(self) -> Iterator[None]:
        """Some gradient steps each, on one BLAS thread; never across a row of metrics."""
        config = self.config
        with threadpool_limits(1):
            while True:
                to_row = config.log_every - self.step % config.log_every
                self.ascent.go(min(AT_ONCE, to_row, config.steps - self.step))
                yield

    def take(self, event: None) -> bool:
        """Any of them may be followed by a checkpoint."""
        return True

    def row(self) -> dict[str, Any]:
        """Where the ascent is."""
        return {
            "step": self.step,
            "k": self.ascent.progress.k,
            "env_steps": self.ascent.env_steps,
            "rollin_steps": self.ascent.rollin_steps,
        }

    def status(self) -> dict[str, Any]:
        """Where the run stands."""
        k, top = self.ascent.progress.k, self.mdp.K
        return {"k": k, "K": top, "shown": {"k": f"{k}/{top}"}}

    def get_state(self) -> dict[str, Any]:
        """Everything needed to go on."""
        return self.ascent.get_state()

    def set_state(self, state: dict[str, Any]) -> None:
        """Go back to what `get_state` gave."""
        for name, like in _arrays(self.ascent.get_state()).items():
            check_like(name, _arrays(state).get(name), like)
        mu = state["start"]["mu"]
        if not ((mu >= 0).all() and abs(mu.sum() - 1) < 1e-6):  # the kernels index by its draws
            raise ValueError("start/mu must be probabilities that sum to 1")
        for policy in state["start"]["chain"].values():
            check_like("start/chain", policy, np.zeros((self.mdp.n_states, self.mdp.n_actions)))
        self.ascent.set_state(state)
        progress = self.ascent.progress
        steps = [advance.k for advance in progress.advances]
        first = self.mdp.K if self.config.scratch else 0
        if progress.K != self.mdp.K or [first, *steps] != list(range(first, progress.k + 1)):
            raise ValueError(f"its switches {steps} do not lead to k = {progress.k}")

    def check_result(self) -> None:
        """Refuse a result of another form, and files that are not those it was written with."""
        super().check_result()
        read_result(self.directory)

    def finish(self) -> None:
        """Write what it took."""
        ascent, progress = self.ascent, self.ascent.progress
        self.directory.write_result(
            {
                "k": progress.k,
                "K": self.mdp.K,
                "completed": progress.completed.step if progress.completed else None,
                "entered": [advance.step for advance in progress.advances],
                "states": self.mdp.n_states,
                "gamma": self.mdp.gamma,
                "learning_rate": self.learning_rate,
                "gradient_steps": ascent.gradient_steps,
                "env_steps": ascent.env_steps,
                "rollin_steps": ascent.rollin_steps,
                **self._ratios(),
                "seconds": round(self.seconds, 3),
                "spec_hash": self.spec.hash,
                "versions": versions(),
            }
        )

    def _ratios(self) -> dict[str, float | str | None]:
        """The mismatch ratio from ρ and from the μ_K that it came to, and R."""
        ascent = self.ascent
        if not isinstance(ascent, ExactAscent) or not ascent.predict:
            return dict.fromkeys(("ln_mismatch_rho", "ln_mismatch_mu", "predictor"))
        last = ascent.start.mu if ascent.progress.finished else None
        return {
            "ln_mismatch_rho": self._mismatch(self.mdp.rho),
            "ln_mismatch_mu": None if last is None else self._mismatch(last),
            "predictor": float(f"{ascent.predictor:.6g}"),
        }

    def _mismatch(self, mu: Array) -> float | str:
        found = mismatch_of(self.mdp, self.config.alpha, mu)
        return "inf" if math.isinf(found) else float(f"{found:.6g}")


def _arrays(state: dict[str, Any]) -> dict[str, Any]:
    """What a state must have in the same form at any time, by name."""
    found = {"start/mu": state["start"]["mu"], "theta": state.get("theta")}
    found |= {f"learner/{name}": value for name, value in state.get("learner", {}).items()}
    return {name: value for name, value in found.items() if isinstance(value, np.ndarray)}
