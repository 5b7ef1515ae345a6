"""The example scripts, shortened."""

import importlib.util
import re
from pathlib import Path
from types import ModuleType

import pytest

pytestmark = pytest.mark.xdist_group("torch")

EXAMPLES = Path(__file__).parents[2] / "examples"


def script(name: str) -> ModuleType:
    pytest.importorskip("torch")
    pytest.importorskip("stable_baselines3")
    spec = importlib.util.spec_from_file_location(name, EXAMPLES / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize(("name", "steps"), [("ppo_rollin", 4800), ("sac_rollin", 2400)])
def test_a_single_file_learner_walks_a_curriculum(name, steps, capsys):
    module = script(name)
    teacher = module.main(steps=steps, beta=0.5, seed=0, threshold=-1.0)  # every context at once
    assert teacher.k >= 1
    assert steps * 0.9 <= teacher.steps < steps * 1.5  # roll-ins included
    printed = capsys.readouterr().out
    assert printed.startswith("context 1 of 24 after")
    assert f"κ = {teacher.k / 24:.2f}" in printed


def test_the_grid_world_is_walked_by_a_dqn(capsys):
    teacher = script("grid_rollin").main(steps=1500, beta=0.3, seed=0)
    printed = capsys.readouterr().out
    found = re.search(rf"κ = {teacher.progress.kappa:.2f} after ([\d,]+) steps\n", printed)
    assert found is not None
    assert 1500 <= int(found[1].replace(",", "")) < 1540  # roll-ins included
