// The CUDA runtime, the built-in variables of a kernel and the device intrinsics.
#pragma once
#include <flashtracer/std.h>

#pragma clang force_cuda_host_device begin

// ---- Vector types ---------------------------------------------------------------------------------------------------
#define FLASHTRACER_VECTORS(type, name)     \
  struct name##1 { type x; };               \
  struct name##2 { type x, y; };            \
  struct name##3 { type x, y, z; };         \
  struct name##4 { type x, y, z, w; };      \
  name##1 make_##name##1(type);             \
  name##2 make_##name##2(type, type);       \
  name##3 make_##name##3(type, type, type); \
  name##4 make_##name##4(type, type, type, type);
FLASHTRACER_VECTORS(short, short)
FLASHTRACER_VECTORS(unsigned short, ushort)
FLASHTRACER_VECTORS(int, int)
FLASHTRACER_VECTORS(unsigned, uint)
FLASHTRACER_VECTORS(float, float)
#undef FLASHTRACER_VECTORS

struct dim3 {
  unsigned x, y, z;
  constexpr dim3(unsigned x = 1, unsigned y = 1, unsigned z = 1) : x(x), y(y), z(z) {}
};
extern const uint3 threadIdx;
extern const uint3 blockIdx;
extern const dim3 blockDim;
extern const dim3 gridDim;
extern const int warpSize;

// ---- Half precision -------------------------------------------------------------------------------------------------
// Defines a number of 16 or 8 bits: made from any number, and read as float.
#define FLASHTRACER_SMALL_FLOAT(name)              \
  struct name {                                    \
    constexpr name() {}                            \
    template <class T> constexpr name(T) {}        \
    constexpr operator float() const { return 1; } \
  }
FLASHTRACER_SMALL_FLOAT(__half);
FLASHTRACER_SMALL_FLOAT(__nv_bfloat16);
FLASHTRACER_SMALL_FLOAT(__nv_fp8_e4m3);
FLASHTRACER_SMALL_FLOAT(__nv_fp8_e5m2);
struct __half2 {
  __half x, y;
  __half2();
  __half2(__half, __half);
};
struct __nv_bfloat162 {
  __nv_bfloat16 x, y;
  __nv_bfloat162();
  __nv_bfloat162(__nv_bfloat16, __nv_bfloat16);
};
typedef __half half;
typedef __half2 half2;
typedef __nv_bfloat16 nv_bfloat16;
typedef __nv_bfloat162 nv_bfloat162;

__half __float2half(float);
__half __float2half_rn(float);
__half2 __float2half2_rn(float);
__half2 __floats2half2_rn(float, float);
__half2 __float22half2_rn(float2);
__half2 __halves2half2(__half, __half);
__half2 __half2half2(__half);
__half __low2half(__half2);
__half __high2half(__half2);
float __half2float(__half);
float2 __half22float2(__half2);
__half2 __hadd2(__half2, __half2);
__half2 __hmul2(__half2, __half2);
__half2 __hfma2(__half2, __half2, __half2);
__nv_bfloat16 __float2bfloat16(float);
__nv_bfloat16 __float2bfloat16_rn(float);
__nv_bfloat162 __float2bfloat162_rn(float);
__nv_bfloat162 __floats2bfloat162_rn(float, float);
__nv_bfloat162 __float22bfloat162_rn(float2);
float __bfloat162float(__nv_bfloat16);
float2 __bfloat1622float2(__nv_bfloat162);
__nv_bfloat162 __hadd2(__nv_bfloat162, __nv_bfloat162);
__nv_bfloat162 __hmul2(__nv_bfloat162, __nv_bfloat162);

// ---- Intrinsics -----------------------------------------------------------------------------------------------------
void __syncwarp(unsigned mask = ~0u);
void __threadfence();
void __threadfence_block();
void __trap();
template <class T> T __shfl_sync(unsigned mask, T value, int lane, int width = 32);
template <class T> T __shfl_up_sync(unsigned mask, T value, unsigned delta, int width = 32);
template <class T> T __shfl_down_sync(unsigned mask, T value, unsigned delta, int width = 32);
template <class T> T __shfl_xor_sync(unsigned mask, T value, int lanes, int width = 32);
unsigned __ballot_sync(unsigned mask, int predicate);
int __any_sync(unsigned mask, int predicate);
int __all_sync(unsigned mask, int predicate);
unsigned __activemask();
int __syncthreads_or(int);
int __syncthreads_and(int);
int __syncthreads_count(int);
template <class T> T __ldg(const T*);
template <class T, class U> T atomicAdd(T* address, U value);
template <class T, class U> T atomicMax(T* address, U value);
template <class T, class U> T atomicExch(T* address, U value);
template <class T, class U, class V> T atomicCAS(T* address, U compare, V value);

int __popc(unsigned);
int __clz(int);
int __ffs(int);
unsigned __brev(unsigned);
unsigned __byte_perm(unsigned, unsigned, unsigned);
unsigned __umulhi(unsigned, unsigned);
int __viaddmin_s32(int, int, int);
float __int_as_float(int);
int __float_as_int(float);
unsigned __float_as_uint(float);
float __uint_as_float(unsigned);
size_t __cvta_generic_to_shared(const void*);
long long clock64();

float __expf(float);
float __exp2f(float);
float __logf(float);
float __log2f(float);
float __fdividef(float, float);
float __fadd_rn(float, float);
float __fmul_rn(float, float);
float __fmaf_rn(float, float, float);
float __frcp_rn(float);
float __saturatef(float);
int max(int, int);
int min(int, int);
unsigned max(unsigned, unsigned);
unsigned min(unsigned, unsigned);
unsigned max(int, unsigned);
unsigned max(unsigned, int);
unsigned min(int, unsigned);
unsigned min(unsigned, int);
float max(float, float);
float min(float, float);
long max(long, long);
long min(long, long);

// ---- Runtime --------------------------------------------------------------------------------------------------------
typedef struct CUstream_st* cudaStream_t;
typedef cudaStream_t CUstream;
typedef void* CUtensorMap;
typedef enum cudaError { cudaSuccess = 0, cudaErrorInvalidValue = 1 } cudaError_t;
enum cudaFuncAttribute {
  cudaFuncAttributeMaxDynamicSharedMemorySize,
  cudaFuncAttributePreferredSharedMemoryCarveout,
  cudaFuncAttributeNonPortableClusterSizeAllowed
};
enum cudaDeviceAttr {
  cudaDevAttrComputeCapabilityMajor,
  cudaDevAttrComputeCapabilityMinor,
  cudaDevAttrMultiProcessorCount,
  cudaDevAttrMaxSharedMemoryPerBlock,
  cudaDevAttrMaxSharedMemoryPerBlockOptin,
  cudaDevAttrMaxSharedMemoryPerMultiprocessor
};
struct cudaDeviceProp {
  char name[256];
  int major, minor, multiProcessorCount, warpSize, regsPerBlock, maxThreadsPerMultiProcessor, l2CacheSize;
  size_t totalGlobalMem, sharedMemPerBlock, sharedMemPerBlockOptin, sharedMemPerMultiprocessor;
};
enum cudaMemcpyKind { cudaMemcpyHostToDevice, cudaMemcpyDeviceToHost, cudaMemcpyDeviceToDevice };

cudaError_t cudaGetLastError();
cudaError_t cudaPeekAtLastError();
const char* cudaGetErrorString(cudaError_t);
cudaError_t cudaGetDevice(int* device);
cudaError_t cudaSetDevice(int device);
cudaError_t cudaGetDeviceCount(int* count);
cudaError_t cudaGetDeviceProperties(cudaDeviceProp*, int device);
cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr, int device);
cudaError_t cudaDeviceSynchronize();
cudaError_t cudaStreamSynchronize(cudaStream_t);
cudaError_t cudaMemsetAsync(void*, int, size_t, cudaStream_t = 0);
cudaError_t cudaMemcpyAsync(void*, const void*, size_t, cudaMemcpyKind, cudaStream_t = 0);
template <class F> cudaError_t cudaFuncSetAttribute(F kernel, cudaFuncAttribute, int value);
struct cudaLaunchConfig_t {
  dim3 gridDim, blockDim;
  size_t dynamicSmemBytes;
  cudaStream_t stream;
};
cudaError_t cudaLaunchKernel(const void*, dim3 grid, dim3 block, void** arguments, size_t shared_memory, cudaStream_t);
cudaError_t cudaLaunchCooperativeKernel(
    const void*, dim3 grid, dim3 block, void** arguments, size_t shared_memory, cudaStream_t);
cudaError_t cudaLaunchKernelExC(const cudaLaunchConfig_t*, const void*, void** arguments);
template <class... P, class... A>
cudaError_t cudaLaunchKernelEx(const cudaLaunchConfig_t*, void (*kernel)(P...), A&&... arguments);
template <class F> cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(
    int* blocks, F kernel, int threads, size_t shared_memory, unsigned flags = 0);

// HIP has the same runtime under other names; sources for AMD call it without naming a header when they are read here.
typedef cudaStream_t hipStream_t;
typedef cudaError_t hipError_t;
typedef cudaDeviceProp hipDeviceProp_t;
inline constexpr hipError_t hipSuccess = cudaSuccess;
hipError_t hipGetDevice(int* device);
hipError_t hipGetDeviceProperties(hipDeviceProp_t*, int device);
hipError_t hipGetLastError();
const char* hipGetErrorString(hipError_t);
hipError_t hipLaunchHostFunc(hipStream_t, void (*)(void*), void*);
template <class F, class... A>
void hipLaunchKernelGGL(F kernel, dim3 grid, dim3 block, size_t shared_memory, hipStream_t, A const&...);

// clang turns `kernel<<<grid, block, shared memory, stream>>>` into a call of this function, by this name.
extern "C" unsigned __cudaPushCallConfiguration(dim3 grid, dim3 block, size_t shared_memory = 0, void* stream = 0);

// ---- CUB ------------------------------------------------------------------------------------------------------------
namespace cub {
template <class T, int threads, int items = 1, class... More> struct BlockMergeSort {
  struct TempStorage {};
  explicit BlockMergeSort(TempStorage&);
  template <class... A> void Sort(A&...);
  template <class... A> void StableSort(A&...);
};
template <class T, int threads, int... More> struct BlockScan {
  struct TempStorage {};
  explicit BlockScan(TempStorage&);
  template <class... A> void InclusiveSum(A const&...);
  template <class... A> void ExclusiveSum(A const&...);
};
template <class T, int threads, int... More> struct BlockReduce {
  struct TempStorage {};
  explicit BlockReduce(TempStorage&);
  template <class... A> T Reduce(A const&...);
  template <class... A> T Sum(A const&...);
};
}  // namespace cub

// ---- Cooperative groups ---------------------------------------------------------------------------------------------
namespace cooperative_groups {
struct thread_block {
  static void sync();
  static unsigned size();
  static unsigned thread_rank();
};
thread_block this_thread_block();
struct thread_group {
  void sync() const;
  unsigned size() const;
  unsigned thread_rank() const;
};
template <unsigned threads> thread_group tiled_partition(thread_block const&);
thread_group coalesced_threads();
template <class Group> void sync(Group const&);
}  // namespace cooperative_groups

#pragma clang force_cuda_host_device end
