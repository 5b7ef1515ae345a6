"""All that an update reads and writes, and the way into compiled code: one table of addresses.

Numba looks into every array that it is called with, which takes longer than a small network's
update. So a learner lists its arrays' addresses and sizes once, and compiled code makes them arrays
again where it needs them, which costs nothing there: `theta(table)`. Whoever owns a table must keep
its arrays alive.
"""

from typing import Any, NamedTuple

import numba
import numpy as np
from numpy.typing import NDArray

from rollin.sac.lanes import PANEL
from rollin.sac.panels import Packing, panels
from rollin.sac.team import TEAM
from rollin.sac.vector import compiled_as, pointer

carray: Any = vars(numba)["carray"]  # which type checkers do not find

POLICY, NEXT, DATA = 0, 1, 2  # blocks of inputs: (s, π(s)), (s', π(s')), (s, a)
# rows of Memory.rows, a number per sample: of POLICY and NEXT; the others of both critics
LOG_PROB, NEXT_Q, DATA_Q, POLICY_Q, ERROR, D_Q = 0, 2, 4, 6, 8, 10
ROWS = 12
# entries of Memory.settings
GAMMA, TAU, LEARNING_RATE, TARGET_ENTROPY, LOG_STD_MIN, LOG_STD_MAX = range(6)
# entries of Memory.info
CRITIC_LOSS, Q_MEAN, ACTOR_LOSS, ENTROPY, TEMPERATURE = range(5)
RUNS = 32  # at least those of a step: two panels' parameters, moments, targets and copies
ALIGNMENT = 64  # bytes of a cache line
ONE_PAIR = np.array(0x3F803F80, np.int32).view(np.float32)  # two numbers 1 in bfloat16


class Memory(NamedTuple):
    """Float32 but for tables; H: hidden layers, P: panels, L: lines, one for each sample and more.

    S: strips of 32 columns, M: lines, one for each pair of samples and more. `theta`, `m`, `v`,
    `target`, `turned` (transposes of weights) and the copies are laid out by `Packing`. What the
    other precision reads only is empty.
    """

    actor_layers: Any  # (layers, 6) int64, see `panels`
    critic_layers: Any  # (2, layers, 6) int64
    target_layers: Any  # (2, layers, 6) int64
    team: Any  # (TEAM,) int64, see `team`
    order: Any  # (threads, L) int64: the samples at which a critic is the smaller
    runs: Any  # (threads, RUNS) int64: addresses of lines that the caches will be asked for
    info: Any  # (5,) float64: what an update reports
    settings: Any  # (6,)
    theta: Any  # (numbers,), as m and v: Adam's moments
    m: Any
    v: Any
    target: Any  # (numbers of both critics,)
    turned: Any  # (lines, 16)
    copy: Any  # (lines, 16): rounded weights
    target_copy: Any  # (lines, 16): of the target critics
    batch: Any  # (B, row)
    noise: Any  # (2, A, B)
    ones: Any  # (B,): 1, or pairs of 1
    zeros: Any  # (16,): in place of a bias
    rows: Any  # (ROWS, L)
    heads: Any  # (2, 2 A, L): means and log standard deviations at POLICY and NEXT
    action: Any  # (2, A, L)
    slope: Any  # (A, L): ∂ min(Q_1, Q_2)/∂a
    d_heads: Any  # (2 A, L)
    gradient: Any  # (threads, lines, 16): of some weights
    sums: Any  # (threads, P, 16): of a layer's biases
    out: Any  # (2, P, L, 16): the heads at POLICY and NEXT in panels, or their deltas
    observed: Any  # (2, P, L, 16): the actor's inputs at POLICY and NEXT
    x: Any  # (3, P, L, 16): the critics' inputs, action and observation
    gate: Any  # (2, P, L, 16): activations moved together
    actor: Any  # (2, H, P, L, 16): of hidden layers, at POLICY and NEXT
    critic: Any  # (2, H, P, L, 16): of both critics
    delta: Any  # (2, H, P, L, 16): ∂loss/∂(pre-activations)
    # with bfloat16 in place of the last four, see `pair_products`
    actor_rows: Any  # (2, H, S, L, 16)
    critic_rows: Any  # (2, H, S, L, 16)
    delta_rows: Any  # (2, H, S, L, 16)
    head_rows: Any  # (1, 1, S, L, 16): deltas of the heads
    actor_pairs: Any  # (2, H, P, M, 16)
    critic_pairs: Any  # (2, H, P, M, 16)
    delta_pairs: Any  # (2, H, P, M, 16)
    head_pairs: Any  # (1, 1, P, M, 16)
    input_pairs: Any  # (2, 1, P, M, 16): the actor's inputs at POLICY, the critics' in DATA
    error_pairs: Any  # (2, M): of both critics' last layers
    actor_mask: Any  # (2, H, S, L) int32: a bit for each positive activation
    critic_mask: Any  # (2, H, S, L) int32
    gate_mask: Any  # (2, H, S, L) int32: bits moved together
    value: Any  # (2, L, 16): a critic's values before they are summed
    moved: Any  # (2, P, L, 16): ∂Q/∂a of samples moved together
    acting: Any  # (3, P · 16): of one sample, two layers in turn and noise


FIELDS = len(Memory._fields)
_ENTRY = 6  # of the table: an address and up to five sizes


def aligned(*shape: int) -> NDArray[np.float32]:
    """Zeros that begin on a cache line; 16 lines behind the last of them may be read."""
    size = int(np.prod(shape))
    raw = np.zeros(size + (PANEL + 1) * PANEL, np.float32)
    begin = -raw.ctypes.data % ALIGNMENT // 4
    return raw[begin : begin + size].reshape(shape)


def allocate(
    packing: Packing, samples: int, hidden: tuple[int, ...], strip: int, threads: int, pairs: bool
) -> Memory:
    """Memory for a learner; strip: panels whose gradient is computed at once; pairs: bfloat16."""
    sizes = packing.actor[:, 0].tolist() + packing.critics[0, :, 0].tolist()
    seen, actions = int(packing.actor[0, 0]), int(packing.actor[-1, 1]) // 2
    lines = samples | 1  # odd: lines of neighbouring panels do not fall on the same few sets
    wide, depth = panels(max(hidden)), len(hidden)
    critic_inputs, heads = panels(seen + actions), panels(2 * actions)
    single, paired = int(not pairs), int(pairs)
    strips, pair_lines = -(-wide // 2), -(-samples // 2) | 1
    shapes = {
        **dict.fromkeys(("actor", "critic", "delta"), (2 * single, depth, wide, lines, PANEL)),
        "gate": (2 * single, max(wide, panels(actions)), lines, PANEL),
        **dict.fromkeys(
            ("actor_rows", "critic_rows", "delta_rows"), (2 * paired, depth, strips, lines, PANEL)
        ),
        **dict.fromkeys(
            ("actor_pairs", "critic_pairs", "delta_pairs"),
            (2 * paired, depth, wide, pair_lines, PANEL),
        ),
        "head_rows": (paired, 1, -(-heads // 2), lines, PANEL),
        "head_pairs": (paired, 1, heads, pair_lines, PANEL),
        "input_pairs": (2 * paired, 1, critic_inputs, pair_lines, PANEL),
        "error_pairs": (2 * paired, PANEL * panels(pair_lines)),
        "value": (2 * paired, lines, PANEL),
        "moved": (2 * paired, panels(actions), lines, PANEL),
    }
    masks = ("actor_mask", "critic_mask", "gate_mask")
    return Memory(
        actor_layers=packing.actor,
        critic_layers=packing.critics,
        target_layers=packing.targets,
        team=np.zeros(TEAM, np.int64),
        order=np.zeros((threads, lines), np.int64),
        runs=np.zeros((threads, RUNS), np.int64),
        info=np.zeros(5),
        settings=np.zeros(6, np.float32),
        **{name: aligned(packing.lines * PANEL) for name in ("theta", "m", "v")},
        target=aligned((packing.temperature_line - packing.critic_begin) * PANEL),
        turned=aligned(packing.turned, PANEL),
        copy=aligned(packing.copied, PANEL),
        target_copy=aligned(packing.copied, PANEL),
        batch=aligned(samples, actions + 2 * seen + 2),
        noise=aligned(2, actions, samples),
        ones=np.full_like(aligned(samples), ONE_PAIR if pairs else 1),
        zeros=aligned(PANEL),
        rows=aligned(ROWS, lines),
        heads=aligned(2, 2 * actions, lines),
        action=aligned(2, actions, lines),
        slope=aligned(actions, lines),
        d_heads=aligned(2 * actions, lines),
        gradient=aligned(threads, max(strip * PANEL, panels(max(sizes) + 1) + 1), PANEL),
        sums=aligned(threads, max(wide, panels(2 * actions)), PANEL),
        out=aligned(2, panels(2 * actions), lines, PANEL),
        observed=aligned(2, panels(seen), lines, PANEL),
        x=aligned(3, critic_inputs, lines, PANEL),
        **{name: aligned(*shape) for name, shape in shapes.items()},
        **{name: np.zeros((2 * paired, depth, strips, lines), np.int32) for name in masks},
        acting=aligned(3, PANEL * panels(max(*hidden, seen, 2 * actions))),
    )


def addresses(memory: Memory) -> NDArray[np.int64]:
    """The table of a learner's arrays."""
    table = np.zeros((FIELDS, _ENTRY), np.int64)
    for row, array in zip(table, memory, strict=True):
        assert array.flags.c_contiguous
        row[0], row[1 : 1 + array.ndim] = array.ctypes.data, array.shape
    return table


def _field(name: str) -> Any:
    """A compiled function that gives an array of a table."""
    place, (dimensions, kind) = Memory._fields.index(name), _KINDS[name]

    def vector(table):
        return carray(pointer(table[place, 0]), (table[place, 1],), kind)

    def matrix(table):
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

    field = (vector, matrix, three, four, five)[dimensions - 1]
    return compiled_as(f"field_{name}", field)


_INTEGERS = {
    "actor_layers": 2,
    "critic_layers": 3,
    "target_layers": 3,
    "team": 1,
    "order": 2,
    "runs": 2,
}
_FLOATS = {
    **dict.fromkeys(("settings", "theta", "m", "v", "target", "ones", "zeros"), 1),
    **dict.fromkeys(("turned", "batch", "rows", "slope", "d_heads", "acting"), 2),
    **dict.fromkeys(("copy", "target_copy", "error_pairs"), 2),
    **dict.fromkeys(("noise", "heads", "action", "gradient", "sums", "value"), 3),
    **dict.fromkeys(("out", "observed", "x", "gate", "moved"), 4),
    **dict.fromkeys(("actor", "critic", "delta", "input_pairs"), 5),
    **dict.fromkeys(("actor_rows", "critic_rows", "delta_rows", "head_rows"), 5),
    **dict.fromkeys(("actor_pairs", "critic_pairs", "delta_pairs", "head_pairs"), 5),
}
_MASKS = dict.fromkeys(("actor_mask", "critic_mask", "gate_mask"), 4)
_KINDS = {
    **{name: (sizes, np.int64) for name, sizes in _INTEGERS.items()},
    **{name: (sizes, np.float32) for name, sizes in _FLOATS.items()},
    **{name: (sizes, np.int32) for name, sizes in _MASKS.items()},
    "info": (1, np.float64),
}

actor_layers = _field("actor_layers")
critic_layers = _field("critic_layers")
target_layers = _field("target_layers")
team = _field("team")
order = _field("order")
runs = _field("runs")
info = _field("info")
settings = _field("settings")
theta = _field("theta")
m = _field("m")
v = _field("v")
target = _field("target")
turned = _field("turned")
batch = _field("batch")
noise = _field("noise")
ones = _field("ones")
rows = _field("rows")
heads = _field("heads")
action = _field("action")
slope = _field("slope")
d_heads = _field("d_heads")
gradient = _field("gradient")
sums = _field("sums")
out = _field("out")
observed = _field("observed")
x = _field("x")
gate = _field("gate")
actor = _field("actor")
critic = _field("critic")
delta = _field("delta")
acting = _field("acting")
copy = _field("copy")
target_copy = _field("target_copy")
zeros = _field("zeros")
actor_rows = _field("actor_rows")
critic_rows = _field("critic_rows")
delta_rows = _field("delta_rows")
head_rows = _field("head_rows")
actor_pairs = _field("actor_pairs")
critic_pairs = _field("critic_pairs")
delta_pairs = _field("delta_pairs")
head_pairs = _field("head_pairs")
input_pairs = _field("input_pairs")
error_pairs = _field("error_pairs")
actor_mask = _field("actor_mask")
critic_mask = _field("critic_mask")
gate_mask = _field("gate_mask")
value = _field("value")
moved = _field("moved")
