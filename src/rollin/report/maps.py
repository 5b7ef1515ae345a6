"""Maps of the tasks: rewards, paths of goals, distributions, greedy policies."""

import math

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import LogNorm
from matplotlib.figure import Figure

from rollin.curriculum.contexts import Curriculum
from rollin.envs.picture import POINT
from rollin.envs.point_maze import PointMaze
from rollin.envs.registry import TASKS, make_raw
from rollin.envs.umaze import PATH, UMAZE
from rollin.tabular.four_rooms import GRID, REWARDS, four_rooms, path
from rollin.tabular.grid import COLLECT, MOVES, Cell, Grid
from rollin.tabular.mdp import Array

FLOOR = 1e-5  # probabilities below are drawn as this on logarithmic maps


def draw_grid(ax: Axes, grid: Grid) -> None:
    """Border and walls; doors are gaps."""
    ax.set_aspect("equal")
    ax.set_xlim(-0.5, grid.width - 0.5)
    ax.set_ylim(-0.5, grid.height - 0.5)
    ax.set_xticks([])
    ax.set_yticks([])
    ax.grid(visible=False)
    for spine in ax.spines.values():
        spine.set_visible(True)
        spine.set_linewidth(1.4)
    for wall in grid.walls:
        along = grid.height if wall.axis == "x" else grid.width
        ends = [-0.5, *(d + side for d in sorted(wall.doors) for side in (-0.5, 0.5)), along - 0.5]
        for first, last in zip(ends[::2], ends[1::2], strict=True):
            here, piece = [wall.at + 0.5] * 2, [first, last]
            xs, ys = (here, piece) if wall.axis == "x" else (piece, here)
            ax.plot(xs, ys, color="black", linewidth=1.8, solid_capstyle="butt", zorder=4)


def draw_values(
    ax: Axes, grid: Grid, values: Array, cmap: str = "Purples", *, log: bool = False
) -> None:
    """Cells coloured by value; the darker the larger."""
    picture = values.reshape(grid.height, grid.width)
    if log:
        norm = LogNorm(FLOOR, 1.0)
        ax.imshow(np.maximum(picture, FLOOR), origin="lower", cmap=cmap, norm=norm)
    else:
        ax.imshow(picture, origin="lower", cmap=cmap, vmin=0, vmax=max(1e-12, picture.max()))
    draw_grid(ax, grid)


def draw_goal(ax: Axes, cell: Cell) -> None:
    """A star on the goal."""
    ax.plot(*cell, marker="*", color="#f59e0b", markeredgecolor="black", markersize=9, zorder=6)


def reward_maps() -> Figure:
    """The paper's figure of the two rewards on the last context, with the path of goals."""
    figure = Figure(figsize=(7.2, 3.7))
    axes = figure.subplots(1, 2)
    goals = path()
    for ax, name in zip(axes, REWARDS, strict=True):
        values = four_rooms(name).task(len(goals) - 1).r[:, COLLECT]
        draw_values(ax, GRID, values)
        ax.plot(*zip(*goals, strict=True), color="#0891b2", linewidth=1.2, marker="o",
                markersize=3, zorder=5)  # fmt: skip
        ax.plot(0, 0, marker="s", color="white", markeredgecolor="black", markersize=7, zorder=6)
        draw_goal(ax, goals[-1])
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


def distribution_maps(grid: Grid, laws: list[Array], goals: list[Cell], symbol: str) -> Figure:
    """One small map per context of a distribution over cells, on a logarithmic scale."""
    columns = 6
    rows = math.ceil(len(laws) / columns)
    figure = Figure(figsize=(columns * 1.45, rows * 1.75))
    axes = np.atleast_1d(figure.subplots(rows, columns)).ravel()
    for ax in axes:
        ax.set_axis_off()
    for k, (ax, law) in enumerate(zip(axes, laws, strict=False)):
        ax.set_axis_on()
        draw_values(ax, grid, law, log=True)
        draw_goal(ax, goals[k])
        ax.set_title(f"${symbol}_{{{k}}}$", fontsize=9)
    figure.tight_layout(pad=0.5, h_pad=1.4)
    return figure


def policy_map(grid: Grid, log_pi: Array, goal: Cell, rewards: Array, title: str) -> Figure:
    """The likeliest action per cell: an arrow, a square where it collects, a cross for a dummy.

    The stronger the colour, the more probable the action; a dot where none stands out.
    """
    figure = Figure(figsize=(4.2, 4.4))
    ax = figure.subplots()
    draw_values(ax, grid, rewards, cmap="Greens")
    pi = np.exp(log_pi)
    for s in range(grid.n_states):
        x, y = grid.cell(s)
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
    draw_goal(ax, goal)
    ax.set_title(title)
    return figure
