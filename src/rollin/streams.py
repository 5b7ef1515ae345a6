"""Random streams of a run: one seed, independent generators by name, state that can be kept."""

import zlib
from typing import Any

import numpy as np
from numpy.random import PCG64, Generator, SeedSequence
from numpy.typing import NDArray

from rollin.checks import at_least
from rollin.errors import RollinError
from rollin.texts import short_repr

_LOW = (1 << 64) - 1


class Streams:
    """Named generators, each made from the run's seed and its name when first asked for.

    A stream depends on its name and the seed alone, so that a new stream changes no other.

    >>> import rollin
    >>> streams = rollin.Streams(seed=0)
    >>> first = streams["act"].random()
    >>> kept = streams.get_state()
    >>> drawn = streams["act"].random()
    >>> streams.set_state(kept)
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
        """Streams of a part of the run: `under("exp")["act"]` is the stream `exp.act` of this."""
        part = Streams(self.seed)
        part._prefix, part._generators = f"{self._prefix}{prefix}.", self._generators
        return part

    def __getitem__(self, name: str) -> Generator:
        full = self._prefix + name
        found = self._generators.get(full)
        if found is None:
            sequence = SeedSequence(self.seed, spawn_key=(zlib.crc32(full.encode()),))
            found = self._generators[full] = Generator(PCG64(sequence))
        return found

    def get_state(self) -> dict[str, NDArray[np.uint64]]:
        """The state of every stream that was used."""
        return {n.removeprefix(self._prefix): pack_generator(g) for n, g in self._used().items()}

    def set_state(self, state: dict[str, NDArray[np.uint64]]) -> None:
        """Put every named stream back; the others start anew."""
        for name in self._used():
            del self._generators[name]
        for name, packed in state.items():
            unpack_generator(self[name], packed)

    def _used(self) -> dict[str, Generator]:
        return {n: g for n, g in self._generators.items() if n.startswith(self._prefix)}


def pack_generator(generator: Generator) -> NDArray[np.uint64]:
    """A PCG64's state as six uint64: two 128-bit numbers and a kept half of a draw."""
    state: Any = generator.bit_generator.state
    words: list[int] = []
    for number in (state["state"]["state"], state["state"]["inc"]):
        words += [number >> 64, number & _LOW]
    return np.array([*words, state["has_uint32"], state["uinteger"]], np.uint64)


def unpack_generator(generator: Generator, packed: NDArray[np.uint64]) -> None:
    """Put a PCG64 into a state that `pack_generator` gave."""
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
