"""examples/rollin_single_file.py against the fast engine: loop, replay, SAC, options."""

import ast
import importlib.util
import re
import runpy
import sys
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from types import ModuleType
from typing import Any, cast

import gymnasium
import numpy as np
import pytest

import rollin
from rollin.deep.options import RollinOptions
from rollin.deep.rollin_sac import train_rollin
from rollin.deep.state import DeepState
from rollin.envs.context_env import ContextEnv
from rollin.envs.point_umaze import PointUmaze
from rollin.sac.learner import Layout
from rollin.tasks import plain_name

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.xdist_group("torch")

FILE = Path(__file__).parents[1] / "examples" / "rollin_single_file.py"
ID = "SingleFileMaze-v0"


class Maze(PointUmaze):
    """Episodes of 30 steps or fewer: they terminate where the point leaves the middle."""

    def __init__(self) -> None:
        super().__init__(max_speed=1.0, horizon=30)

    def step(self, action: Any) -> Any:
        observed, reward, _, truncated, info = super().step(action)
        return observed, reward, bool(abs(info["outcome"][1]) > 1.2), truncated, info


gymnasium.register(ID, "tests.test_single_file:Maze")


@pytest.fixture(scope="module")
def single() -> ModuleType:
    """The example as a module."""
    spec = importlib.util.spec_from_file_location(FILE.stem, FILE)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[FILE.stem] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    return module


# ------------------------------------------------------------------ the loop


def scripted(who: str, x: np.ndarray) -> np.ndarray:
    """Steer to the goal, with an error that depends on x and on who acts, and is large for exp."""
    place, speed, goal = x[:2], x[2:4], x[4:]
    error = np.sin(1000 * float(x.sum()) + np.arange(2)) * (1.5 if who == "exp" else 1.0)
    return np.clip(goal - place - 3 * speed + error, -1, 1).astype(np.float32)


class Log(list[tuple[Any, ...]]):
    """What happened in order: actions, rows added, batches learned from, new explorers."""

    def note(self, what: str, *numbers: Any) -> None:
        self.append((what, *(np.array(number, np.float32).ravel() for number in numbers)))


def run_single(module: ModuleType, args: Any, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Episodes and the log of the single file, with scripted agents; and its D and D_exp."""
    log, agents, buffers = Log(), [], []

    class Agent:
        def __init__(self, inputs: int, actions: int, args: Any) -> None:
            assert (inputs, actions) == (6, 2)
            self.name = "exp" if agents else "main"
            agents.append(self)
            if len(agents) > 2:
                log.note("new exp", buffers[1].size)

        def act(self, x: np.ndarray, noise: np.ndarray) -> np.ndarray:
            log.note(f"{self.name} acts", x)
            return scripted(self.name, x)

        def update(self, batch: Any, noise: np.ndarray) -> None:
            assert noise.shape == (2, len(batch), 2)
            columns = [batch[name].reshape(len(batch), -1) for name in ("a", "x", "x_next")]
            log.note(f"{self.name} learns", *columns, batch["r"], batch["mask"])

    class Replay(module.Replay):
        def __init__(self, *args: Any) -> None:
            super().__init__(*args)
            self.name = "D_exp" if buffers else "D"
            buffers.append(self)

        def add(self, transition: Any, episode: int) -> None:
            super().add(transition, episode)
            row = self.rows[self.size - 1]
            names = ("a", "x", "x_next", "r", "mask", "outcome")
            log.note(self.name, *(row[name] for name in names))

    monkeypatch.setattr(module, "SAC", Agent)
    monkeypatch.setattr(module, "Replay", Replay)
    _, episodes = module.train(args)
    return log, episodes


def run_engine(module: ModuleType, args: Any) -> Any:
    """The log and the events of the engine, with the same generators and the same agents."""
    rng, log = module.make_generators(args.seed), Log()
    curriculum = rollin.Curriculum.listed(module.make_contexts(args), args.threshold)
    options = RollinOptions(
        beta=args.beta,
        relabel=args.relabel,
        sampling="geometric" if args.geometric else "uniform",
        p=args.p,
        warmup=args.warmup,
        exp_fill=args.exp_fill,
    )
    sac = rollin.SACConfig(hidden=(4,), batch=args.batch, gamma=args.gamma)
    state = DeepState.begin(
        ContextEnv(Maze()), curriculum, options, sac, seed=0, capacity=args.steps
    )
    D, D_exp = state.D, state.D_exp

    class Agent:
        starts_early = False
        config = sac

        def __init__(self, name: str, generator: np.random.Generator) -> None:
            self.name = name
            self.streams = {"replay": generator, "relabel": generator}
            self.batch = np.empty((args.batch, 16), np.float32)

        def act(self, x: np.ndarray) -> np.ndarray:
            log.note(f"{self.name} acts", x)
            return scripted(self.name, x)

        def update(self, batch: np.ndarray) -> None:
            columns = np.split(batch, [2, 8, 14, 15], axis=1)
            log.note(f"{self.name} learns", *columns)

        def reset(self) -> None:
            log.note("new exp", len(D_exp))

    def note_row(name: str) -> None:
        a, s, omega, s_next, r, flag, outcome = np.split(D.rows[D.total - 1], [2, 6, 8, 12, 13, 14])
        x, x_next = np.append(s, omega), np.append(s_next, omega)
        log.note(name, a, x, x_next, r, flag != 0, outcome)

    append, take_newest = D.append, D_exp.take_newest

    def append_and_note(*row: Any, **more: Any) -> None:
        append(*row, **more)
        note_row("D")

    def take_and_note() -> None:
        take_newest()
        note_row("D_exp")

    parts = cast(Any, state)
    parts.D.append, parts.D_exp.take_newest = append_and_note, take_and_note
    parts.main, parts.exp = Agent("main", rng["D"]), Agent("exp", rng["D_exp"])
    parts.guide, parts.streams = parts.main, rng
    events = list(islice(train_rollin(state), args.steps))
    return log, events, state.progress.advances


@pytest.mark.parametrize(
    ("relabel", "geometric", "options"),
    [
        (False, False, {}),
        (True, False, {}),
        (False, True, {}),
        # the first roll-ins act at random; a mean of 0 is not above R
        (True, True, {"warmup": 1500, "threshold": 0.0}),
        # to the final context, and on
        (False, False, {"delta": 0.25, "threshold": -1.0}),
    ],
)
def test_the_loop_is_the_engine_s(single, relabel, geometric, options, monkeypatch):
    """Everything in the same order, with the same numbers: acts, contexts, rows, batches."""
    defaults = {"delta": 1 / 48, "threshold": 0.6, "warmup": 100, "gamma": 0.95, "batch": 16}
    more = {"relabel": relabel, "geometric": geometric, "p": 0.01, "exp_fill": 20, "beta": 0.4}
    args = single.Args(ID, 3500, **{**defaults, **options}, **more)
    log, episodes = run_single(single, args, monkeypatch)
    wanted_log, events, advances = run_engine(single, args)

    assert [entry[0] for entry in log] == [entry[0] for entry in wanted_log]
    for (what, *numbers), (_, *wanted) in zip(log, wanted_log, strict=True):
        assert all(map(np.array_equal, numbers, wanted)), what

    ended = [event.episode for event in events if event.episode]
    finished = episodes[: len(ended)]
    assert sum(episode.length for episode in episodes) == args.steps
    for episode, wanted in zip(finished, ended, strict=True):
        assert (episode.k, episode.rollin_steps) == (wanted.k, wanted.rollin_steps)
        assert (episode.length, episode.total) == (wanted.length, wanted.total)
    steps = np.cumsum([episode.length for episode in finished]).tolist()
    reached = [
        (step, after.k)
        for step, before, after in zip(steps, episodes, episodes[1:], strict=False)
        if before.k != after.k
    ]
    assert reached == [(advance.step, advance.k) for advance in advances]

    # the comparison is worth something only if all of this happened
    assert len(advances) >= 4
    handed_over = [0 < episode.rollin_steps < episode.length for episode in finished]
    whole = [episode.rollin_steps == episode.length for episode in finished]
    assert sum(handed_over) >= 10
    assert sum(whole) >= 5
    assert sum(entry[0] == "exp learns" for entry in log) >= 100
    masks = np.concatenate([entry[-2] for entry in log if entry[0] == "D"])
    assert 0 < np.sum(masks == 0) < len(finished)


# ------------------------------------------------------------------ the learner


def places(layout: Layout) -> Iterator[np.ndarray]:
    """Where the parameters of actor and critics lie in the engine's flat vector, one by one."""
    numbers: Any = np.arange(layout.size)
    for i, table in enumerate((layout.actor, *layout.critics)):
        for j, layer in enumerate(layout.layers(numbers, table)):
            # the engine's critics read the action before x
            shift = layout.action_size if i > 0 and j == 0 else 0
            yield np.roll(layer[:-1], -shift, axis=0).T
            yield layer[-1]


def parameters(agent: Any) -> list[Any]:
    """Parameters of actor and critics, in the order of `places`."""
    return [*agent.actor.parameters(), *agent.critics.parameters()]


def load(agent: Any, learner: Any) -> None:
    """Give an agent of the single file a learner's parameters."""
    state = learner.get_state()
    for parameter, place in zip(parameters(agent), places(learner.layout), strict=True):
        parameter.data = torch.from_numpy(state["theta"][place])
    critics = list(places(learner.layout))[len(list(agent.actor.parameters())) :]
    for parameter, place in zip(agent.targets.parameters(), critics, strict=True):
        parameter.data = torch.from_numpy(state["target"][place - learner.layout.critic_begin])
    agent.log_alpha.data.fill_(float(state["theta"][-1]))


def arrays_of(agent: Any, layout: Layout) -> dict[str, np.ndarray]:
    """The agent's parameters, first moments and targets as the engine's flat vectors."""
    theta, m = np.full((2, layout.size), np.nan, np.float32)
    moments = {}
    for optimizer in agent.optimizers:
        moments |= {parameter: s["exp_avg"] for parameter, s in optimizer.state.items()}
    everything = [*parameters(agent), agent.log_alpha]
    for parameter, place in zip(everything, [*places(layout), layout.log_temperature], strict=True):
        theta[place] = parameter.detach()
        m[place] = moments[parameter]
    target = theta.copy()
    critics = list(places(layout))[len(list(agent.actor.parameters())) :]
    for parameter, place in zip(agent.targets.parameters(), critics, strict=True):
        target[place] = parameter.detach()
    return {"theta": theta, "m": m, "target": target[layout.critic_begin : layout.log_temperature]}


SHAPES = [  # x, actions, hidden, batch, whether log σ is clipped at both bounds
    (6, 2, (32, 32), 64, False),
    (31, 8, (64, 48), 32, False),
    (4, 1, (24,), 50, True),
]


@pytest.mark.parametrize(("X", "A", "hidden", "B", "clipped"), SHAPES)
def test_updates_are_the_engine_s(single, X, A, hidden, B, clipped):
    """From the same parameters, batches and noise: parameters, targets, moments agree to 1e-5."""
    rng = np.random.default_rng(0)
    args = single.Args(hidden=hidden, batch=B, gamma=0.9, tau=0.05, initial_temperature=0.3)
    config = rollin.SACConfig(hidden=hidden, batch=B, gamma=0.9, tau=0.05, initial_temperature=0.3)
    learner = rollin.make_learner("cpu", X, A, config, rollin.Streams(0))
    state = learner.get_state()
    state["theta"] *= np.float32(5 if clipped else 1)  # and the targets stay
    learner.set_state(state)
    agent = single.SAC(X, A, args)
    load(agent, learner)
    replay = single.Replay(args, X, A, 1, rng)
    batch: Any = np.zeros(B, replay.rows.dtype)
    for _ in range(10):
        for name in ("x", "x_next", "r"):
            batch[name] = rng.standard_normal(batch[name].shape)
        batch["a"] = rng.uniform(-1, 1, (B, A))
        batch["mask"] = rng.random(B) < 0.8
        noise = rng.standard_normal((2, B, A), np.float32)
        columns = [batch[name].reshape(B, -1) for name in ("a", "x", "x_next", "r", "mask")]
        agent.update(batch, noise)
        learner.update(np.hstack(columns), np.ascontiguousarray(noise.transpose(0, 2, 1)))
        found, wanted = arrays_of(agent, learner.layout), learner.get_state()
        for name, array in found.items():
            scale = np.abs(wanted["m"]).max() if name == "m" else 1.0
            np.testing.assert_allclose(array, wanted[name], 0, 1e-5 * scale, err_msg=name)
    after = learner.get_state()
    moved = np.abs(after["theta"] - state["theta"])
    actor, critics, log_alpha = np.split(
        moved, [learner.layout.critic_begin, learner.layout.log_temperature]
    )
    assert min(actor.max(), critics.max(), log_alpha.max()) > 1e-3
    assert np.abs(after["target"] - state["target"]).max() > 1e-4
    if clipped:
        log_std = agent.actor.net(torch.from_numpy(batch["x"])).chunk(2, -1)[1]
        assert log_std.min() < -10
        assert log_std.max() > 2
    learner.close()


@pytest.mark.parametrize(("X", "A", "hidden"), [shape[:3] for shape in SHAPES])
def test_actions_are_the_engine_s(single, X, A, hidden):
    learner = rollin.make_learner(
        "cpu", X, A, rollin.SACConfig(hidden=hidden), rollin.Streams(0).under("main")
    )
    agent = single.SAC(X, A, single.Args(hidden=hidden))
    load(agent, learner)
    rng, draws = np.random.default_rng(0), rollin.Streams(0)["main.act"]
    for _ in range(20):
        x = rng.standard_normal(X, np.float32)
        noise = draws.standard_normal(A, np.float32)
        np.testing.assert_allclose(agent.act(x, noise), learner.act(x), atol=1e-5)
        mean = agent.act(x, np.zeros(A, np.float32))
        np.testing.assert_allclose(mean, learner.act(x, deterministic=True), atol=1e-5)
    learner.close()


def test_first_weights_are_orthogonal_with_the_engine_s_gains(single):
    args = single.Args(hidden=(24, 16), head_gain=0.7, initial_temperature=0.3)
    agent = single.SAC(10, 3, args)
    mean, log_std = agent.actor.net[4].weight.data.chunk(2)
    gains = [(mean, 0.7), (log_std, 1.0)]
    for network in (agent.actor.net[:4], *agent.critics):
        gains += [(layer.weight.data, 2**0.5) for layer in network[::2]]
    for weight, gain in gains:
        np.testing.assert_allclose(torch.linalg.svdvals(weight), gain, rtol=1e-5)
    assert all(not layer.bias.any() for network in agent.critics for layer in network[::2])
    assert agent.log_alpha.exp().item() == pytest.approx(0.3)
    first, second = (critic[0].weight for critic in agent.critics)
    assert not torch.equal(first, second)
    for target, critic in zip(agent.targets, agent.critics, strict=True):
        assert torch.equal(target[0].weight, critic[0].weight)


# ------------------------------------------------------------------ options and promises


@pytest.mark.parametrize("task", ["point-umaze", "antmaze-umaze"])
def test_the_options_of_a_task_are_those_of_rollin_train(single, task):
    args = single.TASKS[task]
    state = rollin.prepare(task)
    sac = state.main.config
    for name in ("hidden", "batch", "gamma", "tau", "learning_rate", "initial_temperature"):
        assert getattr(args, name) == getattr(sac, name), name
    assert args.head_gain == sac.head_gain
    for name in ("beta", "p", "warmup", "exp_fill", "relabel"):
        assert getattr(args, name) == getattr(state.options, name), name
    assert state.options.sampling == "uniform"
    assert not args.geometric
    assert args.steps == state.D.capacity
    assert plain_name(args.env_id) == task
    np.testing.assert_allclose(single.make_contexts(args), state.curriculum.contexts, atol=1e-12)
    assert {state.curriculum.threshold(k) for k in range(state.curriculum.K)} == {args.threshold}
    assert state.curriculum.episodes == single.WINDOW
    state.close()


def test_it_is_one_file_of_at_most_350_lines_that_imports_only_our_environments():
    text = FILE.read_text(encoding="utf-8")
    assert len(text.splitlines()) <= 350
    nodes = list(ast.walk(ast.parse(text)))
    imported = {
        alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names
    }
    imported |= {node.module or "" for node in nodes if isinstance(node, ast.ImportFrom)}
    assert {name for name in imported if name.startswith("rollin")} == {"rollin.envs"}


def test_every_line_of_the_pseudocode_that_does_something_is_marked():
    text = FILE.read_text(encoding="utf-8")
    marks = re.findall(r"# (\d+(?:(?:, | – )\d+)*)", text[text.index("def train(") :])
    marked: list[int] = []
    for mark in marks:
        numbers = [int(number) for number in re.findall(r"\d+", mark)]
        marked += range(numbers[0], numbers[-1] + 1)
    idle = {8, 13, 15, 19, 22, 23, 25, 30, 34, 36}  # end, else
    assert sorted(marked) == marked
    assert set(marked) >= set(range(1, 38)) - idle


def test_it_runs_from_the_command_line(monkeypatch, capsys):
    options = {"--env-id": ID, "--steps": 700, "--warmup": 100, "--threshold": -1, "--beta": 0.5}
    words = [str(word) for pair in options.items() for word in pair]
    monkeypatch.setattr(sys, "argv", [FILE.name, "point-umaze", *words, "--relabel"])
    threads = torch.get_num_threads()
    try:
        runpy.run_path(str(FILE), run_name="__main__")
    finally:
        torch.set_num_threads(threads)
    assert re.match(r"step \d+: on to context 1 of 12\n", capsys.readouterr().out)
