"""The one exception that users meet: a sentence that says what to do."""


class RollinError(Exception):
    """Input that cannot be used: names what was expected, what came and how to fix it.

    The command line prints the sentence and exits with code 2.
    """


def reason(error: OSError) -> str:
    """The system's words for an error, without the path."""
    return (error.strerror or str(error)).lower()


def told(error: BaseException) -> str:
    """Kind and text of an error of somebody else's code, in one line, to stand in a sentence."""
    if isinstance(error, SystemExit):  # which would end the program, and may look like success
        return f"it called sys.exit({error.code!r})"
    text = " ".join(str(error).split()).rstrip(".")
    return f"{type(error).__name__}: {text}" if text else type(error).__name__
