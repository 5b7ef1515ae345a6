"""Generated parts of a page, between `<!-- begin: NAME -->` and `<!-- end: NAME -->`."""

from rollin.errors import RollinError


def parts(text: str, name: str) -> tuple[str, str, str]:
    """What comes before the generated part of a page, the part itself, and what comes after."""
    begin, end = f"<!-- begin: {name} -->\n", f"<!-- end: {name} -->"
    before, found, rest = text.partition(begin)
    part, closed, after = rest.partition(end)
    if not (found and closed):
        raise RollinError(f"The page must have a line {begin.strip()} and, after it, {end}.")
    return before + begin, part, end + after


def filled(text: str, name: str, part: str) -> str:
    """The page with its generated part replaced."""
    before, _, after = parts(text, name)
    return f"{before}{part}\n{after}"
