// Library of a check: two products of the fragments of rung 4, S = Q K^T and O = Q V for tiles of 16 x 16.
//
// Everything rung 4 assumes of the hardware is in them: which lane holds which element of A, B and D, what ldmatrix
// and its transposed form deliver, and that the swizzle undoes itself. Emulation and loads could agree on a wrong
// layout; a GPU and a plain product cannot.
#include "tensor_core.cuh"

#include "launch.cuh"

constexpr int kSide = 16;     // rows and columns of Q, K and V
constexpr int kRow = 32;      // row length of a tile in shared memory

__global__ void mma_layout(GlobalPtr<const Element> Q, GlobalPtr<const Element> K, GlobalPtr<const Element> V,
                           GlobalPtr<float> S, GlobalPtr<float> O) {
  DYNAMIC_SHARED(shared);
  Element* Q_i = reinterpret_cast<Element*>(shared);  // [16, 16]
  Element* K_j = Q_i + kSide * kRow;                  // [16, 16]
  Element* V_j = K_j + kSide * kRow;                  // [16, 16]
  const int lane = threadIdx.x;
  for (int x = lane; x < kSide * kSide; x += 32) {
    const int at = swizzled<kRow>(x / kSide, x % kSide);
    Q_i[at] = Element(Q[x]);
    K_j[at] = Element(K[x]);
    V_j[at] = Element(V[x]);
  }
  // The tiles are read below by other lanes than those that stored them.
  __syncwarp();

  uint32_t Q_a[4], K_n[2][2], V_n[2][2];
  load_A<kRow>(Q_a, Q_i, 0, 0);
  load_B_of_transpose<kRow>(K_n, K_j, 0, 0);
  load_B<kRow>(V_n, V_j, 0, 0);
#pragma unroll
  for (int n = 0; n < 2; n++) {
    float S_n[4] = {0.f, 0.f, 0.f, 0.f}, O_n[4] = {0.f, 0.f, 0.f, 0.f};  // [16, 8]
    mma_m16n8k16<Element>(S_n, Q_a, K_n[n]);
    mma_m16n8k16<Element>(O_n, Q_a, V_n[n]);
#pragma unroll
    for (int e = 0; e < 4; e++) {
      const int row = lane / 4 + 8 * (e / 2), column = 8 * n + 2 * (lane % 4) + e % 2;
      S[kSide * row + column] = S_n[e];
      O[kSide * row + column] = O_n[e];
    }
  }
}

EXPORT size_t shared_bytes() { return 3 * kSide * kRow * sizeof(Element); }

// S arrives in the place of LSE, which is fp32 as well.
EXPORT int run(AttentionCall* call) {
  return launch(call, mma_layout, dim3(1), 32, shared_bytes(), TENSOR(const Element, Q), TENSOR(const Element, K),
                TENSOR(const Element, V), TENSOR(float, LSE), TENSOR(float, O));
}
