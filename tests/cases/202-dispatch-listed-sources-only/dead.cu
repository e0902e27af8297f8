#include "kernel.h"
template <> void launch<224, true>(Params &params, cudaStream_t stream) { scale_rows<224, true><<<params.rows, 64>>>(params); }
