"""A run of a tabular task: its MDP and learner, its rows of metrics, its result."""

from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np
from safetensors.numpy import save
from threadpoolctl import threadpool_limits

from rollin.checks import check_beta
from rollin.curriculum.contexts import AdvanceRule, SuccessRate
from rollin.curriculum.mastery import StepGap
from rollin.curriculum.progress import Progress
from rollin.runs.checkpoint import check_like
from rollin.runs.directory import POLICY, RunDirectory
from rollin.runs.driver import Driver
from rollin.runs.engines.tabular import METRICS, TabularConfig, mdp_of
from rollin.runs.files import as_dataclass, write_atomically
from rollin.runs.spec import RunSpec
from rollin.tabular import soft
from rollin.tabular.algorithm1 import (
    GradientStep,
    TabularState,
    check_first_context,
    measure_success_from_rho,
    rollin,
)
from rollin.tabular.learners import (
    BatchSPG,
    ExactPG,
    NaturalPG,
    RandomHorizonSPG,
    StepInfo,
    TabularLearner,
    constant_schedule,
    two_phase_schedule,
)
from rollin.tabular.mdp import Array, ContextualMDP, TabularTask
from rollin.tabular.start import Start, start_laws
from rollin.tabular.theory.constants import StepSizeCondition, default_step_size, smoothness


def tabular_learner(mdp: ContextualMDP, config: TabularConfig) -> TabularLearner:
    """The learner that a configuration names."""
    rate = config.learning_rate
    if rate is None and config.algorithm == "two-phase-spg":
        rate = default_step_size(config.phase1_steps, smoothness(mdp, config.alpha))
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
class TabularCounters:
    """Sums over the run so far, and over the steps since the last row of metrics.

    log_min_pi: ln of the smallest π_θt(a|s) on each context so far (c of Lemma C.2), over its first
        θ and the θ after every step.
    """

    env_steps: int = 0
    rollin_steps: int = 0
    rollin_steps_expected: float = 0.0
    successes: float = 0.0
    since: int = 0
    last_success: float = 0.0
    log_min_pi: list[float] = field(default_factory=list)


class TabularRun(Driver[TabularConfig]):
    """One run: its MDP, learner, place in the curriculum and counters."""

    def __init__(self, spec: RunSpec[TabularConfig], directory: RunDirectory) -> None:
        super().__init__(spec, directory)
        self.mdp = mdp_of(self.spec)
        self.learner = tabular_learner(self.mdp, self.config)
        self.counters = TabularCounters(log_min_pi=[float(self.learner.log_pi.min())])
        self.state = TabularState.initial(self.mdp)
        self.rule = self.config.advance
        check_first_context(self.mdp, self.rule, self.config.horizon)
        self.gap = self.rule if isinstance(self.rule, StepGap) else None
        self.exact: dict[str, float] = {}
        self._chances: list[dict[str, float]] = []
        self.declare(METRICS)

    @property
    def step(self) -> int:
        """Gradient steps so far."""
        return self.state.step

    @property
    def progress(self) -> Progress:
        """The place on the curriculum."""
        return self.state.progress

    @property
    def costs(self) -> dict[str, int]:
        """Samples, and gradient steps as updates."""
        counters = self.counters
        return {
            "env_steps": counters.env_steps,
            "rollin_steps": counters.rollin_steps,
            "updates": self.step,
        }

    def outcome(self) -> dict[str, Any]:
        """Return how far the run has come; at the end with chances of success at its switches."""
        found = super().outcome()
        for advance, chances in zip(found["advances"], self._chances, strict=False):
            advance["numbers"] = chances
        return found

    def fingerprint(self) -> str:
        """Of the MDP."""
        return self.mdp.fingerprint()

    def events(self) -> Iterator[GradientStep]:
        """The algorithm's events, on one BLAS thread."""
        config = self.config
        from_rho = config.success_from == "rho"
        with threadpool_limits(1):
            yield from rollin(
                self.mdp,
                self.learner,
                config.beta,
                self.rule,
                self.state,
                measure=measure_success_from_rho(self.mdp) if from_rho else None,
                recursive=config.mu == "recursive",
                sampled=config.rollin == "sampled",
            )

    def take(self, event: GradientStep) -> bool:
        """Count a gradient step; any of them may be followed by a checkpoint."""
        self._count(event.k, event.info)
        self._track(event)
        return True

    def _count(self, k: int, info: StepInfo) -> None:
        counters = self.counters
        counters.env_steps += info.env_steps
        counters.rollin_steps += info.rollin_steps
        counters.rollin_steps_expected += info.trajectories * self._expected_roll_in(k)
        counters.successes += info.success
        counters.since += 1
        counters.last_success = info.success

    def _track(self, event: GradientStep) -> None:
        """Note how small a probability has become."""
        least, minima = self.learner.least_log_pi(), self.counters.log_min_pi
        self.learner.check(event.step, least)
        minima[event.k] = min(minima[event.k], least)
        if self.state.progress.k > event.k:  # what ended one context is θ_0 of the next
            minima.append(least)

    def _expected_roll_in(self, k: int) -> float:
        """Roll-in steps that sampling μ_k costs per trajectory on average: Σ_i β^i γ/(1-γ)."""
        depth = k if self.config.mu == "recursive" else min(k, 1)
        powers = sum(self.config.beta**i for i in range(1, depth + 1))
        return powers * self.mdp.gamma / (1 - self.mdp.gamma)

    def measure(self) -> None:
        """Compute exact returns."""
        log_pi = self.learner.log_pi
        self.exact = {
            **returns(self.mdp, log_pi, self.progress.k, self.config.horizon),
            "entropy": float(-(np.exp(log_pi) * log_pi).sum(1).mean()),
        }

    def forget(self) -> None:
        """Begin the sums between two rows of metrics again."""
        self.counters.successes = 0.0
        self.counters.since = 0

    def status(self) -> dict[str, Any]:
        """Where the run stands."""
        progress = self.state.progress
        return {
            "k": progress.k,
            "K": self.mdp.K,
            "kappa": progress.kappa,
            "success": self.counters.last_success,
            "shown": {
                "k": f"{progress.k}/{self.mdp.K}",
                "κ": f"{progress.kappa:.3f}",
                "last mastered": "yes" if progress.completed else "no",
                "success": f"{self.counters.last_success:.2f}",
            },
        }

    def get_state(self) -> dict[str, Any]:
        """Return everything needed to resume."""
        state = self.state
        return {
            "step": state.step,
            "progress": state.progress.get_state(),
            "policies": {str(k): policy for k, policy in enumerate(state.policies)},
            "start": {
                "mu": state.start.mu,
                "beta": state.start.beta,
                "chain": {str(i): policy for i, policy in enumerate(state.start.chain)},
            },
            "counters": asdict(self.counters),
            "learner": self.learner.get_state(),
            **({"rule": self.gap.get_state()} if self.gap else {}),
        }

    def set_state(self, state: dict[str, Any]) -> None:
        """Go back to what `get_state` gave."""
        own = self.state
        own.step = int(state["step"])
        own.progress.set_state(state["progress"])
        own.policies = _numbered(state["policies"], self.learner.log_pi)
        own.start = self._saved_start(state["start"])
        self.counters = as_dataclass(TabularCounters, state["counters"])
        self._check_place()
        self.learner.begin(self.mdp.task(own.progress.k), own.start)
        for name, like in self.learner.get_state().items():
            if isinstance(like, np.ndarray):
                check_like(name, state["learner"].get(name), like)
        self.learner.set_state(state["learner"])
        if self.gap:
            self.gap.set_state(state["rule"])

    def _saved_start(self, saved: dict[str, Any]) -> Start:
        """The law of first states; the kernels index by what they draw from it."""
        mu = check_like("start/mu", saved["mu"], self.mdp.rho)
        if not (np.isfinite(mu).all() and (mu >= 0).all() and abs(mu.sum() - 1) < 1e-6):
            raise ValueError("start/mu must be probabilities that sum to 1")
        chain = tuple(_numbered(saved["chain"], self.learner.log_pi))
        return Start(mu, chain, check_beta(float(saved["beta"])))

    def _check_place(self) -> None:
        progress = self.state.progress
        ks = [advance.k for advance in progress.advances]
        known = len(self.state.policies), len(self.counters.log_min_pi) - 1
        k = progress.k
        if (
            progress.K != self.mdp.K
            or ks != list(range(1, k + 1))
            or known != (k, k)
            or k > self.mdp.K
        ):
            raise ValueError(
                f"its switches {ks} and policies do not lead to k = {k} of {self.mdp.K}"
            )

    def warning(self) -> str | None:
        """Return why the rule cannot be met, or that a step size is against the theorem."""
        config, learner = self.config, self.learner
        if self.state.progress.completed is None:
            stalled = stall(self.rule, learner.task, self.state.start.mu, config.horizon)
            if stalled is not None:
                return stalled
        if isinstance(learner, NaturalPG) and learner.learning_rate > learner.safe_rate:
            return (
                f"--learning-rate {learner.learning_rate:g} is above (1-γ)/α = "
                f"{learner.safe_rate:.3g}, up to which the natural gradient is known to converge "
                "from everywhere; beyond, only near the optimum."
            )
        if config.algorithm != "two-phase-spg":
            return None
        allowed = StepSizeCondition(config.phase1_steps, smoothness(self.mdp, config.alpha))
        if self.learner.learning_rate <= allowed.limit:
            return None
        return (
            f"--learning-rate {self.learner.learning_rate:g} is above what the theorem allows in "
            f"phase 1, {allowed}: it promises nothing about this run."
        )

    def finish(self) -> None:
        """Write the policy and the result."""
        config = self.config
        recursive = config.mu == "recursive"
        starts = start_laws(self.mdp, self.state.policies, config.beta, recursive=recursive)
        for advance, policy in zip(self.advances, self.state.policies, strict=True):
            task = self.mdp.task(advance.k)
            rho, mu = (
                soft.success_probability(task, policy, law, self.config.horizon)
                for law in (self.mdp.rho, starts[advance.k].mu)
            )
            self._chances.append({"success_rho": rho, "success_mu": mu})
        tensors = {"theta": np.asarray(self.learner.theta, np.float32)}
        if self.state.policies:
            tensors["log_policies"] = np.stack(self.state.policies).astype(np.float32)
        write_atomically(self.directory.path / POLICY, save(tensors))
        self.write_result(log_min_pi=self.counters.log_min_pi, warning=self.warning())


def stall(rule: AdvanceRule, task: TabularTask, mu: Array, horizon: int) -> str | None:
    """Why the rule is not met under a context that starts from μ; None if it can still be."""
    if isinstance(rule, SuccessRate):
        most = soft.most_success(task, horizon)
        largest = max(float(law @ most) for law in (mu, task.mdp.rho))
        if largest > rule.threshold:
            return None
        return (
            f"--threshold {rule.threshold:g} cannot be exceeded under context {task.k}: within "
            f"{horizon} steps no policy succeeds there with a probability above {largest:.3g}. "
            "Give a smaller --threshold or a longer --horizon."
        )
    if not isinstance(rule, StepGap):
        return None
    if rule.flat:
        return (
            f"--rule gap saw the same success rate in all {rule.n:,} steps under context {task.k}, "
            "and has nothing to decide by: an easier context before it or a larger β may help."
        )
    if not rule.stuck:
        return None
    return (
        f"--rule gap was not met in {rule.n:,} steps under context {task.k}: the success rate "
        f"began at {rule.base:.3g}, and its best, {rule.best:.3g}, has not risen for "
        f"{rule.n - rule.risen_at:,} steps. If that is good enough, give a --threshold below it "
        "without --rule gap."
    )


def returns(mdp: ContextualMDP, log_pi: Array, k: int, horizon: int) -> dict[str, float]:
    """Return what a trajectory from ρ gathers on the final context, exactly and without entropy.

    Discounted over the horizon and for ever, undiscounted, and its number of rewarded steps (in a
    grid world: collects), plain and with step t counted as γ^t; and the return on context k.
    """
    last = mdp.task(mdp.K)
    rewarded = (last.r > 0).astype(np.float64)
    return {
        "return": float(mdp.rho @ soft.evaluate(last, log_pi, 0.0, horizon).v),
        "return_infinite": float(mdp.rho @ soft.evaluate(last, log_pi).v),
        "return_current": float(mdp.rho @ soft.evaluate(mdp.task(k), log_pi, 0.0, horizon).v),
        "return_undiscounted": soft.expected_sum(mdp, log_pi, last.r, horizon),
        "collects": soft.expected_sum(mdp, log_pi, rewarded, horizon),
        "collects_discounted": soft.expected_sum(mdp, log_pi, rewarded, horizon, mdp.gamma),
    }


def _numbered(policies: dict[str, Array], like: Array) -> list[Array]:
    return [check_like(f"policy {i}", policies[str(i)], like) for i in range(len(policies))]
