"""`rollin theory TASK`: the paper's assumptions, constants and bounds on an MDP."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
from rich.console import Console
from safetensors import SafetensorError
from safetensors.numpy import load

from rollin.checks import at_least
from rollin.cli.console import make_console
from rollin.cli.options import Arg, parse
from rollin.cli.theory_tables import show, smallest_table, summary
from rollin.errors import RollinError
from rollin.runs.directory import RunDirectory
from rollin.runs.engines import spec_of
from rollin.runs.engines.tabular import TABULAR_TASKS, TabularConfig, load_mdp, mdp_of
from rollin.runs.files import check_trust, write_json
from rollin.tabular import soft
from rollin.tabular.mdp import ContextualMDP
from rollin.tabular.soft import SoftOptimum
from rollin.tabular.theory.analysis import Theory, analyse, learned_terms
from rollin.tabular.theory.constants import Magnitude, StepSizeCondition, total
from rollin.untrusted import LARGEST_POLICY, name_code, read_bounded

WIDTH = 118  # of the tables where the output is not a terminal


@dataclass(frozen=True)
class TheoryOptions:
    """Compute the paper's assumptions, constants and bounds on an MDP and its curriculum."""

    task: Annotated[str, Arg("TASK", positional=True)]
    """four-rooms, a FILE.npz with your own MDP, module:factory that returns one, or the directory
    of a tabular run, which gives its MDP and options."""
    reward: Literal["easy", "hard"] | None = None
    """Reward of four rooms. Default: easy."""
    alpha: float | None = None
    """Entropy coefficient α > 0. Default: 0.01, or the run's."""
    beta: float | None = None
    """Mixing ratio β ∈ (0, 1). Default: 0.75, or the run's."""
    gamma: float | None = None
    """Discount γ < 1. Default: the task's own."""
    smooth_rho: float = 0.0
    """Share of a uniform distribution mixed into ρ; the bounds need ρ(s) > 0 everywhere."""
    mu: Literal["recursive", "rho"] | None = None
    """Where the roll-in that is analysed starts. recursive: in μ_{k-1}, as in equation 1 and the
    theorems; rho: in ρ, as in rollin train. Default: recursive, or as the run did."""
    delta: float = 0.1
    """Tolerance level δ of the theorem."""
    zeta: float = 0.5
    """The optimisation constant ζ ∈ (0, 1)."""
    epsilon: float | None = None
    """Target ε of the theorem. Default: ε_0 / 2, as in the induction of Theorem 4.3."""
    phase1_steps: int | None = None
    """T_1 in the condition on phase 1's step size. Default: 1000, or the run's."""
    json: Path | None = None
    """Also write everything to this file."""
    trust: bool = False
    """Run the code that a run names, module:factory, even if another user made the run."""


@dataclass(frozen=True)
class Run:
    """A finished tabular run.

    log_min_pi: by context, as in result.json; learning_rate: of two-phase-spg alone.
    """

    path: Path
    config: TabularConfig
    mdp: ContextualMDP
    log_min_pi: list[float | None]
    learning_rate: float | None

    @property
    def tracked(self) -> bool:
        """Whether the run recorded its smallest probabilities on some context."""
        return any(least is not None for least in self.log_min_pi)

    def predictor(self, optima: Sequence[SoftOptimum]) -> list[Magnitude]:
        """Return R's terms with the run's own policies and start distributions, unsmoothed."""
        path = self.path / "policy.safetensors"
        try:
            policies = load(read_bounded(path, LARGEST_POLICY)).get("log_policies", ())
        except (SafetensorError, KeyError, ValueError) as error:
            raise RollinError(f"{path} cannot be read: {error}.") from error
        recursive = self.config.mu == "recursive"
        log_pis = [soft.log_softmax(policy) for policy in policies]
        return learned_terms(self.mdp, optima, log_pis, self.config.beta, recursive=recursive)


def read_run(task: str, fixed: Mapping[str, Any], *, trust: bool = False) -> Run | None:
    """Return the finished tabular run that a task names, or None; raise for another run.

    fixed: options that only the run itself may set; None where not given. trust: whether code that
    the run names may be run though this user did not make it.
    """
    directory = RunDirectory(Path(task))
    if task in TABULAR_TASKS or not directory.exists:
        return None
    spec = spec_of(directory)
    config = spec.config
    if not isinstance(config, TabularConfig):
        raise RollinError(
            f"{task} is a run of {spec.task}, which is not a tabular task: the theory is "
            "about finite MDPs."
        )
    for name, given in fixed.items():
        used = getattr(config, name)
        if given is not None and given != used:
            raise RollinError(
                f"{task} was run with {name} = {used}, got --{name} {given}: leave it out, "
                f"or name the task {spec.task} instead of the run."
            )
    if not directory.finished:
        raise RollinError(f"{task} is not finished: rollin resume {task} finishes it.")
    check_trust(directory.path, directory.config, trust=trust)
    mdp = mdp_of(spec)
    result = directory.result()
    if directory.config.fingerprint != mdp.fingerprint():
        raise RollinError(f"{spec.task} is no longer the task that {task} was run on.")
    return Run(
        directory.path,
        config,
        mdp,
        result.get("log_min_pi", []),
        result.get("learning_rate") if config.algorithm == "two-phase-spg" else None,
    )


def main(arguments: Sequence[str]) -> int:
    """Entry point of the subcommand."""
    options = parse(TheoryOptions, arguments, "theory")
    fixed = {name: getattr(options, name) for name in ("reward", "alpha", "gamma")}
    name_code(options.task)
    run = read_run(options.task, fixed, trust=options.trust)
    if run is None:
        config = TabularConfig(mu="recursive")
        mdp = load_mdp(options.task, reward=options.reward or "easy", gamma=options.gamma)
    else:
        config = run.config
        mdp = run.mdp
    theory = analyse(
        mdp.smooth_rho(options.smooth_rho),
        config.alpha if options.alpha is None else options.alpha,
        config.beta if options.beta is None else options.beta,
        delta=options.delta,
        zeta=options.zeta,
        epsilon=options.epsilon,
        recursive=(options.mu or config.mu) == "recursive",
        log_min_pi=() if run is None else run.log_min_pi,
    )
    T1 = config.phase1_steps if options.phase1_steps is None else options.phase1_steps
    at_least(0, "--phase1-steps", T1)
    last = theory.constants_rollin[-1]
    condition = StepSizeCondition(T1, last.L, last.C_delta)
    learned = [] if run is None else run.predictor(theory.optima)
    console = make_console(WIDTH)
    mdp = theory.mdp
    console.print(
        f"{options.task}: S = {mdp.n_states}, A = {mdp.n_actions}, K = {mdp.K}, "
        f"γ = {mdp.gamma:g}, α = {theory.alpha:g}, β = {theory.beta:g}, "
        f"δ = {options.delta:g}, ζ = {options.zeta:g}"
    )
    show(console, theory, condition, None if run is None else run.learning_rate)
    if run is not None:
        show_run(console, theory, run, learned)
    console.print(summary(theory))
    if options.json is not None:
        write_json(options.json, as_json(theory, condition, run, learned))
    return 0


def show_run(console: Console, theory: Theory, run: Run, learned: list[Magnitude]) -> None:
    """Print the run's smallest probabilities, and R with its own policies."""
    if run.tracked:
        console.print(smallest_table(theory))
        console.print(
            f"Over θ_0 and the θ after every step of {run.config.algorithm} (β = "
            f"{run.config.beta:g}). The constants take the second number, which is about SPG from "
            "the exact π*_{k-1} (θ = 0 for k = 0); the run began each context with what it had "
            "learned."
        )
    else:
        console.print(
            f"{run.path} did not record its smallest probabilities: an earlier version made it."
        )
    console.print(
        f"R with the run's own policies at its switches and its own μ_k: {total(learned)} over "
        f"ω_0 … ω_{len(learned) - 1}.\n"
    )


def as_json(
    theory: Theory, condition: StepSizeCondition, run: Run | None, learned: list[Magnitude]
) -> dict[str, Any]:
    """Return all quantities; numbers beyond floats as the natural logarithm `log` (or `loglog`)."""
    totals = theory.totals
    limits = ("T1", "L", "terms", "binding", "limit")
    holds = ("lipschitz_holds", "steps_hold", "gap_holds", "shift_holds")
    return {
        "alpha": theory.alpha,
        "beta": theory.beta,
        "gamma": theory.mdp.gamma,
        "mu": "recursive" if theory.recursive else "rho",
        "roll_in_discount": theory.roll_in_discount,
        "assumptions": plain(theory.assumptions, *holds),
        "constants_rho": plain(theory.constants),
        "constants_mu": plain(theory.constants_rollin),
        "smallest_probability": plain(theory.smallest),
        "step_size": {name: plain(getattr(condition, name)) for name in limits},
        "totals": {
            "steps": plain(totals.steps),
            "samples_rho": plain(totals.samples_rho),
            "samples_mu": plain(totals.samples_mu),
            "failure": totals.failure,
            "contexts": [plain(context, "enters", "verdict") for context in totals.contexts],
        },
        "scaling": plain(theory.scaling),
        "predictor": plain(theory.predictor, "R_plain", "R_rolled"),
        "bounds": [plain(bound, "verdict") for bound in theory.bounds],
        "identity_error": theory.identity_error,
        "run": run
        and {
            "path": str(run.path),
            "learning_rate": run.learning_rate,
            "predictor": plain(learned),
        },
    }


def plain(value: Any, *properties: str) -> Any:
    """Return dataclasses, with some of their properties, lists and magnitudes as JSON has them."""
    if isinstance(value, Magnitude):
        inner = {"log": value.log} if value.loglog is None else {"loglog": value.loglog}
        return plain(inner)
    if is_dataclass(value):
        names = (*(field.name for field in fields(value)), *properties)
        return {name: plain(getattr(value, name)) for name in names}
    if isinstance(value, dict):
        return {name: plain(inner) for name, inner in value.items()}
    if isinstance(value, np.ndarray):
        return value.tolist()
    if isinstance(value, list):
        return [plain(inner) for inner in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None if math.isnan(value) else str(value)
    return value
