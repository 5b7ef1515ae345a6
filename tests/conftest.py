"""Shared MDPs and strategies."""

import numpy as np
import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

from rollin.tabular.mdp import ContextualMDP

settings.register_profile(
    "rollin", deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("rollin")


def random_mdp(
    seed: int,
    S: int = 4,
    A: int = 3,
    contexts: int = 3,
    gamma: float = 0.8,
    deterministic: bool = False,
) -> ContextualMDP:
    """A random contextual MDP; stochastic rows have some zero entries."""
    rng = np.random.default_rng(seed)
    if deterministic:
        transitions = rng.integers(0, S, (S, A))
    else:
        transitions = rng.dirichlet(np.full(S, 0.7), (S, A))
        transitions[rng.random((S, A, S)) < 0.2] = 0
        transitions[..., 0] += 1e-3
        transitions /= transitions.sum(-1, keepdims=True)
    rewards = rng.random((contexts, S, A)) * (rng.random((contexts, S, A)) < 0.6)
    return ContextualMDP(transitions, rewards, gamma, rng.dirichlet(np.ones(S)))


@st.composite
def mdps(draw: st.DrawFn, max_states: int = 6, max_actions: int = 5) -> ContextualMDP:
    """Random MDPs of many shapes."""
    return random_mdp(
        draw(st.integers(0, 10_000)),
        draw(st.integers(1, max_states)),
        draw(st.integers(1, max_actions)),
        draw(st.integers(2, 4)),
        draw(st.sampled_from([0.0, 0.5, 0.9, 0.97])),
        draw(st.booleans()),
    )


def random_log_pi(mdp: ContextualMDP, seed: int, spread: float = 1.0) -> np.ndarray:
    """log π of random softmax parameters."""
    theta = spread * np.random.default_rng(seed).normal(size=(mdp.n_states, mdp.n_actions))
    return theta - np.log(np.exp(theta).sum(1, keepdims=True))


@pytest.fixture
def mdp() -> ContextualMDP:
    return random_mdp(0)
