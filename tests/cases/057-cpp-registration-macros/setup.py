from setuptools import setup
from torch.utils.cpp_extension import CUDAExtension

setup(
    name="tiny_attn",
    ext_modules=[
        CUDAExtension(
            name="tiny_attn._tiny_C",
            sources=["csrc/tiny/api.cpp", "csrc/tiny/register.cpp", "csrc/tiny/kernel.cu"],
            include_dirs=["csrc/tiny", "shared"],
        )
    ],
)
