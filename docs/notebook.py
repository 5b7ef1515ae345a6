"""Run the notebook of the documentation, and store what its cells print and draw.

python -m docs.notebook      # after a change to docs/tutorial.ipynb

The cells run one after the other in one namespace, without a kernel, as they are plain Python. A
figure at the end of a cell becomes a picture below it.
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
    """Return the code of a cell, or None if it is text."""
    return "".join(cell["source"]) if cell["cell_type"] == "code" else None


def run_cell(code: str, name: str, space: dict[str, Any]) -> tuple[str, Any]:
    """Run a cell; return what it prints, and the value of its last line if an expression."""
    tree = ast.parse(code, name)
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    printed = io.StringIO()
    value = None
    with contextlib.redirect_stdout(printed):
        exec(compile(tree, name, "exec"), space)
        if isinstance(last, ast.Expr):
            value = eval(compile(ast.Expression(last.value), name, "eval"), space)
    return printed.getvalue(), value


def outputs_of(printed: str, value: Any, count: int) -> list[dict[str, Any]]:
    """Return the outputs of a cell as a notebook stores them."""
    outputs: list[dict[str, Any]] = []
    if printed:
        lines = printed.splitlines(keepends=True)
        outputs.append({"name": "stdout", "output_type": "stream", "text": lines})
    if value is not None:
        data: dict[str, Any] = {"text/plain": [repr(value)]}
        if isinstance(value, Figure):
            picture = io.BytesIO()
            value.savefig(picture, format="png", dpi=DOTS, metadata={"Software": None})
            data = {
                "image/png": base64.b64encode(picture.getvalue()).decode(),
                "text/plain": ["<Figure>"],
            }
        result = {"execution_count": count, "metadata": {}, "output_type": "execute_result"}
        outputs.append({"data": data, **result})
    return outputs


def run(notebook: dict[str, Any], space: dict[str, Any]) -> Iterator[list[dict[str, Any]]]:
    """Yield the outputs of each cell with code; space: the names that the cells define."""
    space["__name__"] = "__main__"
    with mpl.rc_context({"backend": "agg"}):
        codes = [code for cell in notebook["cells"] if (code := code_of(cell)) is not None]
        for count, code in enumerate(codes, 1):
            yield outputs_of(*run_cell(code, f"cell {count}", space), count)


def filled(notebook: dict[str, Any]) -> dict[str, Any]:
    """Return the notebook with the outputs of a run in a temporary directory."""
    here = Path.cwd()
    with tempfile.TemporaryDirectory() as place:
        os.chdir(place)
        try:
            outputs = list(run(notebook, {}))
        finally:
            os.chdir(here)
    numbered = iter(enumerate(outputs, 1))
    cells = []
    for cell in notebook["cells"]:
        if code_of(cell) is not None:
            count, output = next(numbered)
            cell = {**cell, "execution_count": count, "outputs": output}
        cells.append(cell)
    return {**notebook, "cells": cells}


def main() -> None:
    """Run it, and write it with its outputs."""
    text = json.dumps(filled(read_json(NOTEBOOK)), indent=1, ensure_ascii=False) + "\n"
    write_atomically(NOTEBOOK, text.encode())


if __name__ == "__main__":
    main()
