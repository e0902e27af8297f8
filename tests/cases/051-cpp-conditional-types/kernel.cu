#include <cutlass/device_kernel.h>
#include <cutlass/kernel_launch.h>
#include <type_traits>

struct Params { int rows; };

struct NewLoop {
  __device__ void run(int) {}
  static int threads() { return 384; }
};
struct OldLoop {
  __device__ void run(int) {}
  static int threads() { return 128; }
};
struct OldestLoop {
  static int threads() { return 64; }
};

template <class Loop_> struct NewKernel {
  using Loop = Loop_;
  Loop loop;
  __device__ void operator()(Params const &params, char *) { loop.run(params.rows); }
};
template <class Loop_> struct OldKernel {
  using Params = ::Params;
  __device__ void operator()(Params const &params, char *) {
    Loop_ loop;
    loop.run(params.rows);
  }
};

template <int Arch, bool Split> void launch(Params params) {
  using Loop = std::conditional_t<Arch >= 90, NewLoop, OldLoop>;
  using Kernel = std::conditional_t<Arch >= 90, NewKernel<Loop>, OldKernel<Loop>>;
  using Nested = std::conditional_t<Split, OldestLoop, std::conditional_t<Arch >= 90, NewLoop, OldLoop>>;
  using Spelled = typename std::conditional<Split, OldLoop, NewLoop>::type;
  int threads = Loop::threads() + Nested::threads() + Spelled::threads();
  cutlass::kernel_launch<Kernel>(1, threads, 0, 0, params);
}
