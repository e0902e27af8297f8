import torch
from torch import ops

try:
    from . import _fast_C
except ImportError:
    pass

import slow_C

flash = torch.ops.flash_3
forward = flash.fwd
if slow_C:
    either = torch.ops.left
else:
    either = ops.right


def run(x):
    flash.fwd(x)
    forward(x)
    torch.ops._fast_C.fwd(x)
    ops.unheard.fwd(x)
    either.fwd.default(x)
    _fast_C.direct(x)
    slow_C.direct(x)
    torch.ops.load_library("x")
    return torch.ops.flash_3.fwd.overloads()
