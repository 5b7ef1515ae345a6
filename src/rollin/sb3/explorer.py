"""Level 2: a fresh explorer after the roll-in, as in the paper's practical algorithm.

The explorer is a second agent of the same kind. It acts in episodes that rolled in, learns from its
own rows only, and is reinitialised at every switch; the main agent learns from all rows, at steps
of episodes without roll-in (detailed pseudocode, lines 17 – 33). It takes part by four methods of
the model: who acts, what is stored, what a step brings, who learns. Stable-Baselines3 has no hook
for them. Evaluation uses `predict`, which stays the main agent's.
"""

import copy
from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from numpy.random import Generator
from numpy.typing import NDArray
from stable_baselines3 import DDPG, DQN, SAC, TD3
from stable_baselines3.common.buffers import DictReplayBuffer, ReplayBuffer
from stable_baselines3.common.logger import Logger
from stable_baselines3.common.off_policy_algorithm import OffPolicyAlgorithm
from stable_baselines3.her.her_replay_buffer import HerReplayBuffer

from rollin.errors import RollinError
from rollin.sb3.guide import is_jax

Arrays = dict[str, NDArray[Any]]
ROWS = ("actions", "rewards", "dones", "timeouts")
SHADOWED = (
    "_sample_action", "_store_transition", "_on_step", "train", "_excluded_save_params",
)  # fmt: skip
"""Methods of the model that an explorer replaces while it takes part."""
MARK = "_rollin_explorer"  # attribute of the model meanwhile


class Explorer:
    """The agent π_exp of a model, and where it acts now."""

    def __init__(self, model: OffPolicyAlgorithm, stream: Generator) -> None:
        self._model = model
        self._stream = stream
        self._kind = type(model)
        self.acting = np.zeros(model.n_envs, bool)  # envs whose episode rolled in
        self.acted = self.acting.copy()  # at the step that is being stored
        self._steps = np.zeros(2)  # since the last update: the main's, the explorer's
        self._due = np.zeros(2)  # updates, with what is left of rounding
        self.restart()

    def restart(self) -> None:
        """A fresh agent with an empty buffer; the row that is being stored is not its own."""
        self.acted = np.zeros_like(self.acting)
        self.agent: Any = None  # the old one's buffer goes first
        self.agent = twin(self._model, self._kind, int(self._stream.integers(2**31)))

    def join(self) -> None:
        """Take part in learning: attributes of the model stand in front of methods of its class.

        `model.save` leaves them out.
        """
        model: Any = self._model
        self.leave(model)  # a learn that was broken off has left them in
        sample, store, on_step, train, excluded = (getattr(model, name) for name in SHADOWED)

        def sample_action(learning_starts: int, action_noise: Any = None, n_envs: int = 1) -> Any:
            actions, buffered = sample(learning_starts, action_noise, n_envs)
            return self.act(actions, buffered, action_noise)

        def store_transition(replay_buffer: Any, *row: Any, **named: Any) -> None:
            store(Tee(replay_buffer, self), *row, **named)

        def after_step() -> None:
            on_step()
            self.after_step()

        def train_both(gradient_steps: int, batch_size: int = 64) -> None:
            of_main, own = self.share(gradient_steps)
            if of_main:
                train(gradient_steps=of_main, batch_size=batch_size)
            if own:
                self.learn(own, batch_size)

        def left_out() -> list[str]:
            return [*excluded(), *SHADOWED, MARK]

        shadows = (sample_action, store_transition, after_step, train_both, left_out)
        self._own = {name: vars(model)[name] for name in SHADOWED if name in vars(model)}
        vars(model).update(zip(SHADOWED, shadows, strict=True))
        vars(model)[MARK] = self

    @staticmethod
    def leave(model: Any) -> None:
        """Give a model its own methods back."""
        explorer = vars(model).pop(MARK, None)
        if explorer is not None:
            for name in SHADOWED:
                del vars(model)[name]
            vars(model).update(explorer._own)

    @property
    def rows(self) -> int:
        """Rows in its buffer."""
        buffer = self.agent.replay_buffer
        return buffer.buffer_size if buffer.full else buffer.pos

    def act(self, actions: Any, buffered: Any, noise: Any) -> tuple[Any, Any]:
        """Put in the explorer's actions where it acts."""
        self.acted = self.acting.copy()
        self._steps += (~self.acted).sum(), self.acted.sum()
        if self.acted.any():
            agent = self.agent
            model = self._model
            agent._last_obs = model._last_obs
            if hasattr(model, "exploration_rate"):  # DQN's
                agent.exploration_rate = vars(model)["exploration_rate"]
            own, stored = agent._sample_action(0, noise, model.n_envs)
            actions, buffered = actions.copy(), buffered.copy()
            actions[self.acted], buffered[self.acted] = own[self.acted], stored[self.acted]
        return actions, buffered

    def after_step(self) -> None:
        """Do what its kind does after each step: DQN's moves its target network."""
        for _ in range(int(self.acted.sum())):
            self.agent._on_step()

    def share(self, gradient_steps: int) -> tuple[int, int]:
        """How many of these updates are the main's, and how many the explorer's."""
        if self._steps.any():
            self._due += gradient_steps * self._steps / self._steps.sum()
            self._steps[:] = 0
        whole = np.floor(self._due + 1e-9)
        self._due -= whole
        return int(whole[0]), int(whole[1])

    def learn(self, updates: int, batch_size: int) -> None:
        """Update the explorer, once it has a batch of rows."""
        if self.rows < batch_size:
            return
        self.agent._current_progress_remaining = self._model._current_progress_remaining
        self.agent.train(gradient_steps=updates, batch_size=batch_size)

    # ------------------------------------------------------------------ state

    def get_state(self) -> tuple[Arrays, dict[str, Any]]:
        """Tensors by name, and JSON-able values."""
        agent = self.agent
        buffer = agent.replay_buffer
        tensors = {f"policy.{n}": _array(v) for n, v in agent.policy.state_dict().items()}
        for name, module in optimizers(agent).items():
            for i, state in module.state_dict()["state"].items():
                tensors |= {f"optimizer.{name}.{i}.{key}": _array(v) for key, v in state.items()}
        if getattr(agent, "log_ent_coef", None) is not None:
            tensors["log_ent_coef"] = _array(agent.log_ent_coef)
        for name, column in columns(buffer).items():
            tensors[f"buffer.{name}"] = np.ascontiguousarray(column[: self.rows])
        values = {"pos": int(buffer.pos), "full": bool(buffer.full), "updates": agent._n_updates}
        values |= {"due": self._due.tolist(), "steps": self._steps.tolist()}
        return tensors, values | {"calls": getattr(agent, "_n_calls", 0)}

    def set_state(self, tensors: Mapping[str, NDArray[Any]], values: Mapping[str, Any]) -> None:
        """Take back what `get_state` gave."""
        agent = self.agent
        buffer = agent.replay_buffer

        def under(prefix: str) -> dict[str, torch.Tensor]:
            return {
                name.removeprefix(prefix): torch.from_numpy(np.array(value))
                for name, value in tensors.items()
                if name.startswith(prefix)
            }

        agent.policy.load_state_dict(under("policy."))
        if "log_ent_coef" in tensors:
            agent.log_ent_coef.data.copy_(torch.from_numpy(np.array(tensors["log_ent_coef"])))
        for name, module in optimizers(agent).items():
            state: dict[int, dict[str, Any]] = {}
            for key, value in under(f"optimizer.{name}.").items():
                number, part = key.split(".", 1)
                state.setdefault(int(number), {})[part] = value
            module.load_state_dict({**module.state_dict(), "state": state})
        pos = int(values["pos"])
        full = bool(values["full"])
        rows = buffer.buffer_size if full else pos
        for name, column in columns(buffer).items():
            saved = tensors[f"buffer.{name}"]
            if not pos < len(column) or saved.shape != (rows, *column.shape[1:]):
                raise RollinError(
                    f"The explorer's {name} were saved with shape {saved.shape} up to row {pos}, "
                    f"and its buffer has {column.shape}: make the model as it was when it was "
                    "saved."
                )
            column[:rows] = saved
        buffer.pos = pos
        buffer.full = full
        agent._n_updates = int(values["updates"])
        if hasattr(agent, "_n_calls"):
            agent._n_calls = int(values["calls"])
        self._due = np.array(values["due"], float)
        self._steps = np.array(values["steps"], float)


def twin(model: OffPolicyAlgorithm, kind: type[Any], seed: int) -> Any:
    """A fresh agent with the options of a model, for one env at a time.

    Networks are drawn with the seed; the stream that the model draws from is left as it was.
    """
    left_out = {
        "policy", "actor", "critic", "critic_target", "actor_target", "q_net", "q_net_target",
        "replay_buffer", "env", "_vec_normalize_env", "_logger", "ep_info_buffer",
        "ep_success_buffer", "action_noise", "_last_obs", "_last_original_obs",
        "_last_episode_starts", "log_ent_coef", "ent_coef_optimizer", "ent_coef_tensor",
        "lr_schedule", *SHADOWED, MARK,
    }  # fmt: skip
    options = {name: value for name, value in vars(model).items() if name not in left_out}
    agent: Any = kind(model.policy_class, None, device=model.device, _init_setup_model=False)
    vars(agent).update({**options, "policy_kwargs": copy.deepcopy(model.policy_kwargs)})
    agent.seed = agent.tensorboard_log = None
    agent.n_envs = 1
    agent.replay_buffer_kwargs = {}
    agent.num_timesteps = agent._n_updates = 0
    if hasattr(agent, "_n_calls"):  # DQN's steps, by which it moves its target
        agent._n_calls = 0
    with torch.random.fork_rng(devices=[]):  # networks are drawn on the CPU, then moved
        torch.default_generator.manual_seed(seed)  # torch.manual_seed would also seed GPUs
        agent._setup_model()
    agent._vec_normalize_env = model.get_vec_normalize_env()
    agent.set_logger(Logger(None, []))
    agent.policy.set_training_mode(False)
    return agent


def _array(tensor: torch.Tensor) -> NDArray[Any]:
    return tensor.detach().cpu().numpy()


def optimizers(agent: Any) -> dict[str, torch.optim.Optimizer]:
    """The optimisers of an agent, by name."""
    found: dict[str, Any] = {
        "actor": getattr(getattr(agent, "actor", None), "optimizer", None),
        "critic": getattr(getattr(agent, "critic", None), "optimizer", None),
        "policy": getattr(agent.policy, "optimizer", None),
        "temperature": getattr(agent, "ent_coef_optimizer", None),
    }
    return {name: one for name, one in found.items() if isinstance(one, torch.optim.Optimizer)}


def columns(buffer: Any) -> dict[str, NDArray[Any]]:
    """The arrays of a replay buffer, by name."""
    found = {name: getattr(buffer, name) for name in ROWS}
    for name in ("observations", "next_observations"):
        held = getattr(buffer, name, None)
        if isinstance(held, Mapping):
            found |= {f"{name}.{key}": part for key, part in held.items()}
        elif held is not None:
            found[name] = held
    return found


class Tee:
    """A replay buffer that also gives the explorer its rows."""

    def __init__(self, main: Any, explorer: Explorer) -> None:
        self._main = main
        self._explorer = explorer

    def add(self, obs: Any, next_obs: Any, action: Any, reward: Any, done: Any, infos: Any) -> None:
        """Store a row of all envs, and those of the explorer's in its own buffer."""
        self._main.add(obs, next_obs, action, reward, done, infos)
        for i in np.flatnonzero(self._explorer.acted).tolist():
            rows = (_row(part, i) for part in (obs, next_obs, action, reward, done))
            self._explorer.agent.replay_buffer.add(*rows, [infos[i]])


def _row(part: Any, i: int) -> Any:
    if isinstance(part, Mapping):
        return {key: value[i : i + 1] for key, value in part.items()}
    return part[i : i + 1]


def suited_level(model: Any) -> int:
    """2 where an explorer is known to work, 1 elsewhere.

    In our ablations the fresh explorer was the part whose loss cost most, and one learner behind a
    hidden roll-in was not significantly better than the baseline.
    """
    known = type(model) in (SAC, TD3, DDPG, DQN)
    plain = known and type(model.replay_buffer) in (ReplayBuffer, DictReplayBuffer)
    return 2 if plain and not _unexplorable(model) else 1


def check_explorable(model: Any) -> None:
    """Refuse learners that cannot have an explorer."""
    if why := _unexplorable(model):
        raise RollinError(why)


def _unexplorable(model: Any) -> str:
    """Why a learner cannot have an explorer, and what to do; empty if it can."""
    name = type(model).__name__
    if not isinstance(model, OffPolicyAlgorithm) or is_jax(model):
        return (
            f"level=2 needs an off-policy learner of Stable-Baselines3 (SAC, TD3, DQN), got "
            f"{name} of {type(model).__module__.split('.')[0]}: use level=1."
        )
    if isinstance(model.replay_buffer, HerReplayBuffer) or model.n_steps != 1:
        return (
            "level=2 keeps rows of several episodes side by side, which neither HerReplayBuffer "
            "nor n_steps > 1 can use: use level=1, or a plain replay buffer."
        )
    if model.optimize_memory_usage:
        return "level=2 needs next observations in the buffer: use optimize_memory_usage=False."
    return ""
