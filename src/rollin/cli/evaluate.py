"""`rollin evaluate RUN`: episodes of a trained policy, as a table, JSON, a picture or a video."""

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import tyro
from numpy.typing import NDArray
from rich.table import Table

from rollin.checks import at_least
from rollin.cli._common import make_console, parse
from rollin.cli._video import Film, check_video, write_video
from rollin.deep.evaluate import EVALUATION_SEED, Evaluation
from rollin.envs.offscreen import choose_renderer
from rollin.errors import RollinError, told
from rollin.report.episodes import episodes_figure
from rollin.report.style import check_picture, save_picture, styled
from rollin.runs.files import write_json
from rollin.runs.store import RunDirectory
from rollin.runs.trained import TrainedRun


@dataclass(frozen=True)
class EvaluateOptions:
    """Deterministic episodes of a run's policy, from the last checkpoint if it is not finished."""

    run: tyro.conf.Positional[Path]
    """The run directory."""
    contexts: Literal["all", "reached", "current", "last"] = "all"
    """all of the curriculum; those reached so far; the current one; the last one."""
    episodes: int = 10
    """Episodes on each context."""
    seed: int = EVALUATION_SEED
    """Seed of the first episode; the next ones count on from it."""
    video: Path | None = None
    """Also write the first episode on each context to this file: .gif, or .mp4 (needs the extra
    rollin[video])."""
    picture: Path | None = None
    """Also draw all episodes, context by context, to this file (.png or .svg): the x-velocity
    against its band, the way through the maze, or the outcomes of an environment of yours."""
    json: Path | None = None
    """Also write the table to this file."""


@dataclass(frozen=True)
class Played:
    """Episodes on one context, and the outcomes (T, U) of each."""

    k: int
    found: Evaluation
    outcomes: list[NDArray[Any]]


def main(arguments: Sequence[str]) -> int:
    """Entry point of the subcommand."""
    options = parse(EvaluateOptions, arguments, "evaluate")
    at_least(1, "--episodes", options.episodes)
    at_least(0, "--seed", options.seed)
    if options.video is not None:
        check_video(options.video)
    if options.picture is not None:
        check_picture("--picture", options.picture)
    if options.json is not None and not options.json.parent.is_dir():
        raise RollinError(f"--json: the directory {options.json.parent} does not exist.")
    directory = RunDirectory.open(options.run)
    trained = TrainedRun.open(directory, None if options.video is None else "rgb_array")
    film = Film()
    try:
        if options.video is not None and "mujoco" in sys.modules:
            choose_renderer()
        contexts = chosen(trained, options.contexts)
        played = [play(trained, k, options, film) for k in contexts]
        if options.picture is not None:
            draw(trained, played, options.picture)
    finally:
        trained.env.close()
    rows = [(episodes.k, episodes.found) for episodes in played]
    console = make_console(120)
    console.print(f"{options.run}, step {trained.step:,}, context {trained.k} reached")
    console.print(table(trained, rows))
    if options.picture is not None:
        console.print(f"Picture: {options.picture}", soft_wrap=True)
    if options.json is not None:
        write_json(options.json, as_json(trained, rows, options))
        console.print(f"Table: {options.json}", soft_wrap=True)
    if options.video is not None:
        write_video(options.video, film, trained.env.env.metadata.get("render_fps", 30))
        console.print(f"Video: {options.video}, {len(film)} frames", soft_wrap=True)
    return 0


def chosen(trained: TrainedRun, which: str) -> list[int]:
    """The contexts to evaluate."""
    last = trained.K
    return {
        "all": list(range(last + 1)),
        "reached": list(range(trained.k + 1)),
        "current": [trained.k],
        "last": [last],
    }[which]


def play(trained: TrainedRun, k: int, options: EvaluateOptions, film: Film) -> Played:
    """Episodes on one context; the first one's pictures go to the film."""
    found, outcomes = [], []
    for i in range(options.episodes):
        seen: list[NDArray[Any]] = []

        def record(outcome: NDArray[Any], seen: list[NDArray[Any]] = seen, i: int = i) -> None:
            seen.append(outcome)
            if options.video is not None and i == 0:
                film.add(rendered(trained))

        found.append(trained.evaluate(k, 1, options.seed + i, record))
        outcomes.append(np.stack(seen))
    lengths = [len(episode) - 1 for episode in outcomes]
    measured = {
        name: float(np.average([each.measured[name] for each in found], weights=lengths))
        for name in trained.env.measures
    }
    returns = [each.returns[0] for each in found]
    successes = [each.successes[0] for each in found]
    return Played(k, Evaluation(returns, successes, measured), outcomes)


def rendered(trained: TrainedRun) -> NDArray[np.uint8]:
    """A picture of the environment as it stands."""
    try:
        picture = trained.env.env.render()
    except Exception as error:  # a renderer without a display may raise anything
        raise RollinError(f"The environment cannot draw itself here: {told(error)}.") from error
    if not isinstance(picture, np.ndarray):
        raise RollinError(
            "The environment gives no pictures: its render() must return an array when it is "
            "made with render_mode='rgb_array'."
        )
    return picture


def draw(trained: TrainedRun, played: list[Played], path: Path) -> None:
    """All episodes, a panel per context."""
    panels = [(f"κ = {trained.kappas[p.k]:.3g}", trained.contexts[p.k], p.outcomes) for p in played]
    with styled():
        save_picture(path, episodes_figure(panels, trained.env.draw))


def table(trained: TrainedRun, rows: list[tuple[int, Evaluation]]) -> Table:
    """For the terminal."""
    shown = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    titles = ("k", "κ", "context", "return", "± std", "worst", "success", "threshold")
    for title in (*titles, *(name.replace("_", " ") for name in trained.env.measures)):
        shown.add_column(title, justify="right")
    for k, found in rows:
        context = ", ".join(f"{x:.3g}" for x in trained.contexts[k])
        shown.add_row(
            f"{k}{' *' if k == trained.k else ''}",
            f"{trained.kappas[k]:.3f}",
            context,
            f"{found.mean:.2f}",
            f"{np.std(found.returns):.2f}",
            f"{min(found.returns):.2f}",
            f"{found.success:.0%}",
            f"{trained.thresholds[k]:g}",
            *(f"{value:.3g}" for value in found.measured.values()),
        )
    return shown


def as_json(
    trained: TrainedRun, rows: list[tuple[int, Evaluation]], options: EvaluateOptions
) -> dict[str, Any]:
    """The same as plain values."""
    return {
        "run": str(options.run),
        "step": trained.step,
        "k": trained.k,
        "episodes": options.episodes,
        "seed": options.seed,
        "contexts": [
            {
                "k": k,
                "kappa": trained.kappas[k],
                "context": trained.contexts[k].tolist(),
                "returns": found.returns,
                "return_mean": found.mean,
                "success": found.success,
                "threshold": trained.thresholds[k],
                **{f"{name}_mean": value for name, value in found.measured.items()},
            }
            for k, found in rows
        ],
    }
