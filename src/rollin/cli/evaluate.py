"""`rollin evaluate RUN`: episodes of a trained policy, as a table, JSON, a picture or a video."""

import math
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
import tyro
from numpy.typing import NDArray
from rich.table import Table

from rollin.checks import MOST_STEPS, at_least
from rollin.cli.arguments import check_file, make_console, parse
from rollin.cli.camera import Camera
from rollin.cli.film import MOST, check_encoder, thinning, write_video
from rollin.deep.evaluate import EVALUATION_SEED, Evaluation
from rollin.envs.offscreen import choose_renderer
from rollin.errors import RollinError, foreign
from rollin.report.episodes import episodes_figure
from rollin.report.style import PICTURES, save_picture, styled
from rollin.report.words import SUCCESS
from rollin.runs.engines import engine
from rollin.runs.engines.playable import Playable
from rollin.runs.exported import open_trained
from rollin.runs.files import write_json
from rollin.runs.trust import check_trust

Contexts = Literal["all", "some", "reached", "current", "last"]
SOME = 25  # contexts at the most, unless all are asked for


@dataclass(frozen=True)
class EvaluateOptions:
    """Deterministic episodes of a run's policy, from the last checkpoint if it is not finished."""

    run: tyro.conf.Positional[Annotated[Path, tyro.conf.arg(metavar="RUN")]]
    """The run directory, or what rollin export has made of one."""
    contexts: Contexts | None = None
    """all, some (25 at equal distances), reached (so far), current or last. If not given: some in
    table and picture, the current one in the video."""
    context: int | None = None
    """One context alone, by its index k; in place of --contexts."""
    episodes: int = 10
    """Episodes on each context."""
    seed: int = EVALUATION_SEED
    """Seed of the first episode; the following ones count up from it."""
    video: Path | None = None
    """Also write the first episode on each context to this file: .gif, or .mp4 (needs the extra
    rollin[video])."""
    picture: Path | None = None
    """Also draw all episodes, context by context, to this file (.png or .svg): the x-velocity
    against its band, the way through the maze, or the outcomes of your own environment."""
    json: Path | None = None
    """Also write the table to this file."""
    trust: bool = False
    """Run the code that the run names as its task, module:factory, though you did not make it."""


@dataclass(frozen=True)
class Played:
    """Episodes on one context, and the outcomes (T + 1, U) of each if they are to be drawn."""

    k: int
    found: Evaluation
    outcomes: list[NDArray[Any]]


def main(arguments: Sequence[str]) -> int:
    """Entry point of the subcommand."""
    options = parse(EvaluateOptions, arguments, "evaluate")
    at_least(1, "--episodes", options.episodes, MOST_STEPS)
    if options.context is not None and options.contexts is not None:
        raise RollinError("--context and --contexts both choose contexts: use one.")
    at_least(0, "--seed", options.seed)
    check_file("--video", options.video, MOST)
    check_encoder(options.video)
    check_file("--picture", options.picture, PICTURES)
    check_file("--json", options.json)
    render_mode = None if options.video is None else "rgb_array"
    with playable(options.run, render_mode, trust=options.trust) as trained:
        show(trained, options)
    return 0


@contextmanager
def playable(path: Path, render_mode: str | None = None, *, trust: bool) -> Iterator[Playable]:
    """The policy of a run, or an exported one, with its environment, while inside."""
    source = open_trained(path)
    check_trust(path, source.config, trust=trust)
    trained: Playable = engine(source.config.engine).playable(source, render_mode)
    try:
        check_playable(trained, path)
        yield trained
    finally:
        trained.env.close()


def check_playable(trained: Playable, run: Path) -> None:
    """Refuse a curriculum or a policy that does not go with the environment."""
    env, policy = trained.env, trained.policy
    right = (
        trained.contexts.shape == policy.contexts.shape
        and trained.contexts.shape[1] == env.context_size
        and np.isfinite(trained.contexts).all()
        and len(trained.kappas) == len(trained.contexts)
        and len(trained.thresholds) in (0, len(trained.contexts))
        and all(map(_is_number, (*trained.kappas, *trained.thresholds)))
        and 0 <= trained.k <= trained.K
        and trained.step >= 0
        and (policy.observation_size, len(policy.low)) == (env.observation_size, env.action_size)
    )
    if not right:
        raise RollinError(
            f"{run}: its curriculum or its policy does not match its environment, or holds values "
            "that are not numbers. Its files were changed: restore the originals."
        )


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and math.isfinite(value)


def show(trained: Playable, options: EvaluateOptions) -> None:
    """Play, and write what is asked for; a drawing or a film that fails leaves table and JSON."""
    camera = None
    steps_per_second = trained.env.env.metadata.get("render_fps") or 30
    if options.video is not None:
        hint = choose_renderer() if "mujoco" in sys.modules else ""  # other envs draw otherwise
        every = thinning(options.video, steps_per_second)
        camera = Camera(trained, chosen(trained, options, "current"), every, hint)
    console = make_console(120)
    played = []
    for k in chosen(trained, options, "some"):
        with console.status(f"context {k} of {trained.K}"):
            played.append(play(trained, k, options, camera))
    rows = [(episodes.k, episodes.found) for episodes in played]
    console.print(f"{options.run}, step {trained.step:,}, context {trained.k} reached")
    console.print(table(trained, rows))
    console.print(SUCCESS)
    if options.json is not None:
        write_json(options.json, as_json(trained, rows, options))
        console.print(f"Table: {options.json}", soft_wrap=True)
    if options.picture is not None:
        draw(trained, played, options.picture)
        console.print(f"Picture: {options.picture}", soft_wrap=True)
    if options.video is not None and camera is not None:
        write_video(options.video, camera.developed(), steps_per_second / camera.every)
        console.print(f"Video: {options.video}, {len(camera.film)} frames", soft_wrap=True)
        if camera.ours:
            console.print(
                "It shows outcomes against steps, because the environment has no render mode: a "
                "factory that takes render_mode and an env whose render() returns an array give "
                "pictures of their own.",
                soft_wrap=True,
            )


def chosen(trained: Playable, options: EvaluateOptions, default: Contexts) -> list[int]:
    """The contexts to evaluate."""
    last = trained.K
    if options.context is not None:
        if not 0 <= options.context <= last:
            raise RollinError(
                f"--context must lie between 0 and {last}, the last one, got {options.context}."
            )
        return [options.context]
    return {
        "all": list(range(last + 1)),
        "some": some_contexts(trained),
        "reached": list(range(trained.k + 1)),
        "current": [trained.k],
        "last": [last],
    }[options.contexts or default]


def some_contexts(trained: Playable) -> list[int]:
    """Contexts at equal distances, and the one that training stands on."""
    return sorted({trained.k, *(trained.K * i // (SOME - 1) for i in range(SOME))})


def play(trained: Playable, k: int, options: EvaluateOptions, camera: Camera | None) -> Played:
    """Episodes on one context; the first one is filmed, and outcomes are kept for a picture."""
    outcomes: list[list[NDArray[Any]]] = [[] for _ in range(options.episodes)]

    def record(episode: int, outcome: NDArray[Any]) -> None:
        if options.picture is not None:
            outcomes[episode].append(outcome)
        if camera is not None and episode == 0:
            camera.take(k, outcome)

    found = trained.evaluate(k, options.episodes, options.seed, record)
    return Played(k, found, [np.array(seen) for seen in outcomes])


def draw(trained: Playable, played: list[Played], path: Path) -> None:
    """All episodes, a panel per context."""
    panels = [(f"κ = {trained.kappas[p.k]:.3g}", trained.contexts[p.k], p.outcomes) for p in played]
    with styled():
        figure = episodes_figure(panels, trained.env.draw)
        try:
            save_picture(path, figure)
        except (OSError, RollinError):
            raise
        except Exception as error:  # what an env's own drawing asks of Matplotlib shows only here
            raise foreign("The picture cannot be drawn:", error) from error


def table(trained: Playable, rows: list[tuple[int, Evaluation]]) -> Table:
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
            f"> {trained.thresholds[k]:g}" if trained.thresholds else "–",
            *(f"{value:.3g}" for value in found.measured.values()),
        )
    return shown


def as_json(
    trained: Playable, rows: list[tuple[int, Evaluation]], options: EvaluateOptions
) -> dict[str, Any]:
    """The same as plain values."""
    return {
        "run": str(options.run),
        "step": trained.step,
        "k": trained.k,
        "episodes": options.episodes,
        "seed": options.seed,
        "contexts": [row_of(trained, k, found) for k, found in rows],
    }


def row_of(trained: Playable, k: int, found: Evaluation) -> dict[str, Any]:
    """Episodes on one context as plain values."""
    return {
        "k": k,
        "kappa": trained.kappas[k],
        "context": trained.contexts[k].tolist(),
        "returns": found.returns,
        "return_mean": found.mean,
        "success": found.success,
        "threshold": trained.thresholds[k] if trained.thresholds else None,
        **{f"{name}_mean": value for name, value in found.measured.items()},
    }
