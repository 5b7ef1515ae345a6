"""Batches that are drawn before the environment's step, so that other threads need not wait for it.

Which rows a batch is made of does not depend on what the step will bring, only on the number of
rows. Unless the row to come is among them, the update can begin while the environment is at work.
Numbers and results are those of a batch that is drawn after the step, to the bit.
"""

from rollin.sac.ages import Rows
from rollin.sac.learner import SACLearner, UpdateInfo
from rollin.sac.replay import Replay
from rollin.streams import Streams


class Ahead:
    """Updates of a learner from a replay: `begin` before a row is appended, `update` after it."""

    def __init__(
        self, learner: SACLearner, replay: Replay, streams: Streams, p: float | None
    ) -> None:
        """Draws are from the stream `replay`; p: of geometric sampling, uniform if None."""
        self._learner, self._replay, self._streams, self._p = learner, replay, streams, p
        self._starts_early = learner.starts_early
        self._picked: Rows | None = None
        self._gathered = False

    def begin(self) -> None:
        """Begin the update that the next row will be followed by, if somebody has time for it."""
        if not self._starts_early:
            return
        learner, replay = self._learner, self._replay
        size, stream = len(learner.batch), self._streams["replay"]
        self._picked = replay.draw(size, stream, self._p, coming=1)
        self._gathered = bool(self._picked.max() < replay.total)
        if self._gathered:
            replay.gather(self._picked, learner.batch)
            learner.begin()

    def update(self) -> UpdateInfo:
        """One update, from a batch in which the newest row counts."""
        batch, replay = self._learner.batch, self._replay
        if self._picked is None:
            replay.sample(batch, self._streams["replay"], self._p)
        elif not self._gathered:
            replay.gather(self._picked, batch)
        self._picked = None
        return self._learner.update(batch)
