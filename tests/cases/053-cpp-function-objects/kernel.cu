#include <cutlass/functional.h>

template <class T> struct Largest {
  __device__ T operator()(T a, T b) { return a > b ? a : b; }
};
template <class T> struct Total {
  __device__ T operator()(T a, T b) { return a + b; }
};
template <> struct Total<int> {
  __device__ int operator()(int a, int b) { return a + b; }
};

template <class Operator> __device__ float reduce(float *row, int n, Operator &op) {
  float result = row[0];
  for (int i = 1; i < n; ++i) result = op(result, row[i]);
  return result;
}
template <class Operator> __device__ float one_kind(float a, Operator op) { return op(a, a); }
template <class Operator> __device__ float given(float a, Operator op) { return op(a, a); }
template <class Operator> __device__ float closed(float a, Operator op) { return op(a, a); }
template <class Operator> __device__ float through(float *row, Operator &op) { return reduce(row, 4, op); }

template <int N> __global__ void kernel(float *row, int *counts) {
  Largest<float> largest;
  Total<float> total;
  Total<int> count;
  row[0] = reduce(row, N, largest);
  row[1] = through(row, total);
  row[2] = one_kind(row[0], count);
  row[3] = given(row[0], cutlass::plus<float>());
  row[4] = closed(row[0], [](float a, float b) { return a - b; });
}
