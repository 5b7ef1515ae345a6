"""ROLLIN in a single-file PPO (PyTorch): `python examples/ppo_rollin.py`.

What is PPO is plain; what is ROLLIN is marked. Eight mazes are stepped together, and the learner
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

import rollin
from rollin.envs.point_umaze import PointUmaze

GAMMA, LAMBDA, CLIP, ENTROPY = 0.97, 0.95, 0.2, 0.003
ENVS, ROLLOUT, EPOCHS, BATCH = 8, 200, 10, 200


def make_env() -> gymnasium.Env:
    """The maze; observation and goal in one vector. ROLLIN: wrapped, outside of the flattening."""
    return rollin.RollIn(FlattenObservation(PointUmaze()))


class Agent(nn.Module):
    """A Gaussian policy and a value function."""

    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__()
        self.mean = nn.Sequential(
            nn.Linear(inputs, 64), nn.Tanh(), nn.Linear(64, 64), nn.Tanh(), nn.Linear(64, outputs)
        )
        self.value = nn.Sequential(
            nn.Linear(inputs, 64), nn.Tanh(), nn.Linear(64, 64), nn.Tanh(), nn.Linear(64, 1)
        )
        self.log_std = nn.Parameter(torch.full((outputs,), -0.5))

    def policy(self, seen: torch.Tensor) -> Normal:
        return Normal(self.mean(seen), self.log_std.exp())


def act(agent: Agent, observation: np.ndarray) -> np.ndarray:
    """ROLLIN: act as a frozen agent on one observation, which shows the previous context."""
    with torch.no_grad():
        return agent.policy(torch.as_tensor(observation, dtype=torch.float32)).sample().numpy()


def advantages(rewards, values, nonterminal, last):
    """Return generalised advantage estimates (T, N); nonterminal: 0 at the end of an episode."""
    result = torch.zeros_like(rewards)
    running = torch.zeros_like(last)
    for t in reversed(range(len(rewards))):
        after = last if t + 1 == len(rewards) else values[t + 1]
        delta = rewards[t] + GAMMA * after * nonterminal[t] - values[t]
        result[t] = running = delta + GAMMA * LAMBDA * nonterminal[t] * running
    return result


def update(agent: Agent, optimizer, seen, actions, log_probs, gains, returns) -> None:
    """PPO's clipped updates on the steps of one rollout."""
    for _ in range(EPOCHS):
        for pick in torch.randperm(len(seen)).split(BATCH):
            policy = agent.policy(seen[pick])
            ratio = (policy.log_prob(actions[pick]).sum(-1) - log_probs[pick]).exp()
            gain = (gains[pick] - gains[pick].mean()) / (gains[pick].std() + 1e-8)
            surrogate = torch.min(ratio * gain, ratio.clamp(1 - CLIP, 1 + CLIP) * gain).mean()
            error = (agent.value(seen[pick]).squeeze(-1) - returns[pick]).pow(2).mean()
            loss = -surrogate + 0.5 * error - ENTROPY * policy.entropy().sum(-1).mean()
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(agent.parameters(), 0.5)
            optimizer.step()


def main(steps: int, beta: float, seed: int, threshold: float) -> rollin.SequentialTeacher:
    """Learn, and return the teacher."""
    torch.manual_seed(seed)
    torch.set_num_threads(1)
    # the step that ends an episode also resets it: no row is a reset
    mode = gymnasium.vector.AutoresetMode.SAME_STEP
    envs = gymnasium.vector.SyncVectorEnv([make_env] * ENVS, autoreset_mode=mode)

    # ROLLIN: the curriculum, its teacher, and a coordinator that hands its plans to all envs
    curriculum = rollin.Curriculum.along(rollin_path(), delta=1 / 24, rule=threshold)
    teacher = rollin.SequentialTeacher(curriculum, beta=beta)
    coordinator = rollin.attach(envs, teacher, act, GAMMA, seed=seed)

    box: Any = envs.single_action_space
    places: Any = envs.single_observation_space
    agent = Agent(places.shape[0], box.shape[0])
    optimizer = torch.optim.Adam(agent.parameters(), lr=3e-4, eps=1e-5)
    seen = torch.as_tensor(envs.reset(seed=seed)[0], dtype=torch.float32)
    taken = 0
    while taken + coordinator.unseen_steps < steps:  # ROLLIN: its steps count as well
        rows = []
        for _ in range(ROLLOUT):
            with torch.no_grad():
                policy = agent.policy(seen)
                action, value = policy.sample(), agent.value(seen).squeeze(-1)
            after, reward, terminated, truncated, infos = envs.step(
                np.clip(action.numpy(), box.low, box.high)
            )
            over = terminated | truncated
            reward = torch.as_tensor(reward, dtype=torch.float32)
            for i in np.flatnonzero(truncated):  # bootstrap where the time limit ended it
                last = torch.as_tensor(infos["final_obs"][i], dtype=torch.float32)
                with torch.no_grad():
                    reward[i] += GAMMA * agent.value(last).item()
            log_prob = policy.log_prob(action).sum(-1)
            going = torch.as_tensor(~over, dtype=torch.float32)
            rows.append((seen, action, log_prob, reward, value, going))
            seen = torch.as_tensor(after, dtype=torch.float32)

            # ROLLIN: inform the teacher; when it advances, the current agent becomes the guide
            coordinator.after_step(infos)
            if coordinator.switched:
                k, took = teacher.k, coordinator.steps
                print(f"context {k} of {curriculum.K} after {took:,} steps: {coordinator.switched}")
                coordinator.freeze(deepcopy(agent))

        taken += ENVS * ROLLOUT
        stacked = [torch.stack(column) for column in zip(*rows, strict=True)]
        observed, actions, log_probs, rewards, values, going = stacked
        with torch.no_grad():
            gains = advantages(rewards, values, going, agent.value(seen).squeeze(-1))
        rows = (observed, actions, log_probs, gains, gains + values)
        update(agent, optimizer, *(part.flatten(0, 1) for part in rows))
    unseen = coordinator.unseen_steps
    print(f"κ = {teacher.progress.kappa:.2f} after {coordinator.steps:,} steps, {unseen:,} unseen")
    envs.close()
    return teacher


def rollin_path() -> list[list[float]]:
    """Return the path through the maze, from the start around the wall to the final goal."""
    return [[0.0, 0.0], [8.0, 0.0], [8.0, 8.0], [0.0, 8.0]]


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=300_000)
    parser.add_argument("--beta", type=float, default=0.2)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--threshold", type=float, default=40.0)
    main(**vars(parser.parse_args()))
