"""The tables of `rollin theory`."""

from rich.console import Group, JustifyMethod
from rich.table import Table
from rich.text import Text

from rollin.tabular.magnitude import Magnitude
from rollin.tabular.step_size import StepSizeCondition
from rollin.tabular.theory import Bound, Theory

LEMMAS = {
    "Q difference": "Q difference",
    "policy difference": "policy (B.2)",
    "value gap": "value (A.5)",
    "visitation difference": "visitation",
    "mismatch ratio": "mismatch (A.1)",
}
ANSWERS = {True: Text("yes"), False: Text("no", style="bold red"), None: Text("not resolved")}
MARKS = "¹²³⁴⁵⁶⁷⁸⁹"


def titled(title: str, table: Table) -> Group:
    """A table below its title, which may be wider than the table."""
    return Group(Text(title, style="italic"), table)


def with_columns(*titles: str, justify: JustifyMethod = "left") -> Table:
    """A plain table without rows."""
    table = Table(box=None, pad_edge=False)
    for title in titles:
        table.add_column(title, justify=justify)
    return table


def assumptions_table(theory: Theory) -> Group:
    """Assumptions 3.1 and 3.2 and the near-optimal initialisation."""
    found = theory.assumptions
    table = with_columns("assumption", "needed", "here", "holds")
    rows = (
        (
            "3.1  Lipschitz rewards",
            "L_r < ∞",
            f"L_r = {found.lipschitz:.4g}",
            found.lipschitz_holds,
        ),
        (
            "3.2  close contexts: max ‖ω_k - ω_{k-1}‖",
            f"≤ {found.step_needed}  (2 L_r Δ/(1-γ)² ≤ ε_0/2)",
            f"{found.steps.max():.4g} = {found.steps.max() * theory.mdp.n_states**2:.4g} / S²",
            found.steps_hold,
        ),
        (
            "4.2  near-optimal θ_0 = 0: V* - V on ω_0",
            f"< ε_0 = {found.eps0}",
            str(Magnitude.of(found.initial_gap)),
            found.gap_holds,
        ),
        (
            "4.2  ‖ρ - d_ρ^{π*_0}‖_1",
            f"≤ ‖ω_1 - ω_0‖ = {found.steps[0]:.4g}",
            f"{found.visitation_shift:.4g}",
            found.shift_holds,
        ),
    )
    for name, needed, here, holds in rows:
        table.add_row(name, needed, here, ANSWERS[holds])
    return titled("Assumptions", table)


def constants_table(theory: Theory) -> Group:
    """The theorem's constants on the last context, from scratch and as ROLLIN begins it."""
    scratch, rolled = theory.constants[-1], theory.constants_rollin[-1]
    K = theory.mdp.K
    table = with_columns("constant", "θ = 0, from ρ", f"π*_{K - 1}, from μ_{K}", "meaning")

    def row(name: str, field: str, meaning: str, sign: str = "") -> None:
        cells = (shown(getattr(constants, field), sign) for constants in (scratch, rolled))
        table.add_row(name, *cells, meaning)

    row("D(θ_0)", "D0", "sub-optimality of θ_0")
    row("ε_0", "eps0", "where phase 2 begins")
    row("ε", "epsilon", "target")
    row("σ²", "sigma2", "variance of the gradient")
    row("L", "L", "smoothness")
    row("t_0", "t0", "offset of phase 2's step size")
    row("‖d/μ‖_∞", "mismatch", "mismatch ratio")
    row("C_ζ", "C_zeta", "")
    row("c", "c", "smallest π_θt(a|s)", "≤")
    row("Δ̄", "delta_bar", "radius of 𝒢", "≥")
    row("C_δ⁰", "C_delta", "", "≤")
    row("T_1", "T1", "steps of phase 1", "≥")
    row("B_1", "B1", "batch of phase 1", "≥")
    row("T_2", "T2", "steps of phase 2", "≥")
    row("B_2", "B2", "batch of phase 2", "≥")
    return titled(f"Constants of the complexity theorem on ω_{K}", table)


def shown(value: float | Magnitude, sign: str = "") -> str:
    """A constant with the sign of a bound, or a dash where it is not defined."""
    text = str(value) if isinstance(value, Magnitude) else f"{value:.4g}"
    return f"{sign} {text}" if sign and text != "–" else text


def step_size_table(condition: StepSizeCondition) -> Group:
    """The terms of the condition on phase 1's step size."""
    table = with_columns("T_1", *condition.terms, "binds")
    values = (str(value) for value in condition.terms.values())
    table.add_row(f"{condition.T1:,}", *values, condition.binding)
    return titled("Step size of phase 1: η ≤ min{log T_1/(T_1 L), 8/C_δ⁰, 1/(2L)}", table)


def mismatch_table(theory: Theory) -> Group:
    """The mismatch ratio per context with and without roll-in, and the batch it asks for."""
    titles = ("k", "from ρ", "from μ_k", "roll-in is", "B_2 from ρ", "B_2 from μ_k")
    table = with_columns(*titles, justify="right")
    for k, (plain, rolled) in enumerate(
        zip(theory.constants, theory.constants_rollin, strict=True)
    ):
        table.add_row(
            str(k),
            str(plain.mismatch),
            str(rolled.mismatch),
            compare(plain.mismatch, rolled.mismatch),
            str(plain.B2),
            str(rolled.B2),
        )
    return titled("Mismatch ratio ‖d_μ^{π*_k} / μ‖_∞ and phase-2 batch per context", table)


def compare(plain: Magnitude, rolled: Magnitude) -> str:
    """Whether roll-in made a number smaller, in plain words."""
    if plain.log == rolled.log:
        return "equal"
    return "better" if rolled < plain else "worse"


def starts_table(theory: Theory) -> Group:
    """Whether each context begins in phase 2, and what that phase costs."""
    titles = ("k", "θ = 0", "π*_{k-1}", "ε-optimal", "at once", "T_2 B_2 from ρ", "from μ_k")
    table = with_columns(*titles, justify="right")
    totals, K = theory.totals, theory.mdp.K
    for start in totals.contexts:
        bound = f"{shown(start.any_warm, '≤')} {'v' if start.vacuous else ' '}"
        warm = (f"{start.warm:.4g}", bound) if start.k else ("", "")
        samples = (str(start.samples_rho), str(start.samples_mu))
        table.add_row(str(start.k), f"{start.cold:.4g}", *warm, start.verdict, *samples)
    sums = (str(totals.samples_rho), str(totals.samples_mu))
    entering = "–" if totals.entering is None else f"{totals.entering} of {K}"
    table.add_row("Σ", "", "", "", entering, *sums)
    return titled("Theorem 4.3: does D(θ_0) < ε_0 put each context into phase 2 at once?", table)


def scaling_table(theory: Theory) -> Group:
    """Printed powers of S beside those that follow, and why they differ."""
    mdp = theory.mdp
    table = with_columns("where", "what", "printed", "here", "follows", "here", "")
    reasons = list(dict.fromkeys(reason for row in theory.scaling for reason in row.why))
    for row in theory.scaling:
        marks = "".join(MARKS[reasons.index(reason)] for reason in row.why)
        follows = (row.follows, str(row.follows_value)) if row.differs else ("the same", "")
        table.add_row(row.where, row.quantity, row.printed, str(row.printed_value), *follows, marks)
    title = (
        f"Powers of S (A.3, 4.1, 4.3), constants left out; here: S = {mdp.n_states}, K = {mdp.K}"
    )
    notes = [Text(f"{mark} {reason}") for mark, reason in zip(MARKS, reasons, strict=False)]
    return Group(titled(title, table), *notes)


def smallest_table(theory: Theory) -> Group:
    """The smallest probability along a run beside its stand-in."""
    table = with_columns("k", "along the run", "min(π*_{k-1}, π*_k)", justify="right")
    for found in theory.smallest:
        if found.tracked is not None:
            numbers = (Magnitude(found.tracked), Magnitude(found.proxy))
            table.add_row(str(found.k), *map(str, numbers))
    return titled("Smallest π_θt(a|s) on each context, and what stands for c (Lemma C.2)", table)


def bounds_table(theory: Theory) -> Group:
    """Every lemma's exact value beside its bound, a row per context."""
    table = with_columns("k", *LEMMAS.values(), justify="right")
    found = {(b.lemma, b.k): b for b in theory.bounds}
    for k in range(1, theory.mdp.K + 1):
        table.add_row(str(k), *(bound_cell(found[lemma, k]) for lemma in LEMMAS))
    title = "Lemmas: exact value ≤ bound (v: vacuous, true of any policy; ✗: violated)"
    return titled(title, table)


def bound_cell(bound: Bound) -> Text:
    """The exact value, ≤, the bound, and a mark."""
    if not bound.holds:
        return Text(f"{short(bound.exact)}>{short(bound.bound)} ✗", style="bold red")
    return Text(f"{short(bound.exact)}≤{short(bound.bound)} {'v' if bound.vacuous else ' '}")


def short(x: float) -> str:
    """Three digits in as few characters, so that five lemmas fit 80 columns."""
    return f"{x:.3g}".replace("e+0", "e").replace("e+", "e")
