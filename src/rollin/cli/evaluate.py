"""`rollin evaluate RUN`: episodes of a trained policy, as a table, JSON, a picture or a video.

A video has the environment's own pictures, or drawings of its outcomes if it has none. A GIF needs
nothing else, an MP4 the extra `video`.
"""

import io
import math
import sys
import zlib
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from numpy.typing import NDArray
from PIL import Image
from rich.table import Table

from rollin.checks import MOST_STEPS, at_least
from rollin.cli.console import check_file, make_console, plain_table
from rollin.cli.options import Arg, parse
from rollin.deep.evaluate import EVALUATION_SEED, Evaluation
from rollin.envs.robot import choose_renderer
from rollin.errors import RollinError, foreign, install_hint
from rollin.report.labels import SUCCESS
from rollin.report.maps import episodes_figure
from rollin.report.style import PICTURES, save_picture, styled
from rollin.runs.curricula import Playable
from rollin.runs.engines import engine
from rollin.runs.exported import open_trained
from rollin.runs.files import check_trust, remove_file, write_atomically, write_json
from rollin.runs.systems import patiently

Picture = NDArray[np.uint8]
Array = NDArray[Any]

MOST = {".gif": 30, ".mp4": 60}
"""Pictures a second: more are hardly seen, take long to render, and browsers slow a GIF down."""
DRAWN = 60  # pictures of an episode's outcomes, at most


class Film:
    """Pictures one after the other, kept compressed: thousands of them fit into memory."""

    def __init__(self) -> None:
        self._kept: list[tuple[tuple[int, ...], bytes]] = []

    def add(self, picture: Picture) -> None:
        """Take a picture (height, width, 3)."""
        self._kept.append((picture.shape, zlib.compress(picture.tobytes(), 1)))

    def __len__(self) -> int:
        return len(self._kept)

    def __iter__(self) -> Iterator[Picture]:
        for shape, data in self._kept:
            yield np.frombuffer(zlib.decompress(data), np.uint8).reshape(shape)


def check_encoder(path: Path | None) -> None:
    """Refuse a file that nothing here can encode, before anything is run."""
    if path is not None and path.suffix == ".mp4" and find_spec("imageio_ffmpeg") is None:
        raise RollinError(
            f"A video as .mp4 needs the extra video: {install_hint('video')}, or name a .gif."
        )


def thinning(path: Path, frames_per_second: int) -> int:
    """Return every how many steps to film: a robot takes up to 125 steps per second."""
    return max(1, math.ceil(frames_per_second / MOST[path.suffix]))


def write_video(path: Path, film: Film, frames_per_second: float) -> None:
    """Write all pictures."""
    if path.suffix == ".gif":
        write_atomically(path, gif_of(film, frames_per_second))
        return
    imageio: Any = import_module("imageio.v2")  # only here: an extra
    temporary = path.with_name(f".{path.name}")  # the encoder wants a name that ends in .mp4
    try:
        with imageio.get_writer(temporary, fps=frames_per_second, macro_block_size=2) as writer:
            for picture in film:
                writer.append_data(picture)
        patiently(lambda: temporary.replace(path))
    finally:
        remove_file(temporary)


def gif_of(film: Film, frames_per_second: float, comment: str = "") -> bytes:
    """Return all pictures as a GIF that repeats; comment: stored in the file, not displayed."""
    milliseconds = round(1000 / frames_per_second)
    pictures = (Image.fromarray(picture).quantize(128) for picture in film)
    data = io.BytesIO()
    first = next(pictures)
    options = {"duration": milliseconds, "loop": 0, "comment": comment}
    first.save(data, "GIF", save_all=True, append_images=pictures, **options)
    return data.getvalue()


class Camera:
    """Films some contexts, every so many steps; hint: what to do if the env cannot be drawn.

    An env that was made without a render mode gives no pictures: its outcomes are drawn instead.
    """

    def __init__(self, trained: Playable, contexts: Sequence[int], every: int, hint: str) -> None:
        self.film = Film()
        self.every = every
        self.ours = getattr(trained.env.env, "render_mode", None) is None
        self._trained = trained
        self._contexts = contexts
        self._hint = hint
        self._failed: RollinError | None = None
        self._steps: Counter[int] = Counter()
        self._paths: dict[int, list[Array]] = {}

    def take(self, k: int, outcome: Array) -> None:
        """Film a step, if this context is filmed and nothing has failed yet."""
        if k not in self._contexts or self._failed is not None:
            return
        if self.ours:
            self._paths.setdefault(k, []).append(outcome)
            return
        if self._steps[k] % self.every == 0:
            try:
                self.film.add(rendered(self._trained, self._hint))
            except RollinError as error:
                self._failed = error
        self._steps[k] += 1

    def developed(self) -> Film:
        """Return all pictures; raise the error that prevented them."""
        if self._failed is not None:
            raise self._failed
        for k, path in self._paths.items():
            self._draw(k, np.array(path))
        return self.film

    def _draw(self, k: int, path: Array) -> None:
        """Draw the trajectory picture by picture, on the axes of the whole trajectory."""
        whole = self._figure(k, path).axes[0]
        for end in np.unique(np.linspace(1, len(path), min(DRAWN, len(path))).round().astype(int)):
            figure = self._figure(k, path[:end])
            figure.axes[0].set(xlim=whole.get_xlim(), ylim=whole.get_ylim())
            canvas = FigureCanvasAgg(figure)
            canvas.draw()
            self.film.add(np.ascontiguousarray(np.asarray(canvas.buffer_rgba())[..., :3]))

    def _figure(self, k: int, path: Array) -> Figure:
        trained = self._trained
        panel = panel_title(trained, k), trained.contexts[k], [path]
        with styled():
            return episodes_figure([panel], trained.env.draw)


def rendered(trained: Playable, hint: str) -> NDArray[np.uint8]:
    """Return a picture of the environment."""
    try:
        picture = trained.env.env.render()
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # a renderer without a display may raise anything
        raise foreign("The environment cannot draw itself here:", error, f".{hint}") from error
    if not isinstance(picture, np.ndarray):
        raise RollinError(
            "The environment gives no pictures: its render() must return an array when it is "
            "made with render_mode='rgb_array'."
        )
    return picture


# ------------------------------------------------------------------ the command


Contexts = Literal["all", "some", "reached", "current", "last"]
SOME = 25  # contexts at the most, unless all are asked for


@dataclass(frozen=True)
class EvaluateOptions:
    """Evaluate a run's policy in deterministic episodes; an unfinished run's last checkpoint."""

    run: Annotated[Path, Arg("RUN", positional=True)]
    """The run directory, or what rollin export has made of one."""
    contexts: Contexts | None = None
    """all, some (25 at equal distances), reached (so far), current or last. Default: some in table
    and picture, the current one in the video."""
    context: int | None = None
    """One context only, by its index k; in place of --contexts."""
    episodes: int = 10
    """Episodes on each context."""
    seed: int = EVALUATION_SEED
    """Seed of the first episode; the following ones count up from it."""
    video: Path | None = None
    """Also write the first episode on each context to this file: .gif, or .mp4 (needs the extra
    video)."""
    picture: Path | None = None
    """Also draw all episodes, context by context, to this file (.png or .svg): the x-velocity
    against its band, the path through the maze, or the outcomes of your own environment."""
    json: Path | None = None
    """Also write the table to this file."""
    trust: bool = False
    """Run the code that the run names, module:factory, even if another user made the run."""


Outcomes = list[NDArray[Any]]
"""Of episodes on one context, (T + 1, U) each."""


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
    """Open the policy of a run, or an exported one, with its environment, while inside."""
    source = open_trained(path)
    check_trust(path, source.config, trust=trust)
    trained: Playable = engine(source.config.engine).playable(source, render_mode)
    try:
        check_playable(trained, path)
        yield trained
    finally:
        trained.env.close()


def check_playable(trained: Playable, run: Path) -> None:
    """Raise if the curriculum or the policy does not match the environment."""
    env = trained.env
    policy = trained.policy
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
    """Play, print and write; the table is there even if a picture or a video fails."""
    camera = None
    steps_per_second = trained.env.env.metadata.get("render_fps") or 30
    if options.video is not None:
        hint = choose_renderer() if "mujoco" in sys.modules else ""  # other envs draw otherwise
        every = thinning(options.video, steps_per_second)
        camera = Camera(trained, contexts_to_play(trained, options, "current"), every, hint)
    console = make_console(120)
    results: dict[int, Evaluation] = {}
    outcomes: dict[int, Outcomes] = {}
    for k in contexts_to_play(trained, options, "some"):
        with console.status(f"context {k} of {trained.K}"):
            results[k], outcomes[k] = play(trained, k, options, camera)
    console.print(f"{options.run}, step {trained.step:,}, context {trained.k} reached")
    console.print(table(trained, results))
    console.print(SUCCESS)
    if options.json is not None:
        write_json(options.json, as_json(trained, results, options))
        console.print(f"Table: {options.json}", soft_wrap=True)
    if options.picture is not None:
        draw(trained, outcomes, options.picture)
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


def contexts_to_play(trained: Playable, options: EvaluateOptions, default: Contexts) -> list[int]:
    """Return the contexts to evaluate."""
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
    """Return contexts at equal distances, and the current one of training."""
    return sorted({trained.k, *(trained.K * i // (SOME - 1) for i in range(SOME))})


def play(
    trained: Playable, k: int, options: EvaluateOptions, camera: Camera | None
) -> tuple[Evaluation, Outcomes]:
    """Play episodes on one context, film the first one, and keep outcomes for a picture."""
    outcomes: list[list[NDArray[Any]]] = [[] for _ in range(options.episodes)]

    def record(episode: int, outcome: NDArray[Any]) -> None:
        if options.picture is not None:
            outcomes[episode].append(outcome)
        if camera is not None and episode == 0:
            camera.take(k, outcome)

    result = trained.evaluate(k, options.episodes, options.seed, record)
    return result, [np.array(steps) for steps in outcomes]


def draw(trained: Playable, outcomes: dict[int, Outcomes], path: Path) -> None:
    """Draw all episodes, a panel per context."""
    panels = [
        (panel_title(trained, k), trained.contexts[k], episodes) for k, episodes in outcomes.items()
    ]
    with styled():
        figure = episodes_figure(panels, trained.env.draw)
        try:
            save_picture(path, figure)
        except (OSError, RollinError):
            raise
        except Exception as error:  # what an env's own drawing asks of Matplotlib shows only here
            raise foreign("The picture cannot be drawn:", error) from error


def panel_title(trained: Playable, k: int) -> str:
    """Return the title of a context's panel: its index and its value."""
    return f"k = {k}, ω = {context_text(trained, k)}"


def context_text(trained: Playable, k: int) -> str:
    """Return a context's numbers."""
    return ", ".join(f"{x:.3g}" for x in trained.contexts[k])


def table(trained: Playable, results: dict[int, Evaluation]) -> Table:
    """Return a row for each context."""
    titles = ["k", "κ", "context", "return", "± std", "worst", "success", "threshold"]
    titles += [name.replace("_", " ") for name in trained.env.measures]
    rows = plain_table(titles, titles)
    for k, result in results.items():
        rows.add_row(
            f"{k}{' *' if k == trained.k else ''}",
            f"{trained.kappas[k]:.3f}",
            context_text(trained, k),
            f"{result.mean:.2f}",
            f"{np.std(result.returns):.2f}",
            f"{min(result.returns):.2f}",
            f"{result.success:.0%}",
            f"> {trained.thresholds[k]:g}" if trained.thresholds else "–",
            *(f"{value:.3g}" for value in result.measured.values()),
        )
    return rows


def as_json(
    trained: Playable, results: dict[int, Evaluation], options: EvaluateOptions
) -> dict[str, Any]:
    """Return the table as plain values."""
    return {
        "run": str(options.run),
        "step": trained.step,
        "k": trained.k,
        "episodes": options.episodes,
        "seed": options.seed,
        "contexts": [row_of(trained, k, result) for k, result in results.items()],
    }


def row_of(trained: Playable, k: int, result: Evaluation) -> dict[str, Any]:
    """Return episodes on one context as plain values."""
    return {
        "k": k,
        "kappa": trained.kappas[k],
        "context": trained.contexts[k].tolist(),
        "returns": result.returns,
        "return_mean": result.mean,
        "success": result.success,
        "threshold": trained.thresholds[k] if trained.thresholds else None,
        **{f"{name}_mean": value for name, value in result.measured.items()},
    }
