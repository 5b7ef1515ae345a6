"""Compiled code draws the numbers that NumPy draws."""

import numpy as np
import pytest
from numpy.random import MT19937, PCG64, Generator

from rollin import llvm
from rollin.compiling import cached_njit
from rollin.llvm import OPTIONS
from rollin.sac.cpu import rng
from rollin.sac.cpu.rng import draw_normal, source
from rollin.sac.replay import Replay, RowLayout


@cached_njit(helpers=(llvm, rng), **OPTIONS)
def fill(state, function, out):
    draw_normal(state, function, out)


def test_normal_numbers_are_numpy_s_to_the_bit():
    ours, numpy = Generator(PCG64(7)), Generator(PCG64(7))
    where = source(ours)
    assert where is not None
    out = np.empty(1_000_001, np.float32)  # some 13,000 at the edges of layers, 270 in the tail
    for _ in range(3):
        fill(*where, out)
        wanted = numpy.standard_normal(len(out), np.float32)
        np.testing.assert_array_equal(out.view(np.uint32), wanted.view(np.uint32))
    assert np.abs(out).max() > rng.TAIL
    assert ours.bit_generator.state == numpy.bit_generator.state


@pytest.mark.parametrize("kind", [PCG64, MT19937])
@pytest.mark.parametrize("p", [None, 0.1])
@pytest.mark.parametrize("rows", [1, 20, 50])
def test_a_sample_is_what_is_drawn_and_gathered(kind, p, rows):
    replay = Replay(RowLayout(2, 1, context=1), 30)
    for row in np.random.default_rng(0).uniform(-1, 1, (rows, 2)).astype(np.float32):
        ends = {"terminated": False, "truncated": False}
        replay.append(row, row[:1], float(row[0]), row[::-1].copy(), context=row[1:], **ends)
    one, other = Generator(kind(3)), Generator(kind(3))
    size = min(16, rows)
    shape = (size, replay.layout.batch_width)
    for _ in range(20):
        sampled = replay.sample(np.empty(shape, np.float32), one, p)
        wanted = replay.gather(replay.draw(size, other, p), np.empty(shape, np.float32))
        np.testing.assert_array_equal(sampled, wanted)
    assert one.random() == other.random()


def test_other_generators_are_left_to_numpy():
    assert source(Generator(MT19937(0))) is None
