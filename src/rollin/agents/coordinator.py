"""One teacher for many environments, in this process or in others.

A coordinator hands out plans before they are needed, reads ends from the infos of a step, reports
them to the teacher, and sends guides to where they act. `attach` makes one for a vector env of
Gymnasium; `rollin.sb3.RollInCallback` makes one for a vector env of Stable-Baselines3.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Protocol

import gymnasium
import numpy as np

from rollin.agents.plan_source import InThisProcess, claim
from rollin.checks import check_gamma
from rollin.curriculum.teacher import EpisodeEnd, Plan, Teacher, check_teacher
from rollin.deprecated import renamed
from rollin.errors import RollinError, format_exception, short_repr

LATER = "its plans need a guide"  # why, where a teacher needs one later than it advanced
COUNTS = ("steps", "rollin_steps", "failed_rollin_steps", "abandoned", "episodes")
Act = Callable[[Any, Any], Any]
"""From an actor and an observation to an action; at module level, if envs are in processes."""


class Link(Protocol):
    """How a coordinator reaches the `RollIn` wrappers of a vector env."""

    count: int

    def get(self, name: str) -> Sequence[Any]:
        """Return an attribute of each wrapper."""
        ...

    def call(self, method: str, *arguments: Any) -> Sequence[Any]:
        """Call a method of all wrappers with the same arguments."""
        ...

    def call_each(self, method: str, arguments: Iterable[Sequence[Any]]) -> None:
        """Call a method of each wrapper with its own arguments; without any, it may be left out."""
        ...


@renamed(hidden="rollin_steps", cut="failed_rollin_steps", book="record_ends")
class CurriculumCoordinator:
    """Hands out a teacher's plans to the environments of one vector env, and records their ends.

    switched: why the teacher moved on, until the guide for its new plans is frozen; steps,
    rollin_steps, failed_rollin_steps, episodes, abandoned: environment steps of all ended episodes;
    those of roll-ins, and of roll-ins that ended their episode; how many episodes there were, and
    how many of them were abandoned.

    >>> import gymnasium
    >>> import rollin
    >>> from rollin.envs.point_umaze import PointUmaze
    >>> envs = gymnasium.vector.SyncVectorEnv([lambda: rollin.RollIn(PointUmaze(horizon=5))] * 2)
    >>> teacher = rollin.SequentialTeacher(PointUmaze().curriculum)
    >>> coordinator = rollin.attach(envs, teacher, act=lambda actor, observation: actor)
    >>> observed, infos = envs.reset(seed=0)
    >>> for _ in range(5):
    ...     ends = coordinator.after_step(envs.step(envs.action_space.sample())[-1])
    >>> [(end.env, end.length) for end in ends], coordinator.steps
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
        for offer in link.get("offer"):
            offer.check_teacher(teacher)
        self.link = link
        self.act = act
        self._stop = 1 - check_gamma(gamma)
        self.steps = self.rollin_steps = self.failed_rollin_steps = 0
        self.abandoned = self.episodes = 0
        here = InThisProcess(teacher)
        self._attachments = [(i, seed, here, keep_prefix) for i in range(link.count)]
        self._attach()
        claim(self)
        for issued, plan_id in zip(self._issued, link.get("playing"), strict=True):
            if plan_id:  # an episode that this teacher began, in the wrapper itself
                issued[int(plan_id)] = True

    def __repr__(self) -> str:
        return short_repr(self, teacher=self.teacher, envs=self.link.count, steps=self.steps)

    @property
    def unseen_steps(self) -> int:
        """Environment steps of ended episodes that learners did not see: those of roll-ins."""
        return self.rollin_steps + self.failed_rollin_steps

    def begin(self) -> None:
        """Hand out the first plans; those that need a guide wait for `freeze`."""
        plans = [self._sample(i) for i in range(self.link.count)]
        stock = [self._with_next(i, plan) for i, plan in enumerate(plans)]
        self._hand_out(stock, "it begins there")

    def after_step(self, infos: Mapping[str, Any]) -> list[EpisodeEnd]:
        """Record the ends in the infos of a step of Gymnasium's vector env."""
        return self.record_ends(ends_in(infos, self.link.count), stepped=True)

    def after_reset(self, infos: Mapping[str, Any]) -> list[EpisodeEnd]:
        """Record the episodes that a call of reset abandoned."""
        return self.record_ends(ends_in(infos, self.link.count), stepped=False)

    def record_ends(self, ends: Iterable[EpisodeEnd], *, stepped: bool) -> list[EpisodeEnd]:
        """Report ends to the teacher; return them.

        stepped: whether they come from a step, where no episode is abandoned unless something
        outside RollIn has ended it.
        """
        if self.switched is not None:
            raise RollinError(
                f"The teacher has moved on ({self.switched}), and its plans wait for a guide: call "
                "coordinator.freeze(deepcopy(actor)) when coordinator.switched is set."
            )
        recorded = []
        reason = None
        plans: list[list[Plan]] = [[] for _ in range(self.link.count)]
        for end in ends:
            if stepped and end.abandoned and end.length:
                raise RollinError(
                    f"An episode of env {end.env} was ended after {end.length} steps by a wrapper "
                    "outside RollIn, which saw no end: put TimeLimit inside, "
                    "RollIn(TimeLimit(env, n))."
                )
            reason = self._report(end) or reason
            recorded.append(end)
            if not self._issued[end.env][end.plan_id]:
                plans[end.env].append(self._sample(end.env))
        if reason is not None:
            self._renew(plans)
        if any(plans):
            self._hand_out(plans, reason or LATER)
        return recorded

    def freeze(self, actor: Any) -> None:
        """Load a copy of the actor, which nothing changes any more, as guide of the new plans."""
        if self.act is None:
            raise RollinError("A coordinator without act(actor, observation) cannot use an actor.")
        self.load(FrozenActor(self.act, actor))

    def load(self, guide: Callable[[Any, Any], Any], version: int | None = None) -> None:
        """Load a guide and hand out the plans that waited for it.

        version: of the guide; by default every one that those plans ask for and that is missing,
        several if the teacher advanced more than once in a step.
        """
        asked = sorted({plan.guide for stock in self._waiting for plan in stock})
        missing = [asked_for for asked_for in asked if asked_for > self.version]
        for one in [version] if version is not None else missing or [max(self.version, 1)]:
            self.link.call("load_guide", one, guide, asked)
            self.version = one
        self.switched = None
        if waiting := self._waiting:
            self._waiting = []
            self._hand_out(waiting, LATER)

    def get_state(self) -> dict[str, Any]:
        """Return teacher, streams and counts, as JSON-able values; open episodes are lost."""
        return {
            "teacher": self.teacher.get_state(),
            "envs": list(self.link.call("get_state")),
            "counts": [getattr(self, name) for name in COUNTS],
            "guide": self.version,
        }

    def set_state(self, state: Mapping[str, Any]) -> None:
        """Restore what `get_state` returned; `load` the guide of that version, then `begin`.

        Earlier plans are dropped, and episodes that are being played do not count: reset.
        """
        if len(state["envs"]) != self.link.count:
            raise RollinError(
                f"The coordinator was saved with {len(state['envs'])} envs and resumes with "
                f"{self.link.count}: make as many as there were."
            )
        self.teacher.set_state(state["teacher"])
        self._attach()  # earlier plans belong to another time of the teacher
        self.link.call_each("set_state", [(one,) for one in state["envs"]])
        for name, count in zip(COUNTS, state["counts"], strict=True):
            setattr(self, name, int(count))

    # ------------------------------------------------------------------ inside

    def _attach(self) -> None:
        """Take over the envs: no plan is issued, no guide loaded and no end recorded yet."""
        count = self.link.count
        self.switched: str | None = None
        self.version = 0  # of the guide that is loaded
        self._issued: list[dict[int, bool]] = [{} for _ in range(count)]  # plan_id: standing
        self._recorded = [(0, 0)] * count  # last plan_id and serial
        self._newest: list[Plan | None] = [None] * count
        self._waiting: list[list[Plan]] = []  # plans whose guide is missing
        self.link.call_each("attach_env", self._attachments)

    def _report(self, end: EpisodeEnd) -> str | None:
        env = end.env
        use = end.plan_id, end.serial
        if end.plan_id not in self._issued[env]:
            raise RollinError(
                f"Env {env} ended an episode of plan {end.plan_id}, which it was not given: one "
                "coordinator must plan for an env at a time."
            )
        if not self._recorded[env] < use:
            raise RollinError(
                f"Env {env} ended plan {end.plan_id}, use {end.serial}, twice: pass the infos of "
                "every step to after_step once."
            )
        self._recorded[env] = use
        issued = self._issued[env].items()
        self._issued[env] = {t: standing for t, standing in issued if t >= end.plan_id}
        for name in COUNTS[:-1]:
            setattr(self, name, getattr(self, name) + getattr(end, name))
        self.episodes += 1
        return self.teacher.update(end)

    def _sample(self, env: int) -> Plan:
        return replace(self.teacher.sample(env), stop=self._stop)

    def _with_next(self, env: int, plan: Plan) -> list[Plan]:
        """A plan, and another if it is for one episode: envs may reset before its end."""
        return [plan] if plan.standing else [plan, self._sample(env)]

    def _renew(self, plans: list[list[Plan]]) -> None:
        """Give another plan where a standing one would be repeated after the teacher moved on."""
        for env, newest in enumerate(self._newest):
            if newest is None or newest.standing:
                plan = self._sample(env)
                alike = newest is not None and _alike(plan, newest)
                plans[env] += [] if alike else self._with_next(env, plan)

    def _hand_out(self, plans: list[list[Plan]], reason: str) -> None:
        if any(plan.guide > self.version and plan.beta > 0 for stock in plans for plan in stock):
            self._waiting = plans
            self.switched = reason
            return
        for env, stock in enumerate(plans):
            for plan in stock:
                self._issued[env][plan.plan_id] = plan.standing
                self._newest[env] = plan
        self.link.call_each("assign", plans)


def _alike(one: Plan, other: Plan) -> bool:
    """Return whether two plans differ only in their ids."""
    arrays = ("context", "guide_context", "start")
    bare = dict.fromkeys(arrays)
    return replace(one, plan_id=0, **bare) == replace(other, plan_id=0, **bare) and all(
        np.array_equal(getattr(one, name), getattr(other, name)) for name in arrays
    )


class FrozenActor:
    """A guide of an actor and a function that acts with it."""

    def __init__(self, act: Act, actor: Any) -> None:
        self.act = act
        self.actor = actor

    def __call__(self, observation: Any, context: Any) -> Any:
        """Return the actor's action; the observation shows the context already."""
        return self.act(self.actor, observation)


def attach(
    envs: gymnasium.vector.VectorEnv[Any, Any, Any],
    teacher: Teacher,
    act: Act,
    gamma: float = 0.99,
    *,
    seed: int = 0,
) -> CurriculumCoordinator:
    """Return a coordinator of a vector env whose envs are wrapped in `RollIn`, before its `reset`.

    act: from an actor and one observation to an action. gamma: of roll-ins, as in `RollIn`. In the
    loop, after every step, `for end in coordinator.after_step(infos): …`, and
    `coordinator.freeze(deepcopy(actor))` if `coordinator.switched`.

    >>> import gymnasium
    >>> import rollin
    >>> from rollin.envs.point_umaze import PointUmaze
    >>> envs = gymnasium.vector.SyncVectorEnv([lambda: rollin.RollIn(PointUmaze())] * 2)
    >>> teacher = rollin.SequentialTeacher(PointUmaze().curriculum)
    >>> coordinator = rollin.attach(envs, teacher, act=lambda actor, seen: actor(seen))
    >>> observed, infos = envs.reset(seed=0)
    >>> observed["context"].tolist()
    [[0.0, 0.0], [0.0, 0.0]]
    """
    if not callable(act):
        raise RollinError(
            f"act must be a function of (actor, observation) that gives an action, got "
            f"{type(act).__name__}."
        )
    link = VectorLink(envs)
    coordinator = CurriculumCoordinator(teacher, link, gamma, seed=seed, act=act)
    coordinator.begin()
    return coordinator


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
            self.get("own_call")
        except (AttributeError, NotImplementedError) as error:
            raise not_wrapped(error) from error

    def get(self, name: str) -> Sequence[Any]:
        """Return an attribute of each wrapper."""
        return self.envs.get_attr(name)

    def call(self, method: str, *arguments: Any) -> Sequence[Any]:
        """Call a method of all wrappers with the same arguments."""
        return self.envs.call(method, *arguments)

    def call_each(self, method: str, arguments: Iterable[Sequence[Any]]) -> None:
        """Call a method of each wrapper with its own arguments."""
        self.envs.set_attr("own_call", [(method, one) for one in arguments])


def not_wrapped(error: Exception) -> RollinError:
    """Return the error to raise if the envs of a vector env are not wrapped."""
    return RollinError(
        "Every env of the vector env must be wrapped in rollin.RollIn before it is put there, such "
        f"as SyncVectorEnv([lambda: rollin.RollIn(make_env())]): {format_exception(error)}."
    )


def ends_in(infos: Mapping[str, Any], count: int) -> Iterator[EpisodeEnd]:
    """Yield the ends in batched infos, whose masks name the envs that reported one.

    With autoreset in the same step an end is in `final_info`, before what the reset reported.
    """
    for found in (infos.get("final_info"), infos):
        columns = found.get("rollin_end") if isinstance(found, Mapping) else None
        if found is None or not isinstance(columns, Mapping):
            continue
        mask = np.asarray(found.get("_rollin_end", np.zeros(count, bool)))
        for i in np.flatnonzero(mask):
            one = {name: values[i] for name, values in columns.items() if name[:1] != "_"}
            yield EpisodeEnd.of_info(one)
