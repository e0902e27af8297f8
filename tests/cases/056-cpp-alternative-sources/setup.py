from setuptools import setup
from torch.utils.cpp_extension import CUDAExtension
import torch

if torch.version.cuda >= "13":
    api = "csrc/tiny/api_stable.cpp"
else:
    api = "csrc/tiny/api.cpp"
setup(name="tiny_attn", ext_modules=[CUDAExtension(name="tiny_cuda", sources=[api, "csrc/tiny/kernel.cu"])])
