from functools import partial

import torch


def first(x):
    return x


def second(x):
    return x


renamed = first
bound = partial(second, 1)
compiled = torch.compile(first)
table = {"first": first, "second": second}
short = lambda x: first(x)


def run(key, x):
    renamed(x)
    bound()
    compiled(x)
    table[key](x)
    (first if key else second)(x)
    for function in (first, second):
        function(x)
    chosen = first or second
    chosen(x)
    one, two = second, first
    one(x)
    two(x)
    if (found := second):
        found(x)
    return short(x)


def make():
    return first


def indirect(x):
    return make()(x)
