// Global memory as a kernel sees it on the CPU: every access is checked against the tensor's size, and its bytes are
// counted under the tensor's number.
#pragma once
#include <type_traits>

#include "block.h"

template <typename T>
class GlobalPtr {
 public:
  using Value = std::remove_const_t<T>;

  GlobalPtr(T* data, long long elements, int tensor, const char* name)
      : data_(data), elements_(elements), tensor_(tensor), name_(name) {}

  // Stands for one element: reading converts it to a value, assigning stores one.
  class Element {
   public:
    Element(const GlobalPtr& tensor, size_t index) : tensor_(tensor), index_(index) {}
    operator Value() const {
      cuda_on_cpu::block->counts.loaded[tensor_.tensor_] += sizeof(T);
      return tensor_.data_[index_];
    }
    void operator=(Value value) const {
      static_assert(!std::is_const_v<T>, "this tensor is an input of the kernel");
      cuda_on_cpu::block->counts.stored[tensor_.tensor_] += sizeof(T);
      tensor_.data_[index_] = value;
    }
    void operator=(const Element& other) const { *this = Value(other); }

   private:
    const GlobalPtr& tensor_;
    size_t index_;
  };

  Element operator[](size_t index) const {
    check(index, 1);
    return Element(*this, index);
  }

  // Address of `count` elements from `index` on, for a copy that bypasses operator[]; counts them as loaded.
  const Value* load_range(size_t index, size_t count) const {
    if (count == 0) return data_;
    check(index, count);
    cuda_on_cpu::block->counts.loaded[tensor_] += (long long)(count * sizeof(T));
    return data_ + index;
  }

  // Stores `count` elements from `values` at `index`; counts them as stored.
  void store_range(size_t index, const Value* values, size_t count) const {
    check(index, count);
    cuda_on_cpu::block->counts.stored[tensor_] += (long long)(count * sizeof(T));
    std::memcpy(data_ + index, values, count * sizeof(T));
  }

  // Adds to an element that other blocks may add to at the same time. Counts as one load and one store.
  void atomic_add(size_t index, float value) const {
    static_assert(std::is_same_v<T, float>);
    check(index, 1);
    cuda_on_cpu::block->counts.loaded[tensor_] += sizeof(float);
    cuda_on_cpu::block->counts.stored[tensor_] += sizeof(float);
    uint32_t* word = reinterpret_cast<uint32_t*>(data_ + index);
    uint32_t old_bits = __atomic_load_n(word, __ATOMIC_RELAXED), new_bits;
    do {
      float sum;
      std::memcpy(&sum, &old_bits, sizeof sum);
      sum += value;
      std::memcpy(&new_bits, &sum, sizeof sum);
    } while (!__atomic_compare_exchange_n(word, &old_bits, new_bits, true, __ATOMIC_RELAXED, __ATOMIC_RELAXED));
  }

 private:
  void check(size_t index, size_t count) const {
    if (index + count > size_t(elements_)) cuda_on_cpu::fail_out_of_bounds(name_, index + count - 1, elements_);
  }

  T* data_;
  long long elements_;
  int tensor_;
  const char* name_;
};
