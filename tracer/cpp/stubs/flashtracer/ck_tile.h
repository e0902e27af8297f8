// AMD's composable kernel: what the ROCm back end takes from its fused attention example. Not part of the prelude; its
// own headers bring it.
#pragma once
#include <flashtracer/torch.h>

#pragma clang force_cuda_host_device begin

namespace ck_tile {
using index_t = int32_t;
using long_index_t = int64_t;
struct stream_config {
  hipStream_t stream_id_;
  bool time_kernel_;
  int log_level_, cold_niters_, nrepeat_;
};
std::string get_device_name();
int get_warp_size();
template <class A, class B> A integer_divide_ceil(A, B);
template <class T> T log2e_v();
}  // namespace ck_tile

enum class mask_enum { no_mask, mask_top_left, mask_bottom_right, window_generic };
enum class bias_enum { no_bias, elementwise_bias, alibi };
enum class quant_scale_enum { no_scale, pertensor, blockscale };
enum class rope_enum { none, interleaved, half_rotated };

struct mask_info {
  mask_enum type;
  ck_tile::index_t y, x, left, right;
  static mask_info decode(std::string, ck_tile::index_t seqlen_q, ck_tile::index_t seqlen_k);
};

// Of each matrix: where it lies and how far apart rows, heads, batches and splits are.
#define FLASHTRACER_MATRIX(name) \
  void* name##_ptr;              \
  ck_tile::index_t stride_##name, nhead_stride_##name, batch_stride_##name, split_stride_##name;
struct KernelMembers {
  FLASHTRACER_MATRIX(q)
  FLASHTRACER_MATRIX(k)
  FLASHTRACER_MATRIX(v)
  FLASHTRACER_MATRIX(o)
  FLASHTRACER_MATRIX(knew)
  FLASHTRACER_MATRIX(vnew)
  FLASHTRACER_MATRIX(bias)
  FLASHTRACER_MATRIX(lse)
  FLASHTRACER_MATRIX(lse_acc)
  FLASHTRACER_MATRIX(o_acc)
  void *sink_ptr, *block_table_ptr, *cache_batch_idx, *rotary_cos_ptr, *rotary_sin_ptr;
  void *seqstart_q_ptr, *seqstart_k_ptr, *seqlen_q_ptr, *seqlen_k_ptr;
  ck_tile::index_t batch, seqlen_q, seqlen_k, seqlen_knew, max_seqlen_q, hdim_q, hdim_v, nhead_q, nhead_k;
  ck_tile::index_t rotary_dim, num_splits, batch_stride_block_table, page_block_size;
  ck_tile::index_t window_size_left, window_size_right, sink_size, mask_type;
  float scale_s, scale_p, scale_o, logits_soft_cap;
  bool has_mask, is_gappy;
};
#undef FLASHTRACER_MATRIX

// Those that sources write in braces, member by member, are made from anything instead; those that they fill by name
// have the members above.
#define FLASHTRACER_AGGREGATE(name)          \
  struct name : KernelMembers {              \
    name();                                  \
    template <class... A> name(A const&...); \
  }
FLASHTRACER_AGGREGATE(fmha_fwd_args);
FLASHTRACER_AGGREGATE(fmha_fwd_splitkv_args);
FLASHTRACER_AGGREGATE(fmha_fwd_appendkv_args);
FLASHTRACER_AGGREGATE(fmha_bwd_args);
FLASHTRACER_AGGREGATE(fmha_fwd_splitkv_traits);
FLASHTRACER_AGGREGATE(fmha_fwd_appendkv_traits);
FLASHTRACER_AGGREGATE(fmha_bwd_traits);
#undef FLASHTRACER_AGGREGATE
struct fmha_fwd_traits {
  template <class... A> fmha_fwd_traits(A const&...);
  quant_scale_enum qscale_type;
};

float fmha_fwd(fmha_fwd_traits const&, fmha_fwd_args const&, ck_tile::stream_config const&);
float fmha_fwd_splitkv(fmha_fwd_splitkv_traits const&, fmha_fwd_splitkv_args const&, ck_tile::stream_config const&);
float fmha_fwd_appendkv(fmha_fwd_appendkv_traits const&, fmha_fwd_appendkv_args const&, ck_tile::stream_config const&);
struct fmha_bwd_launcher {
  explicit fmha_bwd_launcher(fmha_bwd_traits const&);
  size_t workspace_size, dq_acc_splits;
  bool needs_zero_dq_acc;
  template <class... A> void prepare_workspace_async(A const&...);
  float operator()(fmha_bwd_args const&, ck_tile::stream_config const&) const;
  float run(fmha_bwd_args const&, ck_tile::stream_config const&) const;
};
float fmha_bwd(fmha_bwd_traits const&, fmha_bwd_args const&, ck_tile::stream_config const&);

struct FmhaFwdFp16 {};
struct FmhaFwdBf16 {};
template <class T> struct FmhaFwdTypeConfig {
  using QDataType = T;
  using KDataType = T;
  using VDataType = T;
  using ODataType = T;
  using LSEDataType = float;
  using RandValOutputDataType = uint8_t;
};
namespace fmha_fwd_head_grouping {
bool disabled_by_env();
bool log_enabled();
template <class... A> std::optional<ck_tile::index_t> get_head_group_size(A const&...);
size_t get_llc_cache_bytes(std::string const&);
template <class... T, class... A> float run_fwd_head_grouped(A const&...);
}  // namespace fmha_fwd_head_grouping

#pragma clang force_cuda_host_device end
