#include <torch/extension.h>
#include <ATen/cuda/CUDAContext.h>
#include <c10/cuda/CUDAException.h>
#include "params.h"

#define CHECK_STATUS(call) \
  do { \
    cudaError_t status_ = call; \
    if (status_ != cudaSuccess) { fprintf(stderr, "%s", cudaGetErrorString(status_)); exit(1); } \
  } while (0)
static std::tuple<int, int> capability(int device) {
  int major, minor;
  CHECK_STATUS(cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device));
  CHECK_STATUS(cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, device));
  return {major, minor};
}
void run(at::Tensor &x, int how) {
  int device;
  CHECK_STATUS(cudaGetDevice(&device));
  auto [major, minor] = capability(device);
  Params params = {};
  params.rows = major * 10 + minor;
  auto properties = at::cuda::getCurrentDeviceProperties();
  params.columns = properties->multiProcessorCount;
  if (how == 1) {
    int bytes;
    CHECK_STATUS(cudaDeviceGetAttribute(&bytes, cudaDevAttrMaxSharedMemoryPerBlockOptin, device));
    params.columns = bytes >= 2 * (64 * 1024) ? 1 : 2;
  }
  if (how == 2) {
    int blocks;
    CHECK_STATUS(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, capability, 128, 0));
    if (blocks > 1) { params.columns = 3; }
  }
  if (how == 3) {
    int clock;
    CHECK_STATUS(cudaDeviceGetAttribute(&clock, cudaDevAttrMaxSharedMemoryPerBlock, device));
  }
  launch<64, true>(params, nullptr);
}

PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) { m.def("run", &run); }
