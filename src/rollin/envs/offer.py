"""What an env offers to teachers, and whether it suits one: contexts, a place for them, starts.

`rollin.RollIn` asks when it is made, and a school when it takes over a vector env, so that nothing
is learned under contexts that change nothing.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from gymnasium import spaces

from rollin.curriculum.contexts import Curriculum
from rollin.curriculum.teacher import Plan, Teacher
from rollin.envs.box_env import Env, name_of
from rollin.envs.contextual import check_context
from rollin.errors import RollinError

Place = tuple[int, ...] | bool
"""Shape of the entry that shows a context; True: a function shows it, False: nothing does."""


@dataclass(frozen=True)
class Offer:
    """What an env offers to teachers; picklable.

    space: of contexts, None if the env has none; shows: whether its observations are a Dict with
    such a context; place: where a guide sees its context; starts: whether `reset` takes a start.
    """

    name: str
    space: spaces.Space[Any] | None
    shows: bool
    place: Place
    starts: bool

    @classmethod
    def of(cls, env: Env, place: Place) -> "Offer":
        """The offer of an env; place: where a guide sees its context."""
        space, seen = attribute(env, "context_space"), env.observation_space
        contextual = isinstance(space, spaces.Space)
        shows = contextual and isinstance(seen, spaces.Dict) and seen.spaces.get("context") == space
        starts = bool(attribute(env, "takes_start"))
        return cls(name_of(env), space if contextual else None, shows, place, starts)

    def check_teacher(self, teacher: Teacher, *, rolls_in: bool = True) -> None:
        """Refuse a teacher whose curriculum the env cannot follow.

        rolls_in: False if guides never act. Contexts that a teacher makes up later are checked plan
        by plan.
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
        self._check_contexts(curriculum, self.space)
        if "start" in teacher.wants and not self.starts:
            raise RollinError(
                f"The teacher {kind} chooses where episodes begin, and {self.name} cannot begin "
                'there: give it takes_start = True and a reset that begins at options["start"], or '
                "choose another teacher."
            )
        if rolls_in and getattr(teacher, "beta", 0) > 0:
            self._check_place(curriculum.contexts[0].size)

    def _check_contexts(self, curriculum: Curriculum, space: spaces.Box) -> None:
        contexts = curriculum.contexts.astype(space.dtype)
        count, size = contexts.shape
        if (size,) != space.shape:
            raise RollinError(
                f"The contexts of the curriculum have {size} numbers each, and those of "
                f"{self.name} have {space.shape[0]}, as its context_space says: give both the same "
                "size."
            )
        inside = ((contexts >= space.low) & (contexts <= space.high)).all(1)
        if not inside.all():
            k = int(inside.argmin())
            raise RollinError(
                f"Context {k} of 0 to {count - 1} of the curriculum, {contexts[k].tolist()}, lies "
                f"outside the context_space of {self.name} (from {space.low.tolist()} to "
                f"{space.high.tolist()}): choose one inside, or widen the space."
            )

    def _check_place(self, size: int) -> None:
        """Refuse observations that cannot show a guide its context."""
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
        """Refuse a plan whose context the env cannot follow."""
        if plan.context is not None:
            self.check_context(plan.context)
        return plan

    def check_context(self, context: Any) -> Any:
        """The context as the env takes it; refuse one that it cannot follow."""
        if self.space is None:
            raise RollinError(
                f"{self.name} cannot follow the context {context!r}, because it has no "
                f"context_space: {HOW}."
            )
        return check_context(context, self.space) if isinstance(self.space, spaces.Box) else context

    def check_shown(self, observation: Any, context: Any) -> None:
        """Refuse an env that shows another context after a reset than it was given."""
        if not self.shows or not isinstance(self.space, spaces.Box):
            return
        given = np.asarray(context, self.space.dtype)
        if not np.array_equal(shown := np.asarray(observation["context"]), given):
            raise RollinError(
                f"{self.name} was given the context {given.tolist()} and shows {shown.tolist()} "
                "after reset(options={'context': c}): let its reset follow that option."
            )


HOW = (
    "rollin.Contextual(env, context_space, …) makes a contextual env of any env, "
    "rollin.GoalContext(env) of a goal env"
)


def attribute(env: Env, name: str) -> Any:
    """What the env or a wrapper in it has under this name; None if none does."""
    try:
        return env.get_wrapper_attr(name)
    except AttributeError:
        return None
