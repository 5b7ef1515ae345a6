"""The first hour of a newcomer, with what the screen says: a fresh directory, envs of her own.

The README's commands, as printed, are in docs/test_commands.py.
"""

import re
import sys
from pathlib import Path

import pytest
from PIL import Image

from rollin.cli import main

FEW = ["--steps", "8e2", "--warmup", "150", "--batch", "16", "--hidden", "8", "8",
       "--log-every", "200", "--eval-episodes", "2"]  # fmt: skip
MASS = '''
import gymnasium
import numpy as np
import rollin


class Mass(rollin.ContextualEnv):
    """A mass on a line; reward 1 near the place that the context names."""

    def __init__(self):
        self.context_space = gymnasium.spaces.Box(-9.0, 9.0, (1,))
        self.observation_space = gymnasium.spaces.Dict(
            observation=gymnasium.spaces.Box(-np.inf, np.inf, (2,)), context=self.context_space
        )
        self.action_space = gymnasium.spaces.Box(-1.0, 1.0, (1,))
        self.curriculum = rollin.Curriculum.listed([[0.0], [1.0], [2.0]], rule=5.0)
        self.context = np.zeros(1, np.float32)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.context = np.asarray((options or {}).get("context", self.context), np.float32)
        self.x, self.v, self.t = 0.0, 0.0, 0
        return self.seen(), {"outcome": np.array([self.x], np.float32)}

    def step(self, action):
        self.v = 0.8 * self.v + 0.1 * float(action[0])
        self.x, self.t = self.x + self.v, self.t + 1
        outcome = np.array([self.x], np.float32)
        reward = float(self.context_reward(outcome, self.context))
        return self.seen(), reward, False, self.t == 20, {"outcome": outcome}

    def context_reward(self, outcome, context):
        return (np.abs(outcome - context)[..., 0] < 0.5) * 1.0

    def seen(self):
        return {"observation": np.array([self.x, self.v], np.float32), "context": self.context}


def make_env():
    return Mass()
'''
REACH = '''
import gymnasium
import numpy as np
import rollin


class Reach(gymnasium.Env):
    """A goal env whose rewards are -1 and 0, and which calls its goal target."""

    def __init__(self):
        box = gymnasium.spaces.Box(-9.0, 9.0, (1,))
        self.observation_space = gymnasium.spaces.Dict(
            observation=box, achieved_goal=box, desired_goal=box
        )
        self.action_space = gymnasium.spaces.Box(-1.0, 1.0, (1,))
        self.target = np.zeros(1, np.float32)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.x = np.zeros(1, np.float32)
        return self.seen(), {}

    def step(self, action):
        self.x = (self.x + 0.3 * np.asarray(action, np.float32)).astype(np.float32)
        return self.seen(), float(self.compute_reward(self.x, self.target, {})), False, False, {}

    def compute_reward(self, achieved, desired, info):
        return -(np.abs(achieved - desired)[..., 0] > 0.4).astype(float)

    def seen(self):
        return {"observation": self.x, "achieved_goal": self.x, "desired_goal": self.target}


def make_env():
    path = rollin.Curriculum.listed([[0.0], [0.5], [1.0]], rule=rollin.SuccessRate(0.5), episodes=5)
    limited = gymnasium.wrappers.TimeLimit(Reach(), 20)
    return rollin.GoalContext(limited, curriculum=path)
'''
NOISY = '''
import numpy as np
import rollin


def make_mdp():
    """Five cells in a row; a step succeeds in 8 of 10 cases."""
    P = np.zeros((5, 2, 5))
    for s in range(5):
        for a, to in enumerate((max(s - 1, 0), min(s + 1, 4))):
            P[s, a, to] += 0.8
            P[s, a, s] += 0.2
    rewards = np.zeros((4, 5, 2))
    for k in range(4):
        rewards[k, k + 1] = 1.0
    return rollin.ContextualMDP(P, rewards, 0.9, np.eye(5)[0])
'''


@pytest.fixture
def call(tmp_path, monkeypatch, capsys):
    """Give a command in a fresh directory; returns its code and all that it says."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr("rollin.cli.evaluate.DRAWN", 6)  # pictures of a film
    for name, text in (("mass", MASS), ("reach", REACH), ("noisy", NOISY)):
        (tmp_path / f"{name}.py").write_text(text)
        monkeypatch.delitem(sys.modules, name, raising=False)

    def given(*words: str) -> tuple[int, str, str]:
        code = main(list(words))
        told = capsys.readouterr()
        return code, told.out, told.err

    yield given
    for name in ("mass", "reach", "noisy"):
        sys.modules.pop(name, None)


def test_the_first_hour(call, tmp_path: Path) -> None:
    # a module without its function, and what was meant
    code, _, err = call("train", "mass", *FEW)
    assert code == 2
    assert "Did you mean mass:make_env?" in err

    # an env of one's own, without roll-in and with it
    for beta, out in (("0", "runs/plain"), ("0.2", "runs/rolled")):
        code, text, _ = call("train", "mass:make_env", "--beta", beta, *FEW, "--out", out)
        assert code == 0
        assert re.search(r"κ = [\d.]+ \(k = \d of 2(, all mastered)?\), evaluated return ", text)
        assert "(mean of 2 deterministic episodes), after 800 environment steps" in text
    code, text, _ = call("train", "mass:make_env", "--method", "scratch", *FEW, "--out", "runs/no")
    assert code == 0
    assert text.startswith("from scratch (")

    # a goal env with rewards of -1 and 0: being at the first goal is a success
    code, text, _ = call("train", "reach:make_env", *FEW, "--out", "runs/reach")
    assert code == 0
    code, text, _ = call("evaluate", "runs/reach", "--context", "0", "--episodes", "2")
    assert code == 0
    assert text.count("%") == 1
    episodes = (tmp_path / "runs/reach/episodes.csv").read_text().splitlines()
    success = episodes[0].split(",").index("success")
    assert "1" in {line.split(",")[success] for line in episodes[1:]}

    # discrete actions: the sentence says what to take instead
    code, _, err = call("train", "CartPole-v1", *FEW)
    assert code == 2
    assert "got Discrete(2)" in err
    assert "rollin.train(env, agent=...)" in err

    # a stochastic MDP, with the experiment's rule and the theory's
    few = ["noisy:make_mdp", "--alpha", "0.1"]
    assert call("train", *few, "--steps", "40", "--batch", "50", "--out", "runs/noisy")[0] == 0
    exact = ["--algorithm", "npg", "--epsilon", "0.05", "--steps", "200"]
    code, text, _ = call("train", *few, *exact, "--out", "runs/exact")
    assert code == 0
    assert "k = 3 of 3, all mastered" in text

    # all of them: list, report, plot, video
    code, text, _ = call("list", "runs")
    assert code == 0
    assert "last mastered" in text
    rows = {line.split()[0]: line for line in text.splitlines()}
    assert " – " in rows["no"]  # from scratch there is no κ
    assert all("finished" in rows[name] for name in ("plain", "rolled", "reach", "noisy", "exact"))
    code, text, _ = call("report", "runs")
    assert code == 0
    assert text == "Report: runs/report.html\n"  # nothing is passed over
    page = (tmp_path / "runs/report.html").read_text()
    verdict = page.index("ROLLIN β = 0.2 ")
    assert verdict < page.index("finished runs") < page.index('id="main"')  # before all else
    assert "One seed decides nothing: compare at least 5 of each condition." in page
    assert "Steps to mastery" in page
    assert "Published numbers" not in page
    code, text, _ = call("plot", "runs", "--out", "curves.png")
    assert (code, text) == (0, "Curves of 6 runs: curves.png\n")
    code, text, _ = call("evaluate", "runs/rolled", "--episodes", "1", "--video", "mass.gif")
    assert code == 0
    assert "It shows outcomes against steps" in text
    with Image.open(tmp_path / "mass.gif") as film:
        assert getattr(film, "n_frames", 1) > 5
