"""ROLLIN in one file: the practical algorithm of the paper in plain PyTorch.

    python examples/rollin_single_file.py                                # a point in a maze
    python examples/rollin_single_file.py point-umaze --beta 0 --seed 1  # the baseline: no roll-in
    python examples/rollin_single_file.py antmaze-umaze --relabel        # needs MuJoCo, and days

Two SAC agents learn a sequence of goals ω_0 … ω_K. The main agent π_main learns from all data D.
In a fraction β of the episodes it *rolls in*: it acts as if the goal were still the previous one.
After each such step it hands over to the exploration agent π_exp with probability 1 - γ. π_exp
learns only from its own data D_exp, and restarts from random weights at every new goal.

Read `train` first. The numbers in its comments are lines of the paper's detailed pseudocode (Li,
Zhai, Ma, Levine, ICML 2023, arXiv 2212.12809, appendix, "Practical Implementation of ROLLIN").
"Open" marks what the paper leaves open. Only the environments come from the package rollin, and
tests/test_single_file.py holds the rest to its fast engine. It also needs PyTorch and tyro: pip
install torch==2.13.0 tyro.

Seen on one core of an AMD EPYC (Zen 5) with PyTorch 2.13.0: seed 0 reached context 5 of 12 at step
167,800, and stayed there up to step 300,000. That took 10 minutes of CPU time. Seed 1 reached
context 5 at step 18,000, and stayed there up to step 60,000, where we stopped it.
"""

from collections import deque
from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from math import log, pi, sqrt
from typing import Any, cast

import gymnasium
import numpy as np
import torch
import tyro
from numpy.random import Generator
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn.functional import mse_loss, softplus
from torch.optim import Adam

import rollin.envs  # noqa: F401  (registers its environments with Gymnasium)

Array = NDArray[Any]
PATH = ((0.0, 0.0), (8.0, 0.0), (8.0, 8.0), (0.0, 8.0))  # corners of the way through the U-maze
WINDOW = 10  # episodes whose mean return decides whether a context is mastered


# ====================================================================== OPTIONS
@dataclass
class Args:
    """The defaults are those of `rollin train point-umaze`."""

    env_id: str = "rollin/PointUmaze-v0"
    """A contextual Gymnasium env (docs/own-env.md) with goals on PATH and actions in [-1, 1]."""
    steps: int = 300_000
    """Environment steps."""
    seed: int = 0
    """Seed of all random numbers."""
    beta: float = 0.1
    """Fraction β of episodes that roll in."""
    delta: float = 1 / 12
    """Step Δ between contexts, as a fraction of the path."""
    start: float = 0.0
    """Position of the first context ω_0 on the path."""
    threshold: float = 80.0
    """Return R that the mean of the last ten episodes must exceed."""
    relabel: bool = False
    """Relabel goals: in thirds of each batch the original, a future state, the next state."""
    geometric: bool = False
    """Geometric replay: draw recent transitions more often, instead of uniformly."""
    p: float = 1e-5
    """Parameter of geometric replay: P(age) ∝ (1 - p)^age."""
    gamma: float = 0.97
    """Discount γ; a roll-in stops with probability 1 - γ after each step."""
    hidden: tuple[int, ...] = (32, 32)
    """Sizes of the hidden layers."""
    batch: int = 64
    """Transitions per update."""
    learning_rate: float = 3e-4
    """Learning rate of Adam."""
    tau: float = 0.005
    """Update rate of the target critics."""
    initial_temperature: float = 0.1
    """First entropy temperature α; it is then learned."""
    head_gain: float = sqrt(2)
    """Gain of the first weights of the policy's mean."""
    warmup: int = 2000
    """Uniformly random steps before the first update."""
    exp_fill: int = 64
    """Transitions that D_exp must hold before π_exp learns."""


TASKS = {
    "point-umaze": Args(),
    "antmaze-umaze": Args(  # the paper's values
        "rollin/AntmazeUmaze-v0", 3_000_000, delta=1 / 24, start=1 / 24, threshold=200.0,
        gamma=0.99, hidden=(256, 256), batch=256, initial_temperature=1.0, head_gain=1.0,
        warmup=10_000, exp_fill=1,
    ),
}  # fmt: skip


# ====================================================================== SOFT ACTOR-CRITIC
def network(*sizes: int) -> nn.Sequential:
    """Linear layers with ReLU between them; orthogonal weights, zero biases (open: as jaxrl)."""
    layers: list[nn.Module] = []
    for inputs, outputs in pairwise(sizes):
        linear = nn.Linear(inputs, outputs)
        nn.init.orthogonal_(linear.weight, sqrt(2))
        nn.init.zeros_(linear.bias)
        layers += [linear, nn.ReLU()]
    return nn.Sequential(*layers[:-1])


class Actor(nn.Module):
    """π(a | x), x = (s, ω): a Gaussian squashed by tanh, so that actions lie in (-1, 1)."""

    def __init__(self, inputs: int, actions: int, args: Args) -> None:
        super().__init__()
        self.net = network(inputs, *args.hidden, 2 * actions)
        mean, log_std = cast(nn.Linear, self.net[-1]).weight.data.chunk(2)
        nn.init.orthogonal_(mean, args.head_gain)
        nn.init.orthogonal_(log_std, 1.0)

    def forward(self, x: Tensor, noise: Tensor) -> tuple[Tensor, Tensor]:
        """The action a = tanh(u), u = μ + σ · noise, and log π(a | x)."""
        mean, log_std = self.net(x).chunk(2, -1)
        log_std = log_std.clamp(-10, 2)
        u = mean + log_std.exp() * noise
        log_normal = -0.5 * noise.square() - log_std - 0.5 * log(2 * pi)
        log_slope = 2 * (log(2) - u - softplus(-2 * u))  # log(1 - tanh²(u)), without cancellation
        return u.tanh(), (log_normal - log_slope).sum(-1)


class SAC:
    """An agent; π_main and π_exp are two of them, with the same options."""

    def __init__(self, inputs: int, actions: int, args: Args) -> None:
        self.args = args
        self.actor = Actor(inputs, actions, args)
        sizes = (inputs + actions, *args.hidden, 1)
        self.critics = nn.ModuleList([network(*sizes), network(*sizes)])
        self.targets = deepcopy(self.critics)
        self.log_alpha = torch.tensor(log(args.initial_temperature), requires_grad=True)
        self.target_entropy = -actions / 2  # open: as jaxrl
        groups = (self.critics.parameters(), self.actor.parameters(), [self.log_alpha])
        self.optimizers = [Adam(group, args.learning_rate, fused=True) for group in groups]

    @torch.no_grad()
    def act(self, x: Array, noise: Array) -> Array:
        """An action at x, (S + C,); noise: (A,), standard normal, or zeros for tanh(μ)."""
        return self.actor(torch.from_numpy(x), torch.from_numpy(noise))[0].numpy()

    def update(self, batch: Array, noise: Array) -> None:
        """One step of the critics, their targets, the actor and the temperature, in this order.

        batch: B rows of a `Replay`. noise: (2, B, A), standard normal, for π(x) and π(x_next).
        """
        columns = ("x", "a", "r", "x_next", "mask")
        x, a, r, x_next, mask = (torch.from_numpy(batch[name]) for name in columns)
        noise_now, noise_next = torch.from_numpy(noise)
        of_critics, of_actor, of_alpha = self.optimizers
        alpha = self.log_alpha.exp().detach()

        with torch.no_grad():
            a_next, log_prob = self.actor(x_next, noise_next)
            q_next = torch.minimum(*q_values(self.targets, x_next, a_next))
            y = r + self.args.gamma * mask * (q_next - alpha * log_prob)
        q_1, q_2 = q_values(self.critics, x, a)
        descend(of_critics, mse_loss(q_1, y) + mse_loss(q_2, y))
        with torch.no_grad():
            for old, new in zip(self.targets.parameters(), self.critics.parameters(), strict=True):
                old.lerp_(new, self.args.tau)

        a_now, log_prob = self.actor(x, noise_now)
        q_now = torch.minimum(*q_values(self.critics, x, a_now))
        descend(of_actor, (alpha * log_prob - q_now).mean())
        entropy = -log_prob.detach().mean()
        descend(of_alpha, self.log_alpha.exp() * (entropy - self.target_entropy))


def q_values(critics: nn.ModuleList, x: Tensor, a: Tensor) -> list[Tensor]:
    """Q_1 and Q_2, (B,) each."""
    both = torch.cat([x, a], -1)
    return [critic(both).squeeze(-1) for critic in critics]


def descend(optimizer: Adam, loss: Tensor) -> None:
    """One step of an optimizer; only its own parameters get a gradient."""
    optimizer.zero_grad()
    loss.backward(inputs=optimizer.param_groups[0]["params"])
    optimizer.step()


# ====================================================================== REPLAY
class Replay:
    """Transitions in the order of time. D is one, D_exp another.

    x and x_next are (s, ω) and (s', ω). mask is 0 where the episode terminated, else 1. The outcome
    is the place that the step led to, on which its reward depends: the goal that it would reach.
    """

    def __init__(self, args: Args, X: int, A: int, C: int, rng: Generator) -> None:
        """X, A, C: sizes of x, of an action, and of a context, which is also that of an outcome."""
        self.args = args
        self.rng = rng
        sizes = {"x": (X,), "a": (A,), "r": (), "x_next": (X,), "mask": (), "outcome": (C,)}
        self.rows = np.zeros(args.steps, [(name, "f4", size) for name, size in sizes.items()])
        self.episode = np.zeros(args.steps, np.int64)  # the number of each row's episode
        self.size = 0

    def add(self, transition: tuple[Any, ...], episode: int) -> None:
        """Add (x, a, r, x_next, mask, outcome); episode: its number, which never falls."""
        self.rows[self.size] = transition
        self.episode[self.size] = episode
        self.size += 1

    def sample(self, reward_of: Callable[[Array, Array], Array]) -> Array:
        """Draw a batch with replacement; reward_of: rewards of outcomes under goals."""
        B = self.args.batch
        if self.args.geometric:  # P(age) ∝ (1 - p)^age for age < size, by inversion
            decay = np.log1p(-self.args.p)
            age = np.floor(np.log1p(self.rng.random(B) * np.expm1(self.size * decay)) / decay)
            age = np.minimum(age, self.size - 1).astype(np.int64)
        else:
            age = self.rng.integers(0, self.size, B)
        row = self.size - 1 - age  # age 0 is the newest
        batch = self.rows[row]  # a copy
        if self.args.relabel:
            third = B // 3
            relabelled = batch[B - 2 * third :]  # a view; what comes before keeps its goal
            source = row[B - 2 * third :]
            last = np.searchsorted(self.episode[: self.size], self.episode[source], "right") - 1
            # open: of the later states of the episode so far, each is equally likely
            source[:third] += self.rng.integers(0, (last - source)[:third], endpoint=True)
            goal = self.rows["outcome"][source]
            relabelled["x"][:, -goal.shape[1] :] = goal
            relabelled["x_next"][:, -goal.shape[1] :] = goal
            relabelled["r"] = reward_of(relabelled["outcome"], goal)
        return batch


# ====================================================================== ROLLIN
@dataclass
class Episode:
    """An episode under ω_k, and how many steps of roll-in it began with."""

    k: int
    rollin_steps: int = 0
    length: int = 0
    total: float = 0.0  # undiscounted return


def make_contexts(args: Args) -> Array:
    """ω_0 … ω_K, (K + 1, 2): goals at `start`, `start` + Δ, …, 1 of the length of the path."""
    corners = np.array(PATH)
    distance = np.linalg.norm(np.diff(corners, axis=0), axis=1).cumsum()
    of_corners = np.append(0.0, distance / distance[-1])
    positions = np.append(np.arange(args.start, 1 - 1e-9, args.delta), 1.0)
    return np.stack([np.interp(positions, of_corners, axis) for axis in corners.T], 1)


def make_generators(seed: int) -> dict[str, Generator]:
    """A generator for each purpose, so that more draws for one change nothing for another."""
    names = ("env", "rollin", "warmup", "noise", "D", "D_exp")
    return {name: np.random.default_rng([seed, i]) for i, name in enumerate(names)}


def join(s: dict[str, Array], context: Array) -> Array:
    """x = (s, ω), what an agent sees; s comes from the env, which has its own context beside it."""
    return np.concatenate([s["observation"], context], dtype=np.float32)


def train(args: Args) -> tuple[SAC, list[Episode]]:
    """Train both agents; return π_main and all episodes. Numbers are lines of the pseudocode."""
    env: Any = gymnasium.make(args.env_id)
    reward_of = env.unwrapped.context_reward
    rng = make_generators(args.seed)
    torch.manual_seed(args.seed)  # of the networks
    omega = make_contexts(args)  # 1
    K = len(omega) - 1
    X = sum(space.shape[0] for space in env.observation_space.values())
    A = env.action_space.shape[0]

    D = Replay(args, X, A, omega.shape[1], rng["D"])  # 2
    D_exp = Replay(args, X, A, omega.shape[1], rng["D_exp"])
    k = 0
    main = SAC(X, A, args)
    exp = SAC(X, A, args)
    normal = partial(rng["noise"].standard_normal, dtype=np.float32)
    episodes: list[Episode] = []
    returns = deque[float](maxlen=WINDOW)  # open: of all episodes under ω_k, roll-in or not
    step = 0
    while step < args.steps:  # 3, 4: an episode after the other, for each environment step
        if k < K and len(returns) == WINDOW and np.mean(returns) > args.threshold:  # 5
            k += 1  # 6
            D_exp.size = 0
            returns.clear()
            exp = SAC(X, A, args)  # 7
            print(f"step {step:,}: on to context {k} of {K}")
        seed = int(rng["env"].integers(2**31))
        s, _ = env.reset(seed=seed, options={"context": omega[k]})  # 9
        rollin = k > 0 and rng["rollin"].random() < args.beta  # 10 – 14
        stopped = over = False
        episode = Episode(k)
        episodes.append(episode)

        while not over and step < args.steps:
            step += 1
            if rollin and stopped:  # 16, 17
                agent, context = exp, omega[k]  # 18
            elif rollin:
                agent, context = main, omega[k - 1]  # 20
                stopped = rng["rollin"].random() < 1 - args.gamma  # 21
                episode.rollin_steps += 1
            else:
                agent, context = main, omega[k]  # 24
            learning = step > args.warmup
            if learning:
                a = agent.act(join(s, context), normal(A))
            else:  # open: random steps at the beginning only, not for a new π_exp
                a = rng["warmup"].uniform(-1, 1, A).astype(np.float32)
            x = join(s, omega[k])  # open: with ω_k also during a roll-in
            s_next, r, terminated, truncated, info = env.step(a)  # 26
            x_next = join(s_next, omega[k])
            # open: a time limit bootstraps, a termination does not
            transition = (x, a, r, x_next, not terminated, info["outcome"])
            D.add(transition, len(episodes))  # 27
            if learning and not rollin:  # 28
                main.update(D.sample(reward_of), normal((2, args.batch, A)))  # 29
            if agent is exp:  # 31
                D_exp.add(transition, len(episodes))  # 32
                if learning and D_exp.size >= args.exp_fill:
                    exp.update(D_exp.sample(reward_of), normal((2, args.batch, A)))  # 33

            episode.length += 1
            episode.total += float(r)
            s = s_next  # 35
            over = terminated or truncated
        returns.append(episode.total)
        if len(episodes) % 100 == 0:
            print(f"step {step:,}: context {k} of {K}, mean return {np.mean(returns):.1f}")
    return main, episodes  # 37


if __name__ == "__main__":
    torch.set_num_threads(1)  # small networks are slower with more
    tasks = tyro.extras.subcommand_type_from_defaults(TASKS)
    train(tyro.cli(tasks, default=TASKS["point-umaze"], description=__doc__))
