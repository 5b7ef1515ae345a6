"""The structure of CleanRL's continuous SAC script, written anew in PyTorch.

As there: three optimizers, SB3's replay buffer, two delayed actor updates every second step, a soft
target update parameter by parameter at each step. `CleanRLCompiled` is the same with everything
between the batch and the new parameters under `torch.compile`.
"""
# pyright: reportMissingImports=false

from itertools import pairwise
from typing import Any

import numpy as np
import torch
from stable_baselines3.common.buffers import ReplayBuffer
from torch import nn, optim

from benchmarks.peers.sac.case import WARMUP, Case, make

GAMMA, TAU, ACTOR_EVERY = 0.99, 0.005, 2
Q_RATE, ACTOR_RATE = 1e-3, 3e-4


def mlp(sizes: list[int]) -> nn.Sequential:
    parts: list[nn.Module] = []
    for inputs, outputs in pairwise(sizes):
        parts += [nn.Linear(inputs, outputs), nn.ReLU()]
    return nn.Sequential(*parts)


class Critic(nn.Module):
    """Q(s, a)."""

    def __init__(self, inputs: int, hidden: tuple[int, ...]) -> None:
        super().__init__()
        self.body, self.head = mlp([inputs, *hidden]), nn.Linear(hidden[-1], 1)

    def forward(self, observation: Any, action: Any) -> Any:
        """Values, (B, 1)."""
        return self.head(self.body(torch.cat([observation, action], 1)))


class Actor(nn.Module):
    """A squashed Gaussian."""

    def __init__(self, inputs: int, hidden: tuple[int, ...], actions: int) -> None:
        super().__init__()
        self.body = mlp([inputs, *hidden])
        self.mean, self.log_std = nn.Linear(hidden[-1], actions), nn.Linear(hidden[-1], actions)

    def sample(self, observation: Any) -> Any:
        """Actions and log-probabilities."""
        x = self.body(observation)
        mean, log_std = self.mean(x), torch.tanh(self.log_std(x))
        log_std = -5 + 0.5 * 7 * (log_std + 1)
        normal = torch.distributions.Normal(mean, log_std.exp())
        u = normal.rsample()
        action = torch.tanh(u)
        log_prob = normal.log_prob(u) - torch.log(1 - action.pow(2) + 1e-6)
        return action, log_prob.sum(1, keepdim=True)


class CleanRL:
    """The script's loop."""

    libraries = ("torch", "stable-baselines3")

    def __init__(self, case: Case) -> None:
        torch.set_num_threads(case.threads)
        torch.manual_seed(0)
        self.case, self.env = case, make(case.env)
        spaces: Any = self.env.observation_space, self.env.action_space
        observed, acted = spaces[0].shape[0], spaces[1].shape[0]
        self.actor = Actor(observed, case.hidden, acted)
        self.critics = [Critic(observed + acted, case.hidden) for _ in range(2)]
        self.targets = [Critic(observed + acted, case.hidden) for _ in range(2)]
        for critic, target in zip(self.critics, self.targets, strict=True):
            target.load_state_dict(critic.state_dict())
        both = [*self.critics[0].parameters(), *self.critics[1].parameters()]
        self.q_optimizer = optim.Adam(both, lr=Q_RATE)
        self.actor_optimizer = optim.Adam(self.actor.parameters(), lr=ACTOR_RATE)
        self.log_alpha = torch.zeros(1, requires_grad=True)
        self.alpha, self.target_entropy = 1.0, -float(acted)
        self.alpha_optimizer = optim.Adam([self.log_alpha], lr=Q_RATE)
        self.replay = ReplayBuffer(
            1_000_000, spaces[0], spaces[1], "cpu", n_envs=1, handle_timeout_termination=False
        )
        self.count = 0
        self.observation, _ = self.env.reset(seed=0)
        for _ in range(WARMUP):
            self._step(self.env.action_space.sample())

    def steps(self, count: int) -> None:
        """So many training steps."""
        for _ in range(count):
            observation = torch.as_tensor(self.observation[None], dtype=torch.float32)
            action, _ = self.actor.sample(observation)
            self._step(action.detach().float().numpy()[0])
            self._update()

    def updates(self, count: int) -> None:
        """So many updates."""
        for _ in range(count):
            self._update()

    def _step(self, action: Any) -> None:
        following, reward, terminated, truncated, _ = self.env.step(action)
        self.replay.add(
            self.observation[None], following[None], action[None],
            np.array([reward]), np.array([terminated]), [{}],
        )  # fmt: skip
        self.observation = following
        if terminated or truncated:
            self.observation, _ = self.env.reset()

    def _update(self) -> None:
        self.count += 1
        data = self.replay.sample(self.case.batch)
        seen, following = data.observations.float(), data.next_observations.float()
        loss = self.critic_loss(
            self.alpha, seen, data.actions, data.rewards.flatten(), data.dones.flatten(), following
        )
        descend(self.q_optimizer, loss)
        if self.count % ACTOR_EVERY == 0:
            for _ in range(ACTOR_EVERY):
                descend(self.actor_optimizer, self.actor_loss(self.alpha, seen))
                descend(self.alpha_optimizer, self.alpha_loss(seen))
                self.alpha = self.read_alpha()
        self.follow()

    def critic_loss(
        self, alpha: Any, seen: Any, acted: Any, reward: Any, done: Any, following: Any
    ) -> Any:
        """Squared errors of both critics."""
        with torch.no_grad():
            action, log_prob = self.actor.sample(following)
            q = torch.min(*(target(following, action) for target in self.targets))
            y = reward + (1 - done) * GAMMA * (q - alpha * log_prob).view(-1)
        return sum(nn.functional.mse_loss(c(seen, acted).view(-1), y) for c in self.critics)

    def actor_loss(self, alpha: Any, seen: Any) -> Any:
        """The smaller critic's value, with entropy."""
        action, log_prob = self.actor.sample(seen)
        q = torch.min(*(critic(seen, action) for critic in self.critics))
        return (alpha * log_prob - q).mean()

    def alpha_loss(self, seen: Any) -> Any:
        """The temperature's, at actions drawn anew."""
        with torch.no_grad():
            _, log_prob = self.actor.sample(seen)
        return (-self.log_alpha.exp() * (log_prob + self.target_entropy)).mean()

    def read_alpha(self) -> Any:
        """The temperature as a number."""
        return self.log_alpha.exp().item()

    def follow(self) -> None:
        """The targets' step."""
        with torch.no_grad():
            for critic, target in zip(self.critics, self.targets, strict=True):
                pairs = zip(critic.parameters(), target.parameters(), strict=True)
                for parameter, slow in pairs:
                    slow.data.copy_(TAU * parameter.data + (1 - TAU) * slow.data)


def descend(optimizer: Any, loss: Any) -> None:
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()


class CleanRLCompiled(CleanRL):
    """Losses, acting and the targets' step under `torch.compile`; Adam as one fused kernel."""

    def __init__(self, case: Case) -> None:
        super().__init__(case)
        self.alpha = self.read_alpha()
        for name in ("critic_loss", "actor_loss", "alpha_loss", "follow"):
            setattr(self, name, torch.compile(getattr(self, name)))
        self.actor.sample = torch.compile(self.actor.sample)
        for name in ("q_optimizer", "actor_optimizer", "alpha_optimizer"):
            optimizer = getattr(self, name)
            rate = optimizer.param_groups[0]["lr"]
            held = optimizer.param_groups[0]["params"]
            setattr(self, name, optim.Adam(held, lr=rate, fused=True))

    def read_alpha(self) -> Any:
        """The temperature as a tensor: a number would be compiled in."""
        return self.log_alpha.exp().detach()


class CleanRLBfloat16(CleanRL):
    """Acting and losses under `torch.autocast`, which takes bfloat16 for matrix products."""

    def steps(self, count: int) -> None:
        """So many training steps."""
        with torch.autocast("cpu", torch.bfloat16):
            super().steps(count)

    def updates(self, count: int) -> None:
        """So many updates."""
        with torch.autocast("cpu", torch.bfloat16):
            super().updates(count)
