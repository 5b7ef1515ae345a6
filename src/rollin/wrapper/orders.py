"""Which plan the next episode of a wrapper follows, and who is told how it ended.

Three may plan: a teacher in the same process, a school by plans in stock, or nobody, when every
episode is played alike.
"""

from collections import deque
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from rollin.checks import check_beta, check_gamma
from rollin.curriculum.teacher import EpisodeEnd, Plan, Teacher, check_teacher, is_claimed, is_copy
from rollin.envs.offer import Offer
from rollin.errors import RollinError


class Orders:
    """Plans and tickets of one wrapper. env: its index in its school, None without one."""

    def __init__(
        self, offer: Offer, teacher: Teacher | None, beta: float, gamma: float, *, guided: bool,
        reports: bool,
    ) -> None:  # fmt: skip
        self._offer = offer
        self._teacher = None if teacher is None else check_teacher(teacher)
        if teacher is not None:
            offer.check_teacher(teacher, rolls_in=reports)
        self._stop, self._reports = 1 - check_gamma(gamma), reports
        check_beta(beta)
        rolls_in = guided and teacher is None and reports
        # the plan without teacher and school
        self._own = Plan(0, None, beta if rolls_in else 0.0, self._stop, guide=int(rolls_in))
        self.env: int | None = None
        self.stock: deque[Plan] = deque()
        self._plan: Plan | None = None
        self.serial = 0

    def enrol(self, env: int, teacher: int) -> bool:
        """Take plans of a school from now on; returns whether that of the open episode counts."""
        own = None if self._teacher is None or is_copy(self._teacher) else self._teacher
        if own is not None and id(own) != teacher:
            raise RollinError(
                f"Env {env} holds another teacher than the one that is to plan its episodes: give "
                "RollIn and its callback or rollin.attach the same one, or RollIn none."
            )
        counts = own is not None and self._asks
        self.env = env
        self.stock.clear()
        self._plan = None
        return counts

    def assign(self, plan: Plan) -> None:
        """Put a plan in stock; one that stood there last and is standing goes."""
        self._offer.check_plan(plan)
        if not plan.ticket >= 1:
            raise RollinError(f"Tickets of plans are whole numbers from 1 on, got {plan.ticket!r}.")
        if self.stock and self.stock[-1].standing:
            self.stock.pop()
        self.stock.append(plan)

    def set_context(self, context: Any) -> None:
        """Play under this context where nobody plans."""
        self._own = replace(self._own, context=self._offer.check_context(context))

    def next(self, options: Mapping[str, Any] | None) -> Plan:
        """The plan of the episode that begins; `serial` is then which use of it this is."""
        if self._asks:
            assert self._teacher is not None
            self.serial = 1
            return self._offer.check_plan(replace(self._teacher.sample(), stop=self._stop))
        if self.env is not None:
            return self._from_stock()
        if options is not None and "context" in options:
            context = options["context"]  # of an env without a space, its own affair
            known = self._offer.space is not None
            self._own = replace(
                self._own, context=self._offer.check_context(context) if known else context
            )
        self.serial = 1
        self._own = replace(self._own, ticket=self._own.ticket + 1)
        return self._own

    def report(self, end: EpisodeEnd) -> None:
        """Tell the teacher, unless a school does."""
        if self._asks:
            assert self._teacher is not None
            self._teacher.update(end)

    @property
    def _asks(self) -> bool:
        """Whether the teacher is asked and told here, not by a school."""
        teacher = self._teacher
        if teacher is None or self.env is not None or not self._reports:
            return False
        if is_copy(teacher):
            raise RollinError(
                "This teacher is a copy in another process, which hears of one env alone: wrap "
                "with RollIn(env) there, and keep the teacher here for rollin.attach or "
                "rollin.sb3.RollInCallback; for evaluation use RollIn(env, reports=False)."
            )
        return not is_claimed(teacher)

    def _from_stock(self) -> Plan:
        if self.stock:
            self._plan, self.serial = self.stock.popleft(), 0
        if self._plan is None or (self.serial and not self._plan.standing):
            raise RollinError(
                f"Env {self.env} has no plan for its next episode: assign one before the "
                "reset; with vector envs call after_step after every step."
            )
        self.serial += 1
        return self._plan
