"""What the library functions mean that decide where a call goes: the one table of such knowledge.

Names are the documented ones, with their namespaces.
"""

from __future__ import annotations

from tracer.records import dataclass


@dataclass(frozen=True, slots=True)
class Starter:
    """Where a call that starts a kernel says which one.

    Attributes:
        argument: position of the argument that is the kernel; -1 where a template argument says it.
        template_argument: position of the template argument that is the class of the kernel; -1 for none.
    """

    argument: int = -1
    template_argument: int = -1


#: Functions that start a kernel in place of ``<<<…>>>``.
STARTERS = {
    "cudaLaunchKernel": Starter(argument=0),
    "cudaLaunchCooperativeKernel": Starter(argument=0),
    "cudaLaunchKernelEx": Starter(argument=1),
    "cudaLaunchKernelExC": Starter(argument=1),
    "cutlass::ClusterLauncher::launch": Starter(argument=1),
    "cutlass::launch_kernel_on_cluster": Starter(argument=1),
    "cutlass::kernel_launch": Starter(template_argument=0),
}

#: Kernels of a library that run ``operator()`` of a class: which template argument that class is.
RUNS_OPERATOR_OF = {"cutlass::device_kernel": 0, "cutlass::Kernel": 0, "cutlass::Kernel2": 0}

#: Types that are one of two template arguments, chosen by the first.
CONDITIONAL_TYPES = frozenset({"conditional_t", "conditional"})

#: Functions whose value is one of their arguments: which ones.
RETURNS_ARGUMENT = {
    "cute::conditional_return": (0, 1),
    "cute::forward": (0,),
    "std::forward": (0,),
    "std::move": (0,),
}
