// The 16-bit floating point types of CUDA, for the CPU: values are stored in 16 bits and computed with as float.
#pragma once
#include <cstdint>
#include <cstring>

using half_t = _Float16;

// bfloat16: the upper half of a float. Rounded to nearest, ties to even; a NaN stays one.
struct bf16_t {
  uint16_t bits;

  bf16_t() = default;
  explicit bf16_t(float value) {
    uint32_t word;
    std::memcpy(&word, &value, sizeof word);
    const bool is_nan = (word & 0x7fffffff) > 0x7f800000;
    const uint32_t rounded = word + 0x7fff + (word >> 16 & 1);
    bits = uint16_t(is_nan ? word >> 16 | 0x40 : rounded >> 16);
  }
  explicit operator float() const {
    const uint32_t word = uint32_t(bits) << 16;
    float value;
    std::memcpy(&value, &word, sizeof value);
    return value;
  }
};
