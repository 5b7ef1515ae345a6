"""`rollin theory TASK`: the paper's assumptions, constants and bounds on an MDP."""

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

import tyro
from rich.table import Table
from rich.text import Text

from rollin.cli._common import make_console, parse
from rollin.runs.files import write_json
from rollin.runs.tasks import load_mdp
from rollin.tabular.magnitude import Magnitude
from rollin.tabular.theory import Bound, Theory, analyse


@dataclass(frozen=True)
class TheoryOptions:
    """Assumptions, constants and bounds of the paper on an MDP and its curriculum."""

    task: tyro.conf.Positional[str]
    """four-rooms, a FILE.npz with an MDP of yours, or module:factory that returns one."""
    reward: Literal["easy", "hard"] = "easy"
    """Reward of four rooms."""
    alpha: float = 0.01
    """Entropy coefficient α > 0."""
    beta: float = 0.75
    """Mixing ratio β ∈ (0, 1)."""
    gamma: float | None = None
    """Discount γ < 1; the task's own if not given."""
    smooth_rho: float = 0.0
    """Share of a uniform distribution mixed into ρ; the bounds need ρ(s) > 0 everywhere."""
    mu: Literal["recursive", "rho"] = "recursive"
    """Roll in from μ_{k-1} as in equation 1, or from ρ."""
    delta: float = 0.1
    """Tolerance level δ of the theorem."""
    zeta: float = 0.5
    """The optimisation constant ζ ∈ (0, 1)."""
    epsilon: float | None = None
    """Target ε of the theorem; ε_0 / 2 if not given, as in the induction of Theorem 4.3."""
    json: Path | None = None
    """Also write everything to this file."""


def main(arguments: Sequence[str]) -> int:
    """Entry point of the subcommand."""
    options = parse(TheoryOptions, arguments, "theory")
    mdp = load_mdp(options.task, reward=options.reward, gamma=options.gamma)
    theory = analyse(
        mdp.smooth_rho(options.smooth_rho),
        options.alpha,
        options.beta,
        delta=options.delta,
        zeta=options.zeta,
        epsilon=options.epsilon,
        recursive=options.mu == "recursive",
    )
    console = make_console(WIDTH)
    console.print(
        f"{options.task}: S = {mdp.n_states}, A = {mdp.n_actions}, K = {mdp.K}, "
        f"γ = {mdp.gamma:g}, α = {options.alpha:g}, β = {options.beta:g}, "
        f"δ = {options.delta:g}, ζ = {options.zeta:g}\n"
    )
    if theory.mdp.rho.min() == 0:
        console.print(
            "ρ is 0 on some states: the theorem's constants need ρ(s) > 0 everywhere and are "
            "not defined here. Add --smooth-rho 0.01 to mix in 1 % of a uniform ρ.\n",
            style="yellow",
        )
    for table in (
        assumptions_table(theory),
        constants_table(theory),
        mismatch_table(theory),
        bounds_table(theory),
    ):
        console.print(table)
        console.print()
    console.print(summary(theory))
    if options.json is not None:
        write_json(options.json, as_json(theory))
    return 0


def titled(title: str) -> Table:
    """A plain table with its title on the left."""
    return Table(title=title, title_justify="left", box=None, pad_edge=False)


def assumptions_table(theory: Theory) -> Table:
    """Assumptions 3.1 and 3.2 and the near-optimal initialisation."""
    found = theory.assumptions
    table = titled("Assumptions")
    for title in ("assumption", "needed", "here", "holds"):
        table.add_column(title, justify="left")
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
            str(found.initial_gap),
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
        table.add_row(name, needed, here, "yes" if holds else Text("no", style="bold red"))
    return table


def constants_table(theory: Theory) -> Table:
    """The theorem's constants on the last context, from ρ and from μ_K."""
    scratch, rolled = theory.constants[-1], theory.constants_rollin[-1]
    table = titled(f"Constants of the complexity theorem on ω_{theory.mdp.K}")
    for title in ("constant", "start from ρ", "start from μ_K", "meaning"):
        table.add_column(title)
    rows: tuple[tuple[str, Any, Any, str], ...] = (
        ("D(θ_0)", f"{scratch.D0:.4g}", f"{rolled.D0:.4g}", "sub-optimality of θ = 0"),
        ("ε_0", scratch.eps0, rolled.eps0, "where phase 2 begins"),
        ("ε", scratch.epsilon, rolled.epsilon, "target"),
        ("σ²", f"{scratch.sigma2:.4g}", f"{rolled.sigma2:.4g}", "variance of the gradient"),
        ("L", f"{scratch.L:.4g}", f"{rolled.L:.4g}", "smoothness"),
        ("t_0", scratch.t0, rolled.t0, "offset of phase 2's step size"),
        ("‖d/μ‖_∞", scratch.mismatch, rolled.mismatch, "mismatch ratio"),
        ("C_ζ", scratch.C_zeta, rolled.C_zeta, ""),
        ("Δ̄", one_sided("≥", scratch.delta_bar), one_sided("≥", rolled.delta_bar), "radius of 𝒢"),
        (
            "C_δ⁰",
            one_sided("≤", scratch.C_delta),
            one_sided("≤", rolled.C_delta),
            "with c = min(π_θ0, π*)",
        ),
        ("T_1", one_sided("≥", scratch.T1), one_sided("≥", rolled.T1), "steps of phase 1"),
        ("B_1", one_sided("≥", scratch.B1), one_sided("≥", rolled.B1), "batch of phase 1"),
        ("T_2", one_sided("≥", scratch.T2), one_sided("≥", rolled.T2), "steps of phase 2"),
        ("B_2", one_sided("≥", scratch.B2), one_sided("≥", rolled.B2), "batch of phase 2"),
    )
    for name, left, right, meaning in rows:
        table.add_row(name, str(left), str(right), meaning)
    return table


def one_sided(sign: str, value: Magnitude) -> str:
    """A bound with its sign, or a dash where it is not defined."""
    return f"{sign} {value}" if not math.isnan(value.log) else str(value)


def mismatch_table(theory: Theory) -> Table:
    """The mismatch ratio per context with and without roll-in, and the batch it asks for."""
    table = titled("Mismatch ratio ‖d_μ^{π*_k} / μ‖_∞ and phase-2 batch per context")
    for title in ("k", "from ρ", "from μ_k", "roll-in is", "B_2 from ρ", "B_2 from μ_k"):
        table.add_column(title, justify="right")
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
    return table


def compare(plain: Magnitude, rolled: Magnitude) -> str:
    """Whether roll-in made a ratio smaller, in plain words."""
    if plain.log == rolled.log:
        return "equal"
    return "better" if rolled < plain else "worse"


def bounds_table(theory: Theory) -> Table:
    """Every lemma's exact value beside its bound, a row per context."""
    table = titled("Lemmas: exact value ≤ bound (v: vacuous, true of any policy; ✗: violated)")
    table.add_column("k", justify="right")
    for lemma in LEMMAS:
        table.add_column(lemma, justify="right", no_wrap=True)
    found = {(b.lemma, b.k): b for b in theory.bounds}
    for k in range(1, theory.mdp.K + 1):
        table.add_row(str(k), *(bound_cell(found[lemma, k]) for lemma in LEMMAS))
    return table


LEMMAS = (
    "Q difference",
    "policy difference",
    "value gap",
    "visitation difference",
    "mismatch ratio",
)
WIDTH = 118  # of the tables where the output is not a terminal


def bound_cell(bound: Bound) -> Text:
    """The exact value, ≤, the bound, and a mark."""
    if not bound.holds:
        return Text(f"{bound.exact:.3g} > {bound.bound:.3g} ✗", style="bold red")
    return Text(f"{bound.exact:.3g} ≤ {bound.bound:.3g} {'v' if bound.vacuous else ' '}")


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
    names = sorted({b.lemma for b in violated})
    if names:
        lines.append(f"Violated: {', '.join(names)}.")
        if not theory.assumptions.shift_holds:
            lines.append(
                "The visitation and mismatch bounds assume ‖ρ - d_ρ^{π*_0}‖_1 ≤ ‖ω_1 - ω_0‖, "
                "which does not hold here."
            )
    return "\n".join(lines)


def as_json(theory: Theory) -> dict[str, Any]:
    """All figures; numbers beyond floats as the natural logarithm `log` (or `loglog`)."""

    def plain(value: Any) -> Any:
        if isinstance(value, Magnitude):
            inner = {"log": value.log} if value.loglog is None else {"loglog": value.loglog}
            return {name: plain(number) for name, number in inner.items()}
        if isinstance(value, float) and not math.isfinite(value):
            return None if math.isnan(value) else str(value)
        return value

    def constants(rows: list[Any]) -> list[dict[str, Any]]:
        return [{name: plain(getattr(row, name)) for name in vars(row)} for row in rows]

    found = theory.assumptions
    return {
        "alpha": theory.alpha,
        "beta": theory.beta,
        "gamma": theory.mdp.gamma,
        "assumptions": {
            "lipschitz": plain(found.lipschitz),
            "steps": found.steps.tolist(),
            "step_needed": plain(found.step_needed),
            "initial_gap": plain(found.initial_gap),
            "eps0": plain(found.eps0),
            "visitation_shift": found.visitation_shift,
            "lipschitz_holds": found.lipschitz_holds,
            "steps_hold": found.steps_hold,
            "gap_holds": found.gap_holds,
            "shift_holds": found.shift_holds,
        },
        "constants_rho": constants(theory.constants),
        "constants_mu": constants(theory.constants_rollin),
        "bounds": [
            {**{n: plain(v) for n, v in asdict(b).items()}, "verdict": b.verdict}
            for b in theory.bounds
        ],
        "identity_error": theory.identity_error,
    }
