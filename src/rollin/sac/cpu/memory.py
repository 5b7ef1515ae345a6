"""All that an update reads and writes: where parameters lie, all buffers, and the way to them.

Numba looks into every array that it is called with, which takes longer than a small network's
update. So a learner lists its arrays' addresses and sizes once, and compiled code makes them arrays
again where it needs them, which costs nothing there: `theta(table)`. The owner of a table must keep
its arrays alive.
"""

from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any, Literal, NamedTuple

import numba
import numpy as np
from numba.extending import register_jitable
from numpy.typing import NDArray

from rollin.llvm import compiled_as, pointer
from rollin.sac.cpu.simd import PANEL
from rollin.sac.learner import Layout

carray: Any = vars(numba)["carray"]  # which type checkers do not find

# ------------------------------------------------------------------ where parameters lie

Rows = NDArray[np.int64]

# columns of a table of layers: sizes; the first line of the weights, and of their transpose; how
# many inputs that has; with bfloat16 the first line of the weights' rounded copy
IN, OUT, WEIGHTS, TURNED, TURNED_INPUTS, COPY = range(6)


@register_jitable
def panel_count(size):
    """Return how many panels so many columns take."""
    return -(-size // PANEL)


@register_jitable
def pair_count(size):
    """Return how many pairs so many numbers take."""
    return -(-size // 2)


@register_jitable
def turned_lines(outputs):
    """Return the lines of a panel of a transpose in pairs: whole blocks (`simd.turn_block`)."""
    return PANEL * panel_count(pair_count(outputs))


@dataclass(frozen=True)
class Packing:
    """Where parameters lie, in lines; see the package's page.

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
    def target_lines(self) -> int:
        """Lines of the target critics: all but the actor's and that of the temperature."""
        return self.lines - 1 - self.critic_begin

    @property
    def targets(self) -> Rows:
        """Tables of the target critics, which have lines and copies of their own from 0."""
        shift = np.zeros(6, np.int64)
        shift[[WEIGHTS, COPY]] = self.critics[0, 0, [WEIGHTS, COPY]]
        return self.critics - shift


def pack(layout: Layout, pairs: bool = False) -> Packing:
    """Return the panels of a network; pairs: with rounded copies.

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
                back = 0
                size = panel_count(inputs + 1)
                place = PANEL * lines + i
            else:
                back = inputs if number else layout.action_size if network else 0
                size = panel_count(outputs) * (inputs + 1)
                place = PANEL * (lines + j // PANEL * (inputs + 1) + i) + j % PANEL
            rows.append((inputs, outputs, lines, turned, back, copied))
            places.append(place.ravel())
            lines += size
            turned += panel_count(back) * (turned_lines(outputs) if pairs else outputs)
            if pairs and number and not is_vector:
                copied += panel_count(outputs) * pair_count(inputs)
        tables.append(rows)
    places.append(np.array([PANEL * lines]))  # the logarithm of the temperature
    actor, critics = np.array(tables[0], np.int64), np.array(tables[1:], np.int64)
    return Packing(actor, critics, np.concatenate(places), lines + 1, turned, copied)


# ------------------------------------------------------------------ buffers

TEAM = 64  # numbers that threads share, see `kernels`

POLICY, NEXT, DATA = 0, 1, 2  # cases of inputs: (s, π(s)), (s', π(s')), (s, a)
# rows of `rows`, a number per sample: log π at POLICY and NEXT; the others of both critics
LOG_PROB, Q, ERROR, D_Q = 0, 2, 8, 10  # Q + 2 · case + critic
# entries of `settings`
GAMMA, TAU, LEARNING_RATE, TARGET_ENTROPY, LOG_STD_MIN, LOG_STD_MAX = range(6)
# entries of `info`
CRITIC_LOSS, Q_MEAN, ACTOR_LOSS, ENTROPY, TEMPERATURE = range(5)
ALIGNMENT = 64  # bytes of a cache line
ONE_PAIR = np.array(0x3F803F80, np.int32).view(np.float32)  # two numbers 1 in bfloat16


class Field(NamedTuple):
    """A buffer: its sizes, as names or numbers; its numbers; the only precision that reads it."""

    shape: str
    kind: Any
    only: Literal["float32", "bfloat16", None]

    @property
    def dimensions(self) -> int:
        """How many sizes there are."""
        return len(self.shape.split())


FIELDS: dict[str, Field] = {}
"""All buffers in the order of the table."""


def _field(name: str, shape: str, kind: Any = np.float32, only: Any = None) -> Any:
    """Declare a buffer; return the compiled function that gives it as an array of a table."""
    place = len(FIELDS)
    FIELDS[name] = Field(shape, kind, only)

    def one(table):
        return carray(pointer(table[place, 0]), (table[place, 1],), kind)

    def two(table):
        return carray(pointer(table[place, 0]), (table[place, 1], table[place, 2]), kind)

    def three(table):
        t = table[place]
        return carray(pointer(t[0]), (t[1], t[2], t[3]), kind)

    def four(table):
        t = table[place]
        return carray(pointer(t[0]), (t[1], t[2], t[3], t[4]), kind)

    def five(table):
        t = table[place]
        return carray(pointer(t[0]), (t[1], t[2], t[3], t[4], t[5]), kind)

    field = (one, two, three, four, five)[FIELDS[name].dimensions - 1]
    return compiled_as(f"field_{name}", field)


def _float32(name: str, shape: str) -> Any:
    return _field(name, shape, only="float32")


def _bfloat16(name: str, shape: str, kind: Any = np.float32) -> Any:
    return _field(name, shape, kind, only="bfloat16")


actor_layers = _field("actor_layers", "layers 6", np.int64)
critic_layers = _field("critic_layers", "2 layers 6", np.int64)
target_layers = _field("target_layers", "2 layers 6", np.int64)
team = _field("team", "team", np.int64)  # counters of `threads`
order = _field("order", "threads lines", np.int64)  # samples at which a critic is the smaller
# addresses of lines to be fetched: at least a step's, two panels of parameters, moments, targets
runs = _field("runs", "threads 32", np.int64)
info = _field("info", "5", np.float64)  # what an update reports
settings = _field("settings", "6")

theta = _field("theta", "numbers")
m = _field("m", "numbers")
v = _field("v", "numbers")
target = _field("target", "targets")
turned = _field("turned", "turned 16")  # transposes of weights
copy = _field("copy", "copied 16")  # rounded weights
target_copy = _field("target_copy", "copied 16")

batch = _field("batch", "samples row")
noise = _field("noise", "2 actions samples")
ones = _field("ones", "samples")  # 1, or pairs of 1
zeros = _field("zeros", "16")  # in place of a bias
rows = _field("rows", "12 lines")
heads = _field("heads", "2 heads lines")  # means and log standard deviations at POLICY and NEXT
action = _field("action", "2 actions lines")
slope = _field("slope", "actions lines")  # ∂ min(Q_1, Q_2)/∂a
d_heads = _field("d_heads", "heads lines")
gradient = _field("gradient", "threads strip 16")  # of some weights
sums = _field("sums", "threads biases 16")  # of a layer's biases
out = _field("out", "2 head_panels lines 16")  # the heads in panels, or their deltas
observed = _field("observed", "2 observed_panels lines 16")  # the actor's inputs at POLICY and NEXT
x = _field("x", "3 input_panels lines 16")  # the critics' inputs
acting = _field("acting", "3 acting")  # of one sample: two layers in turn, and noise

gate = _float32("gate", "2 gate_panels lines 16")  # activations moved together
actor = _float32("actor", "2 hidden panels lines 16")  # activations at POLICY and NEXT
critic = _float32("critic", "2 hidden panels lines 16")  # of both critics
delta = _float32("delta", "2 hidden panels lines 16")  # ∂loss/∂(pre-activations)

# in place of the last four, see `gemm_bf16`
actor_rows = _bfloat16("actor_rows", "2 hidden strips lines 16")
critic_rows = _bfloat16("critic_rows", "2 hidden strips lines 16")
delta_rows = _bfloat16("delta_rows", "2 hidden strips lines 16")
head_rows = _bfloat16("head_rows", "1 1 head_strips lines 16")  # deltas of the heads
actor_pairs = _bfloat16("actor_pairs", "2 hidden panels pairs 16")
critic_pairs = _bfloat16("critic_pairs", "2 hidden panels pairs 16")
delta_pairs = _bfloat16("delta_pairs", "2 hidden panels pairs 16")
head_pairs = _bfloat16("head_pairs", "1 1 head_panels pairs 16")
input_pairs = _bfloat16("input_pairs", "2 1 input_panels pairs 16")  # of actor and critics
error_pairs = _bfloat16("error_pairs", "2 errors")  # of both critics' last layers
actor_mask = _bfloat16("actor_mask", "2 hidden strips lines", np.int32)
critic_mask = _bfloat16("critic_mask", "2 hidden strips lines", np.int32)
gate_mask = _bfloat16("gate_mask", "2 hidden strips lines", np.int32)  # bits moved together
value = _bfloat16("value", "2 lines 16")  # a critic's values before they are summed
moved = _bfloat16("moved", "2 action_panels lines 16")  # ∂Q/∂a of samples moved together

_ENTRY = 6  # of the table: an address and up to five sizes
Memory = SimpleNamespace
"""The arrays of a learner, by the names of the fields."""


def aligned(*shape: int, kind: Any = np.float32) -> NDArray[Any]:
    """Return zeros that begin on a cache line; 16 lines behind the last of them may be read."""
    size = int(np.prod(shape)) * np.dtype(kind).itemsize
    raw = np.zeros(size + (PANEL + 1) * ALIGNMENT, np.uint8)
    begin = -raw.ctypes.data % ALIGNMENT
    return raw[begin : begin + size].view(kind).reshape(shape)


def allocate(
    packing: Packing, samples: int, hidden: tuple[int, ...], strip: int, threads: int, pairs: bool
) -> Memory:
    """Allocate a learner's arrays; strip: panels whose gradient is computed at once."""
    inputs = packing.actor[:, IN].tolist() + packing.critics[0, :, IN].tolist()
    observed = int(packing.actor[0, IN])
    actions = int(packing.actor[-1, OUT]) // 2
    wide = panel_count(max(hidden))
    heads = panel_count(2 * actions)
    pair_lines = pair_count(samples) | 1
    sizes = {
        "samples": samples,
        "lines": samples | 1,  # odd: lines of neighbouring panels are not all in a few cache sets
        "pairs": pair_lines,
        "threads": threads,
        "team": TEAM,
        "layers": len(packing.actor),
        "hidden": len(hidden),
        "actions": actions,
        "heads": 2 * actions,
        "row": actions + 2 * observed + 2,
        "numbers": packing.lines * PANEL,
        "targets": packing.target_lines * PANEL,
        "turned": packing.turned,
        "copied": packing.copied,
        "panels": wide,
        "strips": pair_count(wide),
        "head_panels": heads,
        "head_strips": pair_count(heads),
        "observed_panels": panel_count(observed),
        "input_panels": panel_count(observed + actions),
        "action_panels": panel_count(actions),
        "gate_panels": max(wide, panel_count(actions)),
        "strip": max(strip * PANEL, panel_count(max(inputs) + 1) + 1),
        "biases": max(wide, heads),
        "errors": PANEL * panel_count(pair_lines),
        "acting": PANEL * panel_count(max(*hidden, observed, 2 * actions)),
    }
    memory = Memory()
    for name, (shape, kind, only) in FIELDS.items():
        first, *rest = (sizes[size] if size in sizes else int(size) for size in shape.split())
        unread = only is not None and (only == "bfloat16") != pairs
        setattr(memory, name, aligned(0 if unread else first, *rest, kind=kind))
    memory.actor_layers[:] = packing.actor
    memory.critic_layers[:] = packing.critics
    memory.target_layers[:] = packing.targets
    memory.ones[:] = ONE_PAIR if pairs else 1
    return memory


def addresses(memory: Memory) -> NDArray[np.int64]:
    """Return the table of a learner's arrays."""
    table = np.zeros((len(FIELDS), _ENTRY), np.int64)
    for row, name in zip(table, FIELDS, strict=True):
        array = getattr(memory, name)
        row[0] = array.ctypes.data
        row[1 : 1 + array.ndim] = array.shape
    return table
