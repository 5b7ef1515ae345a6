"""A school: one teacher for many environments, in this process or in others.

It hands out plans before they are needed, reads ends from the infos of a step, tells the teacher,
and sends guides to where they act. `attach` makes one for a vector env of Gymnasium;
`rollin.sb3.RollInCallback` makes one for a vector env of Stable-Baselines3.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Protocol

import gymnasium
import numpy as np

from rollin.checks import check_gamma
from rollin.curriculum.teacher import EpisodeEnd, Plan, Teacher, check_teacher, claim
from rollin.envs.offer import Offer
from rollin.errors import RollinError, told
from rollin.texts import short_repr

LATER = "its plans need a guide"  # why, where a teacher needs one later than it advanced
Act = Callable[[Any, Any], Any]
"""From an actor and an observation to an action; at module level, if envs are in processes."""


class Link(Protocol):
    """How a school speaks to the `RollIn` wrappers of a vector env."""

    count: int

    def offers(self) -> list[Offer]:
        """What each env offers to teachers."""
        ...

    def enrol(self, given: Sequence[Sequence[int]]) -> None:
        """Call `enrol` on each wrapper."""
        ...

    def assign(self, plans: Sequence[Sequence[Plan]]) -> None:
        """Assign plans, some or none for each wrapper."""
        ...

    def load_guide(self, version: int, guide: Any, planned: Sequence[int]) -> None:
        """Load a guide in every wrapper; planned: versions that plans to come ask for."""
        ...

    def get_states(self) -> list[dict[str, Any]]:
        """The state of every wrapper."""
        ...

    def set_states(self, states: Sequence[Mapping[str, Any]]) -> None:
        """Give every wrapper its state."""
        ...

    def playing(self) -> list[int]:
        """Tickets of the episodes that are being played; 0 where none is."""
        ...


class School:
    """Hands out a teacher's plans to the environments of one vector env, and books their ends.

    switched: why the teacher moved on, until the guide for its new plans is frozen; steps, hidden,
    cut, episodes, abandoned: environment steps of all ended episodes, those of them that learners
    did not see, how many there were and how many of them were abandoned.

    >>> import gymnasium
    >>> import rollin
    >>> from rollin.envs.point_umaze import PointUmaze
    >>> envs = gymnasium.vector.SyncVectorEnv([lambda: rollin.RollIn(PointUmaze(horizon=5))] * 2)
    >>> teacher = rollin.Walk(PointUmaze().curriculum)
    >>> school = rollin.attach(envs, teacher, act=lambda actor, observation: actor)
    >>> observed, infos = envs.reset(seed=0)
    >>> for _ in range(5):
    ...     ends = school.after_step(envs.step(envs.action_space.sample())[-1])
    >>> [(end.env, end.length) for end in ends], school.steps
    ([(0, 5), (1, 5)], 10)
    """

    def __init__(
        self,
        teacher: Teacher,
        link: Link,
        gamma: float = 0.99,
        *,
        seed: int = 0,
        act: Act | None = None,
        keep_prefix: bool = False,
    ) -> None:
        self.teacher: Teacher = check_teacher(teacher)
        for offer in link.offers():
            offer.check_teacher(teacher)
        self.link, self.act, self._stop = link, act, 1 - check_gamma(gamma)
        self.steps = self.hidden = self.cut = self.abandoned = self.episodes = 0
        self._enrolled = [(i, seed, id(teacher), int(keep_prefix)) for i in range(link.count)]
        self._enrol()
        claim(teacher, self)
        for issued, ticket in zip(self._issued, link.playing(), strict=True):
            if ticket:  # an episode that this teacher began, asked by the wrapper itself
                issued[ticket] = True

    def __repr__(self) -> str:
        return short_repr(self, teacher=self.teacher, envs=self.link.count, steps=self.steps)

    def begin(self) -> None:
        """Hand out the first plans; those that need a guide wait for `freeze`."""
        plans = [self._sample(i) for i in range(self.link.count)]
        stock = [self._with_next(i, plan) for i, plan in enumerate(plans)]
        self._hand_out(stock, "it begins there")

    def after_step(self, infos: Mapping[str, Any]) -> list[EpisodeEnd]:
        """Book the ends in the infos of a step of Gymnasium's vector env."""
        return self.book(ends_in(infos, self.link.count), stepped=True)

    def after_reset(self, infos: Mapping[str, Any]) -> list[EpisodeEnd]:
        """Book what a reset by hand has cut off."""
        return self.book(ends_in(infos, self.link.count), stepped=False)

    def book(self, ends: Iterator[EpisodeEnd], *, stepped: bool) -> list[EpisodeEnd]:
        """Tell the teacher; returns the ends.

        stepped: whether they come from a step, where no episode is abandoned unless something
        outside RollIn has ended it.
        """
        if self.switched is not None:
            raise RollinError(
                f"The teacher has moved on ({self.switched}), and its plans wait for a guide: call "
                "school.freeze(deepcopy(actor)) when school.switched is set."
            )
        booked, reason = [], None
        plans: list[list[Plan]] = [[] for _ in range(self.link.count)]
        for end in ends:
            if stepped and end.abandoned and end.length:
                raise RollinError(
                    f"An episode of env {end.env} was ended after {end.length} steps by a wrapper "
                    "outside RollIn, which saw no end: put TimeLimit inside, "
                    "RollIn(TimeLimit(env, n))."
                )
            reason = self._count(end) or reason
            booked.append(end)
            if not self._issued[end.env][end.ticket]:
                plans[end.env].append(self._sample(end.env))
        if reason is not None:
            self._renew(plans)
        if any(plans):
            self._hand_out(plans, reason or LATER)
        return booked

    def freeze(self, actor: Any) -> None:
        """Load a copy of the actor, which nobody changes any more, as guide of the new plans."""
        if self.act is None:
            raise RollinError("A school without act(actor, observation) cannot use an actor.")
        self.load(Frozen(self.act, actor))

    def load(self, guide: Callable[[Any, Any], Any], version: int | None = None) -> None:
        """Load a guide and hand out the plans that waited for it.

        version: of the guide; by default every one that those plans ask for and that is missing,
        several if the teacher advanced more than once in a step.
        """
        asked = sorted({plan.guide for stock in self._waiting for plan in stock})
        missing = [asked_for for asked_for in asked if asked_for > self.version]
        for one in [version] if version is not None else missing or [max(self.version, 1)]:
            self.link.load_guide(one, guide, asked)
            self.version = one
        self.switched = None
        if waiting := self._waiting:
            self._waiting = []
            self._hand_out(waiting, LATER)

    def get_state(self) -> dict[str, Any]:
        """Teacher, streams and counts, as JSON-able values; open episodes are lost."""
        counts = [self.steps, self.hidden, self.cut, self.abandoned, self.episodes]
        return {
            "teacher": self.teacher.get_state(),
            "envs": self.link.get_states(),
            "counts": counts,
            "guide": self.version,
        }

    def set_state(self, state: Mapping[str, Any]) -> None:
        """Take back what `get_state` gave; `load` the guide of that version, then `begin`.

        Plans that were given before go, and episodes that are being played do not count: reset.
        """
        if len(state["envs"]) != self.link.count:
            raise RollinError(
                f"The school was saved with {len(state['envs'])} envs and goes on with "
                f"{self.link.count}: make as many as there were."
            )
        self.teacher.set_state(state["teacher"])
        self._enrol()  # what was given before belongs to another time of the teacher's
        self.link.set_states(state["envs"])
        counts = [int(count) for count in state["counts"]]
        self.steps, self.hidden, self.cut, self.abandoned, self.episodes = counts

    # ------------------------------------------------------------------ inside

    def _enrol(self) -> None:
        """Take over the envs: no plan is given, no guide loaded and no end booked yet."""
        count = self.link.count
        self.switched: str | None = None
        self.version = 0  # of the guide that is loaded
        self._issued: list[dict[int, bool]] = [{} for _ in range(count)]  # ticket: standing
        self._booked: list[tuple[int, int]] = [(0, 0)] * count  # last ticket and serial
        self._newest: list[Plan | None] = [None] * count
        self._waiting: list[list[Plan]] = []  # plans whose guide is missing
        self.link.enrol(self._enrolled)

    def _count(self, end: EpisodeEnd) -> str | None:
        env, use = end.env, (end.ticket, end.serial)
        if end.ticket not in self._issued[env]:
            raise RollinError(
                f"Env {env} ended an episode of ticket {end.ticket}, which it was not given: one "
                "school must plan for an env at a time."
            )
        if not self._booked[env] < use:
            raise RollinError(
                f"Env {env} ended ticket {end.ticket}, use {end.serial}, twice: pass the infos of "
                "every step to after_step once."
            )
        self._booked[env] = use
        issued = self._issued[env].items()
        self._issued[env] = {t: standing for t, standing in issued if t >= end.ticket}
        self.steps += end.steps
        self.hidden += end.hidden
        self.cut += end.cut
        self.abandoned += end.abandoned
        self.episodes += 1
        return self.teacher.update(end)

    def _sample(self, env: int) -> Plan:
        return replace(self.teacher.sample(env), stop=self._stop)

    def _with_next(self, env: int, plan: Plan) -> list[Plan]:
        """A plan, and another if it is for one episode: envs may reset before its end is told."""
        return [plan] if plan.standing else [plan, self._sample(env)]

    def _renew(self, plans: list[list[Plan]]) -> None:
        """After the teacher has changed its mind: another plan where one would go on standing."""
        for env, newest in enumerate(self._newest):
            if newest is None or newest.standing:
                plan = self._sample(env)
                alike = newest is not None and _alike(plan, newest)
                plans[env] += [] if alike else self._with_next(env, plan)

    def _hand_out(self, plans: list[list[Plan]], reason: str) -> None:
        if any(plan.guide > self.version and plan.beta > 0 for stock in plans for plan in stock):
            self._waiting, self.switched = plans, reason
            return
        for env, stock in enumerate(plans):
            for plan in stock:
                self._issued[env][plan.ticket] = plan.standing
                self._newest[env] = plan
        self.link.assign(plans)


def _alike(one: Plan, other: Plan) -> bool:
    """Whether two plans differ in their ticket alone."""
    arrays = ("context", "guide_context", "start")
    bare = dict.fromkeys(arrays)
    return replace(one, ticket=0, **bare) == replace(other, ticket=0, **bare) and all(
        a is b or (a is not None and b is not None and np.array_equal(a, b))
        for a, b in ((getattr(one, name), getattr(other, name)) for name in arrays)
    )


class Frozen:
    """A guide of an actor and a function that acts with it."""

    def __init__(self, act: Act, actor: Any) -> None:
        self.act, self.actor = act, actor

    def __call__(self, observation: Any, context: Any) -> Any:
        """The actor's action; the observation shows the context already."""
        return self.act(self.actor, observation)


def attach(
    envs: gymnasium.vector.VectorEnv[Any, Any, Any],
    teacher: Teacher,
    act: Act,
    gamma: float = 0.99,
    *,
    seed: int = 0,
) -> School:
    """A school for a vector env whose envs are each wrapped in `RollIn`; attach it before `reset`.

    act: from an actor and one observation to an action. gamma: of roll-ins, as in `RollIn`. In the
    loop, after every step, `for end in school.after_step(infos): …`, and
    `school.freeze(deepcopy(actor))` if `school.switched`.

    >>> import gymnasium
    >>> import rollin
    >>> from rollin.envs.point_umaze import PointUmaze
    >>> envs = gymnasium.vector.SyncVectorEnv([lambda: rollin.RollIn(PointUmaze())] * 2)
    >>> teacher = rollin.Walk(PointUmaze().curriculum)
    >>> school = rollin.attach(envs, teacher, act=lambda actor, observation: actor(observation))
    >>> observed, infos = envs.reset(seed=0)
    >>> observed["context"].tolist()
    [[0.0, 0.0], [0.0, 0.0]]
    """
    if not callable(act):
        raise RollinError(
            f"act must be a function of (actor, observation) that gives an action, got "
            f"{type(act).__name__}."
        )
    school = School(check_teacher(teacher), VectorLink(envs), gamma, seed=seed, act=act)
    school.begin()
    return school


class VectorLink:
    """The wrappers of one of Gymnasium's vector envs, which may live in other processes."""

    def __init__(self, envs: gymnasium.vector.VectorEnv[Any, Any, Any]) -> None:
        if not isinstance(envs, gymnasium.vector.VectorEnv):
            raise RollinError(
                f"A vector env of Gymnasium is needed, got {type(envs).__name__}: for one env use "
                "SyncVectorEnv([make]), for Stable-Baselines3 rollin.sb3.RollInCallback."
            )
        self.envs: Any = envs
        self.count = int(envs.num_envs)
        try:
            self.envs.get_attr("enrolment")
        except (AttributeError, NotImplementedError) as error:
            raise not_wrapped(error) from error

    def offers(self) -> list[Offer]:
        """What each env offers to teachers."""
        return list(self.envs.get_attr("offer"))

    def enrol(self, given: Sequence[Sequence[int]]) -> None:
        """Call `enrol` on each wrapper."""
        self.envs.set_attr("enrolment", list(given))

    def assign(self, plans: Sequence[Sequence[Plan]]) -> None:
        """Assign plans, some or none for each wrapper."""
        self.envs.set_attr("plans", list(plans))

    def load_guide(self, version: int, guide: Any, planned: Sequence[int]) -> None:
        """Load a guide in every wrapper; planned: versions that plans to come ask for."""
        self.envs.call("load_guide", version, guide, planned)

    def get_states(self) -> list[dict[str, Any]]:
        """The state of every wrapper."""
        return list(self.envs.get_attr("wrapper_state"))

    def set_states(self, states: Sequence[Mapping[str, Any]]) -> None:
        """Give every wrapper its state."""
        self.envs.set_attr("wrapper_state", list(states))

    def playing(self) -> list[int]:
        """Tickets of the episodes that are being played; 0 where none is."""
        return [int(ticket) for ticket in self.envs.get_attr("playing")]


def not_wrapped(error: Exception) -> RollinError:
    """What to say if the envs of a vector env are not wrapped."""
    return RollinError(
        "Every env of the vector env must be wrapped in rollin.RollIn before it is put there, such "
        f"as SyncVectorEnv([lambda: rollin.RollIn(make_env())]): {told(error)}."
    )


def ends_in(infos: Mapping[str, Any], count: int) -> Iterator[EpisodeEnd]:
    """Ends in batched infos, which hold zeros for envs that said nothing: masks tell.

    With autoreset in the same step an end is in `final_info`, and beside it stands what the reset
    said; in that order they happened.
    """
    for found in (infos.get("final_info"), infos):
        told_of = found.get("rollin_end") if isinstance(found, Mapping) else None
        if found is None or not isinstance(told_of, Mapping):
            continue
        said = np.asarray(found.get("_rollin_end", np.zeros(count, bool)))
        for i in np.flatnonzero(said):
            one = {name: values[i] for name, values in told_of.items() if name[:1] != "_"}
            yield EpisodeEnd.of_info(one)
