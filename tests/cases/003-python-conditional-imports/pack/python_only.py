import os

import torch

if os.environ.get("PACK_SLOW", "") == "yes":
    from .slow import fwd
else:
    from .quick import fwd

if getattr(torch.version, "hip", None):
    from .slow import fwd as bwd
else:
    from .quick import fwd as bwd


def go():
    fwd()
    return bwd()
