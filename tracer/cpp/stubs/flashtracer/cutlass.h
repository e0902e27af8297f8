// CUTLASS below CuTe: numbers, arrays, conversions, and the warp-level MMA that the first generation is built from.
#pragma once
#include <flashtracer/cuda.h>

#define CUTLASS_DEVICE inline __device__
#define CUTLASS_HOST_DEVICE inline __host__ __device__
#define CUTLASS_HOST __host__
#define CUTLASS_GLOBAL __global__ static
#define CUTLASS_PRAGMA_UNROLL
#define CUTLASS_PRAGMA_NO_UNROLL
#define CUTLASS_GRID_CONSTANT
#define CUTLASS_MAJOR 4
#define CUTLASS_MINOR 1
#define CUTLASS_PATCH 0
#define CUTLASS_VERSION (CUTLASS_MAJOR * 100 + CUTLASS_MINOR * 10 + CUTLASS_PATCH)
#define CUTLASS_TRACE_HOST(...)
#define CUTLASS_CHECK(...) ((void)(__VA_ARGS__))

#pragma clang force_cuda_host_device begin

namespace cutlass {

FLASHTRACER_SMALL_FLOAT(half_t);
FLASHTRACER_SMALL_FLOAT(bfloat16_t);
FLASHTRACER_SMALL_FLOAT(tfloat32_t);
FLASHTRACER_SMALL_FLOAT(float_e4m3_t);
FLASHTRACER_SMALL_FLOAT(float_e5m2_t);
struct uint128_t { uint64_t low, high; };
template <class T> struct sizeof_bits { static constexpr int value = 16; };
template <class T> inline constexpr int sizeof_bits_v = 16;

template <class T, int N> struct Array {
  using value_type = T;
  T& operator[](int);
  T const& operator[](int) const;
  T* data();
  T const* data() const;
  T* begin();
  T* end();
  void clear();
  void fill(T const&);
  static constexpr int kElements = N;
  static constexpr int size() { return N; }
};
template <class T, int N, int alignment = 16> struct AlignedArray : Array<T, N> {};
template <class To, class From, int N, class... More> struct NumericArrayConverter {
  using result_type = Array<To, N>;
  using source_type = Array<From, N>;
  template <class A> Array<To, N> operator()(A const&) const;
  template <class A> static Array<To, N> convert(A const&);
};
template <class To, class From, class... More> struct NumericConverter {
  template <class A> To operator()(A const&) const;
  template <class A> static To convert(A const&);
};
template <class T> struct plus { template <class A, class B> A operator()(A, B) const; };
template <class T> struct maximum { template <class A, class B> A operator()(A, B) const; };
template <class T> struct minimum { template <class A, class B> A operator()(A, B) const; };
template <class T> struct multiplies { template <class A, class B> A operator()(A, B) const; };
template <class T> struct multiply_add { template <class A, class B, class C> C operator()(A, B, C) const; };
template <class T> T fast_tanh(T);
template <class T> T fast_exp(T);
template <class T> T fast_log(T);

struct MatrixCoord {
  MatrixCoord(int row, int column);
  int row() const;
  int column() const;
};
template <class T, class L> struct TensorRef {
  template <class... A> TensorRef(A const&...);
};
namespace layout {
struct RowMajor {};
struct ColumnMajor {};
}  // namespace layout

namespace arch {
struct OpMultiplyAdd {};
struct OpClassTensorOp {};
struct Sm70 { static constexpr int kMinComputeCapability = 70; };
struct Sm75 { static constexpr int kMinComputeCapability = 75; };
struct Sm80 { static constexpr int kMinComputeCapability = 80; };
struct Sm89 { static constexpr int kMinComputeCapability = 89; };
struct Sm90 { static constexpr int kMinComputeCapability = 90; };
struct Sm100 { static constexpr int kMinComputeCapability = 100; };
template <class... T> struct Mma;
template <int N> void cp_async_wait();
void cp_async_fence();
template <int bytes, int cache = 0> void cp_async(void* shared, const void* global, bool guard = true);
template <class T, int bytes, int... More> struct global_load {
  global_load(T&, const void*, bool);
};
}  // namespace arch

namespace gemm {
template <int M, int N = 1, int K = 1> struct GemmShape {
  static constexpr int kM = M;
  static constexpr int kN = N;
  static constexpr int kK = K;
  static constexpr int kMN = M * N;
  static constexpr int kCount = M * N * K;
};
namespace warp {
// An MMA of one warp: its fragments, the iterators that load them, and the operation itself.
struct MmaTensorOp {
  struct Iterator {
    template <class... A> Iterator(A const&...);
    template <class F> void load(F&) const;
    Iterator& operator++();
    template <class A> Iterator& add_tile_offset(A const&);
  };
  using FragmentA = Array<half_t, 8>;
  using FragmentB = Array<half_t, 8>;
  using FragmentC = Array<float, 8>;
  using IteratorA = Iterator;
  using IteratorB = Iterator;
  using IteratorC = Iterator;
  template <class D, class A, class B, class C> void operator()(D&, A const&, B const&, C const&) const;
};
template <class Shape, class Instruction, class A, class LayoutA, class B, class LayoutB, class C, class LayoutC,
          class Operator, int partitions = 1, bool row_major = false>
struct DefaultMmaTensorOp {
  using Type = MmaTensorOp;
};
}  // namespace warp
}  // namespace gemm

// ---- Integers -------------------------------------------------------------------------------------------------------
inline constexpr int NumThreadsPerWarp = 32;
inline constexpr int NumThreadsPerWarpGroup = 128;
inline constexpr int NumWarpsPerWarpGroup = 4;
template <class A, class B> constexpr A ceil_div(A a, B b) { return (a + b - 1) / b; }
template <class A, class B> constexpr A round_up(A a, B b) { return (a + b - 1) / b * b; }
template <class A, class B> constexpr A round_nearest(A a, B b) { return (a + b - 1) / b * b; }
template <class A, class B> constexpr A const_max(A a, B b) { return a < b ? b : a; }
template <class A, class B> constexpr A const_min(A a, B b) { return b < a ? b : a; }
constexpr int gcd(int a, int b) { return b == 0 ? a : gcd(b, a % b); }
template <class T> constexpr int find_log2(T);
int clz(int);
template <class T> void swap(T&, T&);
struct FastDivmod {
  FastDivmod();
  FastDivmod(int divisor);
  int divisor;
  operator int() const;
  int div(int) const;
  int rem(int) const;
  template <class... A> int divmod(A&&...) const;
  template <class... A> int divide(A&&...) const;
};

}  // namespace cutlass

#pragma clang force_cuda_host_device end
