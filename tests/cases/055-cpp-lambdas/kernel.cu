struct Tile {
  __device__ void scale(float) {}
  __device__ float at(int) { return 0; }
};
struct Work {
  __device__ bool valid() { return true; }
};
struct Scheduler {
  struct Ticket {
    __device__ bool valid() { return false; }
  };
  __device__ Ticket first() { return {}; }
  template <int N> __device__ auto next(Ticket) {
    Work work;
    return work;
  }
};
template <class S> __device__ void each(S &scheduler) {
  auto ticket = scheduler.first();
  ticket.valid();
  auto work = scheduler.template next<1>(ticket);
  work.valid();
}

template <int N> __global__ void kernel(float *data) {
  Tile tile;
  Scheduler scheduler;
  auto scaled = [&](auto &part, float factor) { part.scale(factor); };
  auto step = [&](int n, auto mask) {
    mask(tile, n);
    scaled(tile, 2.f);
  };
  step(1, [&](auto &part, int n) { part.at(n); });
  auto made = [&] {
    if constexpr (N > 1) {
      return Tile();
    } else {
      return Tile();
    }
  }();
  made.scale(1.f);
  each(scheduler);
}
