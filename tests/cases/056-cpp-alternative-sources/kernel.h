#pragma once
struct Params { int rows; };
template <int N> void launch(Params &params);
inline int round_up(int n) { return (n + 7) / 8 * 8; }
