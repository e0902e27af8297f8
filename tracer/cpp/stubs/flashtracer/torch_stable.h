// torch's stable interface (torch::stable, torch::headeronly), for extensions built once for several versions of torch.
#pragma once
#include <flashtracer/torch.h>

#define STD_TORCH_CHECK TORCH_CHECK
#define STD_CUDA_CHECK(call) C10_CUDA_CHECK(call)
#define STD_CUDA_KERNEL_LAUNCH_CHECK() C10_CUDA_KERNEL_LAUNCH_CHECK()
#define TORCH_ERROR_CODE_CHECK(call) ::flashtracer_torch_error_code_check((call), #call)

#define STABLE_TORCH_LIBRARY(ns, m) FLASHTRACER_LIBRARY(ns, torch::stable::Library& m)
#define STABLE_TORCH_LIBRARY_FRAGMENT(ns, m) FLASHTRACER_LIBRARY_FRAGMENT(ns, __COUNTER__, torch::stable::Library& m)
#define STABLE_TORCH_LIBRARY_IMPL(ns, key, m) FLASHTRACER_LIBRARY_IMPL(ns, key, torch::stable::Library& m)

// Wraps a function for the dispatcher; the function stays visible as the argument of a call.
#define TORCH_BOX(function) ::flashtracer_torch_box(function)

// Sources redeclare this one, as a host function; the same function of both sides would clash with that.
using AOTITorchError = int32_t;
extern "C" AOTITorchError aoti_torch_get_current_cuda_stream(int32_t device_index, void** stream);

#pragma clang force_cuda_host_device begin

template <class A> void flashtracer_torch_error_code_check(A const& code, const char* call);
template <class F> void* flashtracer_torch_box(F const& function);

typedef struct AtenTensorOpaque* AtenTensorHandle;
using StableIValue = uint64_t;
// Boxed functions take their arguments from a stack of these, one word each.
template <class T> T to(StableIValue);
template <class T> StableIValue from(T const&);
extern "C" AOTITorchError aoti_torch_get_current_cuda_device(int32_t* device_index);
extern "C" AOTITorchError torch_get_current_cuda_blas_handle(void** handle);

namespace torch::headeronly {
using c10::DeviceType;
using c10::ScalarType;
using IntHeaderOnlyArrayRef = c10::IntArrayRef;
template <class T> using HeaderOnlyArrayRef = c10::ArrayRef<T>;
}  // namespace torch::headeronly

namespace torch::stable {

struct Device {
  template <class... A> Device(A const&...);
  int32_t index() const;
  headeronly::DeviceType type() const;
};

struct Tensor {
  Tensor();
  explicit Tensor(AtenTensorHandle);
  AtenTensorHandle get() const;
  headeronly::ScalarType scalar_type() const;
  Device device() const;
  bool defined() const;
  bool is_cuda() const;
  bool is_contiguous() const;
  int32_t get_device() const;
  int32_t get_device_index() const;
  int64_t dim() const;
  int64_t numel() const;
  int64_t element_size() const;
  int64_t size(int64_t) const;
  int64_t stride(int64_t) const;
  headeronly::IntHeaderOnlyArrayRef sizes() const;
  headeronly::IntHeaderOnlyArrayRef strides() const;
  void* data_ptr() const;
  void* mutable_data_ptr() const;
  const void* const_data_ptr() const;
  template <class T> T* data_ptr() const;
  template <class T> T* mutable_data_ptr() const;
  template <class T> const T* const_data_ptr() const;
};

// Shapes are written as braced lists, which a template parameter cannot take: those parameters have their type.
using IntList = headeronly::IntHeaderOnlyArrayRef;
template <class... A> Tensor empty(IntList, A const&...);
template <class... A> Tensor empty_like(Tensor const&, A const&...);
template <class... A> Tensor new_empty(Tensor const&, IntList, A const&...);
template <class... A> Tensor new_zeros(Tensor const&, IntList, A const&...);
template <class... A> Tensor full(IntList, A const&...);
template <class... A> Tensor pad(Tensor const&, IntList, A const&...);
template <class... A> Tensor to(Tensor const&, A const&...);
template <class... A> Tensor contiguous(Tensor const&, A const&...);
template <class... A> Tensor clone(Tensor const&, A const&...);
template <class... A> Tensor sum(Tensor const&, IntList, A const&...);
template <class... A> Tensor sum_out(Tensor const& out, Tensor const&, IntList, A const&...);
Tensor reshape(Tensor const&, IntList);
Tensor view(Tensor const&, IntList);
Tensor transpose(Tensor const&, int64_t, int64_t);
Tensor narrow(Tensor const&, int64_t, int64_t, int64_t);
Tensor select(Tensor const&, int64_t, int64_t);
Tensor squeeze(Tensor const&, int64_t);
Tensor unsqueeze(Tensor const&, int64_t);
Tensor flatten(Tensor const&, int64_t = 0, int64_t = -1);
Tensor amax(Tensor const&, int64_t, bool = false);
Tensor copy_(Tensor const&, Tensor const&, bool non_blocking = false);
Tensor fill_(Tensor const&, double);
Tensor zero_(Tensor const&);

struct Library {
  template <class... A> Library& def(const char* schema, A const&...);
  template <class... A> Library& impl(const char* name, A const&...);
};

namespace accelerator {
using DeviceIndex = int32_t;
struct DeviceGuard {
  explicit DeviceGuard(DeviceIndex);
  void set_index(DeviceIndex);
};
struct Stream {
  int64_t id() const;
};
DeviceIndex getCurrentDeviceIndex();
Stream getCurrentStream(DeviceIndex);
}  // namespace accelerator

}  // namespace torch::stable

#pragma clang force_cuda_host_device end
