"""The documentation's Python runs, and the example does what it says."""

import re
import runpy
from pathlib import Path

import pytest

from tests.docs.blocks import write_files

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
# whether it runs does not depend on how long
SHORTER = {
    "steps=15_000": "steps=600",
    "learn(300_000": "learn(100",
    "env, gamma=0.97)": "env, gamma=0.97, n_steps=64)",  # PPO ends what it has begun to collect
    "n_steps=512": "n_steps=64",
    "learn(1024": "learn(128",
    "learn(512": "learn(64",
    '"steps": 200, "batch": 200': '"steps": 20, "batch": 20',
    "jobs=2": "jobs=1",
}
SNIPPETS = [
    pytest.param(
        page,
        number,
        code,
        id=f"{page.stem}-{number}",
        marks=[pytest.mark.xdist_group("torch")] if "stable_baselines3" in code else [],
    )
    for page in PAGES
    for number, code in enumerate(re.findall(r"```python\n(.*?)```", page.read_text(), re.DOTALL))
]


@pytest.mark.parametrize(("page", "number", "code"), SNIPPETS)
def test_python_in_the_docs_runs(page, number, code, tmp_path, monkeypatch, capsys) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    write_files([page], tmp_path)
    for long, short in SHORTER.items():
        code = code.replace(long, short)
    exec(compile(code, f"{page.name}[{number}]", "exec"), {"__name__": "__docs__"})
    printed = capsys.readouterr().out.splitlines()
    for line in code.splitlines():  # a comment behind print() is the whole line that it prints
        if line.lstrip().startswith("print(") and "  # " in line:
            assert line.partition("  # ")[2] in printed


def test_the_example_shows_rollin_ahead_of_the_baseline(capsys) -> None:
    runpy.run_path(str(ROOT / "examples" / "own_mdp.py"), run_name="__main__")
    lines = capsys.readouterr().out.splitlines()
    reached = {line.split()[0]: int(line.split()[3]) for line in lines[:2]}
    assert reached["ROLLIN"] > reached["baseline"]
    assert lines[2] == "theory    55 of 55 bounds hold"
