"""A number as the paper prints it."""

from typing import NamedTuple


class Published(NamedTuple):
    """A published mean ± error, digits as printed."""

    printed_mean: str
    printed_error: str

    @property
    def mean(self) -> float:
        """The mean as a number."""
        return float(self.printed_mean)

    @property
    def error(self) -> float:
        """What stands behind the ±."""
        return float(self.printed_error)

    def __str__(self) -> str:
        return f"{self.printed_mean} ± {self.printed_error}"


def published(text: str) -> Published:
    """From `mean ± error`."""
    mean, error = text.split("±")
    return Published(mean.strip(), error.strip())


def rows(*lines: str) -> list[list[str]]:
    """The cells of a table, without blanks in them."""
    return [line.split() for line in lines]
