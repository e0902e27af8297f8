#include "kernel.h"
template <> void launch<64, true>(Params &params, cudaStream_t stream) {
  dim3 grid(params.rows, params.columns);
  scale_rows<64, true><<<grid, 64>>>(params);
}
