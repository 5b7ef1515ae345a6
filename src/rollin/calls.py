"""Calls of an environment's own code: how many there were, and whether one is under way."""


class Calls:
    """Counts where such a call begins and where it ends, so that it is odd inside of one."""

    count = 0

    def __enter__(self) -> None:
        self.count += 1

    def __exit__(self, *about: object) -> None:
        self.count += 1


CALLS = Calls()
