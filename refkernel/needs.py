"""What part of the reference kernel needs, asked for in one sentence where it is missing."""

from __future__ import annotations

import importlib

from refkernel.errors import MissingGpu, MissingTorch


def require_torch() -> None:
    """Import torch.

    Raises:
        MissingTorch: it is not installed.
    """
    try:
        importlib.import_module("torch")
    except ImportError as error:
        raise MissingTorch("this needs PyTorch; run: pip install 'flashtracer[kernel]'") from error


def require_gpu() -> str:
    """Return the name of the GPU.

    Raises:
        MissingTorch: PyTorch is not installed.
        MissingGpu: PyTorch sees no GPU.
    """
    require_torch()
    import torch

    if not torch.cuda.is_available():
        built = f"was built for CUDA {torch.version.cuda}" if torch.version.cuda else "was built without CUDA"
        raise MissingGpu(f"no GPU found: PyTorch {torch.__version__} {built} and sees none; nothing was run")
    return str(torch.cuda.get_device_name())
