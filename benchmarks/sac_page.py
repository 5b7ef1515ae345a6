"""The page and the chart of the SAC benchmark, from the records in results/sac alone."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure

from benchmarks.records import Row, grouped, read, shares, shown, versions_of
from rollin.analysis.sheets import markdown
from rollin.report.style import BASELINE, ROLLIN, styled, to_png
from rollin.runs.files import write_atomically

ROOT = Path(__file__).parents[1]
DATA = ROOT / "results" / "sac"
PAGE = ROOT / "results" / "sac" / "README.md"
CHART = ROOT / "docs" / "images" / "sac-speed.png"

OURS = ("rollin cpu", "rollin cpu, bfloat16", "rollin jax")
FLOAT32_PEERS = ("RLtools", "jaxrl", "SBX SAC", "SB3", "CleanRL", "CleanRL, compiled")
BFLOAT16_PEERS = ("jaxrl, bfloat16", "CleanRL, bfloat16")
PEERS = (*FLOAT32_PEERS, *BFLOAT16_PEERS)
OWN_SIZES = ("SBX CrossQ",)  # another algorithm with wider critics: shown, but no equal peer
SLOW = ("CleanRL, compiled", *BFLOAT16_PEERS, *OWN_SIZES)
"""Not in every part: slow to start, far behind, or a precision that wide networks are for."""
CONTESTANTS = (*OURS, *PEERS, *OWN_SIZES)
CLAIMS = {"rollin cpu": FLOAT32_PEERS, "rollin cpu, bfloat16": PEERS}
"""Ours beside the peers that it is compared with: float32 only with float32."""
FLOORS = ("products, ours", "products, OpenBLAS", "products, MKL")
INSTRUCTIONS = {16: "AVX-512", 8: "AVX2", 4: "SSE or NEON"}


@dataclass(frozen=True)
class Task:
    """An environment with networks and a batch."""

    env: str
    hidden: tuple[int, ...]
    batch: int

    @property
    def wide(self) -> bool:
        """Whether the networks are those of the paper."""
        return self.hidden == (256, 256)


TASKS = {
    "Hopper": Task("Hopper-v5", (256, 256), 256),
    "Ant": Task("Ant-v5", (256, 256), 256),
    "Pendulum (64, 64)": Task("Pendulum-v1", (64, 64), 100),
    "Pendulum (32, 32)": Task("Pendulum-v1", (32, 32), 64),
    "small networks": Task("spin", (32, 32), 64),
}


def title_of(task: str, what: str) -> str:
    """What a case is called: `what` is "updates" or "steps"."""
    return f"{task}, {'updates' if what == 'updates' else 'training steps'}"


CASES = [title_of(task, what) for what in ("steps", "updates") for task in TASKS]


def rate(
    rows: Sequence[Row], case: str, cores: int, name: str, clock: str = "per_second"
) -> float | None:
    """A contestant's median rate, by the wall clock or by CPU time (`per_cpu_second`)."""
    for row in rows:
        if (row["case"], row["cores"], row["contestant"]) == (case, cores, name):
            return row[clock]
    return None


def best_peer(
    rows: Sequence[Row],
    case: str,
    cores: int,
    clock: str = "per_second",
    peers: Sequence[str] = FLOAT32_PEERS,
) -> tuple[str, float]:
    """The fastest peer with equal updates; with two cores it may use one, if that is faster."""
    found = [
        (name, value)
        for name in peers
        for n in range(1, cores + 1)
        if (value := rate(rows, case, n, name, clock)) is not None
    ]
    return max(found, key=lambda pair: pair[1])


def table(rows: Sequence[Row], all_cores: Sequence[int], clock: str = "per_second") -> str:
    """Rates, a line per case and number of cores."""
    names = [name for name in CONTESTANTS if any(row["contestant"] == name for row in rows)]
    lines = []
    for case in CASES:
        for cores in all_cores:
            ours = rate(rows, case, cores, OURS[0], clock)
            if ours is None:
                continue
            rates = [shown(rate(rows, case, cores, name, clock)) for name in names]
            ratios = []
            for name, peers in CLAIMS.items():
                if name in names:
                    own = rate(rows, case, cores, name, clock)
                    peer, value = best_peer(rows, case, cores, clock, peers)
                    ratios.append(f"**{own / value:.2f}×** ({peer})" if own else "–")
            lines.append([case, str(cores), *rates, *ratios])
    unit = "per second" if clock == "per_second" else "per CPU second"
    claims = [f"{name} / best peer" for name in CLAIMS if name in names]
    return markdown([unit, "cores", *names, *claims], lines)


def floors(rows: Sequence[Row]) -> str:
    """What products alone would allow, a line per case; nothing if it was not measured."""
    lines = []
    for case in CASES:
        values = [rate(rows, case, 1, name) for name in FLOORS]
        own, libraries = values[0], [value for value in values[1:] if value is not None]
        ours = rate(rows, case, 1, OURS[0])
        if own is None or not libraries or ours is None:
            continue
        shares = [f"{100 * ours / floor:.0f} %" for floor in (own, max(libraries))]
        lines.append([case.split(",")[0], *map(shown, values), shown(ours), *shares])
    if not lines:
        return ""
    head = ["updates/s if there were products only", "our kernel", "OpenBLAS", "MKL"]
    ends = ["rollin cpu does", "of our kernel's", "of the faster library's"]
    text = markdown([*head, *ends], lines)
    return f"""{text}

The products of one update alone, on one core, in buffers that exist already; our product in the
layout of the learner, each product of the libraries in the faster of two layouts (rows side by
side, or padded to an odd number of cache lines). The last columns set whole updates beside them."""


def absent(rows: Sequence[Row]) -> str:
    """Who was not there at all."""
    there = {row["contestant"] for row in rows}
    missing = [name for name in CONTESTANTS if name not in there]
    return f"Not measured here: {'; '.join(missing)}. " if missing else ""


def busy(rows: Sequence[Row]) -> str:
    """How quiet the machine was."""
    alone = [row for row in rows if row["cores"] == 1 and row["per_cpu_second"]]
    return shares([row["per_second"] / row["per_cpu_second"] for row in alone])


def started(rows: Sequence[Row]) -> str:
    """Starts of everybody."""
    if not rows:
        return ""
    lines = [
        [
            row["contestant"],
            f"{row['first']:.1f} s" if row["first"] else "–",
            f"{row['later']:.1f} s",
        ]
        for row in rows
    ]
    text = markdown(["to the first update", "first start", "later starts"], lines)
    return f"""{text}

From the start of the process to its first training step on Hopper, one core: with empty caches, as
on a machine that never ran it (numba compiles our kernels, RLtools calls the C++ compiler), then
medians of {rows[0]["runs"]} starts."""


def taken_apart(rows: Sequence[Row]) -> str:
    """What a training step of ours is made of besides environment and update."""
    pieces = []
    for row in rows:
        spent = {name: row[name] for name in ("act", "append", "draw", "gather")}
        named = ", ".join(f"{name} {value:.1f} µs" for name, value in spent.items())
        share = 100 * sum(spent.values()) / row["whole_step"]
        pieces.append(f"{row['task']}: {named} of {row['whole_step']:,.0f} µs, {share:.1f} %")
    if not pieces:
        return ""
    listed = "\n".join(f"- {piece}" for piece in pieces)
    return (
        f"What a training step of rollin spends besides the environment and the update:\n\n{listed}"
    )


def forced(rows: Sequence[Row]) -> str:
    """Whether a section's machine could have done more."""
    if not rows[0]["forced"]:
        return ""
    return """Every contestant was kept to AVX2 on a machine that has more: numba and XLA, OpenBLAS,
MKL, oneDNN and PyTorch by their settings, RLtools by `-march=haswell` in the place of its
`-march=native`. A machine without AVX-512 also has other caches and clocks."""


def section(processor: str, lanes: int, rows: Sequence[Row]) -> str:
    """All that is known of a kind of CPU at a vector width."""
    start, part = (
        grouped(read(DATA / name), ("processor", "lanes")).get((processor, lanes), [])
        for name in ("start.csv", "parts.csv")
    )
    timed = [row for row in rows if row["per_cpu_second"]]
    by_cpu = table(timed, (1,), "per_cpu_second") if timed else ""
    rounds = sorted({row["rounds"] for row in rows})
    pieces = [
        f"## {processor}, {INSTRUCTIONS[lanes]}",
        forced(rows),
        table(rows, (1, 2)),
        f"Medians of {' or '.join(map(str, rounds))} rounds. {absent(rows)}{busy(rows)}",
        by_cpu,
        floors(rows),
        started(start),
        taken_apart(part),
        f"Versions: {versions_of(rows)}.",
    ]
    return "\n\n".join(piece for piece in pieces if piece)


def earlier() -> str:
    """Figures that were written down elsewhere and not measured again."""
    found = grouped(read(DATA / "zen3.csv"), ("table",))
    pieces = []
    for (title,), rows in found.items():
        names = list(dict.fromkeys(row["contestant"] for row in rows))
        lines = []
        for (case, cores), cells in grouped(rows, ("case", "cores")).items():
            of = {row["contestant"]: str(row["value"]) for row in cells}
            lines.append([case, str(cores), *(of.get(name, "–") for name in names)])
        pieces.append(markdown([title, "cores", *names], lines))
    return "\n\n".join(pieces)


TEXT = """# Speed of the SAC learners

*Written by `make bench-sac` from the records in `results/sac`, a section per kind of CPU and vector
width. The speeds of a section's line are those of one run; starts and parts are timed after it.*

"Training steps" act, step the environment, store, draw a batch and learn from it; "updates" draw a
batch and learn from it. Hopper and Ant have networks of (256, 256) and batches of 256; Pendulum has
(64, 64) with 100, RLtools' own sizes, or (32, 32) with 64; "small networks" are (32, 32) with 64 on
an environment with Hopper's sizes that takes 5 µs a step. All contestants take turns on the same
cores; each updates critics, actor and temperature once per step. The best peer on two cores is
the best on two or on one of them.

- **RLtools** is the package with MKL, compiled for each case. Its step is one call: there are no
  updates alone.
- **jaxrl** and **CleanRL** are those scripts' structures, rewritten by us
  (`benchmarks/peers/sac/`); "compiled" is the latter with losses, acting and targets under
  `torch.compile` and a fused Adam.
- **bfloat16** in rollin multiplies pairs (`--precision bfloat16`). jaxrl's layers compute in
  bfloat16, CleanRL's under `torch.autocast`. RLtools has it switched off; SB3 and SBX have no
  option for it.
- **SB3** and **SBX SAC** are the packages.
- **SBX CrossQ** is another algorithm of the package SBX, with the networks that it comes with
  (critics of (1024, 1024), no targets, the actor at every third update). It is meant to need fewer
  steps, so that its rate is no equal's and is not among the best peers;
  [return against CPU time](learning.md) compares that.

[How cost grows](scaling.md) with widths, batches and threads is a page of its own.

![Training steps per second](../../docs/images/sac-speed.png)

{sections}

## AMD EPYC (Zen 3), AVX2, as of rollin 0.1.0

Written down before the learner's kernels were changed to panels, and kept until someone measures
on that CPU again.

{earlier}
"""


def sections() -> dict[tuple[str, int], list[Row]]:
    """The speeds by CPU and vector width, wide before narrow."""
    found = grouped(read(DATA / "speed.csv"), ("processor", "lanes"))
    return dict(sorted(found.items(), key=lambda item: (item[0][0], -item[0][1])))


def page() -> str:
    """The page's text."""
    text = [section(*key, rows) for key, rows in sections().items()]
    return TEXT.format(sections="\n\n".join(text), earlier=earlier())


def chart() -> bytes:
    """Bars of training steps per second with wide networks: a column per CPU, a line per task."""
    found = {key: rows for key, rows in sections().items() if not rows[0]["forced"]}
    tasks = [name for name, task in TASKS.items() if task.wide]
    with styled():
        figure = Figure(figsize=(5 * len(found), 3.2 * len(tasks)), layout="constrained")
        axes = figure.subplots(len(tasks), len(found), squeeze=False)
        for column, ((cpu, lanes), rows) in zip(axes.T, found.items(), strict=True):
            for axis, task in zip(column, tasks, strict=True):
                bars(axis, rows, task)
            column[0].set_title(f"{short(cpu)}, {INSTRUCTIONS[lanes]}\n\n{tasks[0]}")
        figure.suptitle("Training steps per second (dark: one core, light: two)")
        return to_png(figure)


def bars(axis: Any, rows: Sequence[Row], task: str) -> None:
    """The panel of a task; empty if it was not measured."""
    case = title_of(task, "steps")
    there = {row["contestant"] for row in rows if row["case"] == case}
    names = [name for name in CONTESTANTS[::-1] if name in there]
    axis.set_title(task)
    axis.set_yticks(range(len(names)), names, fontsize=7)
    axis.grid(axis="y", visible=False)
    axis.set_axisbelow(True)
    if not names:
        axis.set_xticks([])
        axis.text(0.5, 0.5, "not measured", ha="center", transform=axis.transAxes)
        return
    axis.margins(x=0.15)
    for cores, shift, alpha in ((1, 0.2, 1.0), (2, -0.2, 0.5)):
        values = [rate(rows, case, cores, name) for name in names]
        colours = [ROLLIN if name in OURS else BASELINE for name in names]
        places = [i + shift for i in range(len(names))]
        drawn = axis.barh(places, [v or 0.0 for v in values], 0.38, color=colours, alpha=alpha)
        labels = [shown(value) if value else "" for value in values]
        axis.bar_label(drawn, labels, padding=3, fontsize=6)


def short(processor: str) -> str:
    """A CPU's name without trade marks."""
    return processor.replace("(R)", "").replace(" Processor", "")


def write_page() -> None:
    """The page and the chart."""
    write_atomically(PAGE, page().encode())
    write_atomically(CHART, chart())
