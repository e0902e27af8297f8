#include "kernel.h"
template <> void launch<64, true>(Params &params, cudaStream_t stream) { start<64, true>(params, stream); }
template <> void launch<64, false>(Params &params, cudaStream_t stream) { start<64, false>(params, stream); }
template <> void launch<128, true>(Params &params, cudaStream_t stream) { start<128, true>(params, stream); }
template <> void launch<128, false>(Params &params, cudaStream_t stream) { start<128, false>(params, stream); }
