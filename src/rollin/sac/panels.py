"""How the CPU learner keeps networks: weights in panels, beside them their transposes.

A layer of `Layout` is a matrix (inputs + 1, outputs) with the bias as its last row. In panels it is
⌈outputs / 16⌉ times inputs + 1 lines of 16 numbers; columns beyond the outputs are 0 and stay 0.
The last layer of a critic, which has one column, is a vector: inputs + 1 numbers in a row.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rollin.sac.lanes import PANEL
from rollin.sac.network import Layout

Rows = NDArray[np.int64]

# columns of a table of layers: sizes; the first line of the weights, and of their transpose; how
# many inputs that has
IN, OUT, WEIGHTS, TURNED, TURNED_INPUTS = range(5)


def panels(size: int) -> int:
    """Panels that so many columns take."""
    return -(-size // PANEL)


@dataclass(frozen=True)
class Packing:
    """Where everything lies, in lines.

    actor: (layers, 5), critics: (2, layers, 5); places: for each parameter of `Layout`, in its
    order, where it is among the numbers in panels; lines, turned: how many there are in all.
    """

    actor: Rows
    critics: Rows
    places: Rows
    lines: int
    turned: int

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
        """Tables of the target critics, which have lines of their own from 0."""
        shift = np.zeros(5, np.int64)
        shift[WEIGHTS] = self.critic_begin
        return self.critics - shift


def pack(layout: Layout) -> Packing:
    """The panels of a network.

    A transpose is kept of every layer in panels through which losses go back: of all but the
    actor's first; and of those inputs of the critics' first layers which are actions.
    """
    lines = turned = 0
    tables, places = [], []
    for network, table in enumerate((layout.actor, *layout.critics)):
        rows = []
        for number, (inputs, outputs, _) in enumerate(table.tolist()):
            i, j = np.indices((inputs + 1, outputs))
            if network > 0 and number == len(layout.hidden):
                back, size, place = 0, panels(inputs + 1), PANEL * lines + i
            else:
                back = inputs if number else layout.action_size if network else 0
                size = panels(outputs) * (inputs + 1)
                place = PANEL * (lines + j // PANEL * (inputs + 1) + i) + j % PANEL
            rows.append((inputs, outputs, lines, turned, back))
            places.append(place.ravel())
            lines += size
            turned += panels(back) * outputs
        tables.append(rows)
    places.append(np.array([PANEL * lines]))
    actor, critics = np.array(tables[0], np.int64), np.array(tables[1:], np.int64)
    return Packing(actor, critics, np.concatenate(places), lines + 1, turned)
