"""Replay: packed float32 rows in memory, with an append-only file behind them if wanted.

A row is action, observation, context, next observation, reward, flag, outcome. The flag says how
the episode continued, so that the file alone shows where episodes end. Rows are numbered from 0 for
the whole run; the newest `capacity` of them are held. Drawing costs the same at any fill.
"""

import json
import os
import zlib
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.random import Generator
from numpy.typing import ArrayLike

from rollin.checks import at_least, instance
from rollin.errors import RollinError, reason, short_repr
from rollin.sac.cpu import rng
from rollin.sac.cpu.rng import Rows, draw_ages, source
from rollin.sac.learner import Float, SACLearner, UpdateInfo
from rollin.streams import Streams
from rollin.untrusted import LARGEST_REPLAY, check_size

TERMINATED, GOES_ON, TRUNCATED = 0.0, 1.0, 2.0  # flags; a row bootstraps unless TERMINATED
HEADER = 256  # bytes of JSON before the rows of a file
WAITING_ROWS = 4096  # rows that wait in memory at the most before they go to the file

_FLOAT32 = np.dtype(np.float32)
_NOTHING = np.zeros(0, np.float32)  # a part that a layout does not have


@dataclass(frozen=True)
class RowLayout:
    """Sizes of the parts of a row.

    >>> import rollin
    >>> layout = rollin.RowLayout(observation=4, action=2, context=2, outcome=2)
    >>> layout.width, layout.batch_width
    (16, 16)
    """

    observation: int
    action: int
    context: int = 0
    outcome: int = 0

    def __post_init__(self) -> None:
        for name, least in (("observation", 1), ("action", 1), ("context", 0), ("outcome", 0)):
            at_least(least, f"{name} size", getattr(self, name))

    @property
    def width(self) -> int:
        """Numbers in a row."""
        return self.action + 2 * self.observation + self.context + 2 + self.outcome

    @property
    def batch_width(self) -> int:
        """Numbers in a row of a batch: there the context follows both observations."""
        return self.action + 2 * (self.observation + self.context) + 2


class Replay:
    """Transitions of one agent.

    >>> import numpy as np
    >>> import rollin
    >>> replay = rollin.Replay(rollin.RowLayout(observation=1, action=1), capacity=4)
    >>> for t in range(6):
    ...     replay.append([t], [0.0], 1.0, [t + 1], terminated=t == 5, truncated=False)
    >>> len(replay), replay.total
    (4, 6)
    >>> picked = replay.draw(3, np.random.default_rng(0))
    >>> batch = replay.gather(picked, np.empty((3, 5), np.float32))
    >>> bool((batch[:, 2] == batch[:, 1] + 1).all())  # action, observation, next, reward, mask
    True
    """

    def __init__(self, layout: RowLayout, capacity: int, path: Path | None = None) -> None:
        """Allocate memory for `capacity` rows; with a path, every row also goes to that file."""
        self.layout = instance("layout", layout, RowLayout, "give the sizes of a row to it")
        self.capacity = at_least(1, "capacity", capacity)
        self.path = path
        self.total = 0  # rows ever appended
        self._episode = 0  # first row of the episode under way
        self._filed = 0  # rows that are in the file
        self._crc: int | None = 0  # of those rows; None where one was written a second time
        try:
            self.rows: Float = np.empty((capacity, layout.width), np.float32)
            # rows from each one to the last of its episode, for relabelling
            self._left = np.empty(capacity if layout.outcome else 0, np.int32)
        except (MemoryError, OverflowError, ValueError) as error:
            gigabytes = capacity * layout.width * 4 / 1e9
            raise RollinError(
                f"A replay of {capacity:,} rows needs {gigabytes:.1f} GB, which is not available: "
                "choose a smaller capacity."
            ) from error
        self._batch_width = layout.batch_width
        self._sizes = np.array(
            [layout.action, layout.observation, layout.context, layout.outcome], np.int64
        )

    def __repr__(self) -> str:
        return short_repr(self, rows=len(self), capacity=self.capacity)

    def __len__(self) -> int:
        return min(self.total, self.capacity)

    @property
    def bytes(self) -> int:
        """Memory that a full replay takes."""
        return self.rows.nbytes + self._left.nbytes

    def append(
        self,
        observation: ArrayLike,
        action: ArrayLike,
        reward: float,
        next_observation: ArrayLike,
        *,
        terminated: bool,
        truncated: bool,
        context: ArrayLike | None = None,
        outcome: ArrayLike | None = None,
        recorded: bool = True,
    ) -> None:
        """Add one transition; an error leaves the replay as it was.

        recorded: if not, the transition is checked as any other and not added.
        """
        if self.path is not None and self.total - self._filed >= min(WAITING_ROWS, self.capacity):
            self._write()
        flag = TERMINATED if terminated else TRUNCATED if truncated else GOES_ON
        try:
            reward = float(reward)
        except (TypeError, ValueError) as error:
            raise RollinError(
                f"Step {self.total + 1}: reward must be a real number, got {reward!r}."
            ) from error
        layout = self.layout
        parts = (
            self._vector("observation", observation, layout.observation),
            self._vector("action", action, layout.action),
            self._vector("context", context, layout.context),
            self._vector("next observation", next_observation, layout.observation),
            self._vector("outcome", outcome, layout.outcome),
        )
        slot = self.total % self.capacity if recorded else rng.NOWHERE
        culprit = rng.insert(self.rows, slot, *parts, reward, flag)
        if culprit >= 0:
            raise self._bad_number(culprit, parts, reward)
        if not recorded:
            return
        self.total += 1
        if flag != GOES_ON:
            self._end_episode()

    def end_episode(self) -> None:
        """Mark the last row's episode as ended, where a loop broke it off."""
        if self._episode < self.total:
            self.rows[(self.total - 1) % self.capacity, self._flag] = TRUNCATED
            if self._filed == self.total:
                self._filed = self.total - 1
                self._crc = None  # that row goes to the file again
            self._end_episode()

    def draw(
        self, size: int, generator: Generator, p: float | None = None, *, coming: int = 0
    ) -> Rows:
        """Return numbers of `size` random rows: uniform, or with age ~ Geom(p), truncated.

        coming: rows that will be appended before these are gathered, and that count already.
        """
        total = self.total + coming
        held = min(total, self.capacity)
        if size > held > 0:
            raise RollinError(
                f"The replay holds {held} transitions, fewer than a batch of {size}: collect "
                "more before the first update, or choose a smaller batch."
            )
        return total - 1 - draw_ages(size, held, generator, p)

    def gather(self, picked: Rows, out: Float) -> Float:
        """Write the batch of these rows, as a learner takes it, into `out`, and return it."""
        self._check_batch(len(picked), out)
        rng.gather(self.rows, picked, self._sizes, out)
        return out

    def _check_batch(self, size: int, out: Float) -> None:
        expected = (size, self._batch_width)
        if out.shape != expected or (out.dtype is not _FLOAT32 and out.dtype != _FLOAT32):
            raise RollinError(
                f"A batch of {size} rows needs a float32 array of shape {expected}, "
                f"got {out.dtype} of shape {out.shape}."
            )

    def sample(self, out: Float, generator: Generator, p: float | None = None) -> Float:
        """Fill a batch with random rows, as `draw` and `gather` do; at once if p is None."""
        where = source(generator) if p is None else None
        held = min(self.total, self.capacity)
        size = len(out)
        if where is None or held < 2 or not size <= held < 2**32:
            return self.gather(self.draw(size, generator, p), out)
        self._check_batch(size, out)
        rng.sample(self.rows, self._sizes, out, *where, held, self.total)
        return out

    def outcomes(self, picked: Rows) -> Float:
        """Return the outcomes of these rows: of the states that they lead to."""
        return self.rows[picked % self.capacity, self.layout.width - self.layout.outcome :]

    def rows_left(self, picked: Rows) -> Rows:
        """Return how many rows of the same episode follow each of these so far."""
        if not self.layout.outcome:
            raise RollinError(
                "This replay keeps no outcomes: give its layout an outcome size to relabel."
            )
        under_way = self.total - 1 - picked
        return np.where(picked >= self._episode, under_way, self._left[picked % self.capacity])

    # -------------------------------------------------------------- file and state

    def flush(self) -> None:
        """Write all rows to the file and the file to the disk, so that a checkpoint may count."""
        if self.path is not None:
            self._write(sync=True)

    def discard(self) -> None:
        """Delete the file, when nothing will be resumed from it."""
        if self.path is not None:
            self.path.unlink(missing_ok=True)

    def get_state(self) -> dict[str, Any]:
        """Return counts; and the rows themselves where there is no file to find them in."""
        self.flush()
        state: dict[str, Any] = {"total": self.total, "episode": self._episode, "crc": self._crc}
        if self.path is None:
            state["rows"] = self.rows[: len(self)].copy()
        return state

    def set_state(self, state: dict[str, Any]) -> None:
        """Restore a state; a file is cut back to the rows that the state counts."""
        total, episode = int(state["total"]), int(state["episode"])
        held = min(total, self.capacity)
        if self.path is None:
            rows = np.asarray(state["rows"])
            if rows.shape != (held, self.layout.width):
                raise RollinError(
                    f"The replay's rows must have shape {(held, self.layout.width)}, "
                    f"got {rows.shape}: the state belongs to another replay."
                )
            self.rows[:held] = rows
        else:
            self._read(self.path, total, state.get("crc"))
        self._crc = state.get("crc")
        self.total = total
        self._episode = episode
        self._filed = total
        if self.layout.outcome:
            self._count_rows_left()

    def _write(self, *, sync: bool = False) -> None:
        assert self.path is not None
        try:
            new = self._filed == 0
            with self.path.open("wb" if new else "r+b") as file:
                if new:
                    file.write(_header(self.layout))
                file.seek(HEADER + self._filed * self.layout.width * 4)
                file.truncate()  # what a failed write has left
                numbers = np.arange(self._filed, self.total)
                data = self.rows[numbers % self.capacity].tobytes()
                file.write(data)
                file.flush()
                if sync:
                    os.fsync(file.fileno())
        except OSError as error:
            raise RollinError(f"{self.path} could not be written: {reason(error)}.") from error
        self._filed = self.total
        self._crc = None if self._crc is None else zlib.crc32(data, self._crc)

    def _read(self, path: Path, total: int, crc: int | None) -> None:
        """Read the newest rows of a file that holds at least `total`; cut later ones off."""
        row = self.layout.width * 4
        held = min(total, self.capacity)
        try:
            with path.open("r+b") as file:
                header = file.read(HEADER)
                expected = _header(self.layout)
                if header != expected:
                    actual = header.decode(errors="replace").strip()
                    raise RollinError(
                        f"{path} holds other rows than expected ({actual} there, "
                        f"{expected.decode().strip()} expected): it belongs to another run."
                    )
                whole = file.seek(0, os.SEEK_END)
                check_size(path, whole, LARGEST_REPLAY)
                size = (whole - HEADER) // row
                if size < total:
                    raise RollinError(
                        f"{path} holds {size} rows, its checkpoint counts {total}: the file was "
                        "cut off. Delete the run directory to start over."
                    )
                if crc is not None and _checksum(file, total * row) != crc:
                    raise RollinError(
                        f"{path} does not match its checksum: rows were changed. Delete the run "
                        "directory to start over."
                    )
                file.truncate(HEADER + total * row)
                file.seek(HEADER + (total - held) * row)
                begin = (total - held) % self.capacity
                until_end = min(held, self.capacity - begin)
                for part in (self.rows[begin : begin + until_end], self.rows[: held - until_end]):
                    part[:] = np.fromfile(file, np.float32, part.size).reshape(part.shape)
        except FileNotFoundError as error:
            if total == 0:
                return
            raise RollinError(
                f"{path} is missing, but a checkpoint counts {total} rows."
            ) from error
        except OSError as error:
            raise RollinError(f"{path} could not be read: {reason(error)}.") from error

    # -------------------------------------------------------------- parts of append

    @property
    def _flag(self) -> int:
        return self.layout.width - self.layout.outcome - 1

    def _vector(self, name: str, value: ArrayLike | None, size: int) -> Float:
        if type(value) is np.ndarray and value.dtype is _FLOAT32 and value.shape == (size,):
            return value  # as nearly always
        if value is None and size == 0:
            return _NOTHING
        array = np.asarray(value)
        if array.shape != (size,) or array.dtype.kind not in "fiu":
            raise RollinError(
                f"Step {self.total + 1}: {name} must hold {size} real numbers in one dimension, "
                f"got {array.dtype} of shape {array.shape}."
            )
        return array.astype(np.float32, copy=False)

    def _bad_number(self, culprit: int, parts: tuple[Float, ...], reward: float) -> RollinError:
        """Return the error for a number, as `rng.insert` counts it."""
        names = ("observation", "action", "context", "next observation", "outcome")
        for name, part in zip(names, parts, strict=True):
            if culprit < len(part):
                value = part[culprit]
                where = f"Step {self.total + 1}: {name}[{culprit}] is {value}"
                if name == "action" and np.isfinite(value):
                    return RollinError(
                        f"{where}, outside [-1, 1]: actions are stored as the policy gives them, "
                        "before they are scaled to the environment's box."
                    )
                return RollinError(f"{where}; only finite numbers can be learned from.")
            culprit -= len(part)
        return RollinError(
            f"Step {self.total + 1}: reward is {reward}; only finite numbers can be learned from."
        )

    def _end_episode(self) -> None:
        if self.layout.outcome:
            first = max(self._episode, self.total - self.capacity)
            numbers = np.arange(first, self.total)
            self._left[numbers % self.capacity] = self.total - 1 - numbers
        self._episode = self.total

    def _count_rows_left(self) -> None:
        """Restore `_left` from the flags."""
        numbers = np.arange(max(0, self.total - self.capacity), min(self._episode, self.total))
        slots = numbers % self.capacity
        ends = numbers[self.rows[slots, self._flag] != GOES_ON]
        self._left[slots] = ends[np.searchsorted(ends, numbers)] - numbers


class Selection:
    """Some rows of `replay` as a replay of their own: D_exp is those of D that π_exp collected.

    Only row numbers are kept, in the order in which they were taken, so that rows are stored once
    and a checkpoint needs no second file. Rows that the replay no longer holds are gone.
    """

    def __init__(self, replay: Replay) -> None:
        self.replay = replay
        self._numbers = np.empty(1024, np.int64)
        self._begin, self._end = 0, 0

    def __len__(self) -> int:
        oldest = self.replay.total - self.replay.capacity
        while self._begin < self._end and self._numbers[self._begin] < oldest:
            self._begin += 1
        return self._end - self._begin

    @property
    def rows(self) -> Rows:
        """Their numbers in the replay."""
        return self._numbers[self._end - len(self) : self._end]

    def take_newest(self) -> None:
        """Add the row that was appended last."""
        if self._end == len(self._numbers):
            self._restore(self.rows)
        self._numbers[self._end] = self.replay.total - 1
        self._end += 1

    def clear(self) -> None:
        """Drop all rows; the replay keeps them."""
        self._begin = self._end = 0

    def draw(self, size: int, generator: Generator, p: float | None = None) -> Rows:
        """Return numbers of random rows, by their age within this selection; see `Replay.draw`."""
        ages = draw_ages(size, len(self), generator, p)
        return self._numbers[self._end - 1 - ages]

    def get_state(self) -> dict[str, Any]:
        """Return the row numbers."""
        return {"rows": self.rows.copy()}

    def set_state(self, state: dict[str, Any]) -> None:
        """Restore a state; the replay must be restored already."""
        rows = np.asarray(state["rows"])
        if rows.ndim != 1 or rows.dtype != np.int64 or (np.diff(rows) <= 0).any():
            raise RollinError("The selection's rows must be rising whole numbers: it is damaged.")
        if len(rows) and not 0 <= rows[0] <= rows[-1] < self.replay.total:
            raise RollinError(
                f"The selection names row {rows[-1]} of a replay with {self.replay.total}: "
                "the state belongs to another replay."
            )
        self._restore(rows)

    def _restore(self, rows: Rows) -> None:
        """Hold these rows, with space for as many more."""
        self._numbers = np.concatenate([rows, np.empty(max(len(rows), 1024), np.int64)])
        self._begin, self._end = 0, len(rows)


class Prefetcher:
    """Updates of a learner from a replay: `begin` before a row is appended, `update` after it.

    Which rows a batch is made of depends only on the number of rows. Unless the row to come is
    among them, the other threads can begin the update while the environment is at work. Results are
    those of a batch that is drawn after the step, bit for bit.
    """

    def __init__(
        self, learner: SACLearner, replay: Replay, streams: Streams, p: float | None
    ) -> None:
        """Draw from the stream `replay`; p: of geometric sampling, uniform if None."""
        self._learner = learner
        self._replay = replay
        self._streams = streams
        self._p = p
        self._starts_early = learner.starts_early
        self._picked: Rows | None = None
        self._gathered = False

    def begin(self) -> None:
        """Begin the first update that will follow the next row, if a thread is free."""
        if not self._starts_early:
            return
        learner = self._learner
        replay = self._replay
        size = len(learner.batch)
        stream = self._streams["replay"]
        self._picked = replay.draw(size, stream, self._p, coming=1)
        self._gathered = bool(self._picked.max() < replay.total)
        if self._gathered:
            replay.gather(self._picked, learner.batch)
            learner.begin()

    def update(self) -> UpdateInfo:
        """Make one update, from a batch in which the newest row counts."""
        batch = self._learner.batch
        replay = self._replay
        if self._picked is None:
            replay.sample(batch, self._streams["replay"], self._p)
        elif not self._gathered:
            replay.gather(self._picked, batch)
        self._picked = None
        return self._learner.update(batch)


def _checksum(file: BinaryIO, size: int) -> int:
    """Return the CRC-32 of the first rows of a file, `size` bytes of them."""
    file.seek(HEADER)
    crc = 0
    while size > 0:
        part = file.read(min(size, 1 << 22))
        crc, size = zlib.crc32(part, crc), size - len(part)
    return crc


def _header(layout: RowLayout) -> bytes:
    text = json.dumps({"format": "rollin-replay-1", "dtype": "<f4", **asdict(layout)})
    return text.ljust(HEADER - 1).encode() + b"\n"
