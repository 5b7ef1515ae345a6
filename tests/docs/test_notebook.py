"""The notebook runs from top to bottom, and what is kept below its cells is what they give."""

import base64
import io
import re

import pytest
from docs.notebook import NOTEBOOK, code_of, run
from PIL import Image

from rollin.runs.files import read_json

FIELDS = {
    "code": {"cell_type", "execution_count", "id", "metadata", "outputs", "source"},
    "markdown": {"cell_type", "id", "metadata", "source"},
}
"""What format 4.5 asks of a cell."""


@pytest.fixture(scope="module")
def notebook() -> dict:
    return read_json(NOTEBOOK)


def form(outputs: list[dict]) -> list[str]:
    """What a cell gives, whatever its numbers: those differ between kinds of CPU."""
    texts = [output.get("text") or sorted(output["data"]) for output in outputs]
    return [re.sub(r"\d+(\.\d+)?", "#", "".join(text)) for text in texts]


def test_it_is_a_notebook_that_others_can_open(notebook: dict) -> None:
    assert (notebook["nbformat"], notebook["nbformat_minor"]) == (4, 5)
    assert notebook["metadata"]["kernelspec"]["name"] == "python3"
    cells = notebook["cells"]
    for cell in cells:
        assert set(cell) == FIELDS[cell["cell_type"]]
        assert re.fullmatch(r"[\w-]{1,64}", cell["id"])
        assert all(line.endswith("\n") for line in cell["source"][:-1])
    assert len({cell["id"] for cell in cells}) == len(cells)
    counts = [cell["execution_count"] for cell in cells if code_of(cell) is not None]
    assert counts == list(range(1, len(counts) + 1))
    assert "pip install ." in "".join(cells[0]["source"])


def test_what_is_kept_is_small_and_names_no_place_on_a_machine(notebook: dict) -> None:
    pictures = 0
    for cell in notebook["cells"]:
        for output in cell.get("outputs", []):
            text = "".join(output.get("text") or output["data"]["text/plain"])
            assert not re.search(r"(^|\s)/\w|\\Users|0x[0-9a-f]{6}", text)
            if picture := output.get("data", {}).get("image/png"):
                data = base64.b64decode(picture)
                assert len(data) < 30_000
                with Image.open(io.BytesIO(data)) as image:
                    assert image.width <= 640
                pictures += 1
    assert pictures >= 3


def test_it_runs_from_top_to_bottom(notebook: dict, tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    shorter = {"cells": [dict(cell) for cell in notebook["cells"]]}
    for cell in shorter["cells"]:  # whether four rooms run does not depend on how long
        source = "".join(cell["source"]).replace("12_000", "1_200")
        cell["source"] = source.replace("20_000", "16_000")  # the last place is reached by then
    space: dict = {}
    given = [form(outputs) for outputs in run(shorter, space)]
    kept = [form(cell["outputs"]) for cell in notebook["cells"] if code_of(cell) is not None]
    assert given == kept
    assert space["theory"].bounds
    assert all(bound.holds for bound in space["theory"].bounds)
    runs = space["runs"]
    assert runs["curriculum"].completed
    assert runs["curriculum with roll-in"].completed
    assert not runs["the last place alone"].completed
    assert space["learned"].k == 2
