"""`rollin theory TASK`: the paper's assumptions, constants and bounds on an MDP."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

import tyro

from rollin.checks import at_least
from rollin.cli._theory_json import as_json
from rollin.cli._theory_run import Run, read_run
from rollin.cli._theory_tables import (
    assumptions_table,
    bounds_table,
    compare,
    constants_table,
    mismatch_table,
    scaling_table,
    smallest_table,
    starts_table,
    step_size_table,
)
from rollin.cli.arguments import make_console, parse
from rollin.imports import name_code
from rollin.runs.engines.tabular_options import TabularConfig
from rollin.runs.files import write_json
from rollin.runs.mdps import load_mdp
from rollin.tabular.magnitude import Magnitude
from rollin.tabular.step_size import StepSizeCondition
from rollin.tabular.theory import Theory, analyse
from rollin.tabular.totals import total

WIDTH = 118  # of the tables where the output is not a terminal


@dataclass(frozen=True)
class TheoryOptions:
    """Assumptions, constants and bounds of the paper on an MDP and its curriculum."""

    task: tyro.conf.Positional[Annotated[str, tyro.conf.arg(metavar="TASK")]]
    """four-rooms, a FILE.npz with your own MDP, or module:factory that returns one; or the
    directory of a tabular run, whose MDP and options are then used."""
    reward: Literal["easy", "hard"] | None = None
    """Reward of four rooms; easy if not given."""
    alpha: float | None = None
    """Entropy coefficient α > 0; 0.01, or the run's, if not given."""
    beta: float | None = None
    """Mixing ratio β ∈ (0, 1); 0.75, or the run's, if not given."""
    gamma: float | None = None
    """Discount γ < 1; the task's own if not given."""
    smooth_rho: float = 0.0
    """Share of a uniform distribution mixed into ρ; the bounds need ρ(s) > 0 everywhere."""
    mu: Literal["recursive", "rho"] | None = None
    """Where the roll-in that is analysed starts. recursive: in μ_{k-1}, as in equation 1, which the
    theorems are about; rho: in ρ, as in rollin train, whose runs are then nearer to the published
    ones. Default: recursive, or as the run did."""
    delta: float = 0.1
    """Tolerance level δ of the theorem."""
    zeta: float = 0.5
    """The optimisation constant ζ ∈ (0, 1)."""
    epsilon: float | None = None
    """Target ε of the theorem; ε_0 / 2 if not given, as in the induction of Theorem 4.3."""
    phase1_steps: int | None = None
    """T_1 in the condition on phase 1's step size; 1000, or the run's, if not given."""
    json: Path | None = None
    """Also write everything to this file."""
    trust: bool = False
    """Run the code that a run names as its task, module:factory, though you did not make it."""


def main(arguments: Sequence[str]) -> int:
    """Entry point of the subcommand."""
    options = parse(TheoryOptions, arguments, "theory")
    fixed = {name: getattr(options, name) for name in ("reward", "alpha", "gamma")}
    name_code(options.task)
    run = read_run(options.task, fixed, trust=options.trust)
    config = TabularConfig(mu="recursive") if run is None else run.config
    if run is None:
        mdp = load_mdp(options.task, reward=options.reward or "easy", gamma=options.gamma)
    else:
        mdp = run.mdp
    alpha = config.alpha if options.alpha is None else options.alpha
    theory = analyse(
        mdp.smooth_rho(options.smooth_rho),
        alpha,
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
    show(options, theory, condition, run, learned)
    if options.json is not None:
        write_json(options.json, as_json(theory, condition, run, learned))
    return 0


def show(
    options: TheoryOptions,
    theory: Theory,
    condition: StepSizeCondition,
    run: Run | None,
    learned: list[Magnitude],
) -> None:
    """Print everything."""
    mdp, console = theory.mdp, make_console(WIDTH)
    console.print(
        f"{options.task}: S = {mdp.n_states}, A = {mdp.n_actions}, K = {mdp.K}, "
        f"γ = {mdp.gamma:g}, α = {theory.alpha:g}, β = {theory.beta:g}, "
        f"δ = {options.delta:g}, ζ = {options.zeta:g}"
    )
    console.print(f"{which_mu(theory)}\n")
    if mdp.rho.min() == 0:
        console.print(
            "ρ is 0 on some states: the theorem's constants need ρ(s) > 0 everywhere and are "
            "not defined here. Add --smooth-rho 0.01 to mix in 1 % of a uniform ρ.\n",
            style="yellow",
        )
    for table, notes in (
        (assumptions_table(theory), []),
        (constants_table(theory), []),
        (step_size_table(condition), step_size_notes(theory, condition, run)),
        (mismatch_table(theory), []),
        (starts_table(theory), totals_notes(theory)),
        (scaling_table(theory), [scaling_note(theory)]),
        (bounds_table(theory), []),
    ):
        console.print(table)
        for note in notes:
            console.print(note)
        console.print()
    if run is not None:
        if run.tracked:
            console.print(smallest_table(theory))
        for note in run_notes(run, learned):
            console.print(note)
        console.print()
    console.print(summary(theory))


def which_mu(theory: Theory) -> str:
    """Which μ_k is analysed, and how to have `rollin train` take the same."""
    if theory.recursive:
        return (
            "μ_k is recursive, from μ_{k-1} as in equation 1. rollin train rolls in from ρ, "
            "because its runs are then nearer to the published ones; --mu rho analyses that."
        )
    return (
        "μ_k rolls in from ρ, as in rollin train. Equation 1 is recursive, from μ_{k-1}; "
        "--mu recursive analyses it, and with rollin train runs it."
    )


def step_size_notes(theory: Theory, condition: StepSizeCondition, run: Run | None) -> list[str]:
    """What the condition leaves of a step, and whether a run met it."""
    T1 = theory.constants_rollin[-1].T1
    notes = [
        "The first term binds for every T_1 ≥ 2, as log T/T < 1/2 and C_δ⁰ is tiny. rollin train "
        "--algorithm two-phase-spg takes it."
    ]
    if not math.isnan(T1.log):
        notes.append(f"With the T_1 of the theorem itself it is about 1 / {T1}: no step at all.")
    if run is not None and run.learning_rate is not None:
        met = "meets" if run.learning_rate <= condition.limit else "does not meet"
        notes.append(f"The run's η = {run.learning_rate:.3g} {met} the condition.")
    return notes


def totals_notes(theory: Theory) -> list[str]:
    """Theorem 4.3's totals, and what is left of them here."""
    totals, K = theory.totals, theory.mdp.K
    notes = [
        "θ = 0, π*_{k-1}, ε-optimal: D of these policies; of one that is ε-optimal on ω_{k-1} at "
        "most ε + 2‖r_k - r_{k-1}‖/(1-γ) (v: vacuous). Σ is over k ≥ 1; ω_0 begins with θ = 0."
    ]
    if totals.entering is None:
        return [*notes, "Without ε_0 there is no phase 2 to begin in, and no total."]
    notes += [
        f"K T_2 = {totals.steps} gradient steps, with and without roll-in: T_2 does not depend on "
        f"μ. Σ T_2 B_2 = {totals.samples_rho} samples without, {totals.samples_mu} with it: "
        f"{compare(totals.samples_rho, totals.samples_mu)}.",
    ]
    if totals.entering + totals.unresolved < K:
        notes.append(
            f"These totals hold if all {K} contexts begin in phase 2; {totals.entering} do. The "
            "others need phase 1, and the theorem says nothing of use about them."
        )
    if totals.unresolved:
        notes.append(
            f"On {totals.unresolved} of them float64 does not resolve whether D < ε_0: D is no "
            "larger than the rounding errors of the optimum."
        )
    if totals.failure >= 1:
        notes.append(
            f"Each context may fail with probability δ. For all of them (K+1) δ = "
            f"{totals.failure:.3g} ≥ 1 promises nothing: that takes δ < {1 / (K + 1):.3g}."
        )
    return notes


def scaling_note(theory: Theory) -> str:
    """What the powers of S leave out."""
    left_out = Magnitude(4 / ((1 - theory.mdp.gamma) * theory.alpha))
    return (
        f"Left out are constants such as e^{{4/((1-γ)α)}} = {left_out} in 1/ε_0. Phase 2 stays "
        "polynomial in S either way."
    )


def run_notes(run: Run, learned: list[Magnitude]) -> list[str]:
    """Where the run's smallest probabilities come from, and R with its own policies."""
    return [
        f"Over θ_0 and the θ after every step of {run.config.algorithm} (β = {run.config.beta:g}). "
        "The constants take the second number, which is about SPG from the exact π*_{k-1} (θ = 0 "
        "for k = 0); the run began each context with what it had learned."
        if run.tracked
        else f"{run.path} did not record its smallest probabilities: an earlier version made it.",
        f"R with the run's own policies at its switches and its own μ_k: {total(learned)} over "
        f"ω_0 … ω_{len(learned) - 1}.",
    ]


def summary(theory: Theory) -> str:
    """What the tables say, in a few sentences."""
    violated = [b for b in theory.bounds if not b.holds]
    vacuous = sum(b.vacuous and b.holds for b in theory.bounds)
    better = sum(
        r.mismatch < p.mismatch
        for p, r in zip(theory.constants[1:], theory.constants_rollin[1:], strict=True)
    )
    lines = [
        f"Lemma B.3 (sub-optimality as a KL divergence) holds to {theory.identity_error:.1e}.",
        f"{len(theory.bounds) - len(violated)} of {len(theory.bounds)} bounds hold, "
        f"{vacuous} of them vacuously.",
        f"Roll-in makes the mismatch ratio smaller on {better} of {theory.mdp.K} contexts.",
    ]
    lines += predictor_lines(theory)
    names = sorted({b.lemma for b in violated})
    if names:
        lines.append(f"Violated: {', '.join(names)}.")
        if not theory.assumptions.shift_holds:
            lines.append(
                "The visitation and mismatch bounds assume ‖ρ - d_ρ^{π*_0}‖_1 ≤ ‖ω_1 - ω_0‖, "
                "which does not hold here."
            )
    return "\n".join(lines)


def predictor_lines(theory: Theory) -> list[str]:
    """R and γ', in a sentence each."""
    found = theory.predictor
    horizon = 1 / (1 - theory.roll_in_discount)
    return [
        "R = Σ_k ‖d_ρ^{π*_k} / d_{μ_k}^{π*_{k-1}}‖_∞: "
        f"{found.R_rolled} with roll-in, {found.R_plain} without, {found.scratch} for ω_K alone "
        "from θ = 0. Ours and an observation, not a theorem: on locks with γ = 1 - 1/n the steps "
        "of exact PG grow with R if the policy learned by each switch stands for π*_{k-1}, as in "
        "rollin theory RUN.",
        "With an unchanged policy, recursive roll-in tends to visitation with discount "
        f"γ' = γ/(1-β(1-γ)) = {theory.roll_in_discount:.6g}, {horizon:.4g} steps instead of "
        f"{1 / (1 - theory.mdp.gamma):.4g}.",
    ]
