#include <cutlass/cluster_launch.hpp>
#include <cutlass/device_kernel.h>
#include <cutlass/kernel_launch.h>

struct Params { int rows; };
inline __device__ void work(int) {}

struct Plain {
  using Params = ::Params;
  __device__ void operator()(Params const &params, char *) { work(params.rows); }
};

template <class Kernel> struct Guarded : Kernel {
  template <class... A> __device__ void operator()(A &&...a) {
#if defined(__CUDA_ARCH__) && (__CUDA_ARCH__ >= 900)
    Kernel::operator()(a...);
#endif
  }
};

template <class Kernel> struct Counted : Kernel {
  __device__ void operator()(Params const &params, char *memory) {
    work(1);
    Kernel::operator()(params, memory);
  }
};

template <class Kernel> struct Inheriting : Kernel {};

__global__ void own_kernel(Params params) { work(params.rows); }

template <int N> void by_triple_chevron(Params params) {
  auto kernel = cutlass::device_kernel<Plain>;
  kernel<<<1, 32>>>(params);
  cutlass::device_kernel<Guarded<Plain>><<<1, 32>>>(params);
}

template <int N> void by_library(Params params, cutlass::ClusterLaunchParams launch) {
  using Local = Counted<Plain>;
  void const *kernel = (void const *)cutlass::device_kernel<Inheriting<Plain>>;
  cutlass::kernel_launch<Local>(1, 32, 0, 0, params);
  cutlass::ClusterLauncher::launch(launch, kernel, params);
  cutlass::launch_kernel_on_cluster(launch, kernel, params);
}

void by_runtime(void **arguments) {
  cudaLaunchKernel((void const *)own_kernel, dim3(1), dim3(32), arguments, 0, 0);
}
