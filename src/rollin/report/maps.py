"""Maps of the tasks, seen from above: rewards, goals, policies, episodes, where steps ended.

A report shows them beside the curves, and the first batch after a switch.
"""

import math
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.colors import ListedColormap, LogNorm
from matplotlib.figure import Figure

from rollin.curriculum.contexts import Curriculum
from rollin.envs.point_umaze import PATH, POINT, UMAZE, DeadEnd, PointMaze
from rollin.envs.registry import make_raw
from rollin.errors import RollinError
from rollin.report.charts import panel_grid
from rollin.report.labels import label_text, steps_text
from rollin.report.style import BASELINE, ROLLIN
from rollin.runs.directory import RunDirectory
from rollin.runs.engines import engine
from rollin.runs.metrics import VISIT_COLUMNS, VISITS, cell_size, read_metrics
from rollin.runs.records import Array, Record
from rollin.tabular.families import COLLECT, GRID, MOVES, REWARDS, Cell, four_rooms, path
from rollin.tasks import TASKS

FLOOR = 1e-5  # probabilities below are drawn as this on logarithmic maps
PANELS = 12  # of a run's visits: more contexts share panels
MAZES = {"antmaze-umaze": UMAZE, "point-umaze": UMAZE, "dead-end": DeadEnd.maze}
"""Walls to draw, by task; others are drawn without."""
GOAL = "#059669"
SHADES = ListedColormap(colormaps["Purples"](np.linspace(0.2, 1, 256)))  # without white

Draw = Callable[[Any, Array, Sequence[Array]], None]
"""Draws on axes the episodes under a context, from their outcomes (T, U)."""


def _draw_grid(ax: Axes) -> None:
    """Border and walls; doors are gaps."""
    ax.set_aspect("equal")
    ax.set_xlim(-0.5, GRID.width - 0.5)
    ax.set_ylim(-0.5, GRID.height - 0.5)
    ax.set_xticks([])
    ax.set_yticks([])
    ax.grid(visible=False)
    for spine in ax.spines.values():
        spine.set_visible(True)
        spine.set_linewidth(1.4)
    for wall in GRID.walls:
        along = GRID.height if wall.axis == "x" else GRID.width
        ends = [-0.5, *(d + side for d in sorted(wall.doors) for side in (-0.5, 0.5)), along - 0.5]
        for first, last in zip(ends[::2], ends[1::2], strict=True):
            here, piece = [wall.at + 0.5] * 2, [first, last]
            xs, ys = (here, piece) if wall.axis == "x" else (piece, here)
            ax.plot(xs, ys, color="black", linewidth=1.8, solid_capstyle="butt", zorder=4)


def _draw_values(ax: Axes, values: Array, cmap: str = "Purples", *, log: bool = False) -> None:
    """Cells coloured by value; the darker the larger."""
    picture = values.reshape(GRID.height, GRID.width)
    if log:
        norm = LogNorm(FLOOR, 1.0)
        ax.imshow(np.maximum(picture, FLOOR), origin="lower", cmap=cmap, norm=norm)
    else:
        ax.imshow(picture, origin="lower", cmap=cmap, vmin=0, vmax=max(1e-12, picture.max()))
    _draw_grid(ax)


def _draw_goal(ax: Axes, cell: Cell) -> None:
    """A star on the goal."""
    ax.plot(*cell, marker="*", color="#f59e0b", markeredgecolor="black", markersize=9, zorder=6)


def reward_maps() -> Figure:
    """The paper's figure of the two rewards on the last context, with the path of goals."""
    figure = Figure(figsize=(7.2, 3.7))
    axes = figure.subplots(1, 2)
    goals = path()
    for ax, name in zip(axes, REWARDS, strict=True):
        values = four_rooms(name).task(len(goals) - 1).r[:, COLLECT]
        _draw_values(ax, values)
        ax.plot(*zip(*goals, strict=True), color=GOAL, linewidth=1.2, marker="o",
                markersize=3, zorder=5)  # fmt: skip
        ax.plot(0, 0, marker="s", color="white", markeredgecolor="black", markersize=7, zorder=6)
        _draw_goal(ax, goals[-1])
        base, threshold = REWARDS[name]
        ax.set_title(f"{name}: {base}$^D$ within {threshold} steps")
    figure.text(
        0.5, 0.03, "□ start   ● goals ω₀ … ω₁₆   ★ last goal   — walls", ha="center", fontsize=8
    )
    return figure


def goal_path() -> Figure:
    """The paper's figure of the U-maze from above, with the goals at every Δ of the path."""
    figure = Figure(figsize=(4.4, 4.4))
    ax = figure.subplots()
    UMAZE.draw(ax, PATH[-1], [])
    delta = TASKS["antmaze-umaze"].delta or 1 / 24
    goals = Curriculum.along(PATH, delta, 0.0, start="delta").contexts
    ax.scatter(*goals.T, c=np.linspace(0.3, 1, len(goals)), cmap="Purples", vmin=0, vmax=1, s=26,
               edgecolors="#4c1d95", linewidths=0.6, zorder=4)  # fmt: skip
    ax.plot(*PATH[0], marker="s", color="white", markeredgecolor="black", markersize=8, zorder=5)
    ax.plot(
        *PATH[-1], marker="*", color="#f59e0b", markeredgecolor="black", markersize=13, zorder=6
    )
    words = ("ω(0)", "ω(1/3)", "ω(2/3)", "ω(1)")
    for word, (x, y), beside in zip(words, PATH, (-1.1, -1.1, 0.8, 0.8), strict=True):
        ax.text(x, y + beside, word, ha="center", va="center", fontsize=8)
    ax.set(xlabel="x (m)", ylabel="y (m)", title=f"Goals on the path, Δ = 1/{round(1 / delta)}")
    figure.text(0.5, -0.02, "□ start   ● goals   ★ last goal", ha="center", fontsize=8)
    return figure


def small_tasks() -> Figure:
    """The small tasks: mazes with the path of their goals, the others at the start."""
    figure = Figure(figsize=(9, 2.6))
    names = ("point-umaze", "dead-end", "key-door", "point-speed")
    for ax, name in zip(figure.subplots(1, len(names)), names, strict=True):
        env = make_raw(name, options=["render_mode=rgb_array"])
        env.reset(seed=0)
        if isinstance(env, PointMaze):
            env.draw(ax, env.context, [])
            ax.plot(*env.maze.path[0], marker="o", color=POINT, markersize=5)
        else:
            ax.imshow(np.asarray(env.render()))
            ax.grid(visible=False)
        ax.set(xticks=[], yticks=[], title=name)
    figure.tight_layout()
    return figure


def distribution_maps(laws: Sequence[Array], symbol: str) -> Figure:
    """One small map per context of a distribution over cells, on a logarithmic scale."""
    goals = path()
    columns = 6
    rows = math.ceil(len(laws) / columns)
    figure = Figure(figsize=(columns * 1.45, rows * 1.75))
    axes = np.atleast_1d(figure.subplots(rows, columns)).ravel()
    for ax in axes:
        ax.set_axis_off()
    for k, (ax, law) in enumerate(zip(axes, laws, strict=False)):
        ax.set_axis_on()
        _draw_values(ax, law, log=True)
        _draw_goal(ax, goals[k])
        ax.set_title(f"${symbol}_{{{k}}}$", fontsize=9)
    figure.tight_layout(pad=0.5, h_pad=1.4)
    return figure


def policy_map(log_pi: Array, k: int, rewards: Array, title: str) -> Figure:
    """The likeliest action per cell: an arrow, a square where it collects, a cross for a dummy.

    The stronger the colour, the more probable the action; a dot where none stands out.
    """
    figure = Figure(figsize=(4.2, 4.4))
    ax = figure.subplots()
    _draw_values(ax, rewards[:, COLLECT], cmap="Greens")
    pi = np.exp(log_pi)
    for s in range(GRID.n_states):
        x, y = GRID.cell(s)
        action = int(pi[s].argmax())
        strength = 0.25 + 0.75 * float(pi[s, action])
        if pi[s, action] < 2 / pi.shape[1]:  # hardly more than chance: nothing was learned here
            ax.plot(x, y, ".", color="#9ca3af", markersize=2, zorder=7)
        elif action < len(MOVES):
            dx, dy = MOVES[action]
            ax.annotate(
                "", (x + 0.36 * dx, y + 0.36 * dy), (x - 0.36 * dx, y - 0.36 * dy), zorder=7,
                arrowprops={"arrowstyle": "-|>", "color": "#4c1d95", "alpha": strength},
            )  # fmt: skip
        elif action == COLLECT:
            ax.plot(x, y, "s", color="#4c1d95", alpha=strength, markersize=6, zorder=7)
        else:
            ax.plot(x, y, "x", color="#9ca3af", alpha=strength, markersize=4, zorder=7)
    _draw_goal(ax, path()[k])
    ax.set_title(title)
    return figure


def episodes_figure(panels: Sequence[tuple[str, Array, Sequence[Array]]], draw: Draw) -> Figure:
    """One panel each: title, context, outcomes of its episodes."""
    figure, axes = panel_grid(len(panels), 5, (3.1, 2.7), (0.4, 0))
    for ax, (title, context, outcomes) in zip(axes, panels, strict=True):
        draw(ax, context, outcomes)
        ax.set_title(title)
    return figure


# ------------------------------------------------------------------ where steps ended


@dataclass(frozen=True)
class VisitPanel:
    """Steps under one context, or under some that follow each other.

    ks: the contexts; goals: (n, 2); places: (m, 2) centres of cells; steps: (m,) in each.
    """

    ks: Sequence[int]
    goals: Array
    places: Array
    steps: Array


@dataclass(frozen=True)
class VisitMaps:
    """A run: its panels, and the side of a cell."""

    record: Record
    cell: float
    panels: Sequence[VisitPanel]


def has_visits(record: Record) -> bool:
    """Whether a run has recorded where its steps ended."""
    return record.path is not None and os.path.lexists(record.path / VISITS)


def visit_maps(record: Record, most: int = PANELS) -> VisitMaps:
    """The visits of a run that has recorded them, on at most so many panels."""
    assert record.path is not None
    run = RunDirectory(record.path)
    file = run.path / VISITS
    columns = {name: np.array(column) for name, column in read_metrics(file).items()}
    contexts = np.array((run.config.curriculum or {}).get("contexts", []), np.float64)
    if [*columns] != [*VISIT_COLUMNS] or contexts.ndim != 2 or contexts.shape[1] != 2:
        raise RollinError(f"{file} does not hold what a run writes: restore the original.")
    return VisitMaps(record, cell_size(contexts), panels_of(columns, contexts, most))


def panels_of(columns: dict[str, Array], contexts: Array, most: int) -> list[VisitPanel]:
    """Panels of the contexts that were entered, evenly grouped where there are too many."""
    entered = np.unique(columns["k"]).astype(int)
    if not len(entered) or entered[0] < 0 or entered[-1] >= len(contexts):
        raise RollinError(f"{VISITS} must have contexts 0 … {len(contexts) - 1}.")
    found = []
    for ks in np.array_split(entered, min(most, len(entered))):
        rows = np.isin(columns["k"], ks)
        places = np.stack([columns["x"][rows], columns["y"][rows]], axis=1)
        cells, where = np.unique(places, axis=0, return_inverse=True)
        steps = np.bincount(where.ravel(), columns["steps"][rows]).astype(np.float64)
        found.append(VisitPanel(ks.tolist(), contexts[ks], cells, steps))
    return found


def visits_figure(found: Sequence[VisitMaps]) -> Figure:
    """Rows of panels for each run, on one logarithmic scale."""
    columns = min(6, max(len(maps.panels) for maps in found))
    heights = [-(-len(maps.panels) // columns) for maps in found]
    size = (2.1 * columns + 0.9, 2.1 * sum(heights) + 0.35 * len(found))
    figure = Figure(figsize=size, layout="constrained")
    parts = np.atleast_1d(figure.subfigures(len(found), 1, height_ratios=heights, squeeze=False))
    norm = LogNorm(1, max(2.0, *(p.steps.max() for maps in found for p in maps.panels)))
    for part, maps, rows in zip(parts.ravel(), found, heights, strict=True):
        part.suptitle(_title(maps), fontsize=9, parse_math=False)
        axes = part.subplots(rows, columns, squeeze=False).ravel()
        for axis in axes[len(maps.panels) :]:
            axis.set_axis_off()
        for axis, panel in zip(axes, maps.panels, strict=False):
            _draw(axis, maps, panel, norm)
        label = f"steps in a cell of {maps.cell:g} × {maps.cell:g}"
        part.colorbar(ScalarMappable(norm, SHADES), ax=list(axes), label=label)
    return figure


def _title(maps: VisitMaps) -> str:
    record = maps.record
    name = label_text(record.labels) or (record.path.name if record.path else record.task)
    return f"{record.task}, {name}, seed {record.seed}: {steps_text(record.step)} steps"


def _draw(axis: Any, maps: VisitMaps, panel: VisitPanel, norm: LogNorm) -> None:
    maze = MAZES.get(maps.record.task)
    if maze is not None:
        maze.draw(axis, panel.goals[-1], [])
    else:
        axis.plot(*panel.goals[-1], marker="o", color=GOAL, fillstyle="none")
        axis.set_aspect("equal")
    for goal in panel.goals[:-1]:
        axis.plot(*goal, marker=".", color=GOAL, markersize=3)
    low = panel.places.min(0)
    cells = np.round((panel.places - low) / maps.cell).astype(int)
    counts = np.full(cells.max(0) + 1, np.nan)
    counts[tuple(cells.T)] = panel.steps
    edges = [low[i] - maps.cell / 2 + maps.cell * np.arange(counts.shape[i] + 1) for i in range(2)]
    axis.pcolormesh(*edges, counts.T, norm=norm, cmap=SHADES, zorder=0.5)
    axis.set(xticks=[], yticks=[])
    ks = f"{panel.ks[0]} – {panel.ks[-1]}" if len(panel.ks) > 1 else f"{panel.ks[0]}"
    axis.set_title(f"k = {ks}", fontsize=8)


# ------------------------------------------------------------------ pictures of a report


ROOMS = "four-rooms"
HEADLINE_BETA = 0.75  # of the paper's main table, which is shown where there is a choice


@dataclass(frozen=True)
class Picture:
    """A figure of the page: its anchor, title, caption and drawing; plate: on white always."""

    name: str
    title: str
    caption: str
    figure: Figure
    plate: bool = True


@dataclass(frozen=True)
class FirstBatch:
    """Chances of success right after each switch, a row per seed, from ρ and from μ_k."""

    setting: str
    beta: float
    from_rho: list[list[float]]
    from_mu: list[list[float]]


def pictures(records: Sequence[Record]) -> list[Picture]:
    """All pictures of finished runs; the others have no policy yet."""
    runs = [record for record in records if record.finished]
    found: list[Picture] = []
    batches = first_batches(runs)
    if batches:
        found.append(
            Picture(
                "first-batch",
                "Why it works: the first batch after a switch",
                "Exact probability that a trajectory succeeds on context k with the policy of "
                "context k-1, started from ρ and from the roll-in distribution μₖ; "
                "median and range over seeds.",
                first_batch_figure(batches),
                plate=False,
            )
        )
    if any(r.task == ROOMS for r in runs):
        caption = "Reward of collecting in a cell on the last context; darker is more."
        title = "The two rewards and the path of goals"
        found.append(Picture("rewards", title, caption, reward_maps()))
    rolled, plain = farthest(runs)
    if rolled is not None:
        found += _distribution_pictures(rolled)
    for record, name in ((plain, "baseline"), (rolled, "ROLLIN")):
        if record is not None:
            found.append(_policy_picture(record, name))
    return found


def _policy_picture(record: Record, name: str) -> Picture:
    """The greedy policy at the end of a run."""
    learned = engine(record.engine).state_maps(record)
    k = record.k or 0
    caption = (
        "Likeliest action per cell at the end: arrows move, squares collect, crosses are dummy "
        "actions, dots mean that none stands out. Green: the reward on the run's last context."
    )
    title = f"{name}, seed {record.seed}: k = {k}"
    figure = policy_map(learned.log_pi, k, learned.rewards, title)
    return Picture(f"policy-{name.lower()}", f"What it learned: {name}", caption, figure)


def _distribution_pictures(record: Record) -> list[Picture]:
    """Maps of μ_k and of visitation; none if the run has mastered no context."""
    learned = engine(record.engine).state_maps(record)
    options = record.options
    if not learned.visits:
        return []
    run = (
        f"reward {options['reward']}, α = {options['alpha']:g}, β = {options['beta']:g}, "
        f"seed {record.seed}"
    )
    return [
        Picture(
            "mu",
            "Where trajectories start: μₖ",
            f"Roll-in distribution of every context ({run}), logarithmic; the star is the goal.",
            distribution_maps(learned.starts, r"\mu"),
        ),
        Picture(
            "visitation",
            "Where the learned policy goes: d",
            f"Discounted visitation from μₖ of the policy that mastered context k ({run}).",
            distribution_maps(learned.visits, "d"),
        ),
    ]


def _beta(record: Record) -> float:
    """The mixing ratio of a run."""
    return float(_options(record).get("beta", 0.0))


def _options(record: Record) -> Mapping[str, Any]:
    """The options of a run, or its labels if it comes from a runs.csv."""
    return record.options or record.labels


def _by_setting(records: Sequence[Record]) -> dict[str, list[Record]]:
    """Runs by reward and α, the easy reward and the larger α first."""

    def place(record: Record) -> tuple[bool, float]:
        options = _options(record)
        return options.get("reward") != "hard", -float(options.get("alpha", 0.01))

    found: dict[str, list[Record]] = {}
    for record in sorted(records, key=place):
        options = _options(record)
        name = options.get("reward", ROOMS) if record.task == ROOMS else record.task
        setting = f"{name}, α = {float(options.get('alpha', 0.01)):g}"
        found.setdefault(setting, []).append(record)
    return found


def _chances(record: Record, name: str) -> list[float]:
    """What a run recorded under a name at its switches."""
    return [s.numbers[name] for s in record.switches if name in s.numbers]


def first_batches(records: Sequence[Record]) -> list[FirstBatch]:
    """Of the runs with roll-in of each setting, with the paper's main β if there is one."""
    found = []
    rolled = _by_setting([r for r in records if _beta(r) > 0 and _chances(r, "success_mu")])
    for setting, runs in rolled.items():
        betas = [_beta(r) for r in runs]
        beta = HEADLINE_BETA if HEADLINE_BETA in betas else betas[0]
        some = [r for r in runs if _beta(r) == beta]
        rho, mu = ([_chances(r, name) for r in some] for name in ("success_rho", "success_mu"))
        found.append(FirstBatch(setting, beta, rho, mu))
    return found


def farthest(records: Sequence[Record]) -> tuple[Record | None, Record | None]:
    """The best run with and without roll-in, of the setting where roll-in shows most."""
    drawable = [r for r in records if engine(r.engine).has_state_maps(r)]
    pairs = [
        (
            max((r for r in runs if _beta(r) > 0), key=_reach, default=None),
            max((r for r in runs if _beta(r) == 0), key=_reach, default=None),
        )
        for runs in _by_setting(drawable).values()
    ]

    def worth(pair: tuple[Record | None, Record | None]) -> tuple[int, int]:
        rolled, plain = ((r.k or 0) if r else -1 for r in pair)
        return rolled, rolled - (plain if pair[1] else rolled)

    return max(pairs, key=worth, default=(None, None))


def _reach(record: Record) -> tuple[int, bool, int]:
    return record.k or 0, _beta(record) == HEADLINE_BETA, -record.seed


def first_batch_figure(found: Sequence[FirstBatch]) -> Figure:
    """Probability that a trajectory succeeds right after a switch, from ρ and from μ_k.

    Of each setting: the median, and the range over seeds.
    """
    figure, axes = panel_grid(len(found), 2, (4.4, 2.7), (0.6, 0.4), layout=None)
    for ax, batch in zip(axes, found, strict=True):
        _draw_range(ax, batch.from_rho, BASELINE, "from ρ")
        _draw_range(ax, batch.from_mu, ROLLIN, "from μₖ")
        ax.set_xlabel("context k")
        ax.set_ylabel("first-batch success")
        ax.set_yscale("log")
        ax.axhline(0.5, color="#9ca3af", linewidth=0.8, linestyle=":")
        ax.legend(fontsize=8, loc="lower left")
        ax.set_title(f"{batch.setting}, β = {batch.beta:g}", parse_math=False)
    figure.tight_layout()
    return figure


def _draw_range(ax: Axes, curves: Sequence[Sequence[float]], colour: str, label: str) -> None:
    longest = max(len(curve) for curve in curves)
    at = [[c[i] for c in curves if len(c) > i] for i in range(longest)]
    ks = np.arange(1, longest + 1)
    low, middle, high = (np.array([f(v) for v in at]) for f in (np.min, np.median, np.max))
    ax.fill_between(ks, np.maximum(low, 1e-12), high, color=colour, alpha=0.2, linewidth=0)
    ax.plot(ks, np.maximum(middle, 1e-12), color=colour, marker="o", markersize=3, label=label)
