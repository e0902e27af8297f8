"""C++'s arithmetic types: conversions, promotions and operators with their rounding and wrap-around.

A number is a value with the C++ type that it has, because the type decides the result: ``(a + b - 1) / b`` differs
between ``int`` and ``size_t``, and the split heuristic compares ``float`` with ``double``.
"""

from __future__ import annotations

import math
import struct
from functools import lru_cache

from tracer.dispatch.answers import Unsupported
from tracer.records import dataclass

# Rank of the usual arithmetic conversions, width in bits, signed. Widths are those of 64-bit Linux.
_INTEGERS: dict[str, tuple[int, int, bool]] = {
    "bool": (0, 1, False),
    "char": (1, 8, True),
    "signed char": (1, 8, True),
    "unsigned char": (1, 8, False),
    "short": (2, 16, True),
    "unsigned short": (2, 16, False),
    "int": (3, 32, True),
    "unsigned int": (4, 32, False),
    "long": (5, 64, True),
    "unsigned long": (6, 64, False),
    "long long": (7, 64, True),
    "unsigned long long": (8, 64, False),
}
_RANKS: dict[str, int] = {name: row[0] for name, row in _INTEGERS.items()} | {"float": 9, "double": 10}
_INT_RANK, _FLOAT_RANK = 3, 9
_SIZES = {name: max(row[1] // 8, 1) for name, row in _INTEGERS.items()} | {"float": 4, "double": 8}
_WORDS = {
    "unsigned": "unsigned int", "long int": "long", "unsigned long int": "unsigned long", "short int": "short",
    "size_t": "unsigned long", "int64_t": "long", "uint64_t": "unsigned long", "int32_t": "int",
    "uint32_t": "unsigned int", "int16_t": "short", "uint16_t": "unsigned short", "int8_t": "signed char",
    "uint8_t": "unsigned char", "ptrdiff_t": "long", "intptr_t": "long", "uintptr_t": "unsigned long",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Number:
    """A value of an arithmetic type; ``bool`` values are 0 and 1."""

    value: int | float
    type: str

    def __str__(self) -> str:
        """Return it as C++ writes it in a template argument."""
        if self.type == "bool":
            return "true" if self.value else "false"
        return f"{self.value:g}" if isinstance(self.value, float) else str(self.value)


TRUE, FALSE = Number(1, "bool"), Number(0, "bool")


def boolean(value: object) -> Number:
    """Return ``true`` or ``false``."""
    return TRUE if value else FALSE


def integer(value: int, type_: str = "int") -> Number:
    """Return an integer."""
    return Number(value, type_)


@lru_cache(maxsize=4096)
def arithmetic_type(name: str) -> str:
    """Return the plain name of an arithmetic type, cv-qualifiers and ``std::`` aside; empty for any other type."""
    words = [word for word in name.replace("std::", "").split() if word not in ("const", "volatile", "static")]
    plain = " ".join(words)
    plain = _WORDS.get(plain, plain)
    return plain if plain in _RANKS else ""


def size_of(type_: str) -> int:
    """Return the size of an arithmetic type in bytes."""
    return _SIZES[type_]


def single(value: float) -> float:
    """Round to the nearest ``float``."""
    try:
        return float(struct.unpack("f", struct.pack("f", value))[0])
    except OverflowError:
        return math.copysign(math.inf, value)


def convert(number: Number, type_: str) -> Number:
    """Convert to another arithmetic type.

    Raises:
        Unsupported: the language does not define the result.
    """
    if number.type == type_:
        return number
    return Number(_converted(number.value, type_), type_)


def _converted(value: int | float, type_: str) -> int | float:
    if type_ == "float":
        return single(value)
    if type_ == "double":
        return float(value)
    if type_ == "bool":
        return int(value != 0)
    if isinstance(value, float):
        if math.isnan(value) or math.isinf(value):
            raise Unsupported(f"conversion of {value} to {type_}")
        value = int(value)
    _, bits, signed = _INTEGERS[type_]
    wrapped = value & ((1 << bits) - 1)
    return wrapped - (1 << bits) if signed and wrapped >> (bits - 1) else wrapped


class DivisionByZero(Exception):
    """An integer was divided by zero: the process ends there."""


class Undefined(Exception):
    """The language does not define the result; the message says why."""


def common_type(a: str, b: str) -> str:
    """Return the type of the usual arithmetic conversions."""
    wider = a if _RANKS[a] >= _RANKS[b] else b
    return "int" if _RANKS[wider] < _INT_RANK else wider


def negative(number: Number) -> Number:
    """Return ``-number``."""
    type_ = common_type(number.type, "int")
    return Number(_converted(-number.value, type_), type_)


def inverted(number: Number) -> Number:
    """Return ``~number``.

    Raises:
        Unsupported: the operand is no integer.
    """
    if isinstance(number.value, float):
        raise Unsupported("operator ~ on a floating-point number")
    type_ = common_type(number.type, "int")
    return Number(_converted(~number.value, type_), type_)


def binary(operator: str, a: Number, b: Number) -> Number:
    """Apply a binary operator but for ``&&`` and ``||``, which do not evaluate both sides.

    Raises:
        DivisionByZero: the division ends the process.
        Undefined: the language does not define the result.
        Unsupported: not an operator of numbers.
    """
    if operator in ("<<", ">>"):
        return _shift(operator, a, b)
    type_ = a.type if a.type == b.type and _RANKS[a.type] >= _INT_RANK else common_type(a.type, b.type)
    x = a.value if a.type == type_ else _converted(a.value, type_)
    y = b.value if b.type == type_ else _converted(b.value, type_)
    compare = _COMPARISONS.get(operator)
    if compare is not None:
        return TRUE if compare(x, y) else FALSE
    if operator == "+":
        result = x + y
    elif operator == "-":
        result = x - y
    elif operator == "*":
        result = x * y
    elif operator == "/":
        result = _quotient(x, y, type_)
    elif isinstance(x, float) or isinstance(y, float):
        raise Unsupported(f"operator {operator} on floating-point numbers")
    elif operator == "%":
        if y == 0:
            raise DivisionByZero
        result = abs(x) % abs(y) * (-1 if x < 0 else 1)
    elif operator in _BITWISE:
        result = _BITWISE[operator](x, y)
    else:
        raise Unsupported(f"operator {operator} on numbers")
    wrapped = _converted(result, type_)
    if wrapped != result and _RANKS[type_] < _FLOAT_RANK and _INTEGERS[type_][2]:
        raise Undefined(f"the overflow of {x} {operator} {y} in {type_}")
    return Number(wrapped, type_)


_COMPARISONS = {
    "==": lambda x, y: x == y, "!=": lambda x, y: x != y, "<": lambda x, y: x < y, ">": lambda x, y: x > y,
    "<=": lambda x, y: x <= y, ">=": lambda x, y: x >= y,
}  # fmt: skip
_BITWISE = {"&": lambda x, y: x & y, "|": lambda x, y: x | y, "^": lambda x, y: x ^ y}


def _shift(operator: str, a: Number, b: Number) -> Number:
    if isinstance(a.value, float) or isinstance(b.value, float):
        raise Unsupported(f"operator {operator} on floating-point numbers")
    type_ = common_type(a.type, "int") if _RANKS[a.type] < _INT_RANK else a.type
    if not 0 <= b.value < _INTEGERS[type_][1]:
        raise Unsupported(f"shift of {type_} by {b.value} bits")
    return Number(_converted(a.value << b.value if operator == "<<" else a.value >> b.value, type_), type_)


def _quotient(x: int | float, y: int | float, type_: str) -> int | float:
    if _RANKS[type_] >= _FLOAT_RANK:
        if y == 0:
            return math.nan if x == 0 or x != x else math.copysign(math.inf, x) * math.copysign(1, y)
        return x / y
    if y == 0:
        raise DivisionByZero
    assert isinstance(x, int) and isinstance(y, int)
    return abs(x) // abs(y) * (1 if (x < 0) == (y < 0) else -1)
