"""`RollInCallback`: a teacher for the learners of Stable-Baselines3 and SBX.

It makes a coordinator of the model's vector env, records the ends of episodes, freezes the model as
guide at each advance and logs the progress. Level 1 leaves the learner as it is; level 2 adds a
fresh explorer after the roll-in, as in the paper's practical algorithm.
"""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np
import stable_baselines3
from msgspec import to_builtins
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.off_policy_algorithm import OffPolicyAlgorithm
from stable_baselines3.common.vec_env import DummyVecEnv, VecEnv

from rollin.agents.coordinator import CurriculumCoordinator, not_wrapped
from rollin.agents.numpy_guide import Statistics
from rollin.agents.plan_source import claim
from rollin.agents.wrapper import PrefixStep, RollIn
from rollin.checks import at_least, check_gamma, check_literal
from rollin.curriculum.teacher import EpisodeEnd, Teacher, check_teacher
from rollin.deprecated import renamed
from rollin.errors import RollinError
from rollin.runs.files import converted
from rollin.sb3 import files
from rollin.sb3.explorer import Explorer, check_explorable, suited_level
from rollin.sb3.guide import Frozen, check_travels, freeze
from rollin.streams import Streams, pack_generator, unpack_generator

Prefix = Literal["hidden", "replay"]
Noted = tuple[int, int]
"""Plan and use of the episode that an env began last; zeros before the first."""
LEVELS = {1: "one learner", 2: "with a fresh explorer after the roll-in"}


@renamed(school="coordinator")
class RollInCallback(BaseCallback):
    """ROLLIN for a model whose envs are wrapped in `rollin.RollIn`.

    prefix: hidden, or replay: also stored in the replay buffer, for off-policy learners with one
    env. level: 1, one learner, or 2: an explorer acts after the roll-in and is reinitialised at
    every switch, for off-policy learners; by default 2 for SAC, TD3, DDPG and DQN of
    Stable-Baselines3 with their own replay buffers, else 1. It is logged as `rollin/level`. seed:
    of roll-ins and explorers. anew: begin the teacher's curriculum with a model that has learned
    before. verbose: 1 prints the level, and why the teacher moves on. env_steps: stop `learn` once
    the environments have taken so many steps, those of roll-ins included, which `learn` itself does
    not count. It makes β > 0 comparable with β = 0; give both learns this number. gamma: of
    roll-ins, which stop with probability 1 - γ after each step; the model's discount if None. A
    smaller one shortens roll-ins and leaves the model's discount as it is.

    `save(path)` writes teacher, guide, streams and explorer beside the model, `load(path)` takes
    them back before the next `learn`.
    """

    def __init__(
        self,
        teacher: Teacher,
        *,
        prefix: Prefix = "hidden",
        level: Literal[1, 2] | None = None,
        seed: int = 0,
        anew: bool = False,
        verbose: int = 0,
        env_steps: int | None = None,
        gamma: float | None = None,
    ) -> None:
        super().__init__(verbose)
        self.teacher: Any = check_teacher(teacher)
        check_literal("prefix", prefix, Prefix)
        if level not in (None, 1, 2):
            raise RollinError(
                f"level must be 1 (one learner) or 2 (fresh explorer), got {level!r}: leave it out "
                "to have the one that suits the learner."
            )
        self.prefix = prefix
        self.seed = seed
        self.anew = anew
        self._gamma = None if gamma is None else check_gamma(gamma)
        self._limit = None if env_steps is None else at_least(1, "env_steps", env_steps)
        self._earlier = 0  # environment steps that the coordinator does not count
        self._open = np.zeros(0, np.int64)  # environment steps of the episode that each env plays
        self._asked_level = level
        self.level = level or 1
        self.coordinator: CurriculumCoordinator | None = None
        self.guide: Frozen | None = None
        self.explorer: Explorer | None = None
        self._stream = Streams(seed)["explorer"]
        self._loaded: tuple[Path, files.Arrays, files.Saved] | None = None
        self._held: list[PrefixStep] = []  # a roll-in that is still to be stored
        self._noted: list[Noted] = []  # of each env, since it was attached
        if getattr(teacher, "steps", 0):
            claim(self)

    @property
    def env_steps(self) -> int:
        """Environment steps so far: the agent's and all those of roll-ins."""
        ended = 0 if self.coordinator is None else self.coordinator.steps
        return self._earlier + ended + int(self._open.sum())

    # ------------------------------------------------------------------ Stable-Baselines3 calls

    def _init_callback(self) -> None:
        env = self.training_env
        known = self.coordinator is not None and self.coordinator.link.envs is env  # pyright: ignore
        if not (known and self._noted):
            self._attach(env)
        else:  # a further learn: it has reset the envs, unless it continues to count steps
            pairs = zip(self._starts(), self._noted, strict=True)
            begun = np.array([start != noted for start, noted in pairs])
            if begun.any():
                self._record([{}] * env.num_envs, begun, stepped=False)

    def _on_training_start(self) -> None:
        if self.explorer is not None:
            self.explorer.join()

    def _on_training_end(self) -> None:
        Explorer.leave(self.model)

    def _on_step(self) -> bool:
        self._open += 1
        self._store_prefix()
        if np.any(dones := self.locals["dones"]):
            self._record(self.locals["infos"], dones, stepped=True)
        if self._limit is None or self.env_steps < self._limit:
            return True
        self._print(f"learn stops after {self.env_steps:,} environment steps")
        return False

    # ------------------------------------------------------------------ the coordinator

    def _attach(self, env: VecEnv) -> None:
        """Take over the envs; an episode without a plan begins again."""
        if not all(env.env_is_wrapped(RollIn)):
            raise not_wrapped(AttributeError(f"{env.num_envs} envs without it"))
        self._noted = []  # until all is done
        Explorer.leave(self.model)  # of a learn that was broken off
        self.level = self._asked_level or suited_level(self.model)
        self._check(self.model)
        self._print(f"level {self.level} for {type(self.model).__name__}, {LEVELS[self.level]}")
        self._earlier = self.env_steps
        self.coordinator = None
        self._open = np.zeros(env.num_envs, np.int64)
        own = float(self.model.gamma)  # pyright: ignore[reportAttributeAccessIssue]
        self.coordinator = CurriculumCoordinator(
            self.teacher,
            SB3Link(env),
            own if self._gamma is None else self._gamma,
            seed=self.seed,
            keep_prefix=self.prefix == "replay",
        )
        self.explorer = Explorer(self.model, self._stream) if self.level == 2 else None  # pyright: ignore
        if self._loaded is not None:
            place, tensors, saved = self._loaded
            with files.taken_from(place):
                self._restore(tensors, saved)
            self._loaded = None
        self.coordinator.begin()
        if self.coordinator.switched is not None:
            self._freeze()
        if not all(self.coordinator.link.get("playing")):
            model: Any = self.model
            model._last_obs = model.env.reset()
            if model._vec_normalize_env is not None:
                model._last_original_obs = model._vec_normalize_env.get_original_obs()
        self._note_starts(np.ones(env.num_envs, bool))

    def _check(self, model: Any) -> None:
        off_policy = isinstance(model, OffPolicyAlgorithm)
        if self.prefix == "replay" and not (off_policy and model.n_envs == 1):
            raise RollinError(
                'prefix="replay" stores roll-ins in the replay buffer of an off-policy learner '
                f"with one env, got {type(model).__name__} with {model.n_envs}: use "
                'prefix="hidden".'
            )
        if self.level == 2:
            check_explorable(model)
        elsewhere = not isinstance(self.training_env.unwrapped, DummyVecEnv)
        if elsewhere and getattr(self.teacher, "beta", 1) > 0:
            check_travels(model)
        begins = self._loaded is None and not getattr(self.teacher, "steps", 0)
        if begins and getattr(model, "_n_updates", 0) and not self.anew:
            raise RollinError(
                f"This {type(model).__name__} has learned before, and its teacher starts over: "
                "callback.load(path) takes back the teacher that callback.save(path) wrote beside "
                "the model; RollInCallback(teacher, anew=True) begins the curriculum with it."
            )

    def _record(self, infos: Sequence[Mapping[str, Any]], begun: Any, *, stepped: bool) -> None:
        """Report what ended in envs that have begun another episode."""
        assert self.coordinator is not None
        ends = self.coordinator.record_ends(self._ends(infos, begun), stepped=stepped)
        if self.coordinator.switched is not None:
            self._advance(self.coordinator.switched)
        self._note_starts(begun)
        if ends:
            self._log()

    def _ends(self, infos: Sequence[Mapping[str, Any]], dones: Any) -> Iterator[EpisodeEnd]:
        """Yield the ends of this step, and after them what the reset in it abandoned."""
        for i in np.flatnonzero(dones).tolist():
            for info in (infos[i], self._resets[i]):
                if "rollin_end" in info:
                    yield EpisodeEnd.of_info(info["rollin_end"])

    def _advance(self, reason: str) -> None:
        self._freeze()
        if self.explorer is not None:
            self.explorer.restart()  # lines 6 and 7 of the detailed pseudocode
        self._print(reason)
        self.logger.record("rollin/advanced", reason, exclude=("tensorboard", "csv"))

    def _print(self, text: str) -> None:
        if self.verbose:
            print(f"rollin: {text}")  # noqa: T201  (as Stable-Baselines3's own callbacks do)

    def _freeze(self) -> None:
        assert self.coordinator is not None
        self.guide = freeze(self.model)
        self.coordinator.load(self.guide)

    @property
    def _resets(self) -> Sequence[Mapping[str, Any]]:
        """What each env reported at its last reset."""
        env = self.training_env.unwrapped
        return getattr(env, "reset_infos", [{}] * env.num_envs)

    def _starts(self) -> list[Noted]:
        found = [info.get("rollin_start", {}) for info in self._resets]
        return [(start.get("plan_id", 0), start.get("serial", 0)) for start in found]

    def _note_starts(self, dones: Any) -> None:
        """Note how many steps new episodes took to roll in, and so who acts in them."""
        self._noted = self._starts()
        for i in np.flatnonzero(dones).tolist():
            start = self._resets[i].get("rollin_start", {})
            rolled = start.get("rollin_steps", 0)
            self._open[i] = rolled + start.get("failed_rollin_steps", 0)
            if self.explorer is not None:
                self.explorer.acting[i] = rolled > 0
        if self.prefix == "replay":
            self._held = self.training_env.env_method("take_prefix", indices=[0])[0]

    def _store_prefix(self) -> None:
        """Store a roll-in after the last row of the episode before, ahead of its own first row."""
        for step in self._held:
            store(self.model, step)
        self._held = []

    # ------------------------------------------------------------------ logging, saving

    def _log(self) -> None:
        assert self.coordinator is not None
        coordinator = self.coordinator
        teacher = self.teacher
        record = self.logger.record
        if hasattr(teacher, "progress"):
            record("rollin/k", teacher.k)
            record("rollin/kappa", teacher.progress.kappa)
            record("rollin/threshold", teacher.threshold)
            if not math.isnan(teacher.window.mean):
                record("rollin/window", teacher.window.mean)
            record("rollin/late", teacher.late)
        for name in ("rollin_steps", "failed_rollin_steps", "abandoned", "episodes"):
            record(f"rollin/{name}", getattr(coordinator, name))
        record("rollin/env_steps", self.env_steps)
        record("rollin/level", self.level)

    def save(self, path: str | Path) -> Path:
        """Write teacher, guide, streams and explorer beside the model of this path."""
        if self.coordinator is None:
            raise RollinError("There is nothing to save before learn: call save after it.")
        tensors: files.Arrays = {}
        values: dict[str, Any] = {
            "school": self.coordinator.get_state(),
            "level": self.level,
            "algorithm": type(self.model).__name__,
            "stable_baselines3": stable_baselines3.__version__,
            "stream": [int(word) for word in pack_generator(self._stream)],
            "env_steps": self.env_steps,
        }
        if self.guide is not None:
            tensors |= {f"guide.{name}": value for name, value in self.guide.tensors().items()}
            if self.guide.statistics is not None:
                found = self.guide.statistics.tensors()
                tensors |= {f"statistics.{name}": value for name, value in found.items()}
        if self.explorer is not None:
            found, values["explorer"] = self.explorer.get_state()
            tensors |= {f"explorer.{name}": value for name, value in found.items()}
        target = files.beside(path)
        files.write(target, tensors, values)
        return target

    def load(self, path: str | Path) -> "RollInCallback":
        """Take back what `save` wrote, when `learn` begins; returns the callback."""
        place = files.beside(path)
        tensors, values = files.read(place)
        saved: files.Saved = converted(values, files.Saved, place)
        if self._asked_level not in (None, saved.level):
            raise RollinError(
                f"This was saved with level={saved.level}, and the callback has "
                f"level={self._asked_level}: use the same."
            )
        with files.taken_from(place):
            self.teacher.set_state(saved.school.teacher)
        self._asked_level = saved.level
        self._loaded = place, tensors, saved
        self.coordinator = None
        claim(self)  # learn resets the envs before there is a guide
        return self

    def _restore(self, tensors: files.Arrays, saved: files.Saved) -> None:
        assert self.coordinator is not None
        kind = type(self.model).__name__
        if saved.algorithm != kind:
            raise RollinError(
                f"This was saved beside a {saved.algorithm}, and the model is a {kind}: load the "
                "model that it belongs to."
            )
        self.coordinator.set_state(to_builtins(saved.school))
        known = 0 if saved.env_steps is None else saved.env_steps - self.coordinator.steps
        self._earlier = max(known, 0)  # steps of episodes that were being played
        unpack_generator(self._stream, np.array(saved.stream, np.uint64))
        if version := saved.school.guide:
            self.guide = freeze(self.model)
            self.guide.take(files.under(tensors, "guide."))
            self.guide.statistics = Statistics.of_tensors(files.under(tensors, "statistics."))
            self.coordinator.load(self.guide, version)
        if self.explorer is not None:
            state = to_builtins(saved.explorer)
            self.explorer.set_state(files.under(tensors, "explorer."), state)


class SB3Link:
    """The wrappers of one of Stable-Baselines3's vector envs, which may live in other processes."""

    def __init__(self, envs: VecEnv) -> None:
        self.envs = envs
        self.count = int(envs.num_envs)

    def get(self, name: str) -> Sequence[Any]:
        """Return an attribute of each wrapper."""
        return self.envs.get_attr(name)

    def call(self, method: str, *arguments: Any) -> Sequence[Any]:
        """Call a method of all wrappers with the same arguments."""
        return self.envs.env_method(method, *arguments)

    def call_each(self, method: str, arguments: Iterable[Sequence[Any]]) -> None:
        """Call a method of each wrapper for which there are arguments."""
        for i, one in enumerate(arguments):
            if one:
                self.envs.env_method(method, *one, indices=[i])


def store(model: Any, step: PrefixStep) -> None:
    """Put a step of a roll-in into the replay buffer, as the learner does with its own."""
    action = np.asarray(step.action)
    if hasattr(model.action_space, "low"):
        action = model.policy.scale_action(action)
    info = {"TimeLimit.truncated": step.truncated and not step.terminated}
    done = np.array([step.terminated or step.truncated])
    model.replay_buffer.add(
        _batch(step.observation), _batch(step.after), action[None], np.array([step.reward]), done,
        [info],
    )  # fmt: skip


def _batch(observation: Any) -> Any:
    if isinstance(observation, Mapping):
        return {key: np.asarray(part)[None] for key, part in observation.items()}
    return np.asarray(observation)[None]
