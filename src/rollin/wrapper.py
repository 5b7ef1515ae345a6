"""`RollIn`: a Gymnasium wrapper that plays the roll-in inside `reset`.

Whoever learns on the wrapped environment sees episodes that start from μ_k = β d + (1 - β) ρ, where
d is where the guide, the policy of the context before, is when it stops. Prefix and guide stay
hidden from the learner. Plans come from a teacher in the same process, or by `assign` from a school
in another one (`rollin.school`); ends go back in `info["rollin_end"]`.

The order of wrappers is env → TimeLimit → stacks, flattening → RollIn → Monitor → vector env →
normaliser: what lies inside is stepped by the guide, too, and what lies outside is not.
"""

import warnings
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces
from gymnasium.utils import RecordConstructorArgs

from rollin.checks import check_beta, check_gamma
from rollin.curriculum.teacher import EpisodeEnd, Plan, Teacher, check_teacher, is_claimed, is_copy
from rollin.envs.contextual import check_context
from rollin.errors import RollinError, told
from rollin.streams import Streams, pack_generator, unpack_generator

Env = gymnasium.Env[Any, Any]
Guide = Callable[[Any, Any], Any]
"""From an observation that shows the guide's context, and that context, to an action.

One that draws may have a method `begin(seed)`, called before every roll-in with a whole number from
the wrapper's own stream.
"""
Show = Callable[[Any, Any], Any]
"""From an observation and a context to the observation that shows it."""

OUTSIDE = {  # wrappers that must not see the roll-in, and why
    "Monitor": "it would count hidden steps, and refuse a reset after them",
    "NormalizeObservation": "the guide's input would change with its statistics",
    "NormalizeReward": "the teacher must see the env's own rewards",
}
CUT_WARNING, CUT_LEAST = 0.2, 50  # share of roll-ins that end their episode; roll-ins before


@dataclass
class _Episode:
    """The episode that is being played: its plan, and what it has come to."""

    plan: Plan
    serial: int
    hidden: int = 0
    cut: int = 0
    prefix_return: float = 0.0
    total: float = 0.0
    length: int = 0
    success: bool = False
    trace: list[Any] = field(default_factory=list)

    def end(self, env: int, terminated: bool, truncated: bool, abandoned: bool) -> EpisodeEnd:
        plan = self.plan
        return EpisodeEnd(
            plan.ticket, self.serial, env, plan.context, plan.purpose, self.hidden > 0,
            self.hidden, self.cut, self.prefix_return, self.total, self.length, self.success,
            terminated, truncated, abandoned, self.trace if plan.trace else None,
        )  # fmt: skip


@dataclass(frozen=True)
class PrefixStep:
    """A hidden step, for learners that want it in their replay: raw observations of the env."""

    observation: Any
    action: Any
    reward: float
    after: Any
    terminated: bool
    truncated: bool


class RollIn(gymnasium.Wrapper[Any, Any, Any, Any], RecordConstructorArgs):
    """Any Gymnasium env, with a share β of its episodes begun by a guide.

    teacher: asked once an episode, in the same process; without one, plans come by `assign`, or
    every episode is played with this guide, beta and gamma under the context of `set_context`.
    guide: an action for an observation and a context; one that is given here serves all plans.
    gamma: the agent's discount; a roll-in stops with probability 1 - γ after each of its steps.
    seed: of the stream that draws roll-ins, the env's own is left alone; give each env another.
    show: how ω_{k-1} gets into the observation that the guide is shown; by default the entry
    `context` or `desired_goal` of a Dict, flattened or not; False for policies that see no context.
    reports: False for evaluation, which neither rolls in nor tells the teacher.

    With β = 0 or without guide nothing is drawn or stepped: the env behaves to the bit as without.

    >>> import gymnasium
    >>> import rollin
    >>> cart = gymnasium.make("CartPole-v1")
    >>> env = rollin.RollIn(cart, guide=lambda seen, _: int(seen[2] > 0), beta=0.5, gamma=0.9)
    >>> observed, info = env.reset(seed=0)
    >>> info["rollin_start"]
    {'ticket': 1, 'serial': 1, 'hidden': 30, 'cut': 0}
    """

    def __init__(
        self,
        env: Env,
        teacher: Teacher | None = None,
        guide: Guide | None = None,
        beta: float = 0.1,
        gamma: float = 0.99,
        *,
        seed: int = 0,
        show: Show | bool = True,
        reports: bool = True,
    ) -> None:
        RecordConstructorArgs.__init__(
            self, teacher=teacher, guide=guide, beta=beta, gamma=gamma, seed=seed, show=show,
            reports=reports,
        )  # fmt: skip
        gymnasium.Wrapper.__init__(self, env)
        check_order(env)
        self._teacher = None if teacher is None else check_teacher(teacher)
        self._guide = guide
        if guide is not None:
            _checked_guide(guide, env)
        self._guides: dict[int, Guide] = {}
        self._beta, self._gamma, self._reports = check_beta(beta), check_gamma(gamma), reports
        self._show = _showing(env, show)
        self._enrolled: int | None = None  # the env's index in a school
        self._stream = Streams(seed)["rollin.0"]
        self._stock: deque[Plan] = deque()
        self._plan: Plan | None = None
        self._serial = 0
        self._own = Plan(0, None)  # the plan without teacher and school
        self._open: _Episode | None = None
        self._first_seed: int | None = None
        self._again: int | None = None
        self._prefix: list[PrefixStep] | None = None
        self.hidden_steps = self.cut_steps = self._rolled = self._cuts = 0
        self._warned = False

    # ------------------------------------------------------------------ what a school says

    def enrol(self, env: int, seed: int, teacher: int = 0, keep_prefix: bool = False) -> None:
        """From now on plans come by `assign`; env: its index, which its random stream is made of.

        teacher: the id of who makes the plans. An episode that another plan has begun does not
        count; if it is still at its first state, the next reset repeats it with the same seed.
        """
        own = None if self._teacher is None or is_copy(self._teacher) else self._teacher
        if own is not None and id(own) != teacher:
            raise RollinError(
                f"Env {env} holds another teacher than the one that is to plan its episodes: give "
                "RollIn and its callback or rollin.attach the same one, or RollIn none."
            )
        asked = own is not None and self._asks
        if self._enrolled is None:
            self._stream = Streams(seed)[f"rollin.{env}"]
        self._enrolled, self._prefix = env, [] if keep_prefix else None
        self._stock.clear()
        self._plan = None
        if self._open is not None and not asked:
            self._again = None if self._open.length else self._first_seed
            self._open = None

    @property
    def playing(self) -> int:
        """Ticket of the episode that is being played under a school's plan; 0 if none is."""
        enrolled = self._enrolled is not None and self._open is not None
        return self._open.plan.ticket if enrolled and self._open else 0

    @property
    def enrolment(self) -> tuple[int, ...]:
        """The env's index in its school, if any; vector envs set it to call `enrol`."""
        return () if self._enrolled is None else (self._enrolled,)

    @enrolment.setter
    def enrolment(self, given: Sequence[int]) -> None:
        env, seed, teacher, keep_prefix = given
        self.enrol(env, seed, teacher, bool(keep_prefix))

    def assign(self, plan: Plan) -> None:
        """Play this plan from the next reset on; one that stood in stock and is standing goes."""
        space = _context_space(self.env)
        if plan.context is not None and space is not None:
            check_context(plan.context, space)
        if not plan.ticket >= 1:
            raise RollinError(f"Tickets of plans are whole numbers from 1 on, got {plan.ticket!r}.")
        if self._stock and self._stock[-1].standing:
            self._stock.pop()
        self._stock.append(plan)

    @property
    def plans(self) -> tuple[Plan, ...]:
        """Plans in stock; vector envs set it to a plan, or to several, to assign them."""
        return tuple(self._stock)

    @plans.setter
    def plans(self, given: Plan | Sequence[Plan]) -> None:
        for plan in (given,) if isinstance(given, Plan) else given:
            self.assign(plan)

    def load_guide(self, version: int, guide: Guide) -> None:
        """Keep a guide under its version, and of the others only the one before."""
        _checked_guide(guide, self.env)
        kept = {v: g for v, g in self._guides.items() if version - 1 <= v}
        self._guides = {**kept, version: guide}

    def set_context(self, context: Any) -> None:
        """Play under this context from the next reset on, where no teacher plans."""
        space = _context_space(self.env)
        self._own = replace(
            self._own, context=context if space is None else check_context(context, space)
        )

    def take_prefix(self) -> list[PrefixStep]:
        """The hidden steps since the last call, if they are kept."""
        taken, self._prefix = self._prefix or [], [] if self._prefix is not None else None
        return taken

    def counts(self) -> dict[str, int]:
        """Hidden steps so far: of roll-ins, and of those that ended their episode."""
        return {"hidden": self.hidden_steps, "cut": self.cut_steps}

    def get_state(self) -> dict[str, Any]:
        """Stream and counts, as JSON-able values; an open episode is not part of it."""
        stream = [int(word) for word in pack_generator(self._stream)]
        counts = [self.hidden_steps, self.cut_steps, self._rolled, self._cuts]
        return {"stream": stream, "counts": counts}

    def set_state(self, state: Mapping[str, Any]) -> None:
        """Take back what `get_state` gave."""
        unpack_generator(self._stream, np.array(state["stream"], np.uint64))
        counts = [int(count) for count in state["counts"]]
        self.hidden_steps, self.cut_steps, self._rolled, self._cuts = counts

    @property
    def wrapper_state(self) -> dict[str, Any]:
        """`get_state`; vector envs set it to call `set_state`."""
        return self.get_state()

    @wrapper_state.setter
    def wrapper_state(self, state: Mapping[str, Any]) -> None:
        self.set_state(state)

    # ------------------------------------------------------------------ episodes

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> Any:
        """Begin an episode as the next plan says, with its roll-in."""
        abandoned = self._abandon()
        seed, self._again = self._again if seed is None else seed, None
        self._first_seed = seed
        plan = self._next_plan(options)
        asked = dict(options or {})
        if plan.context is not None:
            asked["context"] = plan.context
        observation, info = self.env.reset(seed=seed, options=asked or None)
        episode = _Episode(plan, self._serial)
        if self._rolls_in(plan):
            observation, info = self._roll_in(episode, observation, info, asked)
        self._open = episode
        start = {"ticket": plan.ticket, "serial": episode.serial}
        start |= {"hidden": episode.hidden, "cut": episode.cut}
        info = {**info, "rollin_start": start}
        return observation, info if abandoned is None else {**info, "rollin_end": abandoned}

    def step(self, action: Any) -> Any:
        """One step of the learner's."""
        found = self.env.step(action)
        observation, reward, terminated, truncated, info = found
        episode = self._open
        if episode is None:  # after the end: the env's own affair
            return found
        episode.length += 1
        episode.total += float(reward)
        self._watch(episode, info)
        if episode.plan.trace:
            episode.trace.append(np.array(info["outcome"]))
        if terminated or truncated:
            self._open = None
            end = episode.end(self._enrolled or 0, bool(terminated), bool(truncated), False)
            self._report(end)
            info = {**info, "rollin_end": end.as_info()}
        return observation, reward, terminated, truncated, info

    def _abandon(self) -> dict[str, Any] | None:
        """Close an episode that a reset from outside cuts off; what to say of it."""
        episode, self._open = self._open, None
        if episode is None:
            return None
        end = episode.end(self._enrolled or 0, False, False, True)
        self._report(end)
        return end.as_info()

    def _report(self, end: EpisodeEnd) -> None:
        if self._asks:
            assert self._teacher is not None
            self._teacher.update(end)

    @property
    def _asks(self) -> bool:
        """Whether the teacher is asked and told here, not by a school."""
        teacher = self._teacher
        if teacher is None or self._enrolled is not None or not self._reports:
            return False
        if is_copy(teacher):
            raise RollinError(
                "This teacher is a copy in another process, which hears of one env alone: wrap "
                "with RollIn(env) there, and keep the teacher here for rollin.attach or "
                "rollin.sb3.RollInCallback; for evaluation use RollIn(env, reports=False)."
            )
        return not is_claimed(teacher)

    def _next_plan(self, options: Mapping[str, Any] | None) -> Plan:
        if self._asks:
            assert self._teacher is not None
            self._serial = 1
            return replace(self._teacher.sample(), stop=1 - self._gamma)
        if self._enrolled is not None:
            return self._from_stock()
        if options is not None and "context" in options:
            self.set_context(options["context"])
        rolls_in = self._guide is not None and self._teacher is None and self._reports
        self._serial = 1
        self._own = replace(
            self._own, ticket=self._own.ticket + 1, beta=self._beta if rolls_in else 0.0,
            stop=1 - self._gamma, guide=int(rolls_in),
        )  # fmt: skip
        return self._own

    def _from_stock(self) -> Plan:
        if self._stock:
            self._plan, self._serial = self._stock.popleft(), 0
        if self._plan is None or (self._serial and not self._plan.standing):
            raise RollinError(
                f"Env {self._enrolled} has no plan for its next episode: assign one before the "
                "reset; with vector envs call after_step after every step."
            )
        self._serial += 1
        return self._plan

    # ------------------------------------------------------------------ the roll-in

    def _rolls_in(self, plan: Plan) -> bool:
        if plan.beta == 0 or plan.guide == 0:
            return False
        if self._guide is None and plan.guide not in self._guides:
            raise RollinError(
                f"Ticket {plan.ticket} rolls in with guide {plan.guide}, which was not loaded: "
                "give RollIn a guide, let rollin.sb3.RollInCallback or school.freeze load it, or "
                "use beta=0."
            )
        return self._stream.random() < plan.beta

    def _roll_in(self, episode: _Episode, observation: Any, info: Any, asked: Any) -> Any:
        """Act with the guide, then stop with probability 1 - γ: P(h) = (1-γ) γ^(h-1), h ≥ 1."""
        plan = episode.plan
        guide = self._guides.get(plan.guide, self._guide)
        assert guide is not None
        if hasattr(guide, "begin"):
            guide.begin(int(self._stream.integers(2**31)))  # pyright: ignore[reportFunctionMemberAccess]
        stopped = over = False
        steps = 0
        while not (stopped or over):
            action = self._guided(guide, observation, plan.guide_context)
            stopped = self._stream.random() < plan.stop
            after, reward, terminated, truncated, info = self.env.step(action)
            over, steps = bool(terminated or truncated), steps + 1
            episode.prefix_return += float(reward)
            self._watch(episode, info)
            if self._prefix is not None:
                ends = bool(terminated), bool(truncated)
                self._prefix.append(PrefixStep(observation, action, float(reward), after, *ends))
            observation = after
        self._rolled += 1
        if over:  # a redraw might never come to an end: this one plays no other
            self._count_cut(steps)
            episode.cut, episode.prefix_return, episode.success = steps, 0.0, False
            return self.env.reset(options=asked or None)
        episode.hidden = steps
        self.hidden_steps += steps
        return observation, info

    def _guided(self, guide: Guide, observation: Any, context: Any) -> Any:
        seen = observation if context is None else self._show(observation, context)
        try:
            action = guide(seen, context)
        except RollinError:
            raise
        except Exception as error:  # a guide's own code may raise anything
            raise RollinError(
                f"The guide raised {told(error)} for an observation of {self.observation_space}: "
                "guide and env must have the same spaces."
            ) from error
        if not self.action_space.contains(action):
            action = self._fitted(action)
        return action

    def _fitted(self, action: Any) -> Any:
        """An action as the space has it: clipped, or as a whole number."""
        space = self.action_space
        try:
            array = np.asarray(action)
            if isinstance(space, spaces.Box) and array.shape == space.shape:
                return np.clip(array, space.low, space.high).astype(space.dtype)
            if isinstance(space, spaces.Discrete) and space.contains(int(array)):
                return np.int64(array)
        except (TypeError, ValueError):
            pass
        shape = getattr(action, "shape", "")
        raise RollinError(
            f"The guide gave an action that is none of {space}: {type(action).__name__} "
            f"{shape or repr(action)}; guide and env must have the same spaces."
        )

    def _count_cut(self, steps: int) -> None:
        self._cuts += 1
        self.cut_steps += steps
        often = self._cuts > CUT_WARNING * self._rolled
        if often and self._rolled >= CUT_LEAST and not self._warned:
            self._warned = True
            warnings.warn(
                f"{self._cuts} of {self._rolled} roll-ins ended their episode before they "
                "stopped: a smaller gamma, or a longer time limit, gives shorter ones.",
                stacklevel=4,
            )

    def _watch(self, episode: _Episode, info: Mapping[str, Any]) -> None:
        """Note a success: as `info` says, or as the contextual env judges the outcome."""
        if episode.success:
            return
        if "is_success" in info:
            episode.success = bool(info["is_success"])
        elif "outcome" in info:
            judge, context = self._judge, episode.plan.context
            if context is None:
                context = _attribute(self.env, "context")
            if judge is not None and context is not None:
                episode.success = bool(judge(info["outcome"], context))

    @property
    def _judge(self) -> Callable[[Any, Any], Any] | None:
        found = _attribute(self.env, "is_success")
        return found if callable(found) else None


def check_order(env: Env) -> None:
    """Refuse wrappers inside RollIn that belong outside."""
    inner: Any = env
    while isinstance(inner, gymnasium.Wrapper):
        name = type(inner).__name__
        if name in OUTSIDE or isinstance(inner, RollIn):
            why = OUTSIDE.get(name, "an episode rolls in once")
            fix = f"{name}(RollIn(env))" if name in OUTSIDE else "one RollIn"
            raise RollinError(f"{name} lies inside RollIn, where {why}: use {fix}.")
        inner = inner.env


def _checked_guide(guide: Any, env: Env) -> None:
    """Refuse what cannot act here, as far as one can see before it does."""
    if not callable(guide):
        raise RollinError(
            f"A guide must be a function of (observation, context) that gives an action, got "
            f"{type(guide).__name__}: for a rollin.Policy give its method act."
        )
    for name in ("observation_space", "action_space"):
        theirs, ours = getattr(guide, name, None), getattr(env, name)
        if theirs is not None and theirs != ours:
            raise RollinError(
                f"The guide's {name} is {theirs}, the env's is {ours}: take a guide that was "
                "trained on the same env, inside the same wrappers."
            )


def _attribute(env: Env, name: str) -> Any:
    try:
        return env.get_wrapper_attr(name)
    except AttributeError:
        return None


def _context_space(env: Env) -> spaces.Box | None:
    found = _attribute(env, "context_space")
    return found if isinstance(found, spaces.Box) else None


# ---------------------------------------------------------------------- showing ω_{k-1}


def _showing(env: Env, show: Show | bool) -> Show:
    """How the guide's context gets into an observation."""
    if callable(show):
        return show
    if show is False:
        return lambda observation, context: observation
    key = _context_key(env.observation_space)
    if key is not None:
        return lambda observation, context: _replaced(observation, key, context)
    flattened = _flattened(env)
    if flattened is not None:
        parts, inner = flattened
        return lambda observation, context: spaces.flatten(
            parts, _replaced(spaces.unflatten(parts, observation), inner, context)
        )
    return _no_place(env)


def _no_place(env: Env) -> Show:
    def show(observation: Any, context: Any) -> Any:
        raise RollinError(
            f"The guide must be shown the context before, and observations in "
            f"{env.observation_space} have no place for it: use a Dict with the entry context, "
            "say show=function(observation, context), or show=False if the policy sees no context."
        )

    return show


def _replaced(observation: Mapping[str, Any], key: str, context: Any) -> dict[str, Any]:
    before = np.asarray(observation[key])
    try:
        return {**observation, key: np.asarray(context, before.dtype).reshape(before.shape)}
    except (TypeError, ValueError) as error:
        raise RollinError(
            f"The guide's context {context!r} does not fit the entry {key} of shape "
            f"{before.shape}: {told(error)}."
        ) from error


def _context_key(space: spaces.Space[Any]) -> str | None:
    entries = space.spaces if isinstance(space, spaces.Dict) else {}
    return next((key for key in ("context", "desired_goal") if key in entries), None)


def _flattened(env: Env) -> tuple[spaces.Dict, str] | None:
    """The Dict that a FlattenObservation outermost inside RollIn flattens, and its context."""
    if isinstance(env, gymnasium.wrappers.FlattenObservation):
        parts = env.env.observation_space
        key = _context_key(parts)
        if isinstance(parts, spaces.Dict) and key is not None:
            return parts, key
    return None
