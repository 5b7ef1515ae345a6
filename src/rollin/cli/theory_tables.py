"""What `rollin theory` prints: tables, notes below them, and a summary."""

import math
from collections.abc import Iterable

from rich.console import Console, Group, JustifyMethod
from rich.table import Table
from rich.text import Text

from rollin.tabular.theory.analysis import Bound, Theory
from rollin.tabular.theory.constants import Magnitude, StepSizeCondition

LEMMAS = {
    "Q difference": "Q difference",
    "policy difference": "policy (B.2)",
    "value gap": "value (A.5)",
    "visitation difference": "visitation",
    "mismatch ratio": "mismatch (A.1)",
}
CONSTANTS = (
    ("D(θ_0)", "D0", "sub-optimality of θ_0", ""),
    ("ε_0", "eps0", "where phase 2 begins", ""),
    ("ε", "epsilon", "target", ""),
    ("σ²", "sigma2", "variance of the gradient", ""),
    ("L", "L", "smoothness", ""),
    ("t_0", "t0", "offset of phase 2's step size", ""),
    ("‖d/μ‖_∞", "mismatch", "mismatch ratio", ""),
    ("C_ζ", "C_zeta", "", ""),
    ("c", "c", "smallest π_θt(a|s)", "≤"),
    ("Δ̄", "delta_bar", "radius of 𝒢", "≥"),
    ("C_δ⁰", "C_delta", "", "≤"),
    ("T_1", "T1", "steps of phase 1", "≥"),
    ("B_1", "B1", "batch of phase 1", "≥"),
    ("T_2", "T2", "steps of phase 2", "≥"),
    ("B_2", "B2", "batch of phase 2", "≥"),
)
"""How a constant is printed, its field, its meaning, and the sign where it is a bound."""
ANSWERS = {True: Text("yes"), False: Text("no", style="bold red"), None: Text("not resolved")}
MARKS = "¹²³⁴⁵⁶⁷⁸⁹"


def show(
    console: Console, theory: Theory, condition: StepSizeCondition, learning_rate: float | None
) -> None:
    """Print every table with its notes; learning_rate: η of a run, if there is one."""
    console.print(f"{which_mu(theory)}\n")
    if theory.mdp.rho.min() == 0:
        console.print(
            "ρ is 0 on some states: the theorem's constants need ρ(s) > 0 everywhere and are "
            "not defined here. Add --smooth-rho 0.01 to mix in 1 % of a uniform ρ.\n",
            style="yellow",
        )
    for table, notes in (
        (assumptions_table(theory), []),
        (constants_table(theory), []),
        (step_size_table(condition), step_size_notes(theory, condition, learning_rate)),
        (mismatch_table(theory), []),
        (starts_table(theory), totals_notes(theory)),
        (scaling_table(theory), [scaling_note(theory)]),
        (bounds_table(theory), []),
    ):
        for part in (table, *notes, ""):
            console.print(part)


def titled(
    title: str,
    columns: Iterable[str],
    rows: Iterable[Iterable[str | Text]],
    justify: JustifyMethod = "left",
) -> Group:
    """Return a plain table below its title, which may be wider than the table."""
    table = Table(box=None, pad_edge=False)
    for column in columns:
        table.add_column(column, justify=justify)
    for row in rows:
        table.add_row(*row)
    return Group(Text(title, style="italic"), table)


def assumptions_table(theory: Theory) -> Group:
    """Return assumptions 3.1 and 3.2 and the near-optimal initialisation."""
    assumed = theory.assumptions
    largest = assumed.steps.max()
    rows = (
        ("3.1  Lipschitz rewards", "L_r < ∞", f"L_r = {assumed.lipschitz:.4g}",
         ANSWERS[assumed.lipschitz_holds]),
        ("3.2  close contexts: max ‖ω_k - ω_{k-1}‖",
         f"≤ {assumed.step_needed}  (2 L_r Δ/(1-γ)² ≤ ε_0/2)",
         f"{largest:.4g} = {largest * theory.mdp.n_states**2:.4g} / S²",
         ANSWERS[assumed.steps_hold]),
        ("4.2  near-optimal θ_0 = 0: V* - V on ω_0", f"< ε_0 = {assumed.eps0}",
         str(Magnitude.of(assumed.initial_gap)), ANSWERS[assumed.gap_holds]),
        ("4.2  ‖ρ - d_ρ^{π*_0}‖_1", f"≤ ‖ω_1 - ω_0‖ = {assumed.steps[0]:.4g}",
         f"{assumed.visitation_shift:.4g}", ANSWERS[assumed.shift_holds]),
    )  # fmt: skip
    return titled("Assumptions", ("assumption", "needed", "here", "holds"), rows)


def constants_table(theory: Theory) -> Group:
    """Return the theorem's constants on the final context, from scratch and with roll-in."""
    K = theory.mdp.K
    both = (theory.constants[-1], theory.constants_rollin[-1])
    columns = ("constant", "θ = 0, from ρ", f"π*_{K - 1}, from μ_{K}", "meaning")
    rows = (
        (name, *(shown(getattr(constants, field), sign) for constants in both), meaning)
        for name, field, meaning, sign in CONSTANTS
    )
    return titled(f"Constants of the complexity theorem on ω_{K}", columns, rows)


def shown(value: float | Magnitude, sign: str = "") -> str:
    """Return a constant with the sign of a bound, or a dash where it is not defined."""
    text = str(value) if isinstance(value, Magnitude) else f"{value:.4g}"
    return f"{sign} {text}" if sign and text != "–" else text


def step_size_table(condition: StepSizeCondition) -> Group:
    """Return the terms of the condition on phase 1's step size."""
    title = "Step size of phase 1: η ≤ min{log T_1/(T_1 L), 8/C_δ⁰, 1/(2L)}"
    row = (f"{condition.T1:,}", *map(str, condition.terms.values()), condition.binding)
    return titled(title, ("T_1", *condition.terms, "binds"), [row])


def mismatch_table(theory: Theory) -> Group:
    """Return the mismatch ratio per context with and without roll-in, and the batch it needs."""
    both = zip(theory.constants, theory.constants_rollin, strict=True)
    rows = (
        (str(k), str(plain.mismatch), str(rolled.mismatch),
         compare(plain.mismatch, rolled.mismatch), str(plain.B2), str(rolled.B2))
        for k, (plain, rolled) in enumerate(both)
    )  # fmt: skip
    title = "Mismatch ratio ‖d_μ^{π*_k} / μ‖_∞ and phase-2 batch per context"
    columns = ("k", "from ρ", "from μ_k", "roll-in is", "B_2 from ρ", "B_2 from μ_k")
    return titled(title, columns, rows, "right")


def compare(plain: Magnitude, rolled: Magnitude) -> str:
    """Return better if roll-in made a number smaller, else worse or equal."""
    if plain.log == rolled.log:
        return "equal"
    return "better" if rolled < plain else "worse"


def starts_table(theory: Theory) -> Group:
    """Return whether each context begins in phase 2, and what that phase costs."""
    totals = theory.totals
    rows: list[tuple[str, ...]] = []
    for start in totals.contexts:
        bound = f"{shown(start.any_warm, '≤')} {'v' if start.vacuous else ' '}"
        warm = (f"{start.warm:.4g}", bound) if start.k else ("", "")
        samples = (str(start.samples_rho), str(start.samples_mu))
        rows.append((str(start.k), f"{start.cold:.4g}", *warm, start.verdict, *samples))
    entering = "–" if totals.entering is None else f"{totals.entering} of {theory.mdp.K}"
    rows.append(("Σ", "", "", "", entering, str(totals.samples_rho), str(totals.samples_mu)))
    title = "Theorem 4.3: does D(θ_0) < ε_0 put each context into phase 2 at once?"
    columns = ("k", "θ = 0", "π*_{k-1}", "ε-optimal", "at once", "T_2 B_2 from ρ", "from μ_k")
    return titled(title, columns, rows, "right")


def scaling_table(theory: Theory) -> Group:
    """Return printed powers of S beside those that follow, and why they differ."""
    mdp = theory.mdp
    reasons = list(dict.fromkeys(reason for row in theory.scaling for reason in row.why))
    rows: list[tuple[str, ...]] = []
    for row in theory.scaling:
        marks = "".join(MARKS[reasons.index(reason)] for reason in row.why)
        follows = (row.follows, str(row.follows_value)) if row.differs else ("the same", "")
        printed = (row.printed, str(row.printed_value))
        rows.append((row.where, row.quantity, *printed, *follows, marks))
    title = (
        f"Powers of S (A.3, 4.1, 4.3), constants left out; here: S = {mdp.n_states}, K = {mdp.K}"
    )
    columns = ("where", "what", "printed", "here", "follows", "here", "")
    notes = [Text(f"{mark} {reason}") for mark, reason in zip(MARKS, reasons, strict=False)]
    return Group(titled(title, columns, rows), *notes)


def smallest_table(theory: Theory) -> Group:
    """Return the smallest probability along a run beside its stand-in."""
    rows = (
        (str(least.k), str(Magnitude(least.tracked)), str(Magnitude(least.proxy)))
        for least in theory.smallest
        if least.tracked is not None
    )
    title = "Smallest π_θt(a|s) on each context, and what stands for c (Lemma C.2)"
    return titled(title, ("k", "along the run", "min(π*_{k-1}, π*_k)"), rows, "right")


def bounds_table(theory: Theory) -> Group:
    """Return every lemma's exact value beside its bound, a row per context."""
    bounds = {(bound.lemma, bound.k): bound for bound in theory.bounds}
    rows = (
        (str(k), *(bound_cell(bounds[lemma, k]) for lemma in LEMMAS))
        for k in range(1, theory.mdp.K + 1)
    )
    title = "Lemmas: exact value ≤ bound (v: vacuous, true of any policy; ✗: violated)"
    return titled(title, ("k", *LEMMAS.values()), rows, "right")


def bound_cell(bound: Bound) -> Text:
    """Return the exact value, ≤, the bound, and a mark."""
    if not bound.holds:
        return Text(f"{short(bound.exact)}>{short(bound.bound)} ✗", style="bold red")
    return Text(f"{short(bound.exact)}≤{short(bound.bound)} {'v' if bound.vacuous else ' '}")


def short(x: float) -> str:
    """Return three digits in few characters, so that five lemmas fit 80 columns."""
    return f"{x:.3g}".replace("e+0", "e").replace("e+", "e")


def which_mu(theory: Theory) -> str:
    """Return which μ_k is analysed, and how `rollin train` takes the same."""
    if theory.recursive:
        return (
            "μ_k is recursive, from μ_{k-1} as in equation 1. rollin train rolls in from ρ, "
            "because its runs are then nearer to the published ones; --mu rho analyses that."
        )
    return (
        "μ_k rolls in from ρ, as in rollin train. Equation 1 is recursive, from μ_{k-1}; "
        "--mu recursive analyses it, and with rollin train runs it."
    )


def step_size_notes(
    theory: Theory, condition: StepSizeCondition, learning_rate: float | None
) -> list[str]:
    """Return what the condition leaves of a step, and whether a run's η met it."""
    T1 = theory.constants_rollin[-1].T1
    notes = [
        "The first term binds for every T_1 ≥ 2, as log T/T < 1/2 and C_δ⁰ is tiny. rollin train "
        "--algorithm two-phase-spg takes it."
    ]
    if not math.isnan(T1.log):
        notes.append(f"With the T_1 of the theorem itself it is about 1 / {T1}: no step at all.")
    if learning_rate is not None:
        met = "meets" if learning_rate <= condition.limit else "does not meet"
        notes.append(f"The run's η = {learning_rate:.3g} {met} the condition.")
    return notes


def totals_notes(theory: Theory) -> list[str]:
    """Return Theorem 4.3's totals, and what is left of them here."""
    totals = theory.totals
    K = theory.mdp.K
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
    """Return what the powers of S leave out."""
    left_out = Magnitude(4 / ((1 - theory.mdp.gamma) * theory.alpha))
    return (
        f"Left out are constants such as e^{{4/((1-γ)α)}} = {left_out} in 1/ε_0. Phase 2 stays "
        "polynomial in S either way."
    )


def summary(theory: Theory) -> str:
    """Return what the tables show, in a few sentences."""
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
    """Return a sentence each about R and γ'."""
    predictor = theory.predictor
    horizon = 1 / (1 - theory.roll_in_discount)
    return [
        "R = Σ_k ‖d_ρ^{π*_k} / d_{μ_k}^{π*_{k-1}}‖_∞: "
        f"{predictor.R_rolled} with roll-in, {predictor.R_plain} without, {predictor.scratch} "
        "for ω_K alone from θ = 0. An observation, not a theorem of the paper: on locks with "
        "γ = 1 - 1/n the steps of exact PG grow with R if the policy learned by each switch "
        "stands for π*_{k-1}, as in rollin theory RUN.",
        "With an unchanged policy, recursive roll-in tends to visitation with discount "
        f"γ' = γ/(1-β(1-γ)) = {theory.roll_in_discount:.6g}, {horizon:.4g} steps instead of "
        f"{1 / (1 - theory.mdp.gamma):.4g}.",
    ]
