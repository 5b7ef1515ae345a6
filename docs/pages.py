"""Fill in what pages show of committed records, between their markers.

python -m docs.pages      # or make pages

<!-- begin: NAME -->
…
<!-- end: NAME -->
"""

from collections.abc import Callable, Mapping
from pathlib import Path

from studies import complexity_page, four_rooms_gamma_page, robots_page

from rollin.paper.numbers import numbers
from rollin.report.sheets import filled, texts_of
from rollin.runs.files import write_atomically

DOCS = Path(__file__).parent
TEXTS: dict[str, Callable[[], Mapping[str, str]]] = {
    "results/complexity.md": complexity_page.texts,
    "results/four-rooms.md": four_rooms_gamma_page.texts,
    "results/paper-numbers.md": lambda: texts_of(numbers().tables),
    "results/robots.md": lambda: texts_of(robots_page.tables()),
}
"""What stands in a page, by the name of its markers."""


def filled_page(name: str) -> str:
    """A page as its records would have it."""
    return filled((DOCS / name).read_text(), TEXTS[name]())


def main() -> None:
    """Fill in all pages."""
    for name in TEXTS:
        write_atomically(DOCS / name, filled_page(name).encode())


if __name__ == "__main__":
    main()
