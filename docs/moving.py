r"""The moving picture of the README: two policies run to the final goal of point-umaze.

    rollin train point-umaze --adaptive --method scratch --goals 24 --seed 30 \
        --out runs/moving/scratch
    rollin train point-umaze --adaptive --method baseline --goals 24 --seed 30 \
        --out runs/moving/adaptive
    python -m docs.moving runs/moving

plays an episode of each and records it in results/moving; `make pages` draws the film from that.
30 is the first held-out seed of studies/curricula.toml.
"""

import argparse
import csv
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import matplotlib as mpl
import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageFont

from rollin.analysis.collect import collect
from rollin.cli.evaluate import Film
from rollin.curriculum.contexts import polyline
from rollin.deep.evaluate import EVALUATION_SEED
from rollin.envs.point_umaze import EDGE, FLOOR, GOAL, PATH, POINT, RADIUS, STONE, UMAZE, Canvas
from rollin.report.style import ADAPTIVE, INK, PAPER, SCRATCH
from rollin.runs.directory import RunDirectory
from rollin.runs.engines import engine
from rollin.runs.engines.rollin_options import SOLVED
from rollin.runs.engines.rollin_run import GOALS
from rollin.runs.files import make_directory, write_atomically
from rollin.runs.records import write_records
from rollin.untrusted import read_bounded

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "results" / "moving"
WIDTH = 800  # pixels, as the next three
HEIGHT = 492
PANEL = 384
EDGES = 8
FINER = 2  # drawn this much larger, then scaled down: smooth edges
STEPS = 100  # of the film: both points then stand still
FRAMES_PER_SECOND = 20  # a step a frame
STILL = 30  # frames of the last step
TRAIL = "#a78bfa"
HOLLOW = "#a1a1aa"


class Panel(NamedTuple):
    """One of the two films: a run's name below results/moving, title, subtitle and colour."""

    run: str
    title: str
    below: str
    colour: str


PANELS = (
    Panel("scratch", "The final goal only", "300,000 steps", SCRATCH),
    Panel("adaptive", "An adaptive curriculum", "300,000 steps", ADAPTIVE),
)


class Episode(NamedTuple):
    """Places (T + 1, 2) of a run's episode, and the run's share of success on each goal."""

    places: NDArray[np.float64]
    shares: NDArray[np.float64]


def _shares(run: RunDirectory) -> NDArray[np.float64]:
    """Return of each goal the share of episodes that ended there at the end."""
    columns = run.columns(GOALS, {}, None)
    return np.array([c[-1] for name, c in columns.items() if name.startswith("success_")])


def play(run: Path) -> Episode:
    """Play a deterministic episode under the final context; read the goals that the run solved."""
    directory = RunDirectory.open(run)
    trained = engine(directory.config.engine).playable(directory, None)
    places: list[Any] = []
    try:
        trained.evaluate(trained.K, 1, EVALUATION_SEED, lambda _, place: places.append(place))
    finally:
        trained.env.close()
    return Episode(np.array(places), _shares(directory))


def record(runs: Path) -> None:
    """Write results/moving from the two runs."""
    make_directory(RESULTS)
    records = [
        replace(collect([runs / panel.run]).records[0], family="moving", labels={"run": panel.run})
        for panel in PANELS
    ]
    files = write_records(records)
    lines = {"ways.csv": [("run", "step", "x", "y")], "goals.csv": [("run", "goal", "share")]}
    for panel in PANELS:
        episode = play(runs / panel.run)
        for step, (x, y) in enumerate(episode.places):
            lines["ways.csv"].append((panel.run, str(step), f"{x:.4f}", f"{y:.4f}"))
        for number, share in enumerate(episode.shares, 1):
            lines["goals.csv"].append((panel.run, str(number), f"{share:.6g}"))
    files |= {
        name: "".join(",".join(row) + "\n" for row in rows).encode() for name, rows in lines.items()
    }
    for name, data in files.items():
        write_atomically(RESULTS / name, data)


def recorded(run: str) -> Episode:
    """Return the recorded episode of a run."""

    def rows(name: str) -> list[dict[str, str]]:
        lines = read_bounded(RESULTS / name).decode().splitlines()
        return [row for row in csv.DictReader(lines) if row["run"] == run]

    places = [(float(row["x"]), float(row["y"])) for row in rows("ways.csv")]
    return Episode(np.array(places), np.array([float(row["share"]) for row in rows("goals.csv")]))


def maze_at(episode: Episode, step: int) -> Image.Image:
    """Draw the maze from above at a step: solved goals, the path so far, the point."""
    picture = Canvas(*UMAZE.bounds, size=FINER * PANEL)
    picture.block(*UMAZE.bounds, FLOOR)
    for block in UMAZE.blocks:
        picture.block(*block, STONE)
    picture.disc(PATH[-1], RADIUS, GOAL, EDGE)
    path = polyline(PATH)
    for number, share in enumerate(episode.shares, 1):
        place = np.ravel(path(number / len(episode.shares)))
        picture.disc(place, 0.16, EDGE if share >= SOLVED else HOLLOW)
        if share < SOLVED:
            picture.disc(place, 0.1, FLOOR)
    for before in episode.places[:step]:
        picture.disc(before, 0.07, TRAIL)
    picture.disc(episode.places[step], 0.28, POINT)
    large = Image.fromarray(picture.array())
    return large.resize((PANEL, PANEL), Image.Resampling.LANCZOS)


def letters(size: int, *, bold: bool = False) -> ImageFont.FreeTypeFont:
    """Return the font of our figures."""
    name = "DejaVuSans-Bold.ttf" if bold else "DejaVuSans.ttf"
    return ImageFont.truetype(Path(mpl.get_data_path()) / "fonts" / "ttf" / name, size)


def frame(episodes: list[Episode], step: int) -> NDArray[np.uint8]:
    """Draw both mazes side by side, with captions."""
    image = Image.new("RGB", (WIDTH, HEIGHT), PAPER)
    draw = ImageDraw.Draw(image)
    for number, (panel, episode) in enumerate(zip(PANELS, episodes, strict=True)):
        left = EDGES + number * (WIDTH - PANEL - 2 * EDGES)
        draw.text((left, 8), panel.title, INK, letters(18, bold=True))
        draw.text((left, 34), panel.below, INK, letters(15))
        image.paste(maze_at(episode, step), (left, 62))
        solved = f"{int((episode.shares >= SOLVED).sum())} of {len(episode.shares)} goals solved"
        draw.text((left, 452), solved, panel.colour, letters(18, bold=True))
    right = WIDTH - EDGES
    draw.text((right, 456), f"step {step}", INK, letters(15), anchor="ra")
    return np.asarray(image)


def film() -> Film:
    """Draw the episodes of both runs, side by side."""
    episodes = [recorded(panel.run) for panel in PANELS]
    result = Film()
    for step in [*range(STEPS), *[STEPS] * STILL]:
        result.add(frame(episodes, step))
    return result


def main() -> None:
    """Record the runs below a directory."""
    parser = argparse.ArgumentParser(description="Record the two runs of the moving picture.")
    parser.add_argument("runs", type=Path)
    record(parser.parse_args().runs)


if __name__ == "__main__":
    main()
