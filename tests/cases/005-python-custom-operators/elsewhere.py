import torch

namespace = torch.ops.ns


def use(x):
    return namespace.second(x)
