#include "kernel.h"
template <> void launch<64>(Params &params) {}
