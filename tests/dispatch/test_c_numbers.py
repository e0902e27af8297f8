"""C++'s arithmetic, checked against what the standard says of 64-bit Linux."""

from __future__ import annotations

import math

import pytest

from tracer.dispatch import custom_device, device
from tracer.dispatch.numbers import (
    DivisionByZero,
    Number,
    Undefined,
    arithmetic_type,
    binary,
    common_type,
    convert,
    inverted,
    negative,
)
from tracer.errors import NameNotFound, TracerError


@pytest.mark.parametrize(
    ("operator", "a", "b", "result"),
    [
        ("/", Number(-7, "int"), Number(2, "int"), Number(-3, "int")),
        ("%", Number(-7, "int"), Number(2, "int"), Number(-1, "int")),
        ("-", Number(0, "unsigned int"), Number(1, "int"), Number(4294967295, "unsigned int")),
        ("<", Number(-1, "int"), Number(1, "unsigned int"), Number(0, "bool")),
        ("<", Number(-1, "int"), Number(1, "long"), Number(1, "bool")),
        ("+", Number(1, "bool"), Number(1, "bool"), Number(2, "int")),
        ("*", Number(3, "int"), Number(0.5, "double"), Number(1.5, "double")),
        (
            "==",
            Number(convert(Number(0.1, "double"), "float").value, "float"),
            Number(0.1, "double"),
            Number(0, "bool"),
        ),
        ("<<", Number(1, "int"), Number(10, "int"), Number(1024, "int")),
        ("^", Number(6, "int"), Number(3, "int"), Number(5, "int")),
        ("/", Number(1.0, "float"), Number(0.0, "float"), Number(math.inf, "float")),
    ],
)
def test_binary_operators(operator: str, a: Number, b: Number, result: Number) -> None:
    assert binary(operator, a, b) == result


def test_what_has_no_result() -> None:
    with pytest.raises(DivisionByZero):
        binary("/", Number(1, "int"), Number(0, "int"))
    with pytest.raises(DivisionByZero):
        binary("%", Number(1, "int"), Number(0, "long"))
    with pytest.raises(Undefined, match="overflow of 2147483647 \\+ 1 in int"):
        binary("+", Number(2147483647, "int"), Number(1, "int"))


def test_conversions() -> None:
    assert convert(Number(300, "int"), "unsigned char") == Number(44, "unsigned char")
    assert convert(Number(200, "int"), "signed char") == Number(-56, "signed char")
    assert convert(Number(-1.9, "double"), "int") == Number(-1, "int")
    assert convert(Number(16777217, "int"), "float") == Number(16777216.0, "float")
    assert convert(Number(2, "int"), "bool") == Number(1, "bool")
    assert negative(Number(1, "unsigned int")) == Number(4294967295, "unsigned int")
    assert inverted(Number(0, "int")) == Number(-1, "int")
    assert common_type("char", "short") == "int"
    assert common_type("unsigned int", "long") == "long"


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("const int", "int"), ("std::size_t", "unsigned long"), ("int64_t", "long"), ("unsigned", "unsigned int"),
        ("at::Tensor", ""), ("uint8_t", "unsigned char"),
    ],
)  # fmt: skip
def test_names_of_arithmetic_types(written: str, meant: str) -> None:
    assert arithmetic_type(written) == meant


def test_gpus_by_name_and_by_figures() -> None:
    assert device("NVIDIA GeForce RTX 4090").name == device("rtx4090").name == device("4090").name == "RTX 4090"
    a100 = device("A100")
    assert (a100.major, a100.minor, a100.sm_count) == (8, 0, 108)
    assert (a100.shared_memory_per_sm, a100.shared_memory_per_block_optin) == (167936, 166912)
    assert a100.sources
    own = custom_device("86", 84)
    assert (own.major, own.minor, own.sm_count, own.shared_memory_per_block_optin) == (8, 6, 84, 101376)
    assert custom_device("8.9", 60, shared_memory_per_block_optin=1).shared_memory_per_block_optin == 1
    with pytest.raises(TracerError, match="8.6"):
        custom_device("ampere", 84)
    with pytest.raises(TracerError, match="shared memory of compute capability 7.2"):
        custom_device("72", 8)
    with pytest.raises(NameNotFound):
        device("GTX 1080")
