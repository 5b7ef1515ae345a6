"""Options of `rollin.train` and `rollin.prepare` as type checkers and editors know them.

Written by `python -m docs.options` from the dataclasses of options; do not edit.
"""

from collections.abc import Sequence
from typing import Literal, TypedDict


class CommonOptions(TypedDict, total=False):
    """Options of every run."""

    learner: Literal["cpu", "jax"]
    """cpu: compiled for this processor; jax: for accelerators (needs the extra jax)."""
    method: Literal["rollin", "baseline", "scratch", "fresh"]
    """rollin; baseline: the curriculum without roll-in (β = 0); scratch: the final context only;
    fresh: an ablation, in which the re-initialised exploration agent takes over after one step."""
    updates: Literal["detailed", "short"]
    """detailed: π_main learns in episodes without roll-in, π_exp at its own steps; short: both at
    every step, as in the short pseudocode."""
    relabel: bool
    """Relabel goals: a third of each batch keeps its goal, a third gets a future one, a third the
    next state."""
    go_explore: float
    """Go-Explore: standard deviation of the noise added to actions once an episode has reached the
    previous goal; 0 is off (the paper tries 0.1, 0.25, 0.5)."""
    sampling: Literal["uniform", "geometric"]
    """How a batch is drawn: uniformly, or recent transitions more often (short form: geometric)."""
    p: float
    """Parameter of geometric sampling: P(age) ∝ (1-p)^age."""
    warmup: int
    """Uniformly random steps before the first update."""
    counted: Literal["all", "main"]
    """Which episodes count for the advance rule: all, or only those in which π_main acts alone."""
    exp_fill: int
    """Transitions that D_exp must hold before π_exp learns. With 1 it learns from the first one on,
    as jaxrl draws a batch with replacement from whatever there is."""
    explorer: Literal["fresh", "main"]
    """Who acts after a roll-in: fresh, π_exp, reinitialised at every switch; main, an ablation with
    one learner: π_main itself continues under ω_k, and learns at these steps."""
    prefix: Literal["replay", "hidden", "shown"]
    """Transitions of the roll-in itself: replay, they are recorded in D; hidden, an ablation: no
    agent ever learns from them, nor at these steps. They count as steps either way."""
    guide: Literal["current", "frozen"]
    """Who rolls in under ω_{k-1}: current, π_main as it is now; frozen, an ablation: π_main as it
    was at the last switch."""
    better: float
    """Fraction of every batch that is drawn from the episodes under ω_k with an above-average
    return (our extension)."""
    teacher: str
    """What chooses contexts. walk: the contexts of the curriculum in order, as in the paper.
    visited: goals that earlier episodes reached, between a start and a final goal. uniform, fixed,
    alp-gmm, plr, spdl, currot, frontier, jsrl, archive, reverse: other curricula on the same path,
    with roll-in from the nearest mastered context if β > 0."""
    rule: Literal["return", "success", "early-gap", "gap", "plateau"] | None
    """When a context is mastered. return, success: the mean return, or the success rate, exceeds
    threshold. Without a threshold (our extension), gap: the mean return covers most of the gap
    between the previous policy and the best return; early-gap: the same, after five episodes where
    these are clear; plateau: the return has stopped improving. Default: the environment's own rule,
    or early-gap if it has none."""
    threshold: float | None
    """Mean return R, or success rate, that the last episodes must exceed. Default: the
    environment's own."""
    threshold_slope: float
    """Slope of a return threshold R(x) = threshold + slope · x; threshold_at says what x is."""
    threshold_at: Literal["kappa", "position"] | None
    """What a return threshold R(x) is a function of on context k: kappa, k / K, or its position on
    the path (the level of a velocity). Default: the environment's own, or kappa with path and
    contexts."""
    kappa: Literal["index", "position"] | None
    """κ of context k: its index divided by the last one, k / K, or its position on the path.
    Default: the environment's own, which is the index (our choice) in rollin's tasks."""
    window: int | None
    """Episodes under the current context that the rule looks at. Default: the environment's own, or
    10."""
    delta: float | None
    """Step Δ of the curriculum along its path of length 1, as a number or as 1/24. Default: the
    environment's own, or 0.1 with path."""
    stride: Literal["fixed", "bold", "halving"] | None
    """Steps along the path: fixed, Δ each. halving (our extension): Δ, or 1/12, is the first and
    the largest, halved where π_main sees no reward for ten episodes, doubled where it succeeds at
    once. bold: the same, but steps double up to the whole path until one was too long, and one
    episode in ten is played under the final context. Default: fixed, or bold where neither the
    options nor the environment have a threshold."""
    start: float | None
    """Position on the path at which the curriculum starts, as a number or as 1/24. Default: the
    environment's own (antmaze-umaze: Δ, our choice), or 0 with path."""
    spacing: Literal["step", "even"]
    """Contexts on the path. step: one every Δ from start to the end; even: 1/Δ contexts at equal
    distances from the beginning of the path to its end, another reading of the paper's goals in
    antmaze-umaze: ω_0 is ω(0) as printed, the step is Δ/(1-Δ), and κ has the same values."""
    path: Sequence[Sequence[float]] | str | None
    """Corners of another path, as JSON: '[[0, 0], [8, 0], [8, 8]]'."""
    contexts: Sequence[Sequence[float]] | str | None
    """Another curriculum as a JSON list of contexts: '[[0.5], [1.0], [2.0]]'."""
    literal: bool
    """The curriculum of the paper's robots as printed: κ and the threshold's argument are the
    position, and antmaze-umaze starts at 0. Options given explicitly take precedence."""
    env_options: Sequence[str]
    """Options of the environment, as name=value."""
    horizon: int | None
    """Time limit of an episode in steps, if the environment does not end it earlier."""
    capacity: int | None
    """Replay capacity in transitions. Default: the whole run."""
    goals: int
    """Evaluate so many contexts at equal distances of the path, at the end and at every row of
    metrics.csv that is at half a million steps: a context is solved if at least four of five
    deterministic episodes end in success. goals.csv also has episodes with drawn actions. 0: do
    not."""
    hidden: Sequence[int]
    """Sizes of the hidden layers of actor and critics."""
    batch: int
    """Transitions per update."""
    gamma: float
    """Discount γ."""
    tau: float
    """Soft update rate of the target critics."""
    learning_rate: float
    """Adam's learning rate for actor, critics and temperature."""
    initial_temperature: float
    """Initial entropy temperature; it is then learned."""
    target_entropy: float | None
    """Target entropy. Default: -dim(A)/2."""
    head_gain: float
    """Gain of the orthogonal initial weights of the policy's mean head: 1 as in jaxrl since
    December 2021, √2 = 1.4142135623730951 before. The log standard deviation head has gain 1."""
    log_std_min: float
    """Lower bound of the policy's log standard deviation."""
    log_std_max: float
    """Upper bound of the policy's log standard deviation."""
    precision: Literal["float32", "bfloat16", "auto"]
    """Numbers that the networks' products multiply (CPU learner). bfloat16: faster on a CPU with
    AVX512-BF16, and the same results on any other; sums, weights and losses stay float32. auto:
    bfloat16 where the CPU has the unit, else float32."""
    threads: int
    """Maximum number of threads per update (CPU learner; small networks use fewer). Any number
    gives the same result, bit for bit."""
    update_every: int
    """Learn only at steps whose number in the run is a multiple of this. Every environment step
    counts, also random ones and those of roll-ins."""
    updates_per_step: int
    """Updates that an agent makes at each step at which it learns."""
    geometric: bool
    """Draw recent transitions more often: sampling='geometric'."""
    adaptive: bool
    """Adaptive thresholds and steps (our extension), which need neither R nor Δ."""


class TrainOptions(CommonOptions, total=False):
    """Options of `rollin.train`; those added here need `out`."""

    log_every: int
    """Steps between two rows of metrics.csv, each with an evaluation."""
    log: Sequence[str]
    """Loggers besides metrics.csv and TensorBoard: wandb, mlflow or both (extras of these names).
    They write into the run directory, unless WANDB_MODE or MLFLOW_TRACKING_URI is set."""
    eval_episodes: int
    """Deterministic episodes per evaluation, on the current and on the last context."""
    last: int
    """Steps over which κ, returns and measures are averaged: at the end and at every half a million
    steps in result.json, and at every point of rollin plot."""
    keep_replay: bool
    """Keep the file of all transitions after the run."""


class PrepareOptions(CommonOptions, total=False):
    """Options of `rollin.prepare`."""

    steps: int
    """Environment steps."""
    seed: int
    """Seed of all random numbers of the run."""
    beta: float
    """Fraction β ∈ [0, 1) of episodes that roll in with the previous context's policy."""
