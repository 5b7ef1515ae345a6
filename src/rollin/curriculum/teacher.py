"""Teachers, and what they exchange with learners: plans of episodes, and their ends.

A `Teacher` decides under which context an episode is played and whether it rolls in (`Plan`), and
receives its end (`EpisodeEnd`). It knows nothing of agents and environments, so that our engine,
the wrapper `rollin.RollIn` and your own loop use the same one. Those of rollin are each
a `CurriculumTeacher`.

`EpisodeRollIn` is the roll-in of an episode, for every loop that rolls in: the guide acts first,
then another agent continues (lines 10 to 24 of the detailed pseudocode).
"""

import os
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any, ClassVar, Literal, Protocol, runtime_checkable

from rollin.checks import check_beta
from rollin.curriculum.contexts import Curriculum
from rollin.curriculum.progress import HasState, Progress, State, Stateful, Window
from rollin.deprecated import renamed
from rollin.errors import RollinError, short_repr

Purpose = Literal["train", "look"]
"""What an episode is for: to learn from, or only to observe the agent."""


@renamed(ticket="plan_id")
@dataclass(frozen=True)
class Plan:
    """How to play an episode, or all of them until another plan comes; plain data, picklable.

    plan_id: at least 1, never used twice; context: of the env, None for its own; beta: probability
    to roll in; stop: probability that a roll-in stops after a step, 1 - γ of the agent; guide:
    version of the guide that must be loaded, 0 for none; guide_context: ω_{k-1}, which the guide
    observes; standing: repeated until another plan comes; trace: whether outcomes are wanted;
    length: exact number of steps of a roll-in, instead of `stop`; start: a state to begin in, which
    the env's reset receives as `options["start"]`, None for one of its own.

    >>> import rollin
    >>> plan = rollin.Plan(plan_id=1, context=[2.0, 0.0], beta=0.1, guide=1, guide_context=[0, 0])
    >>> plan.standing, plan.purpose
    (True, 'train')
    """

    plan_id: int
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


@renamed(ticket="plan_id", hidden="rollin_steps", cut="failed_rollin_steps")
@dataclass(frozen=True)
class EpisodeEnd:
    """How an episode of a plan ended.

    serial: which use of the plan, from 1 on; env: index of the environment; rollin_steps: of the
    roll-in, which the learner does not see; failed_rollin_steps: of a roll-in that ended its
    episode, after which this one began without; prefix_return: rewards of the roll-in; total,
    length: rewards and steps of the visible part; success: at any step of either; abandoned: reset
    from outside before it ended; trace: (T, U) outcomes of the visible steps, if the plan asks for
    them.
    """

    plan_id: int
    serial: int
    env: int
    context: Any
    purpose: Purpose
    rolled_in: bool = False
    rollin_steps: int = 0
    failed_rollin_steps: int = 0
    prefix_return: float = 0.0
    total: float = 0.0
    length: int = 0
    success: bool = False
    terminated: bool = False
    truncated: bool = False
    abandoned: bool = False
    trace: Any = None

    @property
    def steps(self) -> int:
        """Environment steps that the episode took, those of roll-ins as well."""
        return self.rollin_steps + self.failed_rollin_steps + self.length

    def as_info(self) -> dict[str, Any]:
        """Return a flat dict for `info`, without a trace that was not asked for."""
        flat = asdict(self)
        return flat if self.trace is not None else {n: v for n, v in flat.items() if n != "trace"}

    @classmethod
    def of_info(cls, info: Mapping[str, Any]) -> "EpisodeEnd":
        """Return the end of such a dict, whose numbers may be NumPy's.

        Other entries, such as the masks of vector envs, are left out.

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
class Teacher(HasState, Protocol):
    """Decides what to learn next. Its state is JSON-able and includes its random streams.

    wants: what it needs beyond ends, of "trace" (outcomes), "rollin-trace" (those of episodes with
    roll-in as well), "look" (episodes without learning) and "start" (an env that takes a start).

    >>> import rollin
    >>> class Alternates:  # two contexts in turn, without roll-in
    ...     wants = frozenset()
    ...     plans = 0
    ...
    ...     def sample(self, env=0):
    ...         self.plans += 1
    ...         return rollin.Plan(self.plans, [float(self.plans % 2)], standing=False)
    ...
    ...     def update(self, end):
    ...         return None
    ...
    ...     def get_state(self):
    ...         return {"plans": self.plans}
    ...
    ...     def set_state(self, state):
    ...         self.plans = state["plans"]
    >>> isinstance(Alternates(), rollin.Teacher)
    True
    """

    wants: frozenset[str]

    def sample(self, env: int = 0) -> Plan:
        """Return a plan for the next episode of an environment."""
        ...

    def update(self, end: EpisodeEnd) -> str | None:
        """Count the end of an episode; return what changed and why, or None."""
        ...


class CurriculumTeacher(Stateful):
    """Base of the teachers of a curriculum: plans and their ids, counts, progress.

    progress: along the curriculum; window: the last episodes; steps: environment steps of all
    episodes; late, abandoned: episodes that counted only by their steps, because their context was
    left or a reset cut them off. maker: how to get a curriculum, for
    errors; about: what the teacher does, in a line.
    """

    about: ClassVar[str] = ""
    maker: ClassVar[str] = "Curriculum.listed(contexts, R) makes one of a list"
    wants: frozenset[str] = frozenset()
    progress: State[Progress]
    window: State[Window]
    steps: State[int] = 0
    late: State[int] = 0
    abandoned: State[int] = 0
    _guides: State[int] = 0
    _next_id: State[int] = 1

    def __init__(self, curriculum: Curriculum, beta: float) -> None:
        if not isinstance(curriculum, Curriculum):
            raise RollinError(
                f"A teacher needs a rollin.Curriculum, got {type(curriculum).__name__}: "
                f"{self.maker}."
            )
        self.curriculum = curriculum
        self.beta = check_beta(beta)
        self.progress = curriculum.progress()
        self.window = Window(curriculum.episodes)
        self.home = os.getpid()  # a copy in another process receives only the ends there

    def __repr__(self) -> str:
        return short_repr(self, k=self.k, K=self.curriculum.K, beta=self.beta)

    @property
    def k(self) -> int:
        """Index of the current context."""
        return self.progress.k

    @property
    def here(self) -> Any:
        """The current context."""
        return self.curriculum.contexts[self.k]

    @property
    def previous(self) -> int | None:
        """The last mastered context; None before there is one, or where plans name the guide's."""
        return None

    @property
    def guides(self) -> int:
        """Version of the guide: another number when a new one is to be frozen."""
        return self._guides

    @property
    def threshold(self) -> float:
        """What the window's mean must exceed; NaN while that is unknown."""
        raise NotImplementedError

    @property
    def adapts(self) -> bool:
        """Whether the state holds more than progress and window."""
        return True

    def sample(self, env: int = 0) -> Plan:
        """Return the plan of the next episode."""
        plan = self._make_plan(self._next_id)
        self._next_id += 1
        return plan

    def update(self, end: EpisodeEnd) -> str | None:
        """Count the end of an episode; return what changed and why, or None."""
        self._check_plan_id(end.plan_id)
        self.steps += end.steps
        self.abandoned += end.abandoned
        if end.abandoned or end.purpose != "train":
            return None
        return self._take(end)

    def context_of(self, plan_id: int) -> int:
        """Return the index of a plan's context."""
        raise NotImplementedError

    def still_mastered(self) -> str | None:
        """Return the reason why the current context is mastered at the moment, or None."""
        return None

    def resume_at(self, steps: int) -> None:
        """Resume from progress and window after these steps, before the first plan."""
        self.steps = steps
        self._next_id = 1

    def get_state(self) -> dict[str, Any]:
        """Return everything needed to resume, as JSON-able values."""
        return {"teacher": type(self).__name__, **super().get_state()}

    def set_state(self, state: Mapping[str, Any]) -> None:
        """Restore what `get_state` returned."""
        own = type(self).__name__
        saved = state.get("teacher", own)
        if saved != own:
            raise RollinError(
                f"This is the teacher {own}, and the saved one was {saved}: make it as it was when "
                "it was saved."
            )
        contexts = int(state["progress"]["K"]) + 1
        if contexts != self.curriculum.K + 1:
            raise RollinError(
                f"This teacher's curriculum has {self.curriculum.K + 1} contexts, the saved one "
                f"had {contexts}: make it as it was when it was saved."
            )
        super().set_state(state)

    # ------------------------------------------------------------------ for subclasses

    def _make_plan(self, plan_id: int) -> Plan:
        """Return the plan of this id."""
        raise NotImplementedError

    def _take(self, end: EpisodeEnd) -> str | None:
        """Count an episode that was not abandoned; return what changed, or None."""
        raise NotImplementedError

    def _check_plan_id(self, plan_id: int) -> None:
        """Raise unless this teacher made the plan."""
        if not 1 <= plan_id < self._next_id:
            raise RollinError(
                f"This teacher has made the plans 1 to {self._next_id - 1}, and an episode of plan "
                f"{plan_id} has ended: each teacher must receive the ends of its own plans only."
            )


def check_teacher(teacher: Any) -> Any:
    """Raise if this is no teacher."""
    if isinstance(teacher, Teacher):
        return teacher
    raise RollinError(
        f"A teacher must have sample, update, get_state, set_state and wants, got "
        f"{type(teacher).__name__}: rollin.SequentialTeacher(curriculum) makes one of a curriculum."
    )


def is_copy(teacher: Teacher) -> bool:
    """Whether this is a copy of a teacher that lives in another process."""
    return getattr(teacher, "home", os.getpid()) != os.getpid()


Actor = Literal["main", "rollin", "exp"]
"""Who acts: π_main(·|ω_k), the guide π_main(·|ω_{k-1}) while rolling in, or π_exp(·|ω_k)."""


class EpisodeRollIn:
    """Who takes each step of an episode, and whether the step is recorded.

    plan: rolls in with probability β, for exactly `plan.length` steps if that is given; stop:
    otherwise, the probability that the guide stops after each of its steps; draw: returns uniform
    numbers in [0, 1), and is called only where chance decides; then: who continues; recorded:
    whether the guide's steps are recorded, as all others are. rolled_in: whether the episode rolls
    in; actor: who takes the next step; steps: of the guide so far.

    >>> import rollin
    >>> plan = rollin.Plan(plan_id=1, context=None, beta=0.5, guide=1)
    >>> draws = iter([0.3, 0.9, 0.05])
    >>> roll_in = EpisodeRollIn(plan, 0.1, draws.__next__, then="exp")
    >>> while roll_in.actor == "rollin":
    ...     roll_in.advance()
    >>> roll_in.rolled_in, roll_in.steps, roll_in.actor
    (True, 2, 'exp')
    """

    __slots__ = (
        "_draw",
        "_length",
        "_records_guide",
        "_stop",
        "_then",
        "actor",
        "rolled_in",
        "steps",
    )

    def __init__(
        self,
        plan: Plan,
        stop: float,
        draw: Callable[[], float],
        *,
        then: Actor = "main",
        recorded: bool = True,
    ) -> None:
        self._length = plan.length
        self._stop = stop
        self._draw = draw
        self._then: Actor = then
        self._records_guide = recorded
        self.steps = 0
        self.actor: Actor = "main"
        self.rolled_in = plan.beta > 0 and draw() < plan.beta
        if self.rolled_in:
            self.actor = then if plan.length == 0 else "rollin"

    @property
    def recorded(self) -> bool:
        """Whether the next step is recorded."""
        return self._records_guide or self.actor != "rollin"

    def advance(self) -> None:
        """Count a step of the guide, and let it stop: with probability 1 - γ (line 21)."""
        self.steps += 1
        length = self._length
        if self._draw() < self._stop if length is None else self.steps >= length:
            self.actor = self._then
