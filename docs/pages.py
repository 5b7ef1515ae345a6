"""Tables and pictures of the documentation, from committed records: the one place that makes them.

python -m docs.pages      # or make pages

A table stands between the markers of its name, a picture in docs/images. A picture carries the
digest of the records that it was drawn from, so that a test can tell when it is stale.

<!-- begin: NAME -->
…
<!-- end: NAME -->
"""

import hashlib
import io
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from matplotlib.figure import Figure
from PIL import Image, PngImagePlugin

from benchmarks import cost
from docs import moving
from rollin.cli.film import Film, gif_of
from rollin.paper.numbers import numbers
from rollin.report.maps import small_tasks
from rollin.report.sheets import filled, texts_of
from rollin.report.style import styled, to_png
from rollin.runs.files import write_atomically
from studies import (
    ablations_page,
    antmaze_page,
    complexity_page,
    curricula_checks_page,
    curricula_page,
    foreign_page,
    four_rooms_gamma_page,
    four_rooms_page,
    point_umaze_page,
    precision_page,
    robots_page,
    sac_hopper,
    tabular_gap_page,
    teachers_page,
    visited_page,
)

DOCS = Path(__file__).parent
ROOT = DOCS.parent
IMAGES = DOCS / "images"
DIGEST = "records"  # the entry of a picture that names what it was drawn from

TEXTS: dict[str, Callable[[], Mapping[str, str]]] = {
    "README.md": lambda: {
        "rooms-headline": four_rooms_page.readme_table(),
        "umaze-headline": point_umaze_page.readme_table(),
        "curricula-headline": curricula_page.readme_table(),
    },
    "docs/choices.md": lambda: {"choices": four_rooms_page.choices_table()},
    "docs/performance.md": precision_page.texts,
    "docs/results/antmaze.md": lambda: texts_of(antmaze_page.tables()),
    "docs/results/agents.md": lambda: {**ablations_page.texts(), **foreign_page.texts()},
    "docs/results/complexity.md": complexity_page.texts,
    "docs/results/cost.md": cost.texts,
    "docs/results/curricula.md": lambda: {
        **curricula_page.texts(),
        **curricula_checks_page.texts(),
        **teachers_page.texts(),
        **visited_page.texts(),
        **tabular_gap_page.texts(),
    },
    "docs/results/four-rooms.md": lambda: {
        **four_rooms_page.texts(),
        **four_rooms_gamma_page.texts(),
    },
    "docs/results/paper-numbers.md": lambda: texts_of(numbers().tables),
    "docs/results/point-umaze.md": point_umaze_page.texts,
    "docs/results/robots.md": lambda: texts_of(robots_page.tables()),
}
"""What stands in a page, by the name of its markers."""


@dataclass(frozen=True)
class Drawn:
    """A picture: how it is drawn, and the records below results/ that it shows.

    suffix: .gif if what is drawn is a film.
    """

    draw: Callable[[], Figure | Film]
    records: Sequence[str]
    suffix: str = ".png"

    def digest(self) -> str:
        """Of the records as they are now."""
        found = hashlib.sha256()
        for name in self.records:
            for path in sorted((ROOT / "results" / name).glob("*.csv")):
                found.update(path.name.encode() + path.read_bytes())
        return found.hexdigest()[:16]


def _drawn(pictures: Mapping[str, Callable[[], Figure]], *records: str) -> dict[str, Drawn]:
    return {name: Drawn(draw, records) for name, draw in pictures.items()}


PICTURES: dict[str, Drawn] = {
    **_drawn(four_rooms_page.PICTURES, "four-rooms"),
    **_drawn(point_umaze_page.PICTURES, "point-umaze"),
    **_drawn({"point-umaze-mechanism": point_umaze_page.draw_mechanism}, "mechanism"),
    **_drawn(ablations_page.PICTURES, "ablations", "point-umaze"),
    **_drawn(curricula_page.PICTURES, "curricula"),
    **_drawn(teachers_page.PICTURES, "teachers"),
    **_drawn(robots_page.PICTURES, "robots"),
    **_drawn(sac_hopper.PICTURES, "sac"),
    **_drawn(complexity_page.PICTURES, "complexity"),
    **_drawn({"small-tasks": small_tasks}),  # no records: the tasks as they are
    "moving": Drawn(moving.film, ["moving"], ".gif"),
}
"""Pictures by name."""
ELSEWHERE = {
    "sac-speed": "by make bench-sac, with its page",
    "scaling": "by make bench-scaling, with its page",
    "learning-speed": "by make bench-learning, with its page",
    "layers": "by docs/layers.py: the packages, not a result",
    "mu": "by rollin report --images of a run whose policy is too large to commit",
    "visitation": "the same",
    "policy-baseline": "the same",
    "policy-rollin": "the same",
    "robots-velocity": "by rollin evaluate --picture of a policy that is not kept",
}
"""Pictures that are not made here, and by what they were."""


def filled_page(name: str) -> str:
    """A page as its records would have it."""
    return filled((ROOT / name).read_text(), page_texts(name))


@cache
def page_texts(name: str) -> Mapping[str, str]:
    """The texts of a page by their markers, made once."""
    return TEXTS[name]()


def picture_path(name: str) -> Path:
    """Where a picture is kept."""
    return IMAGES / f"{name}{PICTURES[name].suffix}"


def picture_bytes(drawn: Drawn) -> bytes:
    """A picture as a file that names its records."""
    with styled():
        made = drawn.draw()
        if isinstance(made, Film):
            return gif_of(made, moving.FRAMES_PER_SECOND, drawn.digest())
        image = Image.open(io.BytesIO(to_png(made)))
    told = PngImagePlugin.PngInfo()
    told.add_text(DIGEST, drawn.digest())
    out = io.BytesIO()
    image.save(out, "PNG", pnginfo=told, optimize=True)
    return out.getvalue()


def recorded_digest(path: Path) -> str | None:
    """What a picture says of the records that it was drawn from."""
    with Image.open(path) as image:
        told = image.info.get(DIGEST) or image.info.get("comment")
        return told.decode() if isinstance(told, bytes) else told


def main() -> None:
    """Fill in all pages, and draw all pictures whose records have changed."""
    for name in TEXTS:
        write_atomically(ROOT / name, filled_page(name).encode())
    for name, drawn in PICTURES.items():
        path = picture_path(name)
        if not path.exists() or recorded_digest(path) != drawn.digest():
            write_atomically(path, picture_bytes(drawn))
            print(f"Drawn anew: {path.relative_to(ROOT)}")


if __name__ == "__main__":
    main()
