"""What a teacher and a learner tell each other: plans of episodes, and how these ended.

A `Teacher` says under which context an episode is played and whether it rolls in (`Plan`), and is
told its end (`EpisodeEnd`). It knows nothing of agents and environments, so that our engine, the
wrapper `rollin.RollIn` and somebody else's loop ask the same one.
"""

import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any, Literal, Protocol, runtime_checkable
from weakref import WeakValueDictionary

from rollin.curriculum.progress import Progress
from rollin.curriculum.rules import Window
from rollin.errors import RollinError

Purpose = Literal["train", "look"]
"""What an episode is for: to learn from, or only to see how the agent does."""


@dataclass(frozen=True)
class Plan:
    """How to play an episode, or all of them until another plan comes; plain data, picklable.

    ticket: at least 1, never given twice; context: of the env, None for its own; beta: probability
    to roll in; stop: probability that a roll-in stops after a step, 1 - γ of the agent; guide:
    version of the guide that must be loaded, 0 for none; guide_context: ω_{k-1}, which the guide is
    shown; standing: repeated until another plan comes; trace: whether outcomes are wanted; length:
    exact number of steps of a roll-in, instead of `stop`; start: a state to begin in, which the
    env's reset is given as `options["start"]`, None for one of its own.

    >>> import rollin
    >>> plan = rollin.Plan(ticket=1, context=[2.0, 0.0], beta=0.1, guide=1, guide_context=[0, 0])
    >>> plan.standing, plan.purpose
    (True, 'train')
    """

    ticket: int
    context: Any
    beta: float = 0.0
    stop: float = 0.01
    guide: int = 0
    guide_context: Any = None
    standing: bool = True
    purpose: Purpose = "train"
    trace: bool = False
    length: int | None = None
    start: Any = None


@dataclass(frozen=True)
class EpisodeEnd:
    """How an episode of a plan ended.

    serial: which use of the plan, from 1 on; env: index of the environment; hidden: steps of the
    roll-in; cut: steps of a roll-in that ended its episode, after which this one began without;
    prefix_return, total, length: rewards of the roll-in; rewards and steps of the visible part;
    success: at any step, hidden ones too; abandoned: reset from outside before it ended; trace:
    (T, U) outcomes of the visible steps, if the plan asks for them.
    """

    ticket: int
    serial: int
    env: int
    context: Any
    purpose: Purpose
    rolled_in: bool
    hidden: int
    cut: int
    prefix_return: float
    total: float
    length: int
    success: bool
    terminated: bool
    truncated: bool
    abandoned: bool = False
    trace: Any = None

    @property
    def steps(self) -> int:
        """Environment steps that the episode took, hidden ones too."""
        return self.hidden + self.cut + self.length

    def as_info(self) -> dict[str, Any]:
        """A flat dict for `info`; what was not asked for is left out."""
        flat = asdict(self)
        return flat if self.trace is not None else {n: v for n, v in flat.items() if n != "trace"}

    @classmethod
    def of_info(cls, info: Mapping[str, Any]) -> "EpisodeEnd":
        """From such a dict, with NumPy's numbers in it or Python's; masks of vector envs are left.

        >>> from rollin.curriculum.teacher import EpisodeEnd
        >>> end = EpisodeEnd(1, 1, 0, None, "train", False, 0, 0, 0.0, 2.0, 5, True, True, False)
        >>> EpisodeEnd.of_info(end.as_info()) == end
        True
        """
        known = {field.name: field.type for field in fields(cls)}
        given = {name: value for name, value in info.items() if name in known}
        numbers = (int, float, bool)
        return cls(**{n: known[n](v) if known[n] in numbers else v for n, v in given.items()})  # pyright: ignore[reportCallIssue]


@runtime_checkable
class Teacher(Protocol):
    """Says what to learn next. State is JSON-able and holds its random streams, too.

    wants: what it needs beyond ends, of "trace" (outcomes), "rollin-trace" (those of episodes with
    roll-in, too), "look" (episodes without learning) and "start" (an env that takes a start).

    >>> import rollin
    >>> class Alternates:  # two contexts in turn, without roll-in
    ...     wants = frozenset()
    ...     ticket = 0
    ...
    ...     def sample(self, env=0):
    ...         self.ticket += 1
    ...         return rollin.Plan(self.ticket, [float(self.ticket % 2)], standing=False)
    ...
    ...     def update(self, end):
    ...         return None
    ...
    ...     def get_state(self):
    ...         return {"ticket": self.ticket}
    ...
    ...     def set_state(self, state):
    ...         self.ticket = state["ticket"]
    >>> isinstance(Alternates(), rollin.Teacher)
    True
    """

    wants: frozenset[str]

    def sample(self, env: int = 0) -> Plan:
        """A plan for the next episode of an environment."""
        ...

    def update(self, end: EpisodeEnd) -> str | None:
        """Take the end of an episode; returns in words what changed and why, or None."""
        ...

    def get_state(self) -> dict[str, Any]:
        """Everything needed to go on, as JSON-able values."""
        ...

    def set_state(self, state: Mapping[str, Any]) -> None:
        """Take back what `get_state` gave."""
        ...


class Course(Teacher, Protocol):
    """A teacher of contexts on a curriculum, as our engine asks it.

    progress: where it stands; window: the last episodes.
    """

    progress: Progress
    window: Window

    @property
    def threshold(self) -> float:
        """What the window's mean must exceed; NaN where nothing can be said."""
        ...

    @property
    def here(self) -> Any:
        """The context at which it stands."""
        ...

    @property
    def guides(self) -> int:
        """Version of the guide: another number when a new one is to be frozen."""
        ...

    @property
    def previous(self) -> int | None:
        """The last mastered context; None before there is one, or where a plan says whose."""
        ...

    @property
    def adapts(self) -> bool:
        """Whether there is more to keep than progress and window."""
        ...

    def context_of(self, ticket: int) -> int:
        """Index of the context that a ticket was given for."""
        ...

    def shown(self, end: EpisodeEnd) -> bool:
        """Whether an episode saw anything of its context that untrained behaviour would not."""
        ...

    def still_mastered(self) -> str | None:
        """Why the current context is mastered as things stand, or None."""
        ...

    def go_on(self, steps: int) -> None:
        """Go on after these steps where progress and window stand, with no ticket given yet."""
        ...


def check_teacher(teacher: Any) -> Any:
    """Refuse what is no teacher."""
    if isinstance(teacher, Teacher):
        return teacher
    raise RollinError(
        f"A teacher must have sample, update, get_state, set_state and wants, got "
        f"{type(teacher).__name__}: rollin.Walk(curriculum) makes one of a curriculum."
    )


def check_ticket(ticket: int, following: int) -> None:
    """Refuse the end of an episode that a teacher did not plan; following: its next ticket."""
    if not 1 <= ticket < following:
        raise RollinError(
            f"This teacher has given the tickets 1 to {following - 1}, and an episode of "
            f"{ticket} has ended: each teacher must be told of its own plans alone."
        )


# A school hands out a teacher's plans in the process where both live; until it is gone, other
# environments that hold the same teacher (for evaluation, mostly) ask and report nothing.
_SCHOOLS: "WeakValueDictionary[int, Any]" = WeakValueDictionary()


def claim(teacher: Teacher, school: Any) -> None:
    """Let one school alone ask this teacher and report to it."""
    _SCHOOLS[id(teacher)] = school


def is_claimed(teacher: Teacher) -> bool:
    """Whether a school hands out this teacher's plans."""
    return id(teacher) in _SCHOOLS


def is_copy(teacher: Teacher) -> bool:
    """Whether this is a copy of a teacher that lives in another process."""
    return getattr(teacher, "home", os.getpid()) != os.getpid()
