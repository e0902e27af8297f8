// CuTe on Hopper: bulk copies by the tensor memory accelerator, warp-group MMAs, thread block clusters; and the few
// names of Blackwell that helpers for Hopper mention.
#pragma once
#include <flashtracer/cute.h>

#pragma clang force_cuda_host_device begin

namespace cute {

using TmaDescriptor = CUtensorMap;
namespace TMA {
enum class CacheHintSm90 : uint64_t { EVICT_NORMAL, EVICT_FIRST, EVICT_LAST };
using CacheHintSm100 = CacheHintSm90;
}  // namespace TMA
namespace UMMA {
enum class Major { K, MN };
enum class ScaleIn { One, Neg };
enum class Saturate { False, True };
}  // namespace UMMA
#define FLASHTRACER_SM100(name)                                                                                      \
  template <class A, class B, class C, int M, int N, UMMA::Major a_major, UMMA::Major b_major, UMMA::ScaleIn a_sign, \
            UMMA::ScaleIn b_sign, UMMA::Saturate saturate = UMMA::Saturate::False>                                   \
  struct name {}
FLASHTRACER_SM100(SM100_MMA_F16BF16_SS);
FLASHTRACER_SM100(SM100_MMA_F16BF16_TS);
FLASHTRACER_SM100(SM100_MMA_F8F6F4_TS);
#undef FLASHTRACER_SM100
struct SM100_MMA_F8F6F4_SS {};

struct SM90_TMA_LOAD {};
struct SM90_TMA_LOAD_MULTICAST {};
#define FLASHTRACER_TMA(name) \
  struct name { template <class... A> static void copy(A const&...); }
FLASHTRACER_TMA(SM90_TMA_LOAD_1D);
FLASHTRACER_TMA(SM90_TMA_LOAD_2D);
FLASHTRACER_TMA(SM90_TMA_LOAD_3D);
FLASHTRACER_TMA(SM90_TMA_LOAD_4D);
FLASHTRACER_TMA(SM90_TMA_LOAD_5D);
FLASHTRACER_TMA(SM90_TMA_LOAD_MULTICAST_2D);
FLASHTRACER_TMA(SM90_TMA_LOAD_MULTICAST_3D);
FLASHTRACER_TMA(SM90_TMA_LOAD_MULTICAST_4D);
FLASHTRACER_TMA(SM90_TMA_LOAD_MULTICAST_5D);
#undef FLASHTRACER_TMA
template <class Op> struct TMA_LOAD_Unpack {};
struct SM90_TMA_STORE {};
struct SM90_TMA_REDUCE_ADD {};
struct SM90_BULK_COPY_AUTO {};
struct SM90_BULK_COPY_G2S {};
struct SM90_BULK_COPY_S2G {};
struct SM90_U32x1_STSM_N {};
struct SM90_U32x2_STSM_N {};
struct SM90_U32x4_STSM_N {};
struct SM90_U16x2_STSM_T {};
struct SM90_U16x4_STSM_T {};
struct SM90_U16x8_STSM_T {};

namespace GMMA {
enum class Major { K, MN };
enum class ScaleOut { Zero, One };
enum class ScaleIn { Neg = -1, One = 1 };
struct DescriptorIterator {};
template <class... T> struct Layout_K_SW32_Atom {};
template <class... T> struct Layout_K_SW64_Atom {};
template <class... T> struct Layout_K_SW128_Atom {};
template <class... T> struct Layout_MN_SW128_Atom {};
template <class A, class B, class C, class D, auto... I> constexpr Any ss_op_selector() { return {}; }
template <class A, class B, class C, class D, auto... I> constexpr Any rs_op_selector() { return {}; }
}  // namespace GMMA

namespace detail {
template <class T, class... A> Any make_tma_copy_tiled(A const&...);
}
FLASHTRACER_FUNCTION(block_id_in_cluster)
FLASHTRACER_FUNCTION(block_rank_in_cluster)
FLASHTRACER_FUNCTION(cluster_arrive)
FLASHTRACER_FUNCTION(cluster_arrive_relaxed)
FLASHTRACER_FUNCTION(cluster_shape)
FLASHTRACER_FUNCTION(cluster_sync)
FLASHTRACER_FUNCTION(cluster_wait)
FLASHTRACER_FUNCTION(elect_one_sync)
FLASHTRACER_TYPED_FUNCTION(make_tma_copy)
FLASHTRACER_FUNCTION(make_tma_copy_A_sm90)
FLASHTRACER_FUNCTION(make_tma_copy_B_sm90)
FLASHTRACER_FUNCTION(make_tma_copy_C_sm90)
FLASHTRACER_FUNCTION(prefetch_tma_descriptor)
FLASHTRACER_FUNCTION(tma_partition)
FLASHTRACER_FUNCTION(tma_store_arrive)
FLASHTRACER_FUNCTION(tma_store_fence)
FLASHTRACER_FUNCTION(tma_store_wait)
FLASHTRACER_FUNCTION(warpgroup_arrive)
FLASHTRACER_FUNCTION(warpgroup_commit_batch)
FLASHTRACER_FUNCTION(warpgroup_fence_operand)
FLASHTRACER_FUNCTION(warpgroup_wait)

}  // namespace cute

#pragma clang force_cuda_host_device end
