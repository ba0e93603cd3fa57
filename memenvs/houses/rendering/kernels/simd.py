"""A vector of numbers in one SIMD register, for the innermost loops of the renderer.

The kernels beside this file process 4 to 16 pixels at a time. When such a loop is written in Python, LLVM unrolls it
before it searches for vector instructions and emits scalar code, which is five times slower. So these few loops are the
one place in the project that builds LLVM code by hand: an `intrinsic` gets LLVM values, combines them through
`SimdVector`, and numba inlines it.

A kernel reads like NumPy: `(x * 2.0 + y).maximum(0.0)` emits one multiplication, one addition, one comparison and one
selection, each for all elements at once.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

import numba
from llvmlite import ir  # type: ignore[import-untyped]
from numba.core import cgutils
from numba.core.registry import cpu_target
from numba.extending import intrinsic as numba_intrinsic

from memenvs.compilation import need_compiler

need_compiler()

#: Environment variable that sets `VECTOR_WIDTH`, to compare widths; what is compiled then is not cached.
WIDTH_VARIABLE = "MEMENVS_VECTOR_WIDTH"
_WIDTHS = (16, 8, 4)


def choose_vector_width(setting: str | None, features: str) -> int:
    """Choose how many 32-bit numbers a vector of the renderer has.

    Args:
        setting: Value of the environment variable `WIDTH_VARIABLE`; None if it is not set.
        features: Features of the processor that code is compiled for, as LLVM writes them: "+avx2,-avx512f".

    Raises:
        ValueError: The setting is no known width.
    """
    if setting is not None:
        if setting not in map(str, _WIDTHS):
            raise ValueError(f"{WIDTH_VARIABLE} must be one of {', '.join(map(str, _WIDTHS))}, got {setting!r}")
        return int(setting)
    names = features.split(",")
    return 16 if "+avx512f" in names else 8 if "+avx2" in names else 4  # 4: SSE, and NEON of 64-bit Arm


def processor() -> tuple[str, str]:
    """Name and features of the processor that numba compiles for, in LLVM's words."""
    _, name, features = cpu_target.target_context.codegen().magic_tuple()
    return name, features


#: 32-bit numbers of a vector register: 16 with AVX-512, 8 with AVX2, else 4. Images have the same bits with each.
VECTOR_WIDTH = choose_vector_width(os.environ.get(WIDTH_VARIABLE), processor()[1])

#: Compiles a function of the renderer.
#: - No `fastmath` and no contraction of a * b + c. With them LLVM chooses the operations to fuse by what it inlines, so
#:   two machines would draw some pixels differently; so would a process that compiles and one that loads the cache.
#: - `error_model="numpy"`: a division by zero gives infinity instead of an exception.
#: - `_nrt=False` (no reference counts: nothing is allocated in here) and `forceinline` make frames a third faster
#:   together.
compiled: Any = numba.njit(  # type: ignore[call-overload]
    nogil=True, cache=WIDTH_VARIABLE not in os.environ, _nrt=False, forceinline=True, error_model="numpy"
)
intrinsic: Any = numba_intrinsic

#: LLVM's element types: floats, a bit (the result of a comparison) and integers.
F32, F64, I1 = ir.FloatType(), ir.DoubleType(), ir.IntType(1)
I8, I16, I32, I64 = (ir.IntType(bits) for bits in (8, 16, 32, 64))
_BYTES = {F32: 4, F64: 8, I8: 1, I16: 2, I32: 4, I64: 8}


class _VolatileStore(ir.instructions.StoreInstr):
    """A store that LLVM keeps as it is; llvmlite has none."""

    def descr(self, buf: list[str]) -> None:
        """Append the instruction's text."""
        lines: list[str] = []
        super().descr(lines)
        buf += [lines[0].replace("store ", "store volatile ", 1), *lines[1:]]


class SimdVector:
    """A vector of numbers in compiled code; its operators emit element-wise instructions.

    The other operand is a vector of the same length, one LLVM value or a Python number; the last two are broadcast.
    Integers are signed, except that `>>` and `cast` to a longer integer fill up with zeros.

    Attributes:
        builder: The LLVM builder that instructions go to.
        value: The LLVM vector.
        is_float: True for floats, False for integers and bits.
    """

    def __init__(self, builder: Any, value: Any) -> None:
        self.builder = builder
        self.value = value
        self.is_float = value.type.element in (F32, F64)

    def __len__(self) -> int:
        return int(self.value.type.count)

    @staticmethod
    def broadcast(builder: Any, value: Any, count: int) -> SimdVector:
        """Repeat one LLVM value `count` times."""
        vector_type = ir.VectorType(value.type, count)
        first = builder.insert_element(ir.Constant(vector_type, ir.Undefined), value, ir.Constant(I32, 0))
        return SimdVector(builder, first).shuffle([0] * count)

    @staticmethod
    def constant(builder: Any, element: Any, numbers: Sequence[float]) -> SimdVector:
        """Numbers that are known at compile time, as elements of type `element`."""
        python = float if element in (F32, F64) else int
        return SimdVector(builder, ir.Constant(ir.VectorType(element, len(numbers)), [python(k) for k in numbers]))

    @staticmethod
    def load(builder: Any, pointer: Any, count: int) -> SimdVector:
        """Read `count` consecutive elements from memory."""
        element = pointer.type.pointee
        vector_pointer = builder.bitcast(pointer, ir.VectorType(element, count).as_pointer())
        return SimdVector(builder, builder.load(vector_pointer, align=_BYTES[element]))

    def store(self, pointer: Any, *, volatile: bool = False) -> None:
        """Write the elements to consecutive memory; the pointer's own element type does not matter.

        A volatile store writes all elements in one instruction. LLVM makes a plain store of `mask.select(new, old)`
        a masked one, which AMD's AVX2 processors run from microcode, ten times slower.
        """
        builder = self.builder
        vector_pointer = builder.bitcast(pointer, self.value.type.as_pointer())
        written = builder.store(self.value, vector_pointer, align=_BYTES[pointer.type.pointee])
        if volatile:
            written.__class__ = _VolatileStore

    def _new(self, value: Any) -> SimdVector:
        return SimdVector(self.builder, value)

    def _operand(self, other: Any) -> Any:
        """The other operand as an LLVM vector of this length."""
        if isinstance(other, SimdVector):
            return other.value
        if isinstance(other, (int, float)):
            return SimdVector.constant(self.builder, self.value.type.element, [other] * len(self)).value
        return SimdVector.broadcast(self.builder, other, len(self)).value

    def _arithmetic(self, float_name: str, int_name: str, other: Any) -> SimdVector:
        """Emit the instruction of this name for floats or for integers."""
        emit = getattr(self.builder, float_name if self.is_float else int_name)
        return self._new(emit(self.value, self._operand(other)))

    def __add__(self, other: Any) -> SimdVector:
        return self._arithmetic("fadd", "add", other)

    def __sub__(self, other: Any) -> SimdVector:
        return self._arithmetic("fsub", "sub", other)

    def __mul__(self, other: Any) -> SimdVector:
        return self._arithmetic("fmul", "mul", other)

    def __rtruediv__(self, other: float) -> SimdVector:
        return self._new(self.builder.fdiv(self._operand(other), self.value))

    def __truediv__(self, other: Any) -> SimdVector:
        return self._new(self.builder.fdiv(self.value, self._operand(other)))

    def __and__(self, other: Any) -> SimdVector:
        return self._new(self.builder.and_(self.value, self._operand(other)))

    def __or__(self, other: Any) -> SimdVector:
        return self._new(self.builder.or_(self.value, self._operand(other)))

    def __xor__(self, other: Any) -> SimdVector:
        return self._new(self.builder.xor(self.value, self._operand(other)))

    def __lshift__(self, other: Any) -> SimdVector:
        return self._new(self.builder.shl(self.value, self._operand(other)))

    def __rshift__(self, other: Any) -> SimdVector:
        return self._new(self.builder.lshr(self.value, self._operand(other)))

    def _compare(self, sign: str, other: Any) -> SimdVector:
        compare = self.builder.fcmp_ordered if self.is_float else self.builder.icmp_signed
        return self._new(compare(sign, self.value, self._operand(other)))

    def __lt__(self, other: Any) -> SimdVector:
        return self._compare("<", other)

    def __le__(self, other: Any) -> SimdVector:
        return self._compare("<=", other)

    def __gt__(self, other: Any) -> SimdVector:
        return self._compare(">", other)

    def __ge__(self, other: Any) -> SimdVector:
        return self._compare(">=", other)

    def not_equal(self, other: Any) -> SimdVector:
        """Compare integers; `!=` itself stays Python's comparison of objects."""
        return self._compare("!=", other)

    def minimum(self, other: Any) -> SimdVector:
        """Element-wise minimum; `other` where this element is NaN."""
        return (self < other).select(self, other)

    def maximum(self, other: Any) -> SimdVector:
        """Element-wise maximum; `other` where this element is NaN."""
        return (self > other).select(self, other)

    def select(self, if_true: SimdVector, if_false: Any) -> SimdVector:
        """Take `if_true` where this bit is set and `if_false` elsewhere, as `np.where` does."""
        return self._new(self.builder.select(self.value, if_true.value, if_true._operand(if_false)))

    def shuffle(self, order: Sequence[int]) -> SimdVector:
        """Take the elements of these indices, in this order."""
        indices = ir.Constant(ir.VectorType(I32, len(order)), list(order))
        return self._new(self.builder.shuffle_vector(self.value, ir.Constant(self.value.type, ir.Undefined), indices))

    def join(self, other: SimdVector) -> SimdVector:
        """The elements of this vector and then those of another one of the same length."""
        indices = ir.Constant(ir.VectorType(I32, 2 * len(self)), list(range(2 * len(self))))
        return self._new(self.builder.shuffle_vector(self.value, other.value, indices))

    def reduce(self, name: str) -> Any:
        """Join all elements, a power of two in number, into one value by the method `name`."""
        vector = self
        count = len(self)
        while count > 1:  # the first half meets the second half, then the first quarter the second quarter, ...
            count //= 2
            vector = getattr(vector, name)(vector.shuffle([(k + count) % len(self) for k in range(len(self))]))
        return self.builder.extract_element(vector.value, ir.Constant(I32, 0))

    def cast(self, element: Any) -> SimdVector:
        """Convert to another type: floats are truncated, longer integers lose upper bits."""
        builder = self.builder
        vector_type = ir.VectorType(element, len(self))
        if self.is_float:
            if element in (F32, F64):
                return self._new((builder.fptrunc if element is F32 else builder.fpext)(self.value, vector_type))
            return self._new(builder.fptosi(self.value, vector_type))
        if element in (F32, F64):
            return self._new(builder.sitofp(self.value, vector_type))
        is_wider = element.width > self.value.type.element.width
        return self._new((builder.zext if is_wider else builder.trunc)(self.value, vector_type))

    def bitcast(self, element: Any, count: int | None = None) -> SimdVector:
        """Reinterpret the bits as `count` (None: the same number) elements of another type."""
        return self._new(self.builder.bitcast(self.value, ir.VectorType(element, count or len(self))))

    def bitmask(self) -> Any:
        """Pack a vector of bits into one LLVM integer; the first element is its lowest bit."""
        return self.builder.bitcast(self.value, ir.IntType(len(self)))

    def call(self, name: str, *others: Any) -> SimdVector:
        """Apply a function of LLVM, such as `sqrt`, element by element."""
        vector_type = self.value.type
        suffix = f"{'f' if self.is_float else 'i'}{8 * _BYTES[vector_type.element]}"
        values = [self.value, *(other.value if isinstance(other, SimdVector) else other for other in others)]
        signature = ir.FunctionType(vector_type, [value.type for value in values])
        function = cgutils.get_or_insert_function(self.builder.module, signature, f"llvm.{name}.v{len(self)}{suffix}")
        return self._new(self.builder.call(function, values))


def arange(builder: Any, element: Any, count: int) -> SimdVector:
    """The numbers 0, 1, ..., count - 1."""
    return SimdVector.constant(builder, element, range(count))


def entry_pointer(context: Any, builder: Any, array_type: Any, array: Any, index: Any = 0) -> Any:
    """Pointer to entry `index` (a Python or 64-bit LLVM integer) of a contiguous array."""
    index = ir.Constant(I64, index) if isinstance(index, int) else index
    return builder.gep(context.make_array(array_type)(context, builder, array).data, [index])


def gather(builder: Any, table: Any, indices: Any, count: int) -> SimdVector:
    """Read `count` entries of a table (a pointer) at consecutive indices in memory (a pointer)."""
    gathered = ir.Constant(ir.VectorType(table.type.pointee, count), ir.Undefined)
    for k in range(count):
        index = builder.zext(builder.load(builder.gep(indices, [ir.Constant(I64, k)])), I64)
        gathered = builder.insert_element(gathered, builder.load(builder.gep(table, [index])), ir.Constant(I32, k))
    return SimdVector(builder, gathered)


def prefetch(builder: Any, pointer: Any) -> None:
    """Have the processor load what a pointer points to into its caches; any address will do."""
    byte_pointer = ir.PointerType(I8)
    signature = ir.FunctionType(ir.VoidType(), [byte_pointer, I32, I32, I32])
    function = cgutils.get_or_insert_function(builder.module, signature, "llvm.prefetch.p0")
    for_reading, to_all_caches, of_data = (ir.Constant(I32, number) for number in (0, 3, 1))
    builder.call(function, [builder.bitcast(pointer, byte_pointer), for_reading, to_all_caches, of_data])
