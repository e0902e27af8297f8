#include "kernel.h"
template <> void launch<64, true>(Params &params, cudaStream_t stream) { scale_rows<64, true><<<params.rows, 64>>>(params); }
