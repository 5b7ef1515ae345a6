"""How wide this machine's vectors are, and the tiles of a product that fill its registers.

`ROLLIN_LANES=16`, `8` or `4`, read once when this is imported, takes narrower vectors than the CPU
has: so that code for another kind of CPU can be tried here. Results are the same to the bit.
"""

import os
import platform
from collections.abc import Mapping
from dataclasses import dataclass

from rollin.compiling import host_features
from rollin.errors import RollinError

VARIABLE = "ROLLIN_LANES"
PANEL = 16
"""Columns of a panel: a cache line of float32 numbers, and the widest vector there is."""


@dataclass(frozen=True)
class Tiling:
    """Tiles of a product: rows (the largest first, then what is left), and panels side by side."""

    heights: tuple[int, ...]
    panels: int


# A tile of R rows and V vectors keeps R · V sums, V factors and one number in registers, and reads
# R + V times for R · V multiply-adds. Sums have to be at least as many as multiply-adds are under
# way at once (8: two units, four cycles each).
TILINGS = {
    # 32 registers: 8 × 2 = 16 sums. 8 rows divide a panel and most batches, so that nothing is left
    # over; larger tiles were not tried.
    16: Tiling((8, 4, 2, 1), 2),
    # 16 registers: 6 × 2 = 12 sums, and one panel of 256 lines is half of the first cache.
    8: Tiling((6, 4, 2, 1), 1),
    # ARM has 32 registers: 6 × 4 = 24 sums.
    4: Tiling((6, 4, 2, 1), 1),
}
# x86 without AVX2 has 16: 3 × 4 = 12 sums.
OLD_X86 = Tiling((3, 2, 1), 1)


def widest(features: Mapping[str, bool]) -> int:
    """Numbers in this CPU's widest vector."""
    return 16 if features.get("avx512f") else 8 if features.get("avx2") else 4


def has_bfloat16(features: Mapping[str, bool]) -> bool:
    """Whether this CPU multiplies pairs of bfloat16 numbers in vectors of 16 lanes."""
    return bool(features.get("avx512bf16"))


def choose(asked: str | None, possible: int) -> int:
    """The width asked for, if the CPU can run it; else its widest."""
    if not asked:
        return possible
    widths = [width for width in TILINGS if width <= possible]
    if asked not in map(str, widths):
        can = ", ".join(map(str, widths[:-1])) + " or " * (len(widths) > 1) + str(widths[-1])
        raise RollinError(
            f"{VARIABLE} must be {can} on this CPU, got {asked!r}: "
            "choose one of these, or unset it for the widest."
        )
    return int(asked)


def tiling(lanes: int, machine: str) -> Tiling:
    """The tiles for vectors of that width on that machine, as `platform.machine` names it."""
    old = lanes == 4 and machine.lower() in ("x86_64", "amd64", "i686", "i386")
    return OLD_X86 if old else TILINGS[lanes]


LANES = choose(os.environ.get(VARIABLE), widest(host_features()))
TILES = tiling(LANES, platform.machine())
