"""ROLLIN in practice: the appendix's detailed pseudocode over two SAC agents, line by line.

The loop yields after every environment step and knows nothing of files or screens; whoever consumes
it decides when to stop, what to log and when to write a checkpoint (at the end of an episode). An
episode begins with a seed from the stream `env`, so that a run restored at the end of one goes on
exactly as it would have. Three ablations change one line each: who rolls in (20), who goes on from
there (18), and whether the roll-in is recorded (27).
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from operator import add
from typing import Literal

import numpy as np

from rollin.arrays import Float
from rollin.checks import shown
from rollin.curriculum.teacher import EpisodeEnd, Plan
from rollin.deep.go_explore import GoExplore
from rollin.deep.state import DeepState
from rollin.envs.context_env import ContextStep
from rollin.errors import RollinError
from rollin.sac.ahead import Ahead
from rollin.sac.learner import SACLearner, UpdateInfo
from rollin.sac.relabel import relabel
from rollin.sac.replay import Replay
from rollin.sac.selection import Selection

Actor = Literal["main", "rollin", "exp"]
"""Who acted: π_main(·|ω_k), the guide π_main(·|ω_{k-1}) while rolling in, or π_exp(·|ω_k)."""


@dataclass(slots=True)
class Episode:
    """A finished episode; `rollin_steps` is 0 without roll-in, `measured` sums over its steps."""

    number: int
    k: int
    rollin: bool = False
    rollin_steps: int = 0
    length: int = 0
    total: float = 0.0
    success: bool = False
    measured: tuple[float, ...] = ()

    def count(self, seen: ContextStep, actor: Actor) -> None:
        """Take a step."""
        self.length += 1
        self.total += seen.reward
        self.rollin_steps += actor == "rollin"
        self.measured = tuple(map(add, self.measured, seen.measured))


@dataclass(slots=True)
class RollinStep:
    """One environment step: who acted under which context, what was updated, what ended.

    mastered: why the context is mastered, at the end of the episode that showed it; or why the
    teacher went back to an easier one.
    """

    step: int
    k: int
    actor: Actor
    reward: float
    main: UpdateInfo | None
    exp: UpdateInfo | None
    episode: Episode | None
    mastered: str | None

    @property
    def episode_end(self) -> bool:
        """Whether this was the last step of an episode."""
        return self.episode is not None


def train_rollin(state: DeepState) -> Iterator[RollinStep]:
    """Train step by step without end; break out of the loop to stop.

    state: from `rollin.prepare`. Yields an event for every environment step: step, context k,
    actor, reward, losses, and, at its end, the episode and why its context was mastered.

    >>> import rollin
    >>> state = rollin.prepare("point-umaze", warmup=100, hidden=(8, 8), batch=16)
    >>> for event in rollin.train_rollin(state):
    ...     if event.episode_end:
    ...         break
    >>> event.step, event.k, event.actor, event.episode.length
    (200, 0, 'main', 200)
    >>> state.close()
    """
    if not isinstance(state, DeepState):
        raise RollinError(f"state must be what rollin.prepare(env) returns, got {shown(state)}.")
    env, options = state.env, state.options
    main, exp, guide, D, D_exp = state.main, state.exp, state.guide, state.D, state.D_exp
    teacher, streams = state.teacher, state.streams
    stop = options.stop_probability(main.config.gamma)
    contexts = state.curriculum.contexts.astype(np.float32)
    learn, short = Updates(state), options.updates == "short"
    steady = options.updates == "steady"
    one_learner, hidden = options.explorer == "main", options.prefix == "hidden"
    go_explore = GoExplore(options.go_explore, env, streams)
    while True:  # 3: for each environment step, one episode after the other
        plan = teacher.sample()
        k, before = teacher.context_of(plan.ticket), teacher.previous
        omega = np.asarray(plan.context, np.float32)
        previous = omega if plan.guide_context is None else plan.guide_context.astype(np.float32)
        episode = Episode(state.episode + 1, k, measured=(0.0,) * len(env.measures))
        with _naming(episode, state.step + 1):
            seed = int(streams["env"].integers(2**31))
            s, outcome = env.reset(plan.context, seed, plan.start)  # 9
        episode.rollin = plan.beta > 0 and streams["rollin"].random() < plan.beta  # 10 – 14
        if episode.rollin:
            state.redraw.begin()
        first_row = D.total
        go_explore.begin(None if before is None else contexts[before])
        stopped, over = plan.length == 0, False
        while not over:
            step = state.step + 1
            if not episode.rollin or (stopped and one_learner):
                actor, agent, context = "main", main, omega  # 24
            elif stopped:
                actor, agent, context = "exp", exp, omega  # 18
            else:
                actor, agent, context = "rollin", guide, previous  # 20
                stopped = (  # 21
                    streams["rollin"].random() < stop
                    if plan.length is None
                    else episode.rollin_steps + 1 >= plan.length
                )
            recorded = not (hidden and actor == "rollin")
            learning = recorded and step > options.warmup
            main_learns = learning and (short or steady or actor == "main")  # 28
            with _naming(episode, step):
                if main_learns:
                    learn.begin()
                if step <= options.warmup:
                    a = streams["warmup"].uniform(-1, 1, env.action_size).astype(np.float32)
                else:
                    a = agent.act(np.concatenate((s, context)))
                a = go_explore(a, outcome)
                seen = env.step(a)  # 26
                told = {"terminated": seen.terminated, "truncated": seen.truncated}
                told["recorded"] = recorded
                after, outcome = seen.observation, seen.outcome
                D.append(s, a, seen.reward, after, context=omega, outcome=outcome, **told)  # 27
                info = learn.main() if main_learns else None  # 29
                if actor == "exp":  # 31
                    D_exp.take_newest()  # 32
                exp_learns = learning and (short or actor == "exp")
                exp_info = learn.exp() if exp_learns else None  # 33
                episode.count(seen, actor)
                episode.success = episode.success or env.is_success(outcome, omega)
            s, state.step = after, step  # 35
            over = seen.terminated or seen.truncated
            mastered = (
                finish_episode(state, plan, episode, seen, D.total - first_row) if over else None
            )  # 4 – 8
            done = episode if over else None
            yield RollinStep(step, k, actor, seen.reward, info, exp_info, done, mastered)


def episode_end(
    plan: Plan, episode: Episode, last: ContextStep, trace: Float | None = None
) -> EpisodeEnd:
    """What a teacher is told; a roll-in's steps count as the episode's own."""
    return EpisodeEnd(
        plan.ticket, 1, 0, plan.context, plan.purpose, episode.rollin, 0, 0, 0.0, episode.total,
        episode.length, episode.success, last.terminated, last.truncated, trace=trace,
    )  # fmt: skip


def finish_episode(
    state: DeepState, plan: Plan, episode: Episode, last: ContextStep, rows: int
) -> str | None:
    """Lines 5 to 8 of the next step: tell the teacher; returns why a context is mastered, or None.

    The roll-in's steps count as the episode's own, because they are the agents' here. rows: of the
    episode in D, the newest ones.
    """
    teacher, D = state.teacher, state.D
    state.episode += 1
    recorded = state.options.prefix == "replay"  # all of an episode's steps are rows of D
    wanted = plan.trace and (not episode.rollin or (recorded and "rollin-trace" in teacher.wants))
    trace = D.outcomes(np.arange(D.total - rows, D.total)) if wanted else None
    end = episode_end(plan, episode, last, trace)
    if episode.rollin:
        state.redraw.ended(teacher.shown(end))
    if state.options.better:
        state.better.take(rows, episode.total)
    switches, guides = len(state.progress.advances), teacher.guides
    reason = teacher.update(end)
    if len(state.progress.advances) != switches:  # 6: k ← k + 1, D_exp ← ∅
        state.D_exp.clear()
        state.exp.reset()  # 7
        state.redraw.restart()
        state.better.clear()
    if teacher.guides != guides:  # not on a way back, before which nothing was mastered
        state.freeze_guide()
    return reason or teacher.still_mastered()  # the last one every time


class Updates:
    """Draws batches, relabels them if wanted, and updates the agents."""

    def __init__(self, state: DeepState) -> None:
        self._state, options = state, state.options
        self._p = options.p if options.sampling == "geometric" else None
        # whom to relabel to depends on how the episode goes on: nothing is drawn ahead
        plain = not (options.relabel or options.better)
        self._ahead = Ahead(state.main, state.D, state.main.streams, self._p) if plain else None

    def begin(self) -> None:
        """Begin the update of π_main that the next row of D will be followed by."""
        if self._ahead is not None:
            self._ahead.begin()

    def main(self) -> UpdateInfo:
        """One update of π_main from D."""
        if self._ahead is not None:
            return self._ahead.update()
        return self._update(self._state.main, self._state.D)

    def exp(self) -> UpdateInfo | None:
        """One update of π_exp from D_exp; None while that holds too few rows."""
        state = self._state
        if len(state.D_exp) < state.options.exp_fill:
            return None
        return self._update(state.exp, state.D_exp)

    def _update(self, agent: SACLearner, source: Replay | Selection) -> UpdateInfo:
        state, batch = self._state, agent.batch
        picked = source.draw(len(batch), agent.streams["replay"], self._p)
        if share := round(state.options.better * len(batch)) if len(state.better) else 0:
            # spread over the batch, whose thirds are relabelled by their place
            places = np.arange(share) * len(batch) // share
            picked[places] = state.better.draw(share, agent.streams["better"])
        state.D.gather(picked, batch)
        if state.options.relabel:
            stream, env = agent.streams["relabel"], state.env
            relabel(state.D, picked, batch, stream, env.compute_reward, env.to_context)
        return agent.update(batch)


class _naming:  # noqa: N801  (used as a statement)
    """Inside, an error is told with the episode and the step."""

    __slots__ = ("episode", "step")

    def __init__(self, episode: Episode, step: int) -> None:
        self.episode, self.step = episode, step

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, RollinError):
            text = re.sub(r"^Step \d+: ", "", str(error))  # the replay counts its rows
            raise RollinError(f"Episode {self.episode.number}, step {self.step}: {text}") from error
