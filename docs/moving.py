"""The moving picture of the README: two policies on their way to the last goal of point-umaze.

    rollin train point-umaze --method baseline --goals 24 --seed 30 --out runs/moving/baseline
    rollin train point-umaze --adaptive --goals 24 --seed 30 --out runs/moving/adaptive
    python -m docs.moving runs/moving

plays an episode of each and records it in results/moving; `make pages` draws the film from that.
30 is the first seed of studies/curricula.toml, which chose nothing.
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
from rollin.cli.film import Film
from rollin.curriculum.contexts import polyline
from rollin.deep.evaluate import EVALUATION_SEED
from rollin.envs.maze import RADIUS
from rollin.envs.picture import EDGE, FLOOR, GOAL, POINT, STONE, Picture
from rollin.envs.umaze import PATH, UMAZE
from rollin.regular import read_bounded
from rollin.report.looks import BASELINE, ROLLIN
from rollin.report.style import INK, PAPER
from rollin.runs.directory import RunDirectory
from rollin.runs.engines import engine
from rollin.runs.engines.rollin_record import SOLVED
from rollin.runs.files import make_directory, write_atomically
from rollin.runs.records import write_records

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "results" / "moving"
WIDTH, HEIGHT, PANEL, EDGES = 800, 492, 384, 8  # pixels
FINER = 2  # drawn so much larger, then scaled down: smooth edges
STEPS = 100  # that are shown: nobody moves any more
FRAMES_PER_SECOND, STILL = 20, 30  # a step a frame; frames that stay at the end
TRAIL, HOLLOW = "#a78bfa", "#a1a1aa"


class Panel(NamedTuple):
    """One of the two films: a run's name below results/moving, and what is said above it."""

    run: str
    title: str
    below: str
    colour: str


PANELS = (
    Panel("baseline", "Curriculum by hand", "12 steps, R = 80, no roll-in", BASELINE),
    Panel("adaptive", "rollin train --adaptive", "steps and thresholds found, β = 0.1", ROLLIN),
)


class Played(NamedTuple):
    """What a run left: places (T + 1, 2) of its episode, share of success on each of the goals."""

    places: NDArray[np.float64]
    shares: NDArray[np.float64]


def play(run: Path) -> Played:
    """A deterministic episode under the last context, and the goals that the run has solved."""
    directory = RunDirectory.open(run)
    trained = engine(directory.config.engine).playable(directory, None)
    places: list[Any] = []
    try:
        trained.evaluate(trained.K, 1, EVALUATION_SEED, lambda _, place: places.append(place))
    finally:
        trained.env.close()
    return Played(np.array(places), np.array(directory.result()["goals"]))


def record(runs: Path) -> None:
    """Write results/moving from the two runs."""
    make_directory(RESULTS)
    found = [
        replace(collect([runs / panel.run]).records[0], family="moving", labels={"run": panel.run})
        for panel in PANELS
    ]
    files = write_records(found)
    lines = {"ways.csv": [("run", "step", "x", "y")], "goals.csv": [("run", "goal", "share")]}
    for panel in PANELS:
        played = play(runs / panel.run)
        for step, (x, y) in enumerate(played.places):
            lines["ways.csv"].append((panel.run, str(step), f"{x:.4f}", f"{y:.4f}"))
        for number, share in enumerate(played.shares, 1):
            lines["goals.csv"].append((panel.run, str(number), f"{share:.6g}"))
    files |= {
        name: "".join(",".join(row) + "\n" for row in rows).encode() for name, rows in lines.items()
    }
    for name, data in files.items():
        write_atomically(RESULTS / name, data)


def recorded(run: str) -> Played:
    """What results/moving says of a run."""

    def rows(name: str) -> list[dict[str, str]]:
        lines = read_bounded(RESULTS / name).decode().splitlines()
        return [row for row in csv.DictReader(lines) if row["run"] == run]

    ways = [(float(row["x"]), float(row["y"])) for row in rows("ways.csv")]
    return Played(np.array(ways), np.array([float(row["share"]) for row in rows("goals.csv")]))


def maze_at(played: Played, step: int) -> Image.Image:
    """The maze from above at a step: goals that are solved, the way so far, the point."""
    picture = Picture(*UMAZE.bounds, size=FINER * PANEL)
    picture.block(*UMAZE.bounds, FLOOR)
    for block in UMAZE.blocks:
        picture.block(*block, STONE)
    picture.disc(PATH[-1], RADIUS, GOAL, EDGE)
    way = polyline(PATH)
    for number, share in enumerate(played.shares, 1):
        place = np.ravel(way(number / len(played.shares)))
        picture.disc(place, 0.16, EDGE if share >= SOLVED else HOLLOW)
        if share < SOLVED:
            picture.disc(place, 0.1, FLOOR)
    for before in played.places[:step]:
        picture.disc(before, 0.07, TRAIL)
    picture.disc(played.places[step], 0.28, POINT)
    large = Image.fromarray(picture.array())
    return large.resize((PANEL, PANEL), Image.Resampling.LANCZOS)


def letters(size: int, *, bold: bool = False) -> ImageFont.FreeTypeFont:
    """Those of our figures."""
    name = "DejaVuSans-Bold.ttf" if bold else "DejaVuSans.ttf"
    return ImageFont.truetype(Path(mpl.get_data_path()) / "fonts" / "ttf" / name, size)


def frame(ways: list[Played], step: int) -> NDArray[np.uint8]:
    """Both mazes side by side, with what is to be seen in words."""
    image = Image.new("RGB", (WIDTH, HEIGHT), PAPER)
    draw = ImageDraw.Draw(image)
    for number, (panel, played) in enumerate(zip(PANELS, ways, strict=True)):
        left = EDGES + number * (WIDTH - PANEL - 2 * EDGES)
        draw.text((left, 8), panel.title, INK, letters(18, bold=True))
        draw.text((left, 34), panel.below, INK, letters(15))
        image.paste(maze_at(played, step), (left, 62))
        solved = f"{int((played.shares >= SOLVED).sum())} of {len(played.shares)} goals solved"
        draw.text((left, 452), solved, panel.colour, letters(18, bold=True))
    right = WIDTH - EDGES
    draw.text((right, 456), f"step {step}", INK, letters(15), anchor="ra")
    return np.asarray(image)


def film() -> Film:
    """The episodes of both runs, side by side."""
    ways = [recorded(panel.run) for panel in PANELS]
    taken = Film()
    for step in [*range(STEPS), *[STEPS] * STILL]:
        taken.add(frame(ways, step))
    return taken


def main() -> None:
    """Record the runs below a directory."""
    parser = argparse.ArgumentParser(description="Record the two runs of the moving picture.")
    parser.add_argument("runs", type=Path)
    record(parser.parse_args().runs)


if __name__ == "__main__":
    main()
