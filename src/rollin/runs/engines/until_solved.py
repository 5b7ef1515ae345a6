"""The engine of runs that last until the final context is solved, or the last step.

They show how cost grows with the size of an MDP, which the paper bounds (Theorems 4.1 and 4.3).
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np

from rollin.checks import (
    MOST_SAMPLES,
    MOST_STEPS,
    at_least,
    check_alpha,
    check_beta,
    flag,
    positive,
)
from rollin.curriculum.progress import Progress
from rollin.errors import RollinError
from rollin.runs.checkpoint import check_like
from rollin.runs.directory import RunDirectory
from rollin.runs.driver import Driver
from rollin.runs.engines import Engine
from rollin.runs.metrics import Metric
from rollin.runs.spec import RunConfig, RunSpec, check_loggers

if TYPE_CHECKING:
    from rollin.tabular.mdp import Array, ContextualMDP
    from rollin.tabular.until_solved import Ascent

AT_ONCE = 5_000  # gradient steps between two looks at the clock: less than a second
Gradient = Literal["exact", "natural", "sampled"]


@dataclass(frozen=True)
class UntilSolvedConfig(RunConfig):
    """Options of one run."""

    engine: ClassVar[str] = "until-solved"

    n: int = 8
    """Size: cells of the lock or the corridor, side of the grid, states of the random MDP."""
    gradient: Gradient = "exact"
    """exact: exact gradient; natural: exact natural gradient; sampled: SPG with a fixed batch."""
    scratch: bool = False
    """Learn the last context alone."""
    beta: float = 0.0
    """Share β ∈ [0, 1) of trajectories that roll in with the previous policy; 0 is the baseline."""
    mu: Literal["rho", "recursive"] = "rho"
    """Roll in from ρ, or from μ_{k-1} as equation 1 is printed."""
    rule: Literal["success", "gap"] = field(default="success", metadata={"since": "0.2.0"})
    """When a context before the last is mastered. success: when its success probability exceeds
    0.5; gap: without a threshold, as that of rollin train four-rooms. The last is solved at 0.5."""
    alpha: float = 1e-4
    """Entropy coefficient α > 0."""
    gamma: float | None = None
    """Discount γ < 1. Default: 1 - 1/(K+1)."""
    uniform_rho: bool = False
    """Start from all cells of the lock alike, not from the first."""
    learning_rate: float = 8.0
    """Step size η, in units of 1-γ unless --no-relative is given."""
    relative: bool = True
    """Whether the learning rate is in units of 1-γ."""
    batch: int = 20
    """Samples per gradient step of a sampled gradient."""
    steps: int = 1_000_000
    """Maximum number of gradient steps; a run that reaches it is cut off."""
    seed: int = 0
    """Seed of the samples, and of the random MDP."""
    log_every: int = 10_000
    """Gradient steps between two rows of metrics.csv."""
    log: tuple[str, ...] = field(default=(), metadata={"since": "0.2.0"})
    """Loggers besides metrics.csv and TensorBoard: wandb, mlflow or both (extras of these names).
    They write into the run directory, unless WANDB_MODE or MLFLOW_TRACKING_URI is set."""

    def __post_init__(self) -> None:
        check_alpha(self.alpha)
        check_beta(self.beta)
        positive("--learning-rate", self.learning_rate)
        for name in ("n", "steps", "log_every"):
            at_least(1, flag(name), getattr(self, name), MOST_STEPS)
        at_least(1, "--batch-size", self.batch, MOST_SAMPLES)
        at_least(0, "--seed", self.seed)
        check_loggers(self.log)
        if self.gamma is not None and not 0 <= self.gamma < 1:
            raise RollinError(f"--gamma must lie in [0, 1), got {self.gamma}.")


def _until_solved(run: Any, cost: int) -> float:
    return cost if run.ascent.solved and cost else math.nan


METRICS = (
    Metric("k", lambda run: run.progress.k),
    Metric("env_steps", lambda run: run.ascent.env_steps),
    Metric("rollin_steps", lambda run: run.ascent.rollin_steps),
    Metric("solved", lambda run: float(run.ascent.solved), result=True),
    Metric(
        "steps_to_solve",
        lambda run: _until_solved(run, run.step),
        label="gradient steps until solved",
        result=True,
        less_is_better=True,
    ),
    Metric(
        "samples_to_solve",
        lambda run: _until_solved(run, run.ascent.env_steps),
        label="environment steps until solved",
        result=True,
        less_is_better=True,
    ),
    Metric("states", lambda run: run.mdp.n_states, result=True),
    Metric("gamma", lambda run: run.mdp.gamma, result=True),
    Metric("learning_rate", lambda run: run.learning_rate, result=True),
    # with exact gradients only: ln ‖d/ρ‖_∞ and ln ‖d/μ_K‖_∞ on the final context, and R
    Metric("ln_mismatch_rho", lambda run: run.ratio("ln_mismatch_rho"), result=True),
    Metric("ln_mismatch_mu", lambda run: run.ratio("ln_mismatch_mu"), result=True),
    Metric("predictor", lambda run: run.ratio("predictor"), result=True),
)


def family_member(spec: RunSpec[UntilSolvedConfig]) -> "ContextualMDP":
    """Return the MDP of a run."""
    from rollin.tabular.families import combination_lock, corridor, random_mdp, square_grid

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
    """Return what distinguishes the family from another of the same name, whatever the seed."""
    return family_member(RunSpec(spec.task, replace(spec.config, seed=0))).fingerprint()


class UntilSolvedRun(Driver[UntilSolvedConfig]):
    """One run: its MDP, and the ascent of its contexts."""

    def __init__(self, spec: RunSpec[UntilSolvedConfig], directory: RunDirectory) -> None:
        super().__init__(spec, directory)
        if spec.config.uniform_rho and spec.task != "combination-lock":
            raise RollinError("--uniform-rho belongs to combination-lock.")
        self.mdp = family_member(spec)
        scale = 1 - self.mdp.gamma if self.config.relative else 1.0
        self.learning_rate = self.config.learning_rate * scale
        self.ascent = self._make_ascent()
        self._ratios: dict[str, float] = {}
        self.declare(METRICS)

    def _make_ascent(self) -> "Ascent":
        from rollin.tabular.until_solved import ExactAscent, Goal, sampled_ascent

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
    def progress(self) -> Progress:
        """The place on the curriculum."""
        return self.ascent.progress

    @property
    def costs(self) -> dict[str, int]:
        """Samples, and gradient steps as updates."""
        ascent = self.ascent
        return {
            "env_steps": ascent.env_steps,
            "rollin_steps": ascent.rollin_steps,
            "updates": self.step,
        }

    @property
    def at_end(self) -> bool:
        """Solved or cut off."""
        return self.ascent.solved or self.step >= self.config.steps

    def fingerprint(self) -> str:
        """Of the family."""
        return family_fingerprint(self.spec)

    def events(self) -> Iterator[None]:
        """Some gradient steps each, on one BLAS thread; never across a row of metrics."""
        from threadpoolctl import threadpool_limits

        config = self.config
        with threadpool_limits(1):
            while True:
                to_row = config.log_every - self.step % config.log_every
                self.ascent.go(min(AT_ONCE, to_row, config.steps - self.step))
                yield

    def take(self, event: None) -> bool:
        """Any of them may be followed by a checkpoint."""
        return True

    def measure(self) -> None:
        """Compute the mismatch ratios from ρ and from the last μ_K, at the end of an exact run."""
        from rollin.tabular.until_solved import ExactAscent

        ascent = self.ascent
        if self.at_end and isinstance(ascent, ExactAscent) and ascent.predict:
            self._ratios = {
                "ln_mismatch_rho": self._mismatch(self.mdp.rho),
                "predictor": float(f"{ascent.predictor:.6g}"),
            }
            if self.progress.finished:
                self._ratios["ln_mismatch_mu"] = self._mismatch(ascent.start.mu)

    def ratio(self, name: str) -> float:
        """Return a ratio; NaN where it was not computed."""
        return self._ratios.get(name, math.nan)

    def _mismatch(self, mu: "Array") -> float:
        from rollin.tabular.until_solved import mismatch_of

        return float(f"{mismatch_of(self.mdp, self.config.alpha, mu):.6g}")

    def status(self) -> dict[str, Any]:
        """Where the run stands."""
        k, top = self.ascent.progress.k, self.mdp.K
        return {"k": k, "K": top, "shown": {"k": f"{k}/{top}"}}

    def get_state(self) -> dict[str, Any]:
        """Return everything needed to resume."""
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


def _arrays(state: dict[str, Any]) -> dict[str, Any]:
    """What a state must have in the same form at any time, by name."""
    found = {"start/mu": state["start"]["mu"], "theta": state.get("theta")}
    found |= {f"learner/{name}": value for name, value in state.get("learner", {}).items()}
    return {name: value for name, value in found.items() if isinstance(value, np.ndarray)}


class UntilSolvedEngine(Engine[UntilSolvedConfig]):
    """Families of MDPs of growing size."""

    name = "until-solved"
    config_class = UntilSolvedConfig
    step_words = "gradient steps"
    tasks = ("combination-lock", "corridor", "square-grid", "random-mdp")
    kind = "policy gradients until the last context is solved"
    example = "corridor"
    about = "combination-lock, corridor, square-grid, random-mdp"
    metrics = METRICS
    driver = f"{__name__}:UntilSolvedRun"
    points = 1
    help = """Train until the final context is solved.

    If interrupted, the same command resumes the run.
    """
    task_help = "A family of MDPs: combination-lock, corridor, square-grid or random-mdp."

    def fingerprint(self, spec: RunSpec[UntilSolvedConfig]) -> str | None:
        """Of the MDP, the random one's with seed 0: the seeds of a condition share it."""
        return family_fingerprint(spec)

    def fingerprint_key(self, config: UntilSolvedConfig) -> tuple[Any, ...]:
        """The options that make the MDP."""
        return config.n, config.gamma, config.uniform_rho

    def summary(self, spec: RunSpec[UntilSolvedConfig], result: dict[str, Any]) -> str:
        """How a run ended, in a line."""
        solved = result["completed"] is not None
        how = "solved" if solved else f"cut off at context {result['k']} of {result['K']}"
        samples = f" and {result['env_steps']:,} environment steps" if result["env_steps"] else ""
        return (
            f"{how} after {result['step']:,} gradient steps{samples} in {result['seconds']:.1f} s"
        )


ENGINE = UntilSolvedEngine()
