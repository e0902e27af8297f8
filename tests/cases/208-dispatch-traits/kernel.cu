#include <cute/tensor.hpp>
#include <cutlass/numeric_types.h>
#include <c10/cuda/CUDAException.h>
#include "params.h"
using namespace cute;
template <int kRows_, int kColumns_, typename Element_ = cutlass::half_t> struct BaseTraits {
  using Element = Element_;
  using Accumulator = float;
  static constexpr int kUnit = sizeof(cute::uint128_t) / sizeof(Element);
};
template <int kRows_, int kColumns_, int kWarps_ = 4, bool Shared_ = false, typename Element_ = cutlass::half_t,
          typename Base = BaseTraits<kRows_, kColumns_, Element_>>
struct TileTraits : public Base {
  using Element = typename Base::Element;
  static constexpr int kRows = kRows_;
  static constexpr int kColumns = kColumns_;
  static constexpr int kWarps = kWarps_;
  static constexpr int kThreads = kWarps * 32;
  static constexpr int kSwizzle = kColumns % 64 == 0 ? 3 : 2;
  using Atom = decltype(composition(Swizzle<kSwizzle, 3, 3>{}, Layout<Shape<_8, Int<64>>, Stride<Int<64>, _1>>{}));
  using TileLayout = decltype(tile_to_shape(Atom{}, Shape<Int<kRows>, Int<kColumns>>{}));
  using Chosen = std::conditional_t<Shared_, typename Base::Accumulator, Element>;
  static constexpr int kTileBytes = size(TileLayout{}) * sizeof(Chosen);
  static constexpr int kBytes = Shared_ ? std::max(kTileBytes, 1024) : kTileBytes + 1024;
  static constexpr int kUnits = kColumns / Base::kUnit;
};
template <typename Traits, bool Wide> __global__ void copy_tiles(const Params params) {}
template <typename Traits> void start(Params &params, cudaStream_t stream) {
  constexpr size_t bytes = Traits::kBytes;
  auto kernel = &copy_tiles<Traits, (Traits::kUnits > 8)>;
  if (bytes >= 48 * 1024) {
    C10_CUDA_CHECK(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes));
  }
  kernel<<<params.rows, Traits::kThreads, bytes, stream>>>(params);
}
void launch(Params &params, cudaStream_t stream) {
  if (params.rows > 1000) { start<TileTraits<512, 128>>(params, stream); }
  else if (params.half) { start<TileTraits<64, 64>>(params, stream); }
  else { start<TileTraits<64, 96, 8, true, cutlass::bfloat16_t>>(params, stream); }
}
