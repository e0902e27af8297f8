struct Tile {
  __device__ void load(int) {}
  __device__ void store(int) {}
};
struct Other {
  __device__ void load(int) {}
};

template <class T> struct ByVariable {
  T part;
  __device__ void use() { part.load(1); }
};
template <class T> struct ByBase {
  T part;
  __device__ void use() { part.load(2); }
};
template <class T, class U = Tile> struct ByDefault {
  U part;
  __device__ void use() { part.store(3); }
};
template <class T> struct Unused {
  T part;
  __device__ void use() { part.load(4); }
};
struct Derived : ByBase<Tile> {};

template <class T> __device__ void written(int n) {
  T part;
  part.load(n);
}
template <class T> __device__ void deduced(T &part, int n) { part.load(n); }
template <class T> __device__ void several(T &part) { part.load(6); }
template <class T> __device__ void outer(T const &part) { inner(part); }
template <class T> __device__ void circle(T &part, int n) {
  part.store(n);
  if (n > 0) circle(part, n - 1);
}
template <class T> __device__ void nobody(T &part) { part.load(7); }
template <class T> __device__ void library(T &part) { part.load(8); }
template <class T> __device__ void partly(T &part) { part.load(9); }

template <int N> __device__ void inner(int) {}
template <class T> __device__ void inner(T const &part) { part.load(5); }

template <class T> __global__ void launched(T part) { part.store(10); }
template <int N> void host(Tile tile) { launched<<<1, 32>>>(tile); }

template <int N, class Hidden> __global__ void kernel(float *data, Hidden hidden) {
  ByVariable<Tile> variable;
  ByDefault<int> with_default;
  Tile tile;
  Other other;
  written<Other>(N);
  deduced(tile, N);
  several(tile);
  several(other);
  outer(other);
  circle(tile, N);
  library(data);
  partly(tile);
  partly(hidden);
  variable.use();
  with_default.use();
}
