"""Fill in what pages show of committed records, between their markers.

python -m docs.pages      # or make pages

<!-- begin: NAME -->
…
<!-- end: NAME -->
"""

from collections.abc import Callable, Sequence
from pathlib import Path

from studies import robots_page

from rollin.analysis.sheet import Sheet
from rollin.paper.numbers import numbers
from rollin.report.sheets import filled
from rollin.runs.files import write_atomically

DOCS = Path(__file__).parent
TABLES: dict[str, Callable[[], Sequence[Sheet]]] = {
    "results/paper-numbers.md": lambda: numbers().tables,
    "results/robots.md": robots_page.tables,
}
"""What stands in a page."""


def filled_page(name: str) -> str:
    """A page as its records would have it."""
    return filled((DOCS / name).read_text(), TABLES[name]())


def main() -> None:
    """Fill in all pages."""
    for name in TABLES:
        write_atomically(DOCS / name, filled_page(name).encode())


if __name__ == "__main__":
    main()
