// CUTLASS on Hopper: pipelines and their barriers, register reallocation, cluster launches.
#pragma once
#include <flashtracer/cute_sm90.h>

#pragma clang force_cuda_host_device begin

namespace cutlass {

int canonical_thread_idx();
int canonical_warp_idx();
int canonical_warp_idx_sync();
int canonical_warp_group_idx();

// ---- Launches -------------------------------------------------------------------------------------------------------
enum class Status { kSuccess, kInvalid };
const char* cutlassGetStatusString(Status);
struct KernelHardwareInfo {
  int device_id, sm_count;
  static int query_device_multiprocessor_count(int device = 0);
};
struct ClusterLaunchParams {
  dim3 grid_dims, block_dims, cluster_dims;
  int dynamic_smem_size_in_bytes;
  cudaStream_t cuda_stream;
  bool launch_with_pdl;
};
struct ClusterLauncher {
  template <class... A> static Status launch(A const&...);
};
// The kernel that runs a kernel class: device_kernel<K> calls K()(params, shared memory).
template <class K> __global__ void device_kernel(typename K::Params const params);
template <class... A> Status launch_kernel_on_cluster(ClusterLaunchParams const&, A const&...);
template <class K, class... A> Status kernel_launch(A const&...);

// ---- Barriers -------------------------------------------------------------------------------------------------------
enum class BarrierStatus : uint32_t { WaitAgain, WaitDone, WaitOnly };
namespace arch {
struct ClusterBarrier {
  using ValueType = uint64_t;
  template <class... A> void init(A const&...) const;
  template <class... A> bool test_wait(A const&...) const;
  template <class... A> bool try_wait(A const&...) const;
  template <class... A> void wait(A const&...) const;
  template <class... A> void arrive(A const&...) const;
  template <class... A> static void invalidate(A const&...);
};
struct ClusterTransactionBarrier : ClusterBarrier {
  template <class... A> void arrive_and_expect_tx(A const&...) const;
  template <class... A> void expect_transaction(A const&...) const;
  template <class... A> void complete_transaction(A const&...) const;
};
enum class ReservedNamedBarriers {
  EpilogueBarrier,
  TransposeBarrier,
  TransformBarrier,
  StreamkBarrier0,
  StreamkBarrier1,
  FirstUserBarrier
};
struct NamedBarrier {
  template <class... A> NamedBarrier(A const&...);
  template <class... A> static void sync(A const&...);
  template <class... A> static void arrive(A const&...);
  template <class... A> static void arrive_and_wait(A const&...);
};
namespace detail {
template <class F, class E, auto... stages, class... A>
void initialize_barrier_array_pair_aligned(F const&, E const&, A const&...);
}
void fence_barrier_init();
void fence_view_async_shared();
template <class... A> void cpasync_barrier_arrive(A const&...);
template <class... A> void cpasync_barrier_arrive_noinc(A const&...);
template <class... A> void synclog_emit_named_barrier_arrive(A const&...);
template <class... A> void synclog_emit_named_barrier_arrive_and_wait(A const&...);
template <int registers> void warpgroup_reg_alloc();
template <int registers> void warpgroup_reg_dealloc();
void launch_dependent_grids();
void wait_on_dependent_grids();
}  // namespace arch
namespace detail {
struct SyncthreadsSync {};
struct SyncwarpSync {};
template <class... A> constexpr int alignment_for_swizzle(A const&...) { return 128; }
}  // namespace detail
template <class Sync> struct GenericBarrier {
  template <class... A> static void wait_eq(A const&...);
  template <class... A> static void wait_lt(A const&...);
  template <class... A> static void arrive_inc(A const&...);
};
using Barrier = GenericBarrier<detail::SyncthreadsSync>;

// ---- Pipelines ------------------------------------------------------------------------------------------------------
template <int stages> struct PipelineState {
  PipelineState();
  template <class... A> PipelineState(A const&...);
  int index() const;
  uint32_t phase() const;
  uint32_t count() const;
  PipelineState& operator++();
  template <class A> PipelineState& advance(A);
};
template <class Pipeline> typename Pipeline::PipelineState make_producer_start_state();
struct ConsumerToken {
  constexpr ConsumerToken() {}
  constexpr ConsumerToken(BarrierStatus) {}
  constexpr operator BarrierStatus() const { return BarrierStatus::WaitDone; }
};
using ProducerToken = ConsumerToken;

#define FLASHTRACER_PIPELINE(name)                                                      \
  template <int stages, class... T> struct name {                                       \
    struct SharedStorage {};                                                            \
    enum class ThreadCategory { NonParticipant, Producer, Consumer, ProducerConsumer }; \
    struct Params {                                                                     \
      uint32_t transaction_bytes, is_leader, num_consumers, num_producers;              \
      uint32_t producer_arv_count, consumer_arv_count, dst_blockid;                     \
      ThreadCategory role;                                                              \
    };                                                                                  \
    using PipelineState = cutlass::PipelineState<stages>;                               \
    using ProducerBarrierType = arch::ClusterTransactionBarrier::ValueType;             \
    using ConsumerBarrierType = arch::ClusterBarrier::ValueType;                        \
    template <class... A> name(A const&...);                                            \
    template <class... A> ProducerToken producer_try_acquire(A const&...);              \
    template <class... A> void producer_acquire(A const&...);                           \
    template <class... A> void producer_commit(A const&...);                            \
    template <class... A> void producer_tail(A const&...);                              \
    template <class... A> ProducerBarrierType* producer_get_barrier(A const&...);       \
    template <class... A> ConsumerToken consumer_try_wait(A const&...);                 \
    template <class... A> ConsumerToken consumer_test_wait(A const&...);                \
    template <class... A> void consumer_wait(A const&...);                              \
    template <class... A> void consumer_release(A const&...);                           \
  }
FLASHTRACER_PIPELINE(PipelineAsync);
FLASHTRACER_PIPELINE(PipelineTmaAsync);
FLASHTRACER_PIPELINE(PipelineTransactionAsync);
#undef FLASHTRACER_PIPELINE
template <int depth, int length, class... More> struct OrderedSequenceBarrier {};

// ---- What the collective builders choose ----------------------------------------------------------------------------
namespace gemm::collective::detail {
template <auto I, class... T> constexpr cute::Any ss_smem_selector() { return {}; }
template <class... A> constexpr cute::SM90_TMA_LOAD sm90_cluster_shape_to_tma_atom(A const&...) { return {}; }
}  // namespace gemm::collective::detail
namespace epilogue::collective::detail {
template <class... T> constexpr cute::Any sm90_get_smem_store_op_for_accumulator() { return {}; }
}  // namespace epilogue::collective::detail

}  // namespace cutlass

#pragma clang force_cuda_host_device end
