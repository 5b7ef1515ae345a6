"""Write tables and pictures of the documentation from committed records.

python -m docs.pages      # or make pages

A table is between the markers of its name, a picture in docs/images. A picture holds the digest of
its records, so that a test can find a stale one.

<!-- begin: NAME -->
…
<!-- end: NAME -->
"""

import hashlib
import io
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from matplotlib.figure import Figure
from PIL import Image, PngImagePlugin

from benchmarks import cost
from docs import moving
from rollin.analysis.sheets import filled, texts_of
from rollin.cli.evaluate import Film, gif_of
from rollin.paper.numbers import numbers
from rollin.report.maps import small_tasks
from rollin.report.style import styled, to_png
from rollin.runs.files import write_atomically
from studies import (
    ablations_page,
    antmaze_page,
    complexity_page,
    curricula_page,
    foreign,
    four_rooms_gamma_page,
    four_rooms_page,
    point_umaze_page,
    precision_page,
    robots_page,
    sac_hopper,
    standard_page,
    tabular_gap,
    teachers_page,
)

DOCS = Path(__file__).parent
ROOT = DOCS.parent
IMAGES = DOCS / "images"
DIGEST = "records"  # the entry of a picture with the digest of its records

TEXTS: Sequence[Callable[[], Mapping[str, str]]] = (
    four_rooms_page.texts,
    four_rooms_gamma_page.texts,
    point_umaze_page.texts,
    ablations_page.texts,
    foreign.texts,
    curricula_page.texts,
    teachers_page.texts,
    tabular_gap.texts,
    complexity_page.texts,
    precision_page.texts,
    cost.texts,
    standard_page.texts,
    lambda: texts_of(antmaze_page.tables()),
    lambda: texts_of(robots_page.tables()),
    lambda: texts_of(numbers().tables),
)
"""Makers of tables, by the name of their markers."""
MARKER = re.compile(r"^<!-- begin: (.+) -->$", re.MULTILINE)


@dataclass(frozen=True)
class Drawn:
    """A picture: its maker and its records below results/; suffix: .gif of a film."""

    draw: Callable[[], Figure | Film]
    records: Sequence[str]
    suffix: str = ".png"

    def digest(self) -> str:
        """Return the digest of the current records."""
        digest = hashlib.sha256()
        for name in self.records:
            for path in sorted((ROOT / "results" / name).glob("*.csv")):
                digest.update(path.name.encode() + path.read_bytes())
        return digest.hexdigest()[:16]


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
    **_drawn(standard_page.PICTURES, "standard"),
    **_drawn(antmaze_page.PICTURES, "antmaze"),
    **_drawn({"small-tasks": small_tasks}),  # no records: the tasks as they are
    "moving": Drawn(moving.film, ["moving"], ".gif"),
}
"""Pictures by name."""
ELSEWHERE = {
    "how-it-works": "by hand: a drawing",
    "sac-speed": "by make bench-sac, with its page",
    "scaling": "by make bench-scaling, with its page",
    "learning-speed": "by make bench-learning, with its page",
    "layers": "by docs/layers.py: the packages, not a result",
    "mu": "by rollin report --images of a run whose policy is too large to commit",
    "visitation": "the same",
    "policy-baseline": "the same",
    "policy-rollin": "the same",
    "robots-velocity": "by rollin evaluate policies/hopper --contexts all --episodes 3 --picture …",
}
"""Pictures that other commands make."""


@cache
def texts() -> Mapping[str, str]:
    """Return every table by the name of its markers."""
    return {name: text for make in TEXTS for name, text in make().items()}


def marked_pages() -> dict[Path, list[str]]:
    """Return the pages with tables of records, with the names of their markers."""
    places = (ROOT, DOCS, DOCS / "results", *(ROOT / "results").iterdir())
    pages = [page for place in places for page in sorted(place.glob("*.md"))]
    names = {page: MARKER.findall(page.read_text()) for page in pages}
    return {page: found for page, found in names.items() if found}


def filled_page(page: Path, names: Sequence[str]) -> str:
    """Return a page with the tables of its records."""
    return filled(page.read_text(), {name: texts()[name] for name in names})


def picture_path(name: str) -> Path:
    """Return the path of a picture."""
    return IMAGES / f"{name}{PICTURES[name].suffix}"


def picture_bytes(drawn: Drawn) -> bytes:
    """Return a picture as a file with the digest of its records."""
    with styled():
        made = drawn.draw()
        if isinstance(made, Film):
            return gif_of(made, moving.FRAMES_PER_SECOND, drawn.digest())
        image = Image.open(io.BytesIO(to_png(made)))
    info = PngImagePlugin.PngInfo()
    info.add_text(DIGEST, drawn.digest())
    out = io.BytesIO()
    image.save(out, "PNG", pnginfo=info, optimize=True)
    return out.getvalue()


def recorded_digest(path: Path) -> str | None:
    """Return the digest in a picture of the records that it was drawn from."""
    with Image.open(path) as image:
        digest = image.info.get(DIGEST) or image.info.get("comment")
        return digest.decode() if isinstance(digest, bytes) else digest


def main() -> None:
    """Fill in all pages, and draw all pictures whose records have changed."""
    for page, names in marked_pages().items():
        write_atomically(page, filled_page(page, names).encode())
    for name, drawn in PICTURES.items():
        path = picture_path(name)
        if not path.exists() or recorded_digest(path) != drawn.digest():
            write_atomically(path, picture_bytes(drawn))
            print(f"Redrawn: {path.relative_to(ROOT)}")


if __name__ == "__main__":
    main()
