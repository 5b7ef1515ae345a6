"""ROLLIN around an agent of one's own: one learner, a curriculum, roll-in with a frozen guide.

The agent is whatever learns: tables, networks of any library, discrete or real actions. Unlike the
practical algorithm there is no second, exploring agent: the same one acts after the roll-in.
"""

import copy
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal, Protocol, cast, runtime_checkable

import numpy as np

from rollin.checks import check_beta, check_gamma, check_literals
from rollin.curriculum.contexts import Curriculum
from rollin.curriculum.mastery import Gap
from rollin.curriculum.progress import Progress, Window
from rollin.curriculum.sequential import SequentialTeacher
from rollin.curriculum.teacher import EpisodeEnd, EpisodeRollIn
from rollin.deep.rollin_sac import Episode, RollinStep
from rollin.envs.context_env import ContextHandle
from rollin.envs.contextual import Array, check_context
from rollin.errors import RollinError
from rollin.streams import Streams

KEEPS = ("get_state", "set_state")
LARGE = 1 << 53  # integers below it are exact in every JSON reader
WHOLE = "whole number"  # key of larger ones, as text


@dataclass(slots=True)
class Transition:
    """One step, as the env gave it.

    first: the agent has not seen the step before, because the episode begins here, or its roll-in
    was hidden; rolled: the guide acted.

    >>> import rollin
    >>> ends, marks = (False, False), {"first": True, "rolled": False}
    >>> step = rollin.Transition(3, [9.0], 1, 0.0, 4, *ends, **marks, info={})
    >>> step.next_observation
    4
    """

    observation: Any
    context: Array
    action: Any
    reward: float
    next_observation: Any
    terminated: bool
    truncated: bool
    first: bool
    rolled: bool
    info: Mapping[str, Any]


@runtime_checkable
class Agent(Protocol):
    """What learns.

    Optional: `freeze()`, a copy that acts as the agent does now and learns nothing (by default
    `copy.deepcopy`); `get_state()`, arrays and plain values by name, and `set_state(state)`, with
    which a run in a directory resumes after an interruption: the frozen copy then has both as well.

    >>> import numpy as np
    >>> import rollin
    >>> class Shaken:  # random search needs no more than this
    ...     def __init__(self, env, seed):
    ...         self.space, self.seen = env.action_space, 0
    ...         self.space.seed(seed)
    ...
    ...     def act(self, observation, context, deterministic=False):
    ...         return np.zeros(2) if deterministic else self.space.sample()
    ...
    ...     def observe(self, transition):
    ...         self.seen += 1
    >>> trained = rollin.train("point-umaze", agent=Shaken, steps=400)
    >>> trained.k, trained.policy.seen
    (0, 400)
    """

    def act(self, observation: Any, context: Array, deterministic: bool = False) -> Any:
        """An action of the env's action space."""
        ...

    def observe(self, transition: Transition) -> None:
        """Take a step, and learn from it or later."""
        ...


@dataclass(frozen=True)
class AgentOptions:
    """What happens around the agent; `gamma` is the agent's discount, if it has one."""

    method: Literal["rollin", "baseline", "scratch"] = "rollin"
    """rollin; baseline: the curriculum without roll-in (β = 0); scratch: the last context alone."""
    beta: float = 0.1
    """Share β ∈ [0, 1) of episodes that roll in with the previous context's policy."""
    gamma: float = 0.99
    """The roll-in stops with probability 1 - γ after each of its steps."""
    prefix: Literal["hidden", "shown"] = "hidden"
    """Whether the agent observes the guide's steps: shown is for agents that learn off-policy."""
    counted: Literal["all", "main"] = "all"
    """Which episodes the advance rule looks at: all, or only those without roll-in."""

    def __post_init__(self) -> None:
        check_beta(self.beta)
        check_literals(self)
        check_gamma(self.gamma)

    @property
    def rolls_in(self) -> float:
        """β of the method."""
        return self.beta if self.method == "rollin" else 0.0


def check_agent(agent: Any) -> Agent:
    """Return an agent; raise if it lacks a method."""
    if isinstance(agent, Agent):
        return agent
    raise RollinError(
        "agent must have the methods act(observation, context, deterministic=False) and "
        f"observe(transition), got {type(agent).__name__}."
    )


def frozen(agent: Any) -> Any:
    """Return a copy of the agent that acts as it does now."""
    return agent.freeze() if hasattr(agent, "freeze") else copy.deepcopy(agent)


def _check_frozen(guide: Any) -> None:
    """Raise before the run if its frozen copies could not be saved in a checkpoint."""
    missing = [name for name in KEEPS if not hasattr(guide, name)]
    if missing:
        raise RollinError(
            f"The agent can be saved, and what its freeze() returns cannot: {type(guide).__name__} "
            f"has no {' and no '.join(missing)}. Give it both, or leave both out of the agent."
        )


@dataclass
class AgentState:
    """Where a run stands. guide: the agent as it mastered the last context; observed: steps that
    the agent has taken in.
    """

    env: ContextHandle
    curriculum: Curriculum
    options: AgentOptions
    agent: Any
    teacher: SequentialTeacher
    streams: Streams
    guide: Any = None
    step: int = 0
    episode: int = 0
    observed: int = 0

    @classmethod
    def begin(
        cls,
        env: ContextHandle,
        curriculum: Curriculum,
        options: AgentOptions,
        agent: Any,
        seed: int,
        *,
        successes: bool = False,
    ) -> "AgentState":
        """The beginning of a run; successes: whether the env defines what a success is."""
        for context in curriculum.contexts:
            check_context(context, env.context_space)
        teacher = SequentialTeacher(
            curriculum,
            options.rolls_in,
            counted=options.counted,
            scratch=options.method == "scratch",
            when=Gap(window=curriculum.episodes) if curriculum.rule is None else None,
            successes=successes,
        )
        state = cls(env, curriculum, options, check_agent(agent), teacher, Streams(seed))
        if state.resumable and options.rolls_in and hasattr(agent, "freeze"):
            _check_frozen(agent.freeze())
        return state

    @property
    def progress(self) -> Progress:
        """Progress along the curriculum."""
        return self.teacher.progress

    @property
    def window(self) -> Window:
        """The last episodes under ω_k."""
        return self.teacher.window

    @property
    def resumable(self) -> bool:
        """Whether the agent can be saved."""
        return all(hasattr(self.agent, name) for name in KEEPS)

    def get_state(self) -> dict[str, Any]:
        """Return everything needed to resume at the end of an episode."""
        return {
            "agent": encoded(self.agent.get_state()),
            "guide": None if self.guide is None else encoded(self.guide.get_state()),
            "main": {"count": self.observed},
            **{name: getattr(self, name).get_state() for name in self._curriculum_parts},
            "streams": self.streams.get_state(),
            "step": self.step,
            "episode": self.episode,
        }

    def set_state(self, state: Mapping[str, Any]) -> None:
        """Restore what `get_state` returned."""
        if state["guide"] is not None:
            self.guide = frozen(self.agent)
            self.guide.set_state(decoded(state["guide"]))
        self.agent.set_state(decoded(state["agent"]))
        for name in (*self._curriculum_parts, "streams"):
            getattr(self, name).set_state(state[name])
        self.observed = int(state["main"]["count"])
        self.step = int(state["step"])
        self.episode = int(state["episode"])
        self.teacher.resume_at(self.step)

    @property
    def _curriculum_parts(self) -> tuple[str, ...]:
        """Parts with the progress on the curriculum."""
        return ("progress", "window", *(("teacher",) if self.teacher.adapts else ()))


def encoded(state: Any) -> Any:
    """Return an agent's state with large integers as text: NumPy's generators have 128 bits."""
    if isinstance(state, Mapping):
        return {name: encoded(value) for name, value in state.items()}
    if isinstance(state, list | tuple):
        return [encoded(value) for value in state]
    large = isinstance(state, int) and abs(state) >= LARGE
    return {WHOLE: hex(state)} if large else state


def decoded(state: Any) -> Any:
    """Return the state that `encoded` took."""
    if isinstance(state, Mapping):
        if state.keys() == {WHOLE}:
            return int(state[WHOLE], 16)
        return {name: decoded(value) for name, value in state.items()}
    return [decoded(value) for value in state] if isinstance(state, list) else state


def train_agent(state: AgentState) -> Iterator[RollinStep]:
    """Train along the curriculum without end; yield an event for every step."""
    env = state.env
    options = state.options
    agent = state.agent
    teacher = state.teacher
    streams = state.streams
    kind = env.context_space.dtype
    contexts = state.curriculum.contexts.astype(cast(Any, kind))
    while True:
        plan = teacher.sample()
        k = teacher.k
        before = teacher.previous
        omega = contexts[k]
        previous = contexts[k if before is None else before]
        episode = Episode(state.episode + 1, k, measured=(0.0,) * len(env.measures))
        seed = int(streams["env"].integers(2**31))
        s, _ = env.raw_reset(seed=seed, options={"context": omega.copy()})
        roll_in = EpisodeRollIn(
            plan,
            1 - options.gamma,
            lambda: streams["rollin"].random(),
            recorded=options.prefix == "shown",
        )
        episode.rollin = roll_in.rolled_in
        first = True
        over = False
        while not over:
            actor = roll_in.actor
            recorded = roll_in.recorded
            rolled = actor == "rollin"
            if rolled:
                a = state.guide.act(s["observation"], previous.copy())
                roll_in.advance()
            else:
                a = agent.act(s["observation"], omega.copy())
            after, reward, terminated, truncated, info = env.raw_step(a)
            over = terminated or truncated
            env.count_step(over)
            if recorded:
                step = Transition(
                    s["observation"], omega.copy(), a, reward, after["observation"],
                    terminated, truncated, first, rolled, info,
                )  # fmt: skip
                agent.observe(step)
                state.observed += 1
                first = False
            success = episode.success or env.success_of(info, omega)
            episode.count(actor, reward, success, env.measured(info))
            s = after
            state.step += 1
            mastered = _finish(state, episode.end(plan, terminated, truncated)) if over else None
            done = episode if over else None
            yield RollinStep(state.step, k, actor, reward, None, None, done, mastered)


def _finish(state: AgentState, end: EpisodeEnd) -> str | None:
    """Report an episode; freeze the agent as guide when the teacher advances."""
    teacher = state.teacher
    k = state.progress.k
    state.episode += 1
    if not np.isfinite(end.total):
        raise RollinError(
            f"Episode {state.episode}, step {state.step}: the sum of rewards is {end.total}."
        )
    reason = teacher.update(end)
    if state.progress.k != k and state.options.rolls_in:
        state.guide = frozen(state.agent)
    return reason or teacher.still_mastered()
