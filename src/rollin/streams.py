"""Random streams of a run: one seed, independent generators by name, state that can be saved."""

import zlib
from typing import Any

import numpy as np
from numpy.random import PCG64, Generator, SeedSequence
from numpy.typing import NDArray

from rollin.checks import at_least
from rollin.errors import RollinError, short_repr

_LOW = (1 << 64) - 1


class Streams:
    """Named generators, each made from the run's seed and its name at its first use.

    A stream depends only on its name and the seed, so a new stream changes no other.

    >>> import rollin
    >>> streams = rollin.Streams(seed=0)
    >>> first = streams["act"].random()
    >>> saved = streams.get_state()
    >>> drawn = streams["act"].random()
    >>> streams.set_state(saved)
    >>> streams["act"].random() == drawn
    True
    """

    def __init__(self, seed: int) -> None:
        self.seed = at_least(0, "seed", seed)
        self._prefix = ""
        self._generators: dict[str, Generator] = {}  # shared by all parts

    def __repr__(self) -> str:
        return short_repr(self, seed=self.seed, prefix=self._prefix)

    def under(self, prefix: str) -> "Streams":
        """Return the streams of a part: `under("exp")["act"]` is the stream `exp.act`."""
        part = Streams(self.seed)
        part._prefix = f"{self._prefix}{prefix}."
        part._generators = self._generators
        return part

    def __getitem__(self, name: str) -> Generator:
        full = self._prefix + name
        if full not in self._generators:
            sequence = SeedSequence(self.seed, spawn_key=(zlib.crc32(full.encode()),))
            self._generators[full] = Generator(PCG64(sequence))
        return self._generators[full]

    def get_state(self) -> dict[str, NDArray[np.uint64]]:
        """Return the state of every stream that was used."""
        return {n.removeprefix(self._prefix): pack_generator(g) for n, g in self._used().items()}

    def set_state(self, state: dict[str, NDArray[np.uint64]]) -> None:
        """Restore every named stream; the others restart."""
        for name in self._used():
            del self._generators[name]
        for name, packed in state.items():
            unpack_generator(self[name], packed)

    def _used(self) -> dict[str, Generator]:
        return {n: g for n, g in self._generators.items() if n.startswith(self._prefix)}


def pack_generator(generator: Generator) -> NDArray[np.uint64]:
    """Return a PCG64's state as six uint64: two 128-bit numbers and the saved half of a draw."""
    state: Any = generator.bit_generator.state
    words: list[int] = []
    for number in (state["state"]["state"], state["state"]["inc"]):
        words += [number >> 64, number & _LOW]
    return np.array([*words, state["has_uint32"], state["uinteger"]], np.uint64)


def unpack_generator(generator: Generator, packed: NDArray[np.uint64]) -> None:
    """Restore the state of a PCG64 from `pack_generator`."""
    if np.shape(packed) != (6,):
        raise RollinError(
            f"A random stream's state is 6 numbers, got shape {np.shape(packed)}: "
            "the checkpoint is damaged."
        )
    words = [int(word) for word in packed]
    generator.bit_generator.state = {
        "bit_generator": "PCG64",
        "state": {"state": words[0] << 64 | words[1], "inc": words[2] << 64 | words[3]},
        "has_uint32": words[4],
        "uinteger": words[5],
    }
