"""Which plan the next episode of a wrapper follows, and who receives its end.

Plans come from a teacher in the same process, from a coordinator that assigns them in advance, or,
without either, are the same for every episode. `rollin.RollIn` and `rollin.attach` first check
that the env provides the contexts and starts that a teacher needs, so that no agent trains under
contexts that change nothing.
"""

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any
from weakref import WeakSet

import numpy as np
from gymnasium import spaces

from rollin.checks import check_beta, check_gamma
from rollin.curriculum.contexts import Curriculum
from rollin.curriculum.teacher import EpisodeEnd, Plan, Teacher, check_teacher, is_copy
from rollin.envs.box_env import Env, attribute, name_of
from rollin.envs.contextual import check_context
from rollin.errors import RollinError

Place = tuple[int, ...] | bool
"""Shape of the entry with the context; True: a function inserts it; False: there is none."""


@dataclass(frozen=True)
class Offer:
    """The contexts and starts that an env provides; picklable.

    space: of contexts, None if the env has none; shows: whether its observations are a Dict with
    such a context; place: where a guide's observation has its context; starts: whether `reset`
    takes a start.
    """

    name: str
    space: spaces.Space[Any] | None
    shows: bool
    place: Place
    starts: bool

    @classmethod
    def of(cls, env: Env, place: Place) -> "Offer":
        """Return the offer of an env; place: where a guide's observation has its context."""
        space = attribute(env, "context_space")
        parts = env.observation_space
        if not isinstance(space, spaces.Space):
            space = None
        shows = (
            space is not None
            and isinstance(parts, spaces.Dict)
            and parts.spaces.get("context") == space
        )
        return cls(name_of(env), space, shows, place, bool(attribute(env, "takes_start")))

    def check_teacher(self, teacher: Teacher, *, rolls_in: bool = True) -> None:
        """Raise if the env cannot follow the curriculum of a teacher.

        rolls_in: False if guides never act. Contexts that a teacher generates later are checked
        plan by plan.
        """
        curriculum = getattr(teacher, "curriculum", None)
        if not isinstance(curriculum, Curriculum):
            return
        kind = type(teacher).__name__
        if not isinstance(self.space, spaces.Box) or len(self.space.shape) != 1:
            raise RollinError(
                f"{self.name} cannot follow the contexts of a {kind}, because its context_space "
                f"must be a one-dimensional Box, got {self.space}: {HOW}."
            )
        for k, context in enumerate(curriculum.contexts):
            try:
                check_context(context, self.space)
            except RollinError as error:
                raise RollinError(
                    f"{self.name} cannot follow context {k} of the curriculum of a {kind}. {error}"
                ) from error
        if "start" in teacher.wants and not self.starts:
            raise RollinError(
                f"The teacher {kind} chooses where episodes begin, and {self.name} cannot begin "
                'there: give it takes_start = True and a reset that begins at options["start"], or '
                "choose another teacher."
            )
        if rolls_in and getattr(teacher, "beta", 0) > 0:
            self._check_place(curriculum.contexts[0].size)

    def _check_place(self, size: int) -> None:
        """Raise if observations have no entry for a guide's context."""
        if self.place is False:
            raise RollinError(
                f"The guide must see the context before, and observations of {self.name} have no "
                "place for it: use a Dict with the entry context, give RollIn "
                "show=function(observation, context), or show=False if the policy sees no context."
            )
        if self.place is not True and int(np.prod(self.place)) != size:
            raise RollinError(
                f"The contexts of the curriculum have {size} numbers each, and observations of "
                f"{self.name} show contexts of shape {self.place}: give both the same size, or "
                "give RollIn show=function(observation, context)."
            )

    def check_plan(self, plan: Plan) -> Plan:
        """Return a plan; raise if the env cannot follow its context."""
        if plan.context is not None:
            self.check_context(plan.context)
        return plan

    def check_context(self, context: Any) -> Any:
        """Return a context as the env takes it; raise if the env cannot follow it."""
        if self.space is None:
            raise RollinError(
                f"{self.name} cannot follow the context {context!r}, because it has no "
                f"context_space: {HOW}."
            )
        return check_context(context, self.space) if isinstance(self.space, spaces.Box) else context

    def check_shown(self, observation: Any, context: Any) -> None:
        """Raise if the env has another context after a reset than it was given."""
        if not self.shows or not isinstance(self.space, spaces.Box):
            return
        expected = np.asarray(context, self.space.dtype)
        observed = np.asarray(observation["context"])
        if not np.array_equal(observed, expected):
            raise RollinError(
                f"{self.name} was given the context {expected.tolist()} and shows "
                f"{observed.tolist()} "
                "after reset(options={'context': c}): let its reset follow that option."
            )


HOW = (
    "rollin.Contextual(env, context_space, …) makes a contextual env of any env, "
    "rollin.GoalContext(env) of a goal env"
)

# ------------------------------------------------------------------ plans

_PLANNERS: "WeakSet[Any]" = WeakSet()


def claim(planner: Any) -> None:
    """Let wrappers no longer ask `planner.teacher` by themselves, for as long as the planner lives.

    A wrapper that holds the same teacher for evaluation, mostly, then asks and reports nothing.
    """
    _PLANNERS.add(planner)


def is_claimed(teacher: Teacher) -> bool:
    """Return whether a coordinator in this process hands out the plans of a teacher."""
    return any(planner.teacher is teacher for planner in _PLANNERS)


class InThisProcess:
    """A value that stays in its process: copies in other processes hold None."""

    def __init__(self, value: Any = None) -> None:
        self.value = value

    def __reduce__(self) -> Any:
        return InThisProcess, ()


class PlanSource:
    """Plans of one wrapper.

    env: its index among those of its coordinator, None without one; stock: plans that were
    assigned; serial: which use of its plan the last episode was.
    """

    def __init__(
        self,
        offer: Offer,
        teacher: Teacher | None,
        beta: float,
        gamma: float,
        *,
        guided: bool,
        reports: bool,
    ) -> None:
        if teacher is not None:
            check_teacher(teacher)
            offer.check_teacher(teacher, rolls_in=reports)
        check_beta(beta)
        self._offer = offer
        self._teacher = teacher
        self._stop = 1 - check_gamma(gamma)
        self._reports = reports
        rolls_in = guided and teacher is None and reports
        # of all episodes, without teacher and coordinator
        self._own = Plan(0, None, beta if rolls_in else 0.0, self._stop, guide=int(rolls_in))
        self.env: int | None = None
        self.stock: deque[Plan] = deque()
        self.serial = 0
        self._plan: Plan | None = None

    def attach(self, env: int, teacher: InThisProcess | None) -> bool:
        """Take plans of a coordinator from now on; return whether the open episode is one of them.

        teacher: of the coordinator; in another process only a copy of it can be here.
        """
        own = None if self._teacher is None or is_copy(self._teacher) else self._teacher
        if own is not None and own is not getattr(teacher, "value", None):
            raise RollinError(
                f"Env {env} holds another teacher than the one that is to plan its episodes: give "
                "RollIn and its callback or rollin.attach the same one, or RollIn none."
            )
        counts = own is not None and self._active_teacher() is own
        self.env = env
        self.stock.clear()
        self._plan = None
        return counts

    def assign(self, plan: Plan) -> None:
        """Put a plan in stock, in place of a standing one that stood there last."""
        self._offer.check_plan(plan)
        if not plan.plan_id >= 1:
            raise RollinError(f"Ids of plans are whole numbers from 1 on, got {plan.plan_id!r}.")
        if self.stock and self.stock[-1].standing:
            self.stock.pop()
        self.stock.append(plan)

    def set_context(self, context: Any) -> None:
        """Play under this context where no teacher plans."""
        self._own = replace(self._own, context=self._offer.check_context(context))

    def next(self, options: Mapping[str, Any] | None) -> Plan:
        """Return the plan of the episode that begins."""
        if (teacher := self._active_teacher()) is not None:
            self.serial = 1
            return self._offer.check_plan(replace(teacher.sample(), stop=self._stop))
        if self.env is not None:
            return self._from_stock()
        if options is not None and "context" in options:
            if self._offer.space is None:  # the env alone knows its contexts
                self._own = replace(self._own, context=options["context"])
            else:
                self.set_context(options["context"])
        self.serial = 1
        self._own = replace(self._own, plan_id=self._own.plan_id + 1)
        return self._own

    def report(self, end: EpisodeEnd) -> None:
        """Report an end to the teacher, unless a coordinator does."""
        if (teacher := self._active_teacher()) is not None:
            teacher.update(end)

    def _active_teacher(self) -> Teacher | None:
        """Return the teacher that plans here, if no coordinator does."""
        teacher = self._teacher
        if teacher is None or self.env is not None or not self._reports:
            return None
        if is_copy(teacher):
            raise RollinError(
                "This teacher is a copy in another process, which sees only one env: wrap "
                "with RollIn(env) there, and keep the teacher here for rollin.attach or "
                "rollin.sb3.RollInCallback; for evaluation use RollIn(env, reports=False)."
            )
        return None if is_claimed(teacher) else teacher

    def _from_stock(self) -> Plan:
        if self.stock:
            self._plan = self.stock.popleft()
            self.serial = 0
        if self._plan is None or (self.serial and not self._plan.standing):
            raise RollinError(
                f"Env {self.env} has no plan for its next episode: assign one before the "
                "reset; with vector envs call after_step after every step."
            )
        self.serial += 1
        return self._plan
