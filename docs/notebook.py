"""Runs the notebook of the documentation, and keeps what its cells print and draw.

python -m docs.notebook      # after a change to docs/tutorial.ipynb

The cells run one after the other in one namespace, without a kernel: a notebook of plain Python
needs none, and neither do the tests. A figure at the end of a cell becomes a picture below it.
"""

import ast
import base64
import contextlib
import io
import json
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import matplotlib as mpl
from matplotlib.figure import Figure

from rollin.runs.files import read_json, write_atomically

NOTEBOOK = Path(__file__).parent / "tutorial.ipynb"
DOTS = 80  # an inch, of pictures


def code_of(cell: dict[str, Any]) -> str | None:
    """The code of a cell, or None if it is text."""
    return "".join(cell["source"]) if cell["cell_type"] == "code" else None


def run_cell(code: str, name: str, space: dict[str, Any]) -> tuple[str, Any]:
    """What a cell prints, and the value of its last line if that is an expression."""
    tree = ast.parse(code, name)
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    printed, value = io.StringIO(), None
    with contextlib.redirect_stdout(printed):
        exec(compile(tree, name, "exec"), space)
        if isinstance(last, ast.Expr):
            value = eval(compile(ast.Expression(last.value), name, "eval"), space)
    return printed.getvalue(), value


def outputs_of(printed: str, value: Any, count: int) -> list[dict[str, Any]]:
    """The outputs of a cell as a notebook keeps them."""
    kept: list[dict[str, Any]] = []
    if printed:
        lines = printed.splitlines(keepends=True)
        kept.append({"name": "stdout", "output_type": "stream", "text": lines})
    if value is not None:
        data: dict[str, Any] = {"text/plain": [repr(value)]}
        if isinstance(value, Figure):
            drawn = io.BytesIO()
            value.savefig(drawn, format="png", dpi=DOTS, metadata={"Software": None})
            data = {
                "image/png": base64.b64encode(drawn.getvalue()).decode(),
                "text/plain": ["<Figure>"],
            }
        kept.append(
            {
                "data": data,
                "execution_count": count,
                "metadata": {},
                "output_type": "execute_result",
            }
        )
    return kept


def run(notebook: dict[str, Any], space: dict[str, Any]) -> Iterator[list[dict[str, Any]]]:
    """The outputs of each cell with code, one after the other; space: what they define."""
    space["__name__"] = "__main__"
    with mpl.rc_context({"backend": "agg"}):
        codes = [code for cell in notebook["cells"] if (code := code_of(cell)) is not None]
        for count, code in enumerate(codes, 1):
            yield outputs_of(*run_cell(code, f"cell {count}", space), count)


def filled(notebook: dict[str, Any]) -> dict[str, Any]:
    """The notebook with the outputs of a run, which leaves its files in a directory of its own."""
    here = Path.cwd()
    with tempfile.TemporaryDirectory() as place:
        os.chdir(place)
        try:
            outputs = list(run(notebook, {}))
        finally:
            os.chdir(here)
    cells, count = [], 0
    for cell in notebook["cells"]:
        if code_of(cell) is None:
            cells.append(cell)
            continue
        cells.append({**cell, "execution_count": count + 1, "outputs": outputs[count]})
        count += 1
    return {**notebook, "cells": cells}


def main() -> None:
    """Run it, and write it with its outputs."""
    text = json.dumps(filled(read_json(NOTEBOOK)), indent=1, ensure_ascii=False) + "\n"
    write_atomically(NOTEBOOK, text.encode())


if __name__ == "__main__":
    main()
