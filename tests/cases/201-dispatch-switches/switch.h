#pragma once
#define TRUTH_SWITCH(CONDITION, NAME, ...) \
  [&] { \
    if (CONDITION) { \
      constexpr static bool NAME = true; \
      return __VA_ARGS__(); \
    } else { \
      constexpr static bool NAME = false; \
      return __VA_ARGS__(); \
    } \
  }()
#define BLOCK_SWITCH(ROWS, ...) \
  [&] { \
    if (ROWS <= 64) { \
      constexpr static int kBlock = 64; \
      return __VA_ARGS__(); \
    } else if (ROWS <= 128) { \
      constexpr static int kBlock = 128; \
      return __VA_ARGS__(); \
    } \
  }()
