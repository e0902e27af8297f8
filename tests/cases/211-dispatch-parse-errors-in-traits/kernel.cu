#include <c10/cuda/CUDAException.h>
#include "params.h"
template <int kRows_> struct GoodTraits {
  static constexpr int kRows = kRows_;
  static constexpr int kThreads = 2 * kRows;
};
template <int kRows_> struct BadTraits {
  static constexpr int kRows = kRows_;
  static constexpr int kThreads = kRows + nobody_declares_this;
};
template <typename Traits> __global__ void copy_rows(const Params params) {}
template <typename Traits> void start(Params &params, cudaStream_t stream) {
  copy_rows<Traits><<<params.rows, Traits::kThreads>>>(params);
}
void launch(Params &params, cudaStream_t stream) {
  if (params.half) {
    start<GoodTraits<64>>(params, stream);
  } else {
    start<BadTraits<64>>(params, stream);
  }
}
