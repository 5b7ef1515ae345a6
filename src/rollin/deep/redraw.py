"""An explorer that is drawn anew until one of them finds the goal.

Some initial networks never touch ω_k after a roll-in, however long they are tried. With `redraw`
a new one is drawn for each roll-in, until one has seen a reward. Ours, not the paper's.
"""

from typing import Any

from rollin.sac.learner import SACLearner
from rollin.sac.selection import Selection


class Redraw:
    """Whether π_exp's last episodes showed ω_k; tries: how many of them count, 0 to do nothing."""

    def __init__(self, tries: int, exp: SACLearner, D_exp: Selection) -> None:
        self.tries, self._exp, self._D_exp = tries, exp, D_exp
        self.shown: list[bool] = []  # by the episodes of this explorer
        self.ever = False  # whether any explorer showed ω_k

    def begin(self) -> None:
        """A roll-in begins: draw a new explorer, unless this one is worth keeping."""
        if not self.tries or not self.shown or any(self.shown[-self.tries :]):
            return
        self._exp.reset()
        self.shown = []
        if not self.ever:
            self._D_exp.clear()  # there is nothing to be learned from it

    def ended(self, shown: bool) -> None:
        """An episode of π_exp is over."""
        self.shown = [*self.shown, shown][-max(self.tries, 1) :]
        self.ever = self.ever or shown

    def restart(self) -> None:
        """A new context."""
        self.shown, self.ever = [], False

    def get_state(self) -> dict[str, Any]:
        """What the last episodes showed."""
        return {"shown": self.shown, "ever": self.ever}

    def set_state(self, state: dict[str, Any]) -> None:
        """Take back what `get_state` gave."""
        self.shown, self.ever = [bool(s) for s in state["shown"]], bool(state["ever"])
