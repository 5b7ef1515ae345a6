"""The learner with every width of vectors that this CPU can run, each in a process of its own."""

import os
import subprocess
import sys
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rollin.compiling import host_features
from rollin.sac.cpu import simd
from rollin.sac.cpu.simd import TILINGS, VARIABLE, widest
from tests.sac.test_sac import ARRAYS, PRECISIONS, SHAPES, make, random_batch

ROOT = Path(__file__).parents[2]
WIDTHS = [width for width in TILINGS if width <= widest(host_features())]
LEARNER = [f"tests/sac/test_{name}.py" for name in ("gemm", "bfloat16", "vector", "sac")]
# what does not touch the compiled learner, or holds for any width by its kind
OTHERS = "jax] or seeds or hyperparameters or without_jax or orthogonal or finite"
OTHERS += " or shape0-4 or shape0-6"  # large teams: their shares of work do not depend on it
# what compares with JAX: bits that are those of the widest vectors are as near to it as those
OTHERS += " or autodiff or fifty or both_learners or each_other"

BITS = """
import sys
from rollin.sac.cpu import simd
from tests.sac.test_widths import states
assert simd.LANES == int(sys.argv[1])
sys.stdout.buffer.write(states())
"""


def states() -> bytes:
    """What some learners have learned, what they told of it, and how they then act."""
    found = b""
    more: Any = (28, 20, (100, 30), 37)
    for shape, precision in product((*SHAPES, more), PRECISIONS):
        learner = make("cpu", *shape, precision=precision)
        for step in range(3):
            found += repr(learner.update(random_batch(learner, step))).encode()
        found += b"".join(learner.get_state()[name].tobytes() for name in ARRAYS)
        found += learner.act(np.ones(shape[0])).tobytes()
    return found


def run(width: int, *arguments: str, **more: str) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        [sys.executable, *arguments],
        cwd=ROOT,
        env={**os.environ, VARIABLE: str(width), "PYTEST_ADDOPTS": "", **more},
        capture_output=True,
        check=False,
    )


@pytest.mark.parametrize("width", WIDTHS)
def test_the_learner_s_tests_pass_with_vectors_of_any_width_and_give_the_same_bits(width):
    done = run(width, "-c", BITS, str(width))
    assert done.returncode == 0, done.stderr.decode()
    assert done.stdout == states()
    if width == WIDTHS[0]:  # the tests themselves have run with these
        return
    options = ["-q", "-x", "-p", "no:cacheprovider", "-p", "no:xdist", "-k", f"not ({OTHERS})"]
    done = run(width, "-m", "pytest", *options, *LEARNER)
    assert done.returncode == 0, done.stdout.decode()[-4000:]
    assert done.stdout.count(b".") > 55


@pytest.mark.skipif(not simd.NATIVE, reason="this CPU has no unit for bfloat16 to be left out")
def test_without_the_unit_for_bfloat16_the_bits_are_the_same():
    done = run(16, "-c", BITS, "16", **{simd.PAIRS_VARIABLE: "emulated"})
    assert done.returncode == 0, done.stderr.decode()
    assert done.stdout == states()


def test_a_width_that_cannot_be_run_is_one_sentence():
    done = run(32, "-m", "rollin", "train", "point-umaze", "--steps", "10")
    assert done.returncode == 2
    text = done.stderr.decode() + done.stdout.decode()
    assert "ROLLIN_LANES must be" in text
    assert "Traceback" not in text
