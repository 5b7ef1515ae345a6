"""Shared MDPs, strategies and fixtures; what is compiled once for all; the order of the tests.

slow.txt names the tests, or files of tests, that take more than a third of a second of a core, the
longest first: they begin, so that all workers end together, and `make test-fast` leaves them out.

What a new test can share: kernels (`pytest_configure` compiles those of an engine; a test's own
compiled function is `rollin.compiling.cached_njit`, not `njit`), programs of JAX (any process that
pytest starts finds those of the same shapes), `jobs_here` for sweeps without worker processes,
`forks` for processes to be killed, `toys.Gated` for a run that has to be under way, `made_runs` for
directories of runs that nobody has to train, `undrawn` where pictures do not matter. Tests that
share a costly fixture have one `xdist_group`, so that one worker makes it, and it is of the
session, because tests of other modules come between; those that train with PyTorch have the group
`torch`, because its first optimiser imports modules for seconds.
"""

import atexit
import gc
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from threadpoolctl import threadpool_limits

from rollin.sweeps.machine import THREAD_VARIABLES
from rollin.tabular.mdp import ContextualMDP
from tests.here import HereExecutor
from tests.memory import use_memory

settings.register_profile(
    "rollin", deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("rollin")

if "ROLLIN_TEST_STATE" not in os.environ:  # workers have their parent's
    use_memory()
    os.environ["ROLLIN_TEST_STATE"] = tempfile.mkdtemp(prefix="rollin-state-")
    atexit.register(shutil.rmtree, os.environ["ROLLIN_TEST_STATE"], ignore_errors=True)
os.environ["XDG_STATE_HOME"] = os.environ["ROLLIN_TEST_STATE"]  # the key that runs are signed with

SLOW = (Path(__file__).parent / "slow.txt").read_text(encoding="utf-8").split()
KERNELS = (  # the tabular ones and those of SAC, beside each other
    "import rollin; rollin.solve(rollin.four_rooms('easy'), beta=0.75, alpha=0.01, steps=1)",
    "import rollin; rollin.train('point-umaze', beta=0.1, steps=80, warmup=64)",
)


_compiling: list[subprocess.Popen[bytes]] = []


def pytest_configure(config: pytest.Config) -> None:
    """Begin to compile the kernels: each worker would compile all of them for itself.

    JAX's programs are kept as the kernels are, for all processes and for the next time. Linear
    algebra has one thread, here and in those processes: more of them wait for each other at full
    speed, and matrices here are small.
    """
    threadpool_limits(1)  # of this process, which has loaded its libraries
    os.environ |= dict.fromkeys(THREAD_VARIABLES, "1")
    if "JAX_COMPILATION_CACHE_DIR" not in os.environ:
        os.environ |= {
            "JAX_COMPILATION_CACHE_DIR": str(config.rootpath / "build" / "jax"),
            "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
            "JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES": "-1",
        }
    if getattr(config.option, "numprocesses", None) and not hasattr(config, "workerinput"):
        _compiling.extend(subprocess.Popen([sys.executable, "-c", text]) for text in KERNELS)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_node_collection_finished() -> None:
    """Let workers collect their tests meanwhile, and begin with them when all is compiled."""
    for process in _compiling:
        process.wait()


def pytest_collection_finish() -> None:
    """Keep the garbage collector from going through all that was imported again and again."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000, 50, 100)  # it took a thirtieth of the time


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark what is slow, and put it first."""
    places = {name: place for place, name in enumerate(SLOW)}
    order = {item: place_of(item.nodeid, places) for item in items}
    for item, place in order.items():
        if place < len(places):
            item.add_marker(pytest.mark.slow)
    items.sort(key=order.__getitem__)


def place_of(test: str, places: dict[str, int]) -> int:
    """Where a test, or else its file, stands among the slow ones; behind them if it does not.

    xdist writes the group behind a test's name.
    """
    name = test.partition("[")[0].partition("@")[0].removeprefix("tests/")
    return places.get(name, places.get(name.partition("::")[0], len(places)))


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


@pytest.fixture
def jobs_here(monkeypatch) -> None:
    """`rollin reproduce`, `sweep` and `compare` do their runs in this process."""
    monkeypatch.setattr(
        "rollin.cli.study_runs.executor_of",
        lambda place, out, command: lambda: HereExecutor(command),
    )


@pytest.fixture
def rates_cache(tmp_path, monkeypatch) -> Path:
    """Where measured rates are kept; nothing is there yet."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache" / "rollin" / "rates.json"
