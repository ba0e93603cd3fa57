"""Numbers side by side in one vector register, for the innermost steps of the renderer.

The compiler makes scalar code of these steps when they are written as loops in Python (it unrolls them before it looks for vectors),
which is five times slower; hence the one place in the project that builds LLVM code by hand.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numba
from llvmlite import ir  # type: ignore[import-untyped]
from numba.core import cgutils
from numba.extending import intrinsic as numba_intrinsic

#: Compiles a function of the renderer. No `fastmath` and no `contract` below: what the compiler then fuses depends on what it inlines, so a
#: process that compiles and one that loads its cache (or two machines) would draw some pixels differently. Division by zero gives infinity.
#: References to arrays are not counted (nothing is allocated in here) and all is one piece of code for each entry: a third faster together.
compiled: Any = numba.njit(  # type: ignore[call-overload]
    nogil=True, cache=True, _nrt=False, forceinline=True, error_model="numpy"
)
intrinsic: Any = numba_intrinsic

REAL, DOUBLE, BIT = ir.FloatType(), ir.DoubleType(), ir.IntType(1)
BYTE, SHORT, WHOLE, LONG = (ir.IntType(bits) for bits in (8, 16, 32, 64))
_BYTES = {REAL: 4, DOUBLE: 8, BYTE: 1, SHORT: 2, WHOLE: 4, LONG: 8}


class Lanes:
    """A vector in compiled code. Arithmetic is lane by lane; the other operand is a vector as long, one value, or a number.

    Whole numbers are signed, except that `>>` fills with zeros.
    """

    def __init__(self, builder: Any, value: Any) -> None:
        self.builder, self.value = builder, value
        self.is_real = value.type.element in (REAL, DOUBLE)

    def __len__(self) -> int:
        return int(self.value.type.count)

    @staticmethod
    def of(builder: Any, value: Any, count: int) -> Lanes:
        """One value in all lanes."""
        kind = ir.VectorType(value.type, count)
        one = builder.insert_element(ir.Constant(kind, ir.Undefined), value, ir.Constant(WHOLE, 0))
        return Lanes(builder, one).shuffle([0] * count)

    @staticmethod
    def constant(builder: Any, element: Any, numbers: Sequence[float]) -> Lanes:
        """Known numbers."""
        python = float if element in (REAL, DOUBLE) else int
        return Lanes(builder, ir.Constant(ir.VectorType(element, len(numbers)), [python(k) for k in numbers]))

    @staticmethod
    def load(builder: Any, pointer: Any, count: int) -> Lanes:
        """Numbers that lie side by side in memory."""
        element = pointer.type.pointee
        to = builder.bitcast(pointer, ir.VectorType(element, count).as_pointer())
        return Lanes(builder, builder.load(to, align=_BYTES[element]))

    def store(self, pointer: Any) -> None:
        """Writes the numbers side by side; a pointer to another type is taken as one to these."""
        to = self.builder.bitcast(pointer, self.value.type.as_pointer())
        self.builder.store(self.value, to, align=_BYTES[pointer.type.pointee])

    def _new(self, value: Any) -> Lanes:
        return Lanes(self.builder, value)

    def _other(self, other: Any) -> Any:
        if isinstance(other, Lanes):
            return other.value
        if isinstance(other, (int, float)):
            return Lanes.constant(self.builder, self.value.type.element, [other] * len(self)).value
        return Lanes.of(self.builder, other, len(self)).value

    def _apply(self, real: str, whole: str, other: Any) -> Lanes:
        return self._new(getattr(self.builder, real if self.is_real else whole)(self.value, self._other(other)))

    def __add__(self, other: Any) -> Lanes:
        return self._apply("fadd", "add", other)

    def __sub__(self, other: Any) -> Lanes:
        return self._apply("fsub", "sub", other)

    def __mul__(self, other: Any) -> Lanes:
        return self._apply("fmul", "mul", other)

    def __rtruediv__(self, other: float) -> Lanes:
        return self._new(self.builder.fdiv(self._other(other), self.value))

    def __truediv__(self, other: Any) -> Lanes:
        return self._new(self.builder.fdiv(self.value, self._other(other)))

    def __and__(self, other: Any) -> Lanes:
        return self._new(self.builder.and_(self.value, self._other(other)))

    def __or__(self, other: Any) -> Lanes:
        return self._new(self.builder.or_(self.value, self._other(other)))

    def __xor__(self, other: Any) -> Lanes:
        return self._new(self.builder.xor(self.value, self._other(other)))

    def __lshift__(self, other: Any) -> Lanes:
        return self._new(self.builder.shl(self.value, self._other(other)))

    def __rshift__(self, other: Any) -> Lanes:
        return self._new(self.builder.lshr(self.value, self._other(other)))

    def _compare(self, sign: str, other: Any) -> Lanes:
        compare = self.builder.fcmp_ordered if self.is_real else self.builder.icmp_signed
        return self._new(compare(sign, self.value, self._other(other)))

    def __lt__(self, other: Any) -> Lanes:
        return self._compare("<", other)

    def __le__(self, other: Any) -> Lanes:
        return self._compare("<=", other)

    def __gt__(self, other: Any) -> Lanes:
        return self._compare(">", other)

    def __ge__(self, other: Any) -> Lanes:
        return self._compare(">=", other)

    def differs(self, other: Any) -> Lanes:
        """Whether whole numbers differ."""
        return self._compare("!=", other)

    def least(self, other: Any) -> Lanes:
        """The lesser of the two; the other where this is not a number."""
        return (self < other).choose(self, other)

    def most(self, other: Any) -> Lanes:
        """The greater of the two; the other where this is not a number."""
        return (self > other).choose(self, other)

    def choose(self, yes: Lanes, no: Any) -> Lanes:
        """`yes` where this bit is set, `no` elsewhere."""
        return self._new(self.builder.select(self.value, yes.value, yes._other(no)))

    def shuffle(self, order: Sequence[int]) -> Lanes:
        """The lanes of these numbers, in order."""
        places = ir.Constant(ir.VectorType(WHOLE, len(order)), list(order))
        return self._new(self.builder.shuffle_vector(self.value, ir.Constant(self.value.type, ir.Undefined), places))

    def fold(self, name: str) -> Any:
        """One value: all lanes, their number a power of two, joined by the method `name`."""
        lanes, count = self, len(self)
        while count > 1:
            count //= 2
            lanes = getattr(lanes, name)(lanes.shuffle([(k + count) % len(self) for k in range(len(self))]))
        return self.builder.extract_element(lanes.value, ir.Constant(WHOLE, 0))

    def cast(self, element: Any) -> Lanes:
        """The same numbers in another type; real ones are cut off when they become whole, long ones lose their upper bits."""
        kind, builder = ir.VectorType(element, len(self)), self.builder
        if self.is_real:
            if element in (REAL, DOUBLE):
                return self._new((builder.fptrunc if element is REAL else builder.fpext)(self.value, kind))
            return self._new(builder.fptosi(self.value, kind))
        if element in (REAL, DOUBLE):
            return self._new(builder.sitofp(self.value, kind))
        return self._new(
            (builder.zext if element.width > self.value.type.element.width else builder.trunc)(self.value, kind)
        )

    def bits(self, element: Any, count: int | None = None) -> Lanes:
        """The same bits as `count` (None: as many) lanes of another type."""
        return self._new(self.builder.bitcast(self.value, ir.VectorType(element, count or len(self))))

    def mask(self) -> Any:
        """Bits as one whole number of as many bits, the first lane lowest."""
        return self.builder.bitcast(self.value, ir.IntType(len(self)))

    def call(self, name: str, *others: Any) -> Lanes:
        """Applies a function of LLVM, such as `sqrt`."""
        kind = self.value.type
        short = f"{'f' if self.is_real else 'i'}{8 * _BYTES[kind.element]}"
        values = [self.value, *(other.value if isinstance(other, Lanes) else other for other in others)]
        signature = ir.FunctionType(kind, [value.type for value in values])
        function = cgutils.get_or_insert_function(self.builder.module, signature, f"llvm.{name}.v{len(self)}{short}")
        return self._new(self.builder.call(function, values))


def steps(builder: Any, element: Any, count: int) -> Lanes:
    """0, 1, 2, ..."""
    return Lanes.constant(builder, element, range(count))


def pointer(context: Any, builder: Any, kind: Any, array: Any, at: Any = 0) -> Any:
    """Where entry `at` (an integer or a whole value of 64 bits) of a contiguous array lies."""
    at = ir.Constant(LONG, at) if isinstance(at, int) else at
    return builder.gep(context.make_array(kind)(context, builder, array).data, [at])


def gather(builder: Any, table: Any, places: Any, count: int) -> Lanes:
    """The entries of a table (a pointer) at places (not negative) that lie side by side in memory, from a pointer on."""
    found = ir.Constant(ir.VectorType(table.type.pointee, count), ir.Undefined)
    for lane in range(count):
        place = builder.zext(builder.load(builder.gep(places, [ir.Constant(LONG, lane)])), LONG)
        found = builder.insert_element(found, builder.load(builder.gep(table, [place])), ir.Constant(WHOLE, lane))
    return Lanes(builder, found)
