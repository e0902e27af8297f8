// CUDA's additions to the language, the integer types, and what C headers define as macros.
#pragma once

// ---- CUDA's function and variable qualifiers are attributes that clang knows ---------------------------------------
#define __host__ __attribute__((host))
#define __device__ __attribute__((device))
#define __global__ __attribute__((global))
#define __shared__ __attribute__((shared))
#define __constant__ __attribute__((constant))
#define __launch_bounds__(...) __attribute__((launch_bounds(__VA_ARGS__)))
#define __align__(n) __attribute__((aligned(n)))
#define __forceinline__ inline
// No attribute of their own in clang 18, and nothing that a reader of calls would miss.
#define __noinline__
#define __grid_constant__
#define __restrict__ __restrict

// __syncthreads is a builtin function of clang. Left undeclared, the first use in the checkout becomes its declaration,
// and a library function would seem to be defined there. It is declared here, before the first `force_cuda_host_device`
// (which opens the files below), because a builtin device function cannot become __host__ __device__ afterwards.
__attribute__((device)) void __syncthreads();

// ---- Types that have no header once there are no headers ------------------------------------------------------------
// The __*_TYPE__ macros are clang's own, so that int64_t is `long` or `long long` as on the machine that it runs on.
typedef __INT8_TYPE__ int8_t;
typedef __INT16_TYPE__ int16_t;
typedef __INT32_TYPE__ int32_t;
typedef __INT64_TYPE__ int64_t;
typedef __UINT8_TYPE__ uint8_t;
typedef __UINT16_TYPE__ uint16_t;
typedef __UINT32_TYPE__ uint32_t;
typedef __UINT64_TYPE__ uint64_t;
typedef __SIZE_TYPE__ size_t;
typedef __PTRDIFF_TYPE__ ptrdiff_t;
typedef __INTPTR_TYPE__ intptr_t;
typedef __UINTPTR_TYPE__ uintptr_t;

#define NULL nullptr
#define INT_MAX __INT_MAX__
#define INT_MIN (-__INT_MAX__ - 1)
#define UINT_MAX (__INT_MAX__ * 2U + 1U)
#define FLT_MAX __FLT_MAX__
#define FLT_MIN __FLT_MIN__
#define FLT_EPSILON __FLT_EPSILON__
#define INFINITY (__builtin_inff())
#define NAN (__builtin_nanf(""))
#define M_LOG2E 1.44269504088896340736
#define M_LN2 0.69314718055994530942
#define M_PI 3.14159265358979323846

// The condition of an assert stays in the tree; what happens when it fails is for the reader of the tree to decide. A
// build that defines NDEBUG has no asserts.
#ifdef NDEBUG
#define assert(...) ((void)0)
#else
#define assert(...) ::flashtracer_assert(static_cast<bool>(__VA_ARGS__), #__VA_ARGS__)
#endif
__attribute__((host, device)) void flashtracer_assert(bool condition, const char* text);
