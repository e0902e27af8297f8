struct Range {
  static __device__ int first(int n) { return n; }
};
template <int M, int N> struct Blocks {
  static __device__ int first(int n) { return n / M; }
};

template <class Shape> struct Rows {
  __device__ void load(int) {}
};
template <class Shape> struct Columns {
  __device__ void load(int) {}
};
template <class Shape, class Order> struct Matrix;
struct ByRow {};
struct ByColumn {};
template <class Shape> struct Matrix<Shape, ByRow> : Rows<Shape> {};
template <class Shape> struct Matrix<Shape, ByColumn> : Columns<Shape> {};
template <class Shape, class Order> struct Grid {};
template <class Shape> struct Grid<Shape, ByRow> : Rows<Shape> {};

template <class Traits> struct Common {
  Range held;
  __device__ void prepare(int) {}
};

template <class Traits> struct Loop : Common<Traits> {
  using Base = Common<Traits>;
  using Blocks_t = Blocks<64, 32>;
  using Orders = typename Traits::Orders;
  Matrix<Traits, ByRow> matrix;
  Grid<Traits, ByRow> grid;
  __device__ void run(int n) {
    int begin = Blocks_t::first(n);
    Base::prepare(begin);
    Base::held.first(begin);
    matrix.load(begin);
    grid.load(begin);
    Orders::first(n);
  }
};

struct SomeTraits {
  using Orders = Range;
};

template <int N> __global__ void kernel() {
  Loop<SomeTraits> loop;
  loop.run(N);
}
