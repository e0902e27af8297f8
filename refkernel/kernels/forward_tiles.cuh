// The tiles that the forward rungs 1 and 2 keep in shared memory.
#pragma once
#include "device.cuh"

// Each row of K_j is longer by one 4-byte bank, so that the same column of 32 rows, which the 32 lanes of a warp read at
// once, lies in 32 different banks.
template <typename T, int B_r, int B_c, int d>
struct ForwardTiles {
  float P_ij[B_r][B_c];
  T Q_i[B_r][d];
  T K_j[B_c][d + 4 / sizeof(T)];
  T V_j[B_c][d];
};
