import torch
from torch.library import Library

if torch.__version__ >= "2.4.0":
    register = torch.library.custom_op
    register_fake = torch.library.register_fake
else:

    def nothing(name, **options):
        def keep(function):
            return function

        return keep

    register = nothing
    register_fake = nothing


def ours(name, **options):
    return torch.library.custom_op(f"ns::{name}", **options)


@register("ns::first", mutates_args=())
def first(x):
    return x


@register_fake("ns::first")
def first_fake(x):
    return x


@torch.library.custom_op(
    "ns::second",
    mutates_args=(),
)
def second(x):
    return x


def second_backward(ctx, grad):
    return grad


second.register_autograd(second_backward)


@ours("third", mutates_args=())
def third(x):
    return x


library = Library("old", "DEF")
library.define("fourth(Tensor x) -> Tensor")


def fourth(x):
    return x


library.impl("fourth", fourth, "CUDA")

if torch.__version__ >= "2.4.0":
    call_first = torch.ops.ns.first
else:
    call_first = first


def use(x):
    call_first(x)
    first(x)
    torch.ops.ns.second.default(x)
    torch.ops.ns.third(x)
    torch.ops.old.fourth(x)
    return torch.ops.ns.first._schema.name()


@torch.library.impl(library, "fifth", "CUDA")
def fifth(x):
    return x


def more(x):
    return torch.ops.old.fifth(x)
