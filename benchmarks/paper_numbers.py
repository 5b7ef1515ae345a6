"""Put the tables of `rollin reproduce paper-numbers` into their page.

python -m benchmarks.paper_numbers
"""

from pathlib import Path

from rollin.paper.numbers import numbers
from rollin.report.sheets import filled

PAGE = Path(__file__).parents[1] / "docs" / "results" / "paper-numbers.md"


if __name__ == "__main__":
    PAGE.write_text(filled(PAGE.read_text(), numbers().tables))
