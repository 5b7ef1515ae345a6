"""ROLLIN around an agent of one's own: one learner, a curriculum, roll-in with a frozen guide.

The agent is whatever learns: tables, networks of any library, discrete or real actions. Unlike the
practical algorithm there is no second, exploring agent: the same one acts after the prefix.
"""

import copy
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol, cast, get_args, runtime_checkable

import numpy as np

from rollin.checks import check_beta, one_of
from rollin.curriculum.contexts import Curriculum
from rollin.curriculum.mastery import Gap
from rollin.curriculum.progress import Progress
from rollin.curriculum.rules import Window
from rollin.curriculum.teacher import Plan
from rollin.curriculum.walk import Walk
from rollin.deep.practical import Actor, Episode, RollinStep, episode_end
from rollin.envs.context_env import ContextStep
from rollin.envs.context_handle import ContextHandle
from rollin.envs.contextual import Array, check_context
from rollin.errors import RollinError
from rollin.streams import Streams

Method = Literal["rollin", "baseline", "scratch"]
KEEPS = ("get_state", "set_state")
LARGE, WHOLE = 1 << 53, "whole number"  # what JSON readers keep exactly; the mark of what is more


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
    which a run in a directory goes on after an interruption: the frozen copy then has both, too.

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

    method: Method = "rollin"
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
        one_of("method", self.method, get_args(Method))
        one_of("prefix", self.prefix, ("hidden", "shown"))
        one_of("counted", self.counted, ("all", "main"))
        if not 0 <= self.gamma < 1:
            raise RollinError(f"gamma must lie in [0, 1), got {self.gamma}.")

    @property
    def rolls_in(self) -> float:
        """β of the method."""
        return self.beta if self.method == "rollin" else 0.0


def check_agent(agent: Any) -> Agent:
    """Refuse what cannot be an agent."""
    if isinstance(agent, Agent):
        return agent
    raise RollinError(
        "agent must have the methods act(observation, context, deterministic=False) and "
        f"observe(transition), got {type(agent).__name__}."
    )


def frozen(agent: Any) -> Any:
    """A copy of the agent that acts as it does now."""
    return agent.freeze() if hasattr(agent, "freeze") else copy.deepcopy(agent)


def _check_frozen(guide: Any) -> None:
    """Refuse a frozen copy that could not be kept in a checkpoint, before hours are spent."""
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
    teacher: Walk
    streams: Streams
    guide: Any = None
    step: int = 0
    episode: int = 0
    observed: int = field(default=0)

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
        teacher = Walk(
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
        """Where the run stands on its curriculum."""
        return self.teacher.progress

    @property
    def window(self) -> Window:
        """The last episodes under ω_k."""
        return self.teacher.window

    @property
    def resumable(self) -> bool:
        """Whether the agent gives its state."""
        return all(hasattr(self.agent, name) for name in KEEPS)

    def get_state(self) -> dict[str, Any]:
        """Everything needed to go on at the end of an episode."""
        return {
            "agent": _kept(self.agent.get_state()),
            "guide": None if self.guide is None else _kept(self.guide.get_state()),
            "main": {"count": self.observed},
            **{name: getattr(self, name).get_state() for name in self._walked},
            "streams": self.streams.get_state(),
            "step": self.step,
            "episode": self.episode,
        }

    def set_state(self, state: Mapping[str, Any]) -> None:
        """Go back to a state that `get_state` gave."""
        if state["guide"] is not None:
            self.guide = frozen(self.agent)
            self.guide.set_state(given_back(state["guide"]))
        self.agent.set_state(given_back(state["agent"]))
        for name in (*self._walked, "streams"):
            getattr(self, name).set_state(state[name])
        self.observed = int(state["main"]["count"])
        self.step, self.episode = int(state["step"]), int(state["episode"])
        self.teacher.go_on(self.step)

    @property
    def _walked(self) -> tuple[str, ...]:
        """Parts that say where the curriculum stands."""
        return ("progress", "window", *(("teacher",) if self.teacher.adapts else ()))


def _kept(state: Any) -> Any:
    """An agent's state with large whole numbers as text: NumPy's generators have 128 bits."""
    if isinstance(state, Mapping):
        return {name: _kept(value) for name, value in state.items()}
    if isinstance(state, list | tuple):
        return [_kept(value) for value in state]
    large = isinstance(state, int) and abs(state) >= LARGE
    return {WHOLE: hex(state)} if large else state


def given_back(state: Any) -> Any:
    """The state that an agent gave."""
    if isinstance(state, Mapping):
        if state.keys() == {WHOLE}:
            return int(state[WHOLE], 16)
        return {name: given_back(value) for name, value in state.items()}
    return [given_back(value) for value in state] if isinstance(state, list) else state


def train_agent(state: AgentState) -> Iterator[RollinStep]:
    """The curriculum with roll-in, for ever, one event a step."""
    env, options, agent = state.env, state.options, state.agent
    teacher, streams = state.teacher, state.streams
    kind = env.context_space.dtype
    contexts = state.curriculum.contexts.astype(cast(Any, kind))
    while True:
        plan, k, before = teacher.sample(), teacher.k, teacher.previous
        omega, previous = contexts[k], contexts[k if before is None else before]
        episode = Episode(state.episode + 1, k, measured=(0.0,) * len(env.measures))
        seed = int(streams["env"].integers(2**31))
        s, _ = env.raw_reset(seed=seed, options={"context": omega.copy()})
        rolls = plan.beta > 0 and state.guide is not None
        episode.rollin = rolls and streams["rollin"].random() < plan.beta
        rolling, first, over = episode.rollin, True, False
        while not over:
            actor: Actor = "rollin" if rolling else "main"
            who: Any = state.guide if rolling else agent
            context = previous if rolling else omega
            a = who.act(s["observation"], context.copy())
            after, reward, terminated, truncated, info = env.raw_step(a)
            over = terminated or truncated
            env.count_step(over)
            if not rolling or options.prefix == "shown":
                step = Transition(
                    s["observation"], omega.copy(), a, reward, after["observation"],
                    terminated, truncated, first, rolling, info,
                )  # fmt: skip
                agent.observe(step)
                state.observed += 1
                first = False
            seen = ContextStep(np.empty(0, np.float32), reward, terminated, truncated,
                               np.empty(0, np.float32), env.measured(info))  # fmt: skip
            episode.count(seen, actor)
            episode.success = episode.success or env.success_of(info, omega)
            if rolling:  # stops after a step: at least one is the guide's
                rolling = streams["rollin"].random() >= 1 - options.gamma
            s, state.step = after, state.step + 1
            mastered = _finish(state, plan, episode, seen) if over else None
            done = episode if over else None
            yield RollinStep(state.step, k, actor, reward, None, None, done, mastered)


def _finish(state: AgentState, plan: Plan, episode: Episode, last: ContextStep) -> str | None:
    """Tell the teacher; when it moves on, the agent of now is the guide."""
    teacher, stood = state.teacher, state.progress.k
    if not np.isfinite(episode.total):
        raise RollinError(
            f"Episode {episode.number}, step {state.step}: the sum of rewards is {episode.total}."
        )
    state.episode += 1
    reason = teacher.update(episode_end(plan, episode, last))
    if state.progress.k != stood and state.options.rolls_in:
        state.guide = frozen(state.agent)
    return reason or teacher.still_mastered()
