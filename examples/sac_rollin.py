"""ROLLIN in a single-file SAC (PyTorch): `python examples/sac_rollin.py`.

What is SAC is plain; what is ROLLIN is marked. Two mazes are stepped together, and the learner
never sees the roll-ins: they are played inside `reset`.
"""

import argparse
from copy import deepcopy
from typing import Any

import gymnasium
import numpy as np
import torch
from gymnasium.wrappers import FlattenObservation
from torch import nn
from torch.distributions import Normal
from torch.nn.functional import softplus

import rollin
from rollin.envs.point_umaze import PointUmaze

GAMMA, TAU, RATE, BATCH, WARMUP, ENVS = 0.97, 0.005, 3e-4, 64, 2000, 2
PATH = [[0.0, 0.0], [8.0, 0.0], [8.0, 8.0], [0.0, 8.0]]


def make_env() -> gymnasium.Env:
    """The maze; observation and goal in one vector. ROLLIN: wrapped, outside of the flattening."""
    return rollin.RollIn(FlattenObservation(PointUmaze()))


def network(inputs: int, outputs: int) -> nn.Sequential:
    """Two hidden layers."""
    return nn.Sequential(
        nn.Linear(inputs, 32), nn.ReLU(), nn.Linear(32, 32), nn.ReLU(), nn.Linear(32, outputs)
    )


class Actor(nn.Module):
    """A squashed Gaussian: actions in [-1, 1], with their log-probability."""

    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__()
        self.net = network(inputs, 2 * outputs)

    def forward(self, seen: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        mean, log_std = self.net(seen).chunk(2, -1)
        raw = (policy := Normal(mean, log_std.clamp(-10, 2).exp())).rsample()
        correction = 2 * (np.log(2) - raw - softplus(-2 * raw))  # log(1 - tanh²)
        return raw.tanh(), (policy.log_prob(raw) - correction).sum(-1)


def act(actor: Actor, observation: np.ndarray) -> np.ndarray:
    """ROLLIN: act as a frozen actor on one observation, which shows the previous context."""
    with torch.no_grad():
        return actor(torch.as_tensor(observation, dtype=torch.float32))[0].numpy()


class Learner:
    """Actor, twin critics with slow copies, and the temperature."""

    def __init__(self, inputs: int, outputs: int) -> None:
        self.actor = Actor(inputs, outputs)
        self.critics = nn.ModuleList(network(inputs + outputs, 1) for _ in range(2))
        self.slow = deepcopy(self.critics)
        self.log_alpha = torch.tensor(np.log(0.1), dtype=torch.float32, requires_grad=True)
        self.target_entropy = -outputs / 2
        self.of_actor = torch.optim.Adam(self.actor.parameters(), RATE)
        self.of_critics = torch.optim.Adam(self.critics.parameters(), RATE)
        self.of_alpha = torch.optim.Adam([self.log_alpha], RATE)

    def update(self, seen, action, reward, after, going) -> None:
        alpha = self.log_alpha.exp().detach()
        with torch.no_grad():
            following, log_prob = self.actor(after)
            both = torch.cat([after, following], -1)
            least = torch.min(*(q(both).squeeze(-1) for q in self.slow))
            target = reward + GAMMA * going * (least - alpha * log_prob)
        taken = torch.cat([seen, action], -1)
        loss = sum((q(taken).squeeze(-1) - target).pow(2).mean() for q in self.critics)
        step(self.of_critics, loss)
        chosen, log_prob = self.actor(seen)
        both = torch.cat([seen, chosen], -1)
        least = torch.min(*(q(both).squeeze(-1) for q in self.critics))
        step(self.of_actor, (alpha * log_prob - least).mean())
        step(self.of_alpha, -(self.log_alpha * (log_prob.detach() + self.target_entropy)).mean())
        with torch.no_grad():
            for fast, slow in zip(self.critics.parameters(), self.slow.parameters(), strict=True):
                slow.lerp_(fast, TAU)


def step(optimizer: torch.optim.Optimizer, loss) -> None:
    """One step down the gradient."""
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()


def main(steps: int, beta: float, seed: int, threshold: float) -> rollin.SequentialTeacher:
    """Learn, and return the teacher."""
    torch.manual_seed(seed)
    torch.set_num_threads(1)
    draws = np.random.default_rng(seed)
    # the step that ends an episode also resets it: no row is a reset
    mode = gymnasium.vector.AutoresetMode.SAME_STEP
    envs = gymnasium.vector.SyncVectorEnv([make_env] * ENVS, autoreset_mode=mode)

    # ROLLIN: the curriculum, its teacher, and a coordinator that hands its plans to all envs
    curriculum = rollin.Curriculum.along(PATH, delta=1 / 24, rule=threshold)
    teacher = rollin.SequentialTeacher(curriculum, beta=beta)
    coordinator = rollin.attach(envs, teacher, act, GAMMA, seed=seed)

    places: Any = envs.single_observation_space
    box: Any = envs.single_action_space
    inputs, outputs = places.shape[0], box.shape[0]
    learner = Learner(inputs, outputs)
    replay = np.zeros((steps + ENVS, 2 * inputs + outputs + 2), np.float32)
    stored = 0
    seen = envs.reset(seed=seed)[0]
    while stored + coordinator.unseen_steps < steps:  # ROLLIN: its steps count as well
        with torch.no_grad():
            action = learner.actor(torch.as_tensor(seen, dtype=torch.float32))[0].numpy()
        if stored < WARMUP:
            action = draws.uniform(-1, 1, action.shape).astype(np.float32)
        after, reward, terminated, truncated, infos = envs.step(action)
        last = after.copy()  # where the step led, before a reset in it
        for i in np.flatnonzero(terminated | truncated):
            last[i] = infos["final_obs"][i]
        rows = np.column_stack([seen, action, reward, last, ~terminated])
        replay[stored : stored + ENVS] = rows
        seen = after
        stored += ENVS

        # ROLLIN: inform the teacher; when it advances, the current actor becomes the guide
        coordinator.after_step(infos)
        if coordinator.switched:
            k, took = teacher.k, coordinator.steps
            print(f"context {k} of {curriculum.K} after {took:,} steps: {coordinator.switched}")
            coordinator.freeze(deepcopy(learner.actor))

        if stored > WARMUP:
            for _ in range(ENVS):
                batch = torch.as_tensor(replay[draws.integers(stored, size=BATCH)])
                at, did, paid, then, going = batch.split([inputs, outputs, 1, inputs, 1], -1)
                learner.update(at, did, paid.squeeze(-1), then, going.squeeze(-1))
    unseen = coordinator.unseen_steps
    print(f"κ = {teacher.progress.kappa:.2f} after {coordinator.steps:,} steps, {unseen:,} unseen")
    envs.close()
    return teacher


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=100_000)
    parser.add_argument("--beta", type=float, default=0.2)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--threshold", type=float, default=40.0)
    main(**vars(parser.parse_args()))
