"""How the CPU learner keeps networks: weights in panels, beside them their transposes.

A layer of `Layout` is a matrix (inputs + 1, outputs) with the bias as its last row. In panels it is
⌈outputs / 16⌉ times inputs + 1 lines of 16 numbers; columns beyond the outputs are 0 and stay 0.
The last layer of a critic, which has one column, is a vector: inputs + 1 numbers in a row.

With bfloat16 products, weights that these read are kept rounded as well, in pairs (see
`pair_products`): a copy for the way forward, and the transpose.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rollin.sac.lanes import PANEL
from rollin.sac.network import Layout

Rows = NDArray[np.int64]

# columns of a table of layers: sizes; the first line of the weights, and of their transpose; how
# many inputs that has; with bfloat16 the first line of the weights' rounded copy
IN, OUT, WEIGHTS, TURNED, TURNED_INPUTS, COPY = range(6)


def panels(size: int) -> int:
    """Panels that so many columns take."""
    return -(-size // PANEL)


@dataclass(frozen=True)
class Packing:
    """Where everything lies, in lines.

    actor: (layers, 6), critics: (2, layers, 6); places: for each parameter of `Layout`, in its
    order, where it is among the numbers in panels; lines, turned, copied: how many there are in
    all of parameters, transposes and rounded copies.
    """

    actor: Rows
    critics: Rows
    places: Rows
    lines: int
    turned: int
    copied: int

    @property
    def critic_begin(self) -> int:
        """The first line of the critics, which the target critics copy."""
        return int(self.critics[0, 0, WEIGHTS])

    @property
    def temperature_line(self) -> int:
        """The last line: the logarithm of the temperature is its first number."""
        return self.lines - 1

    @property
    def targets(self) -> Rows:
        """Tables of the target critics, which have lines and copies of their own from 0."""
        shift = np.zeros(6, np.int64)
        shift[[WEIGHTS, COPY]] = self.critics[0, 0, [WEIGHTS, COPY]]
        return self.critics - shift


def pair_count(size: int) -> int:
    """Pairs that so many numbers take."""
    return -(-size // 2)


def turned_lines(outputs: int, pairs: bool) -> int:
    """Lines of a panel of a transpose; those of pairs are whole blocks (`pairs.turn_block`)."""
    return PANEL * panels(pair_count(outputs)) if pairs else outputs


def pack(layout: Layout, pairs: bool = False) -> Packing:
    """The panels of a network; pairs: with rounded copies.

    A transpose is kept of every layer in panels through which losses go back: of all but the
    actor's first; and of those inputs of the critics' first layers which are actions. First layers
    and the critics' last have no rounded copy.
    """
    lines = turned = copied = 0
    tables, places = [], []
    for network, table in enumerate((layout.actor, *layout.critics)):
        rows = []
        for number, (inputs, outputs, _) in enumerate(table.tolist()):
            i, j = np.indices((inputs + 1, outputs))
            is_vector = network > 0 and number == len(layout.hidden)
            if is_vector:
                back, size, place = 0, panels(inputs + 1), PANEL * lines + i
            else:
                back = inputs if number else layout.action_size if network else 0
                size = panels(outputs) * (inputs + 1)
                place = PANEL * (lines + j // PANEL * (inputs + 1) + i) + j % PANEL
            rows.append((inputs, outputs, lines, turned, back, copied))
            places.append(place.ravel())
            lines += size
            turned += panels(back) * turned_lines(outputs, pairs)
            if pairs and number and not is_vector:
                copied += panels(outputs) * pair_count(inputs)
        tables.append(rows)
    places.append(np.array([PANEL * lines]))
    actor, critics = np.array(tables[0], np.int64), np.array(tables[1:], np.int64)
    return Packing(actor, critics, np.concatenate(places), lines + 1, turned, copied)
