"""What the reference kernel refuses, and why: one class per reason, all of the family of ``tracer.errors``."""

from __future__ import annotations

from tracer.errors import MissingTool, TracerError


class RefkernelError(TracerError):
    """Root of the reference kernel's errors."""


class InvalidCall(RefkernelError, ValueError):
    """An argument of an attention call has the wrong dtype, device, shape, layout or value."""


class NotSupported(RefkernelError, NotImplementedError):
    """The call is meaningful, but the reference kernel does not implement it."""


class MissingCompiler(RefkernelError, MissingTool):
    """No compiler for the wanted device is installed."""


class MissingTorch(RefkernelError, MissingTool, ImportError):
    """PyTorch is needed for this and is not installed."""


class MissingGpu(RefkernelError, MissingTool):
    """A GPU is needed for this and PyTorch sees none."""


class CompileError(RefkernelError):
    """A compiler was found and rejected the kernel; the message holds its first error lines."""


class KernelFault(RefkernelError):
    """A kernel did something that CUDA leaves undefined or forbids; the message names block, thread and line."""
