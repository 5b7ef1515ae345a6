"""Kernels in LLVM's own language, where a compiler finds neither register tiles nor gathers.

Numba calls `intrinsic` functions while it compiles; they write instructions with a builder. Places
in memory are addresses: int64 numbers of bytes.
"""

import inspect
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
from llvmlite import ir
from numba import njit, types
from numba.core import cgutils
from numba.extending import intrinsic as _numba_intrinsic

FLOAT, INT8, INT16, INT32, INT64 = ir.FloatType(), *map(ir.IntType, (8, 16, 32, 64))

# errors as in NumPy: a check for a division by zero would keep loops from becoming vector code
OPTIONS: dict[str, Any] = {"nogil": True, "error_model": "numpy"}
# For calls from compiled code only: a call from Python would end the process. Ways in from there
# took a quarter of the time to compile.
_INSIDE: dict[str, Any] = {**OPTIONS, "no_cpython_wrapper": True, "no_cfunc_wrapper": True}
compiled: Any = njit(**_INSIDE)
inlined: Any = njit(**_INSIDE, inline="always")


def compiled_as(name: str, function: Any, how: Any = compiled) -> Any:
    """Compile a function that a factory made, under a name of its own; how: `compiled`, `inlined`.

    Machine code is named by this and by a count of the process that compiled it. Under one name,
    two functions from two processes' caches could be taken for each other.
    """
    function.__qualname__ = name
    return how(function)


def intrinsic(write: Any = None, *, result: Any = types.void) -> Any:
    """Return a function for compiled code whose instructions `write(builder, …)` writes.

    A named tuple arrives as one, of LLVM's values.
    """
    if write is None:
        return lambda write: intrinsic(write, result=result)

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        pairs = zip(signature.args, args, strict=True)
        value = write(builder, *(_unpack(builder, kind, value) for kind, value in pairs))
        return context.get_dummy_value() if value is None else value

    def typed(typing: Any, *kinds: Any) -> Any:
        return result(*map(types.unliteral, kinds)), generate

    typed.__name__ = write.__name__
    vars(typed)["__signature__"] = inspect.signature(write)  # numba leaves out the first argument
    make: Any = _numba_intrinsic
    return make(typed)


def _unpack(builder: Any, kind: Any, value: Any) -> Any:
    if not hasattr(kind, "instance_class"):
        return value
    parts = enumerate(kind.types)
    values = (_unpack(builder, part, builder.extract_value(value, i)) for i, part in parts)
    return kind.instance_class(*values)


def outlined(name: str, write: Callable[..., None]) -> Callable[..., None]:
    """Return what writes a call of a function of int64 numbers, which `write` fills.

    The function is compiled once, not once per place that calls it.
    """

    def call(builder: Any, *args: Any) -> None:
        numbers = list(_flatten(args))
        function = builder.module.globals.get(name)
        if function is None:
            kind = ir.FunctionType(ir.VoidType(), [INT64] * len(numbers))
            function = ir.Function(builder.module, kind, name)
            function.linkage = "linkonce_odr"
            function.attributes.add("noinline")
            inner = ir.IRBuilder(function.append_basic_block("entry"))
            given = iter(function.args)
            write(inner, *(_like(value, given) for value in args))
            inner.ret_void()
        builder.call(function, numbers)

    return call


def _flatten(value: Any) -> Iterator[Any]:
    """Yield the numbers of nested tuples."""
    if isinstance(value, tuple):
        for part in value:
            yield from _flatten(part)
    else:
        yield value


def _like(value: Any, numbers: Iterator[Any]) -> Any:
    """Return tuples nested like those of `value`, with other numbers."""
    if isinstance(value, tuple):
        return type(value)(*(_like(part, numbers) for part in value))
    return next(numbers)


# ------------------------------------------------------------------ numbers and vectors


def int64(value: int) -> ir.Constant:
    """Return a constant."""
    return ir.Constant(INT64, value)


def constant(kind: Any, value: float) -> ir.Constant:
    """Return a number, or a vector of the same number."""
    return ir.Constant(kind, [value] * kind.count if isinstance(kind, ir.VectorType) else value)


def splat(builder: Any, kind: Any, scalar: Any) -> Any:
    """Return a vector of one number that is known only when the code runs."""
    undefined = ir.Constant(kind, ir.Undefined)
    single = builder.insert_element(undefined, scalar, ir.Constant(INT32, 0))
    return shuffle(builder, single, undefined, [0] * kind.count)


def shuffle(builder: Any, a: Any, b: Any, order: Sequence[int]) -> Any:
    """Return the numbers of two vectors, counted through both, that `order` lists."""
    indices = ir.Constant(ir.VectorType(INT32, len(order)), list(order))
    return builder.shuffle_vector(a, b, indices)


def load(builder: Any, kind: Any, address: Any, offset: int = 0) -> Any:
    """Load the number or the vector that is so many bytes behind an address."""
    return builder.load(_pointer(builder, kind, address, offset), align=4)


def store(builder: Any, value: Any, address: Any, offset: int = 0) -> None:
    """Write a number or a vector so many bytes behind an address."""
    builder.store(value, _pointer(builder, value.type, address, offset), align=4)


def _pointer(builder: Any, kind: Any, address: Any, offset: int) -> Any:
    begin = builder.inttoptr(address, cgutils.voidptr_t)
    return builder.bitcast(builder.gep(begin, [int64(offset)]), kind.as_pointer())


def call(builder: Any, name: str, kind: Any, *args: Any) -> Any:
    """Call the function that LLVM knows by this name, which returns a `kind`."""
    signature = ir.FunctionType(kind, [value.type for value in args])
    return builder.call(cgutils.get_or_insert_function(builder.module, signature, name), args)


def elementwise(builder: Any, name: str, *args: Any) -> Any:
    """Call a function of numbers for each number of some float32 vectors."""
    kind = args[0].type
    suffix = f"v{kind.count}f32" if isinstance(kind, ir.VectorType) else "f32"
    return call(builder, f"llvm.{name}.{suffix}", kind, *args)


def multiply_add(builder: Any, a: Any, b: Any, c: Any) -> Any:
    """Return a b + c, rounded once."""
    return elementwise(builder, "fma", a, b, c)


def fetch(builder: Any, address: Any, *, write: bool = True) -> None:
    """Let the caches fetch the line that holds an address, and continue meanwhile."""
    place = builder.inttoptr(address, cgutils.voidptr_t)
    words = int(write), 3, 1  # to be read or written, into the first cache, and data
    constants = (ir.Constant(INT32, word) for word in words)
    call(builder, "llvm.prefetch.p0", ir.VoidType(), place, *constants)


def loop(builder: Any, begin: Any, end: Any, step: int, values: list[Any], body: Any) -> list[Any]:
    """Set values = body(k, step, values) for k from `begin` to `end` in steps; return the last."""
    before = builder.block
    inside, after = (builder.append_basic_block(name) for name in ("terms", "done"))
    builder.cbranch(builder.icmp_signed("<", begin, end), inside, after)
    builder.position_at_end(inside)
    k, old = builder.phi(INT64), [builder.phi(value.type) for value in values]
    new = body(k, step, old)
    following = builder.add(k, int64(step))
    last = builder.block  # the body may have made others
    for phi, first, later in zip([k, *old], [begin, *values], [following, *new], strict=True):
        phi.add_incoming(first, before)
        phi.add_incoming(later, last)
    builder.cbranch(builder.icmp_signed("<", following, end), inside, after)
    builder.position_at_end(after)
    results = [builder.phi(value.type) for value in values]
    for phi, first, later in zip(results, values, new, strict=True):
        phi.add_incoming(first, before)
        phi.add_incoming(later, last)
    return results


# ------------------------------------------------------------------ arrays and their addresses


@inlined
def addr(array):
    """Return the address of the first entry of an array."""
    return np.int64(array.ctypes.data)


@intrinsic(result=types.voidptr)
def pointer(builder, address):
    """Return an address as numba's `carray` takes it."""
    return builder.inttoptr(address, cgutils.voidptr_t)


@intrinsic
def prefetch(builder, address):
    """Let the caches fetch the line that holds an address, which will be read."""
    fetch(builder, address, write=False)
