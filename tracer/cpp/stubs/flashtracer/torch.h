// PyTorch's C++ interface: c10, ATen and torch, with the checks and registrations that are macros.
#pragma once
#include <flashtracer/cuda.h>

// ---- Checks ---------------------------------------------------------------------------------------------------------
// As in the library a check is an `if` on the negated condition; what it does then is a call whose name starts with
// flashtracer_, with the condition's text and the parts of the message. Condition and parts stay expressions.
#define TORCH_CHECK(condition, ...)                       \
  if (!(condition)) {                                     \
    ::flashtracer_torch_check(#condition, ##__VA_ARGS__); \
  }
#define TORCH_CHECK_INDEX TORCH_CHECK
#define TORCH_CHECK_TYPE TORCH_CHECK
#define TORCH_CHECK_VALUE TORCH_CHECK
#define TORCH_CHECK_NOT_IMPLEMENTED TORCH_CHECK
#define TORCH_INTERNAL_ASSERT TORCH_CHECK
#define TORCH_INTERNAL_ASSERT_DEBUG_ONLY TORCH_CHECK
#define AT_ASSERT TORCH_CHECK
#define AT_ASSERTM TORCH_CHECK
#define AT_ERROR(...) ::flashtracer_torch_check("false", ##__VA_ARGS__)
#define TORCH_WARN(...) ::flashtracer_torch_warn(__VA_ARGS__)
#define TORCH_WARN_ONCE(...) ::flashtracer_torch_warn(__VA_ARGS__)

// A check of a status keeps the call that yields it.
#define C10_CUDA_CHECK(call) ::flashtracer_cuda_check((call), #call)
#define AT_CUDA_CHECK(call) C10_CUDA_CHECK(call)
#define C10_CUDA_KERNEL_LAUNCH_CHECK() C10_CUDA_CHECK(cudaGetLastError())
#define TORCH_CUDA_CHECK(call) C10_CUDA_CHECK(call)
#define AT_CUDA_KERNEL_LAUNCH_CHECK() C10_CUDA_KERNEL_LAUNCH_CHECK()

// ---- Registrations --------------------------------------------------------------------------------------------------
// A registration becomes a function whose name starts with flashtracer_library_; its body registers. The indirection
// lets arguments that are macros themselves, such as TORCH_EXTENSION_NAME, expand before they are pasted.
#define TORCH_LIBRARY(ns, m) FLASHTRACER_LIBRARY(ns, torch::Library& m)
#define TORCH_LIBRARY_FRAGMENT(ns, m) FLASHTRACER_LIBRARY_FRAGMENT(ns, __COUNTER__, torch::Library& m)
#define TORCH_LIBRARY_IMPL(ns, key, m) FLASHTRACER_LIBRARY_IMPL(ns, key, torch::Library& m)
#define FLASHTRACER_LIBRARY(ns, parameter) static void flashtracer_library_##ns(parameter)
#define FLASHTRACER_LIBRARY_FRAGMENT(ns, number, parameter) FLASHTRACER_LIBRARY_FRAGMENT_(ns, number, parameter)
#define FLASHTRACER_LIBRARY_FRAGMENT_(ns, number, parameter) \
  static void flashtracer_library_fragment_##ns##__##number(parameter)
#define FLASHTRACER_LIBRARY_IMPL(ns, key, parameter) static void flashtracer_library_impl_##ns##__##key(parameter)

#define TORCH_FN(function) (function)
#define TORCH_SELECTIVE_NAME(name) (name)
#define TORCH_SELECTIVE_SCHEMA(schema) (schema)
#define TORCH_API
#define TORCH_CUDA_CU_API
#define C10_DIAGNOSTIC_PUSH_AND_IGNORED_IF_DEFINED(warning)
#define C10_DIAGNOSTIC_POP()
#define C10_HOST_DEVICE __host__ __device__
#define C10_LIKELY(condition) (condition)
#define C10_UNLIKELY(condition) (condition)

// Checked-out code branches on the version of torch; the branches of a current one are read.
#define TORCH_VERSION_MAJOR 2
#define TORCH_VERSION_MINOR 9
#define TORCH_VERSION_PATCH 0

#pragma clang force_cuda_host_device begin

template <class... A> void flashtracer_torch_check(const char* condition, A const&... message);
template <class... A> void flashtracer_torch_warn(A const&... message);
template <class A> void flashtracer_cuda_check(A const& status, const char* call);

// ---- c10 ------------------------------------------------------------------------------------------------------------
namespace c10 {

using std::nullopt;
using std::nullopt_t;
using std::optional;
template <class T> auto make_optional(T&& value) { return std::make_optional(value); }

enum class ScalarType : int8_t {
  Byte,
  Char,
  Short,
  Int,
  Long,
  Half,
  Float,
  Double,
  ComplexHalf,
  ComplexFloat,
  ComplexDouble,
  Bool,
  BFloat16,
  Float8_e5m2,
  Float8_e4m3fn,
  Float8_e5m2fnuz,
  Float8_e4m3fnuz,
  UInt16,
  UInt32,
  UInt64,
  Undefined
};
inline constexpr ScalarType kByte = ScalarType::Byte;
inline constexpr ScalarType kChar = ScalarType::Char;
inline constexpr ScalarType kShort = ScalarType::Short;
inline constexpr ScalarType kInt = ScalarType::Int;
inline constexpr ScalarType kLong = ScalarType::Long;
inline constexpr ScalarType kHalf = ScalarType::Half;
inline constexpr ScalarType kFloat = ScalarType::Float;
inline constexpr ScalarType kDouble = ScalarType::Double;
inline constexpr ScalarType kBool = ScalarType::Bool;
inline constexpr ScalarType kBFloat16 = ScalarType::BFloat16;
inline constexpr ScalarType kFloat8_e4m3fn = ScalarType::Float8_e4m3fn;
inline constexpr ScalarType kUInt16 = ScalarType::UInt16;
inline constexpr ScalarType kUInt32 = ScalarType::UInt32;
inline constexpr ScalarType kUInt64 = ScalarType::UInt64;
inline constexpr ScalarType kFloat8_e5m2 = ScalarType::Float8_e5m2;

FLASHTRACER_SMALL_FLOAT(Half);
FLASHTRACER_SMALL_FLOAT(BFloat16);

enum class DeviceType : int8_t { CPU, CUDA, HIP, Meta };
inline constexpr DeviceType kCPU = DeviceType::CPU;
inline constexpr DeviceType kCUDA = DeviceType::CUDA;
using DeviceIndex = int8_t;
struct Device {
  Device(DeviceType, DeviceIndex = -1);
  DeviceIndex index() const;
  DeviceType type() const;
  bool is_cuda() const;
  bool is_cpu() const;
  bool operator==(Device const&) const;
  bool operator!=(Device const&) const;
};
using Layout = int;
inline constexpr Layout kStrided = 0;
using SymInt = int64_t;

// A dtype compares with a ScalarType on either side.
struct TypeMeta {
  TypeMeta(ScalarType);
};
bool operator==(TypeMeta, TypeMeta);
bool operator!=(TypeMeta, TypeMeta);
size_t elementSize(ScalarType);
const char* toString(ScalarType);

struct TensorOptions {
  TensorOptions();
  TensorOptions(ScalarType);
  TensorOptions(Device);
  TensorOptions(DeviceType);
  template <class A> TensorOptions dtype(A const&) const;
  template <class A> TensorOptions device(A const&) const;
  template <class A> TensorOptions layout(A const&) const;
  TensorOptions requires_grad(bool) const;
  TensorOptions pinned_memory(bool) const;
  Device device() const;
  TypeMeta dtype() const;
};
template <class A> TensorOptions dtype(A const&);
template <class A> TensorOptions device(A const&);

template <class T> struct ArrayRef {
  ArrayRef();
  ArrayRef(std::initializer_list<T>);
  ArrayRef(std::vector<T> const&);
  template <size_t N> ArrayRef(T const (&)[N]);
  ArrayRef(T const*, size_t);
  T const& operator[](size_t) const;
  T const* begin() const;
  T const* end() const;
  T const* data() const;
  T const& front() const;
  T const& back() const;
  size_t size() const;
  bool empty() const;
  bool equals(ArrayRef) const;
  ArrayRef slice(size_t, size_t) const;
  std::vector<T> vec() const;
};
template <class T> bool operator==(ArrayRef<T>, ArrayRef<T>);
template <class T> bool operator!=(ArrayRef<T>, ArrayRef<T>);
using IntArrayRef = ArrayRef<int64_t>;
using SymIntArrayRef = ArrayRef<SymInt>;

struct Scalar {
  template <class T> Scalar(T const&);
  template <class T> T to() const;
};
template <class T> struct intrusive_ptr {
  T* get() const;
  T* operator->() const;
};

}  // namespace c10

// ---- ATen -----------------------------------------------------------------------------------------------------------
namespace at {

using namespace c10;

struct TensorIndex {
  template <class A> TensorIndex(A const&);
};
struct Tensor {
  Tensor();
  // What it is.
  TypeMeta dtype() const;
  ScalarType scalar_type() const;
  Device device() const;
  TensorOptions options() const;
  c10::Layout layout() const;
  bool defined() const;
  bool is_cuda() const;
  bool is_cpu() const;
  bool is_contiguous() const;
  bool is_nested() const;
  bool requires_grad() const;
  DeviceIndex get_device() const;
  int64_t dim() const;
  int64_t ndimension() const;
  int64_t numel() const;
  int64_t nbytes() const;
  int64_t element_size() const;
  int64_t itemsize() const;
  int64_t size(int64_t) const;
  SymInt sym_size(int64_t) const;
  int64_t stride(int64_t) const;
  IntArrayRef sizes() const;
  IntArrayRef strides() const;
  SymIntArrayRef sym_sizes() const;
  // Its memory and contents.
  void* data_ptr() const;
  void* mutable_data_ptr() const;
  const void* const_data_ptr() const;
  template <class T> T* data_ptr() const;
  template <class T> T* mutable_data_ptr() const;
  template <class T> const T* const_data_ptr() const;
  template <class T> T item() const;
  Scalar item() const;
  // Views and copies. Arguments that the library takes in several forms are templates.
  Tensor reshape(IntArrayRef) const;
  Tensor view(IntArrayRef) const;
  Tensor view(ScalarType) const;
  Tensor expand(IntArrayRef) const;
  Tensor permute(IntArrayRef) const;
  Tensor repeat(IntArrayRef) const;
  Tensor transpose(int64_t, int64_t) const;
  Tensor t() const;
  Tensor contiguous() const;
  Tensor clone() const;
  Tensor detach() const;
  Tensor cpu() const;
  Tensor cuda() const;
  Tensor flatten(int64_t = 0, int64_t = -1) const;
  Tensor squeeze() const;
  Tensor squeeze(int64_t) const;
  Tensor unsqueeze(int64_t) const;
  Tensor narrow(int64_t, int64_t, int64_t) const;
  Tensor select(int64_t, int64_t) const;
  Tensor slice(int64_t, std::optional<int64_t> = {}, std::optional<int64_t> = {}, int64_t = 1) const;
  Tensor operator[](int64_t) const;
  Tensor index(std::initializer_list<TensorIndex>) const;
  Tensor index_select(int64_t, Tensor const&) const;
  template <class... A> Tensor to(A const&...) const;
  Tensor max() const;
  Tensor min() const;
  Tensor sum() const;
  template <class... A> Tensor sum(A const&...) const;
  // In place.
  Tensor& zero_() const;
  template <class A> Tensor& fill_(A const&) const;
  Tensor& copy_(Tensor const&, bool non_blocking = false) const;
  template <class A> Tensor& mul_(A const&) const;
  template <class A> Tensor& add_(A const&) const;
  Tensor& set_requires_grad(bool) const;
};
template <class A> Tensor operator*(Tensor const&, A const&);
template <class A> Tensor operator+(Tensor const&, A const&);
template <class A> Tensor operator-(Tensor const&, A const&);
template <class A> Tensor operator/(Tensor const&, A const&);
using TensorList = ArrayRef<Tensor>;

Tensor empty(IntArrayRef, TensorOptions);
template <class... A> Tensor empty(IntArrayRef, A const&...);
Tensor zeros(IntArrayRef, TensorOptions);
template <class... A> Tensor zeros(IntArrayRef, A const&...);
Tensor ones(IntArrayRef, TensorOptions);
template <class A> Tensor full(IntArrayRef, A const& value, TensorOptions);
template <class... A> Tensor empty_strided(IntArrayRef, IntArrayRef, A const&...);
template <class... A> Tensor empty_like(Tensor const&, A const&...);
template <class... A> Tensor zeros_like(Tensor const&, A const&...);
template <class... A> Tensor ones_like(Tensor const&, A const&...);
template <class... A> Tensor arange(A const&...);
template <class... A> Tensor tensor(std::initializer_list<int64_t>, A const&...);
Tensor reshape(Tensor const&, IntArrayRef);
Tensor cat(TensorList, int64_t = 0);
Tensor stack(TensorList, int64_t = 0);
Tensor pad(Tensor const&, IntArrayRef);
Tensor slice(Tensor const&, int64_t, std::optional<int64_t> = {}, std::optional<int64_t> = {}, int64_t = 1);
Tensor narrow(Tensor const&, int64_t, int64_t, int64_t);
template <class A> Tensor scalar_tensor(A const&, TensorOptions);
template <class... A> Tensor& sum_out(Tensor& out, Tensor const&, IntArrayRef, A const&...);
template <class... A> Tensor sum(Tensor const&, A const&...);
template <class... A> Tensor max(Tensor const&, A const&...);

// ---- Random numbers -------------------------------------------------------------------------------------------------
struct PhiloxCudaState {
  PhiloxCudaState();
  PhiloxCudaState(uint64_t seed, uint64_t offset);
  union Payload {
    uint64_t val;
    int64_t* ptr;
  };
  Payload seed_;
  Payload offset_;
  uint32_t offset_intragraph_;
  bool captured_;
};
struct CUDAGeneratorImpl {
  std::mutex mutex_;
  PhiloxCudaState philox_cuda_state(uint64_t increment);
  uint64_t current_seed() const;
  void set_current_seed(uint64_t);
};
struct Generator {
  std::mutex& mutex() const;
  template <class T> T* get() const;
  CUDAGeneratorImpl* unsafeGetGeneratorImpl() const;
};
template <class T> T* get_generator_or_default(std::optional<Generator> const&, Generator const&);
template <class T> T* check_generator(std::optional<Generator> const&);

// ---- CUDA -----------------------------------------------------------------------------------------------------------
namespace cuda {
struct CUDAStream {
  cudaStream_t stream() const;
  operator cudaStream_t() const;
};
CUDAStream getCurrentCUDAStream(DeviceIndex = -1);
CUDAStream getDefaultCUDAStream(DeviceIndex = -1);
CUDAStream getCurrentHIPStream(DeviceIndex = -1);
// Braces around a narrowing argument are refused for a plain parameter; a template takes what is written.
struct CUDAGuard {
  template <class D> explicit CUDAGuard(D const&);
  void set_device(Device);
};
struct OptionalCUDAGuard {
  template <class... D> explicit OptionalCUDAGuard(D const&...);
};
cudaDeviceProp* getCurrentDeviceProperties();
cudaDeviceProp* getDeviceProperties(DeviceIndex);
int warp_size();
namespace detail {
Generator const& getDefaultCUDAGenerator(DeviceIndex = -1);
}
namespace philox {
std::tuple<uint64_t, uint64_t> unpack(PhiloxCudaState);
}
}  // namespace cuda

namespace indexing {
struct Slice {
  template <class... A> Slice(A const&...);
};
enum class EllipsisIndexType { Ellipsis };
inline constexpr EllipsisIndexType Ellipsis = EllipsisIndexType::Ellipsis;
inline constexpr std::nullopt_t None = std::nullopt;
}  // namespace indexing

}  // namespace at

namespace c10::cuda {
using at::cuda::CUDAGuard;
using at::cuda::CUDAStream;
using at::cuda::getCurrentCUDAStream;
using at::cuda::OptionalCUDAGuard;
}  // namespace c10::cuda

// ---- torch ----------------------------------------------------------------------------------------------------------
namespace torch {

using namespace at;
inline constexpr ScalarType kUInt8 = ScalarType::Byte;
inline constexpr ScalarType kInt8 = ScalarType::Char;
inline constexpr ScalarType kInt16 = ScalarType::Short;
inline constexpr ScalarType kInt32 = ScalarType::Int;
inline constexpr ScalarType kInt64 = ScalarType::Long;
inline constexpr ScalarType kFloat16 = ScalarType::Half;
inline constexpr ScalarType kFloat32 = ScalarType::Float;
inline constexpr ScalarType kFloat64 = ScalarType::Double;

namespace nn::functional {
struct PadFuncOptions {
  PadFuncOptions(std::vector<int64_t>);
  template <class A> PadFuncOptions& mode(A const&);
  template <class A> PadFuncOptions& value(A const&);
};
Tensor pad(Tensor const&, PadFuncOptions const&);
}  // namespace nn::functional

struct Library {
  template <class... A> Library& def(A const&...);
  template <class... A> Library& impl(const char* name, A const&...);
  template <class... A> Library& fallback(A const&...);
};
template <class... A> int dispatch(A const&...);

}  // namespace torch

#pragma clang force_cuda_host_device end
