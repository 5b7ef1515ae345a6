"""`RollIn`: a Gymnasium wrapper that plays the roll-in inside `reset`.

A learner on the wrapped environment sees episodes that start from μ_k = β d + (1 - β) ρ, where
d is where the guide, the policy of the context before, is when it stops. Roll-in and guide stay
hidden from the learner. Plans come from a teacher in the same process, or by `assign` from a
coordinator (`rollin.attach`), in another process too; ends go back in `info["rollin_end"]`.

The order of wrappers is env → TimeLimit → stacks, flattening → RollIn → Monitor → vector env →
normaliser: the guide steps what lies inside as well, and not what lies outside.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import gymnasium
import numpy as np
from gymnasium.utils import RecordConstructorArgs

from rollin.agents.plan_source import InThisProcess, Offer, PlanSource, attribute
from rollin.agents.roll_in import Guide, PrefixStep, RollInPlayer, Show, place_of
from rollin.curriculum.teacher import EpisodeEnd, Plan, Teacher
from rollin.deprecated import RenamedKeys, renamed
from rollin.envs.box_env import Env, checked_step, require_env
from rollin.errors import RollinError

__all__ = ["PrefixStep", "RollIn"]
OUTSIDE = {  # wrappers that must not see the roll-in, and why
    "Monitor": "it would count hidden steps, and refuse a reset after them",
    "NormalizeObservation": "the guide's input would change with its statistics",
    "NormalizeReward": "the teacher must see the env's own rewards",
}


@renamed(enrol="attach_env")
class RollIn(gymnasium.Wrapper[Any, Any, Any, Any], RecordConstructorArgs):
    """Any Gymnasium env, with a share β of its episodes begun by a guide.

    teacher: plans every episode, in the same process; without one, plans come by `assign`, or
    every episode is played with this guide, beta and gamma under the context of `set_context`.
    guide: an action for an observation and a context; one that is given here serves all plans whose
    own guide was not loaded.
    gamma: of roll-ins, which stop with probability 1 - γ after each step; the paper takes the
    agent's discount. A smaller one shortens roll-ins, and the agent keeps its own.
    seed: of the stream that draws roll-ins, apart from the env's own; give each env another. A
    reset with a seed begins a stream of both seeds, so that it repeats.
    show: how ω_{k-1} gets into the observation that the guide receives; by default the entry
    `context` or `desired_goal` of a Dict, flattened or not; False for policies that see no context.
    reports: False for evaluation, which neither rolls in nor reports to the teacher.

    With β = 0 or without guide nothing is drawn or stepped: the env behaves to the bit as without.

    >>> import gymnasium
    >>> import rollin
    >>> cart = gymnasium.make("CartPole-v1")
    >>> env = rollin.RollIn(cart, guide=lambda seen, _: int(seen[2] > 0), beta=0.5, gamma=0.9)
    >>> observed, info = env.reset(seed=1)
    >>> info["rollin_start"]
    {'plan_id': 1, 'serial': 1, 'rollin_steps': 10, 'failed_rollin_steps': 0}
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
        require_env(env, "RollIn")
        RecordConstructorArgs.__init__(
            self, teacher=teacher, guide=guide, beta=beta, gamma=gamma, seed=seed, show=show,
            reports=reports,
        )  # fmt: skip
        gymnasium.Wrapper.__init__(self, env)
        _check_order(env)
        self.offer = Offer.of(env, place_of(env, show))  # to teachers
        self._plans = PlanSource(
            self.offer, teacher, beta, gamma, guided=guide is not None, reports=reports
        )
        self._player = RollInPlayer(env, guide, show, seed)
        self._episode: OpenEpisode | None = None
        self._first_seed: int | None = None  # of the open episode
        self._repeated_seed: int | None = None  # of the next reset

    # ------------------------------------------------------------------ for coordinators

    def attach_env(
        self, env: int, seed: int, teacher: InThisProcess | None = None, keep_prefix: bool = False
    ) -> None:
        """Take plans by `assign` from now on; env: its index, which its random stream is made of.

        teacher: whose plans these are. An open episode of another plan does not count; if it is
        still at its first state, the next reset repeats it with the same seed. keep_prefix: whether
        steps of roll-ins are kept for `take_prefix`.
        """
        first = self._plans.env is None
        counts = self._plans.attach(env, teacher)
        if first:
            self._player.use_stream(seed, env)
        self._player.kept = [] if keep_prefix else None
        if self._episode is not None and not counts:
            self._repeated_seed = None if self._episode.length else self._first_seed
            self._episode = None

    @property
    def playing(self) -> int:
        """Id of the plan that a coordinator assigned and that is being played, or 0."""
        attached = self._plans.env is not None
        return self._episode.plan.plan_id if attached and self._episode else 0

    @property
    def own_call(self) -> None:
        """Set to (method, arguments) to call a method: vector envs set attributes one by one."""

    @own_call.setter
    def own_call(self, call: tuple[str, Iterable[Any]]) -> None:
        method, arguments = call
        getattr(self, method)(*arguments)

    def assign(self, *plans: Plan) -> None:
        """Play these plans from the next reset on; a standing one that stood last in stock goes."""
        for plan in plans:
            self._plans.assign(plan)

    def load_guide(self, version: int, guide: Guide, planned: Iterable[int] = ()) -> None:
        """Keep a guide under its version, of the others the one before and those of plans.

        planned: versions that plans ask for which are still to be assigned.
        """
        in_stock = {plan.guide for plan in self._plans.stock}
        self._player.load(version, guide, in_stock.union(planned))

    def set_context(self, context: Any) -> None:
        """Play under this context from the next reset on, where no teacher plans."""
        self._plans.set_context(context)

    def take_prefix(self) -> list[PrefixStep]:
        """Return the steps of roll-ins since the last call, if they are kept."""
        return self._player.take()

    def counts(self) -> dict[str, int]:
        """Return the steps so far: of roll-ins, and of those that ended their episode."""
        return RenamedKeys(self._player.counts())

    def get_state(self) -> dict[str, Any]:
        """Return stream and counts, as JSON-able values; an open episode is not part of it."""
        return self._player.get_state()

    def set_state(self, state: Mapping[str, Any]) -> None:
        """Restore what `get_state` returned."""
        self._player.set_state(state)

    # ------------------------------------------------------------------ episodes

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> Any:
        """Begin an episode as the next plan says, with its roll-in."""
        abandoned = None if self._episode is None else self._close(abandoned=True)
        if seed is None:
            seed = self._repeated_seed
        else:
            self._player.reseed(seed)
        self._repeated_seed = None
        self._first_seed = seed
        plan = self._plans.next(options)
        asked = dict(options or {})
        if plan.context is not None:
            asked["context"] = plan.context
        if plan.start is not None:
            asked["start"] = plan.start
        observation, info = self.env.reset(seed=seed, options=asked or None)
        if plan.context is not None:
            self.offer.check_shown(observation, plan.context)
        episode = OpenEpisode(plan, self._plans.serial)
        observation, info = self._roll_in(episode, observation, info, asked)
        self._episode = episode
        info = {**info, "rollin_start": episode.start()}
        return observation, info if abandoned is None else {**info, "rollin_end": abandoned}

    def _roll_in(self, episode: "OpenEpisode", observation: Any, info: Any, asked: Any) -> Any:
        """Let the guide act; return where it leads to, or a new start if it ended the episode."""
        steps = 0
        over = False
        for step, info in self._player.play(episode.plan, observation):
            steps += 1
            over = step.terminated or step.truncated
            observation = step.after
            episode.prefix_return += step.reward
            self._watch(episode, info)
        if over:  # drawing another roll-in might never end: this episode has none
            episode.failed_rollin_steps = steps
            episode.prefix_return = 0.0
            episode.success = False
            return self.env.reset(options=asked or None)
        episode.rollin_steps = steps
        return observation, info

    def step(self, action: Any) -> Any:
        """Take a step of the learner."""
        found = self.env.step(action)
        episode = self._episode
        if episode is None:  # after the end: as the env itself does
            return found
        _, reward, terminated, truncated, info = checked_step(found, self.env)
        self._watch(episode, info)
        episode.count(reward, info)
        if terminated or truncated:
            return *found[:4], {**info, "rollin_end": self._close(terminated, truncated)}
        return found

    def _close(
        self, terminated: bool = False, truncated: bool = False, abandoned: bool = False
    ) -> dict[str, Any]:
        """Report the end of the episode; return `info["rollin_end"]`."""
        episode = self._episode
        assert episode is not None
        self._episode = None
        end = episode.end(self._plans.env or 0, terminated, truncated, abandoned)
        self._plans.report(end)
        return RenamedKeys(end.as_info())

    def _watch(self, episode: "OpenEpisode", info: Mapping[str, Any]) -> None:
        """Note a success: as `info` says, or as the contextual env judges the outcome."""
        if episode.success:
            return
        if "is_success" in info:
            episode.success = bool(info["is_success"])
        elif "outcome" in info and callable(judge := attribute(self.env, "is_success")):
            context = episode.plan.context
            if context is None:
                context = attribute(self.env, "context")
            episode.success = context is not None and bool(judge(info["outcome"], context))


@dataclass
class OpenEpisode:
    """The episode that is being played: its plan, and what happened so far."""

    plan: Plan
    serial: int
    rollin_steps: int = 0
    failed_rollin_steps: int = 0
    prefix_return: float = 0.0
    total: float = 0.0
    length: int = 0
    success: bool = False
    trace: list[Any] = field(default_factory=list)

    def count(self, reward: float, info: Mapping[str, Any]) -> None:
        """Count a step of the learner."""
        self.length += 1
        self.total += reward
        if self.plan.trace:
            if "outcome" not in info:
                raise RollinError(
                    "The teacher wants the outcomes of an episode, and a step of the env had none "
                    f"in its info, only {', '.join(sorted(info)) or 'nothing'}: let the env give "
                    'info["outcome"], or take a teacher whose wants is without "trace".'
                )
            self.trace.append(np.array(info["outcome"]))

    def start(self) -> dict[str, int]:
        """Return `info["rollin_start"]`."""
        names = ("serial", "rollin_steps", "failed_rollin_steps")
        steps = {name: getattr(self, name) for name in names}
        return RenamedKeys(plan_id=self.plan.plan_id, **steps)

    def end(self, env: int, terminated: bool, truncated: bool, abandoned: bool) -> EpisodeEnd:
        """Return the end, for the teacher."""
        return EpisodeEnd(
            plan_id=self.plan.plan_id,
            serial=self.serial,
            env=env,
            context=self.plan.context,
            purpose=self.plan.purpose,
            rolled_in=self.rollin_steps > 0,
            rollin_steps=self.rollin_steps,
            failed_rollin_steps=self.failed_rollin_steps,
            prefix_return=self.prefix_return,
            total=self.total,
            length=self.length,
            success=self.success,
            terminated=terminated,
            truncated=truncated,
            abandoned=abandoned,
            trace=self.trace if self.plan.trace else None,
        )


def _check_order(env: Env) -> None:
    """Raise if wrappers that belong outside lie inside RollIn."""
    inner: Any = env
    while isinstance(inner, gymnasium.Wrapper):
        name = type(inner).__name__
        if name in OUTSIDE or isinstance(inner, RollIn):
            why = OUTSIDE.get(name, "an episode rolls in once")
            fix = f"{name}(RollIn(env))" if name in OUTSIDE else "one RollIn"
            raise RollinError(f"{name} lies inside RollIn, where {why}: use {fix}.")
        inner = inner.env
