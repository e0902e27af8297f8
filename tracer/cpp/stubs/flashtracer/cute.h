// CuTe: layouts, tensors and the algorithms over them, up to Ampere. Hopper's part is cute_sm90.h.
#pragma once
#include <flashtracer/cutlass.h>

#define CUTE_DEVICE inline __device__
#define CUTE_HOST_DEVICE inline __host__ __device__
#define CUTE_HOST inline __host__
#define CUTE_HOST_RTC inline __host__
#define CUTE_UNROLL
#define CUTE_NO_UNROLL
#define CUTE_GRID_CONSTANT
#define CUTE_GCC_UNREACHABLE
#define CUTE_INVALID_CONTROL_PATH(...)
#define CUTE_STATIC_V(...) decltype(__VA_ARGS__)::value
#define CUTE_STATIC_ASSERT(...) static_assert(__VA_ARGS__)
#define CUTE_STATIC_ASSERT_V(condition, ...) static_assert(decltype(condition)::value, ##__VA_ARGS__)

#pragma clang force_cuda_host_device begin

// CUTLASS defines it where the GPU has asynchronous copies, compute capability 8.0 and later.
#define CUTE_ARCH_CP_ASYNC_SM80_ENABLED

namespace cute {

using flashtracer::Any;
using cutlass::bfloat16_t;
using cutlass::float_e4m3_t;
using cutlass::float_e5m2_t;
using cutlass::half_t;
using cutlass::tfloat32_t;
using cutlass::uint128_t;
using ::int32_t;
using ::int64_t;
using ::uint16_t;
using ::uint32_t;
using ::uint64_t;
using ::uint8_t;
struct uint256_t { uint128_t low, high; };
template <int bytes> struct uint_byte { using type = uint128_t; };
template <int bytes> using uint_byte_t = uint128_t;
template <int bits> using uint_bit_t = uint128_t;

// ---- Compile-time integers and traits -------------------------------------------------------------------------------
template <auto v> struct C {
  static constexpr auto value = v;
  using value_type = decltype(v);
  using type = C;
  constexpr operator decltype(v)() const { return v; }
  constexpr auto operator()() const { return v; }
};
template <class T, T v> using integral_constant = C<v>;
template <bool v> using bool_constant = C<v>;
template <int v> using Int = C<v>;
using true_type = C<true>;
using false_type = C<false>;
#define FLASHTRACER_INT(n) using _##n = Int<n>;
FLASHTRACER_INT(0)
FLASHTRACER_INT(1)
FLASHTRACER_INT(2)
FLASHTRACER_INT(3)
FLASHTRACER_INT(4)
FLASHTRACER_INT(5)
FLASHTRACER_INT(6)
FLASHTRACER_INT(7)
FLASHTRACER_INT(8)
FLASHTRACER_INT(9)
FLASHTRACER_INT(10)
FLASHTRACER_INT(12)
FLASHTRACER_INT(16)
FLASHTRACER_INT(24)
FLASHTRACER_INT(32)
FLASHTRACER_INT(48)
FLASHTRACER_INT(64)
FLASHTRACER_INT(80)
FLASHTRACER_INT(96)
FLASHTRACER_INT(112)
FLASHTRACER_INT(128)
FLASHTRACER_INT(160)
FLASHTRACER_INT(192)
FLASHTRACER_INT(224)
FLASHTRACER_INT(256)
FLASHTRACER_INT(384)
FLASHTRACER_INT(512)
FLASHTRACER_INT(1024)
#undef FLASHTRACER_INT

// What is computed from two of them is one again.
#define FLASHTRACER_STATIC(op) \
  template <auto a, auto b> constexpr C<(a op b)> operator op(C<a>, C<b>) { return {}; }
FLASHTRACER_STATIC(+)
FLASHTRACER_STATIC(-)
FLASHTRACER_STATIC(*)
FLASHTRACER_STATIC(/)
FLASHTRACER_STATIC(%)
FLASHTRACER_STATIC(<)
FLASHTRACER_STATIC(<=)
FLASHTRACER_STATIC(>)
FLASHTRACER_STATIC(>=)
FLASHTRACER_STATIC(==)
FLASHTRACER_STATIC(!=)
#undef FLASHTRACER_STATIC

using std::conditional_t;
using std::enable_if_t;
using std::is_same_v;
using std::void_t;
template <class A, class B> using is_same = C<__is_same(A, B)>;
template <class B, class D> using is_base_of = C<__is_base_of(B, D)>;
template <class B, class D> inline constexpr bool is_base_of_v = __is_base_of(B, D);
template <class T> using remove_cvref_t = std::decay_t<T>;
template <class T> using remove_const_t = std::remove_const_t<T>;
template <class T> using decay_t = std::decay_t<T>;
template <class T> struct sizeof_bits { static constexpr int value = 16; };
template <class T> inline constexpr int sizeof_bits_v = 16;
template <class... T> struct is_congruent : true_type {};
template <class T> struct is_static : true_type {};
template <class T> inline constexpr bool is_static_v = true;
template <class T> inline constexpr int rank_v = 1;
template <class T> inline constexpr int depth_v = 1;
template <class T> inline constexpr int size_v = 1;
template <class T> inline constexpr int cosize_v = 1;
template <class T> using is_gmem = true_type;
template <class T> using is_smem = true_type;
template <class T> using is_rmem = true_type;
template <class T> inline constexpr bool is_gmem_v = true;
template <class T> inline constexpr bool is_smem_v = true;
template <class T> inline constexpr bool is_rmem_v = true;
constexpr int gcd(int a, int b) { return b == 0 ? a : gcd(b, a % b); }
template <class A, class B> constexpr A ceil_div(A const& a, B const&) { return a; }
template <class A, class B> constexpr A round_up(A const& a, B const&) { return a; }
template <class A, class B> constexpr A round_down(A const& a, B const&) { return a; }

// ---- Tuples and layouts ---------------------------------------------------------------------------------------------
struct Underscore {
  constexpr Underscore() {}
};
inline constexpr Underscore _{};
using X = Underscore;

template <class... T> struct tuple : Any {
  using Any::Any;
};
template <class... T> using Shape = tuple<T...>;
template <class... T> using Stride = tuple<T...>;
template <class... T> using Step = tuple<T...>;
template <class... T> using Coord = tuple<T...>;
template <class... T> using Tile = tuple<T...>;
template <size_t I, class... T> constexpr int get(tuple<T...> const&);
template <class T> using tuple_size = std::tuple_size<T>;
template <class T> inline constexpr int tuple_size_v = 1;
template <auto I, class T> using tuple_element_t = Any;
template <int... I> struct int_sequence {};
template <int N> using make_int_sequence = int_sequence<N>;
template <class T, int N> struct array {
  T& operator[](int);
  T const& operator[](int) const;
  T* data();
  T* begin();
  T* end();
};
template <class T, int N, int alignment = 16> struct array_aligned : array<T, N> {};
template <int alignment, class Child = void> struct aligned_struct {};

template <class S = Any, class D = Any> struct Layout : Any {
  using Any::Any;
  FLASHTRACER_METHOD(shape)
  FLASHTRACER_METHOD(stride)
  FLASHTRACER_METHOD(layout)
  FLASHTRACER_METHOD(compose)
  FLASHTRACER_METHOD(with_shape)
  FLASHTRACER_METHOD(get_flat_coord)
};
template <class... A> Layout(A const&...) -> Layout<>;
template <class A = Any, class O = Any, class B = Any> struct ComposedLayout : Layout<> {
  using Layout<>::Layout;
};
template <int bits, int base, int shift> struct Swizzle : Any {};
struct LayoutLeft {};
struct LayoutRight {};
using GenColMajor = LayoutLeft;
using GenRowMajor = LayoutRight;

// A tensor declared as `Tensor t = f(...)` takes its arguments from a deduction guide, as in the library.
template <class E = Any, class L = Layout<>> struct Tensor : Any {
  using Any::Any;
  using value_type = Any;
  using element_type = Any;
  using engine_type = E;
  using layout_type = L;
  template <class... A> constexpr Any& operator()(A const&...);
  template <class... A> constexpr Any& operator()(A const&...) const;
  template <class A> constexpr Any& operator[](A const&);
  template <class A> constexpr Any& operator[](A const&) const;
  constexpr Any& data();
  FLASHTRACER_METHOD(data)
  FLASHTRACER_METHOD(layout)
  FLASHTRACER_METHOD(shape)
  FLASHTRACER_METHOD(stride)
  FLASHTRACER_METHOD(size)
  FLASHTRACER_METHOD(compose)
};
template <class... A> Tensor(A const&...) -> Tensor<>;

// ---- Atoms: the names of instructions -------------------------------------------------------------------------------
struct DefaultCopy {};
template <int bits = 128> struct AutoVectorizingCopyWithAssumedAlignment {};
using AutoVectorizingCopy = AutoVectorizingCopyWithAssumedAlignment<128>;
template <class... T> struct UniversalCopy {};
template <class... T> struct UniversalFMA {};
template <class... T> struct SM80_CP_ASYNC_CACHEALWAYS {};
template <class... T> struct SM80_CP_ASYNC_CACHEGLOBAL {};
template <class... T> struct SM80_CP_ASYNC_CACHEALWAYS_ZFILL {};
template <class... T> struct SM80_CP_ASYNC_CACHEGLOBAL_ZFILL {};
struct SM75_U32x1_LDSM_N {};
struct SM75_U32x2_LDSM_N {};
struct SM75_U32x4_LDSM_N {};
struct SM75_U16x2_LDSM_T {};
struct SM75_U16x4_LDSM_T {};
struct SM75_U16x8_LDSM_T {};
struct SM75_16x8x8_F32F16F16F32_TN {};
struct SM80_16x8x8_F32F16F16F32_TN {};
struct SM80_16x8x8_F32BF16BF16F32_TN {};
struct SM80_16x8x16_F16F16F16F16_TN {};
struct SM80_16x8x16_F32F16F16F32_TN {};
struct SM80_16x8x16_F32BF16BF16F32_TN {};
template <class... T> struct MMA_Traits : Any { using Shape_MNK = Any; };
template <class... T> struct MMA_Atom : Any { using Shape_MNK = Any; };
template <class... T> struct Copy_Traits : Any {
  FLASHTRACER_METHOD(with)
};
template <class... T> struct Copy_Atom : Any {
  FLASHTRACER_METHOD(with)
};

// What one thread does of a tiled copy or MMA.
struct ThreadSlice : Any {
  using Any::Any;
  FLASHTRACER_METHOD(partition_S)
  FLASHTRACER_METHOD(partition_D)
  FLASHTRACER_METHOD(partition_A)
  FLASHTRACER_METHOD(partition_B)
  FLASHTRACER_METHOD(partition_C)
  FLASHTRACER_METHOD(partition_fragment_A)
  FLASHTRACER_METHOD(partition_fragment_B)
  FLASHTRACER_METHOD(partition_fragment_C)
  FLASHTRACER_METHOD(make_fragment_A)
  FLASHTRACER_METHOD(make_fragment_B)
  FLASHTRACER_METHOD(make_fragment_C)
  FLASHTRACER_METHOD(retile_S)
  FLASHTRACER_METHOD(retile_D)
};
template <class... T> struct ThrCopy : ThreadSlice {};
template <class... T> struct ThrMMA : ThreadSlice {};
template <class... T> struct TiledCopy : ThreadSlice {
  using ThreadSlice::ThreadSlice;
  template <class... A> constexpr ThreadSlice get_slice(A const&...) const { return {}; }
  template <class... A> constexpr ThreadSlice get_thread_slice(A const&...) const { return {}; }
};
template <class... T> struct TiledMMA : TiledCopy<> {
  using TiledCopy<>::TiledCopy;
  using TiledShape_MNK = Any;
  using AtomShape_MNK = Any;
  template <int I> static constexpr Any tile_size_mnk() { return {}; }
};

// ---- Making and taking apart ----------------------------------------------------------------------------------------
FLASHTRACER_FUNCTION(append)
FLASHTRACER_FUNCTION(as_position_independent_swizzle_tensor)
FLASHTRACER_FUNCTION(blocked_product)
FLASHTRACER_FUNCTION(coalesce)
FLASHTRACER_FUNCTION(complement)
FLASHTRACER_FUNCTION(composition)
FLASHTRACER_TYPED_FUNCTION(conditional_return)
FLASHTRACER_CONSTANT(cosize)
FLASHTRACER_FUNCTION(crd2idx)
FLASHTRACER_CONSTANT(depth)
FLASHTRACER_FUNCTION(domain_offset)
FLASHTRACER_FUNCTION(elem_less)
FLASHTRACER_FUNCTION(filter)
FLASHTRACER_FUNCTION(filter_zeros)
FLASHTRACER_FUNCTION(flat_divide)
FLASHTRACER_FUNCTION(flatten)
FLASHTRACER_CONSTANT(get)
FLASHTRACER_FUNCTION(get_nonswizzle_portion)
FLASHTRACER_FUNCTION(group_modes)
FLASHTRACER_FUNCTION(idx2crd)
FLASHTRACER_FUNCTION(layout)
FLASHTRACER_FUNCTION(left_inverse)
FLASHTRACER_FUNCTION(local_partition)
FLASHTRACER_FUNCTION(local_tile)
FLASHTRACER_FUNCTION(logical_divide)
FLASHTRACER_FUNCTION(logical_product)
FLASHTRACER_FUNCTION(make_coord)
FLASHTRACER_FUNCTION(make_counting_tensor)
FLASHTRACER_TYPED_FUNCTION(make_fragment_like)
FLASHTRACER_TYPED_FUNCTION(make_gmem_ptr)
FLASHTRACER_FUNCTION(make_identity_layout)
FLASHTRACER_FUNCTION(make_identity_tensor)
FLASHTRACER_FUNCTION(make_inttuple_iter)
FLASHTRACER_FUNCTION(make_layout)
FLASHTRACER_FUNCTION(make_ordered_layout)
FLASHTRACER_TYPED_FUNCTION(make_rmem_ptr)
FLASHTRACER_FUNCTION(make_shape)
FLASHTRACER_TYPED_FUNCTION(make_smem_ptr)
FLASHTRACER_FUNCTION(make_stride)
FLASHTRACER_TYPED_FUNCTION(make_tensor)
FLASHTRACER_TYPED_FUNCTION(make_tensor_like)
FLASHTRACER_FUNCTION(make_tile)
FLASHTRACER_FUNCTION(make_tuple)
FLASHTRACER_FUNCTION(make_zip_tensor)
FLASHTRACER_FUNCTION(max_common_vector)
FLASHTRACER_FUNCTION(permute)
FLASHTRACER_FUNCTION(prepend)
FLASHTRACER_FUNCTION(product)
FLASHTRACER_FUNCTION(product_each)
FLASHTRACER_CONSTANT(rank)
FLASHTRACER_FUNCTION(raw_pointer_cast)
FLASHTRACER_TYPED_FUNCTION(recast)
FLASHTRACER_TYPED_FUNCTION(recast_ptr)
FLASHTRACER_FUNCTION(replace)
FLASHTRACER_FUNCTION(right_inverse)
FLASHTRACER_FUNCTION(select)
FLASHTRACER_CONSTANT(shape)
FLASHTRACER_FUNCTION(shape_div)
FLASHTRACER_CONSTANT(size)
FLASHTRACER_FUNCTION(slice)
FLASHTRACER_FUNCTION(stride)
FLASHTRACER_FUNCTION(take)
FLASHTRACER_FUNCTION(tile_shape)
FLASHTRACER_FUNCTION(tile_size)
FLASHTRACER_FUNCTION(tile_to_shape)
FLASHTRACER_FUNCTION(tiled_divide)
FLASHTRACER_FUNCTION(upcast)
FLASHTRACER_FUNCTION(zipped_divide)

// ---- Copies and MMAs ------------------------------------------------------------------------------------------------
FLASHTRACER_FUNCTION(axpby)
FLASHTRACER_FUNCTION(cast_smem_ptr_to_uint)
FLASHTRACER_FUNCTION(clear)
FLASHTRACER_FUNCTION(copy)
FLASHTRACER_FUNCTION(copy_if)
FLASHTRACER_FUNCTION(cp_async_fence)
FLASHTRACER_FUNCTION(cp_async_wait)
FLASHTRACER_FUNCTION(fill)
FLASHTRACER_FUNCTION(gemm)
FLASHTRACER_RETURNING(TiledCopy<>, make_tiled_copy)
FLASHTRACER_RETURNING(TiledCopy<>, make_tiled_copy_A)
FLASHTRACER_RETURNING(TiledCopy<>, make_tiled_copy_B)
FLASHTRACER_RETURNING(TiledCopy<>, make_tiled_copy_C)
FLASHTRACER_RETURNING(TiledMMA<>, make_tiled_mma)
FLASHTRACER_FUNCTION(partition_fragment_A)
FLASHTRACER_FUNCTION(partition_fragment_B)
FLASHTRACER_FUNCTION(partition_fragment_C)
FLASHTRACER_FUNCTION(partition_shape_A)
FLASHTRACER_FUNCTION(partition_shape_B)
FLASHTRACER_FUNCTION(partition_shape_C)
FLASHTRACER_FUNCTION(prefetch)
FLASHTRACER_FUNCTION(get_layoutA_TV)
FLASHTRACER_FUNCTION(get_layoutB_TV)
FLASHTRACER_FUNCTION(get_layoutC_TV)

// ---- Functional helpers, printing -----------------------------------------------------------------------------------
FLASHTRACER_FUNCTION(for_each)
FLASHTRACER_FUNCTION(is_valid)
FLASHTRACER_TYPED_FUNCTION(max)
FLASHTRACER_TYPED_FUNCTION(min)
FLASHTRACER_FUNCTION(print)
FLASHTRACER_FUNCTION(print_layout)
FLASHTRACER_FUNCTION(print_tensor)
FLASHTRACER_FUNCTION(thread)
FLASHTRACER_FUNCTION(thread0)
FLASHTRACER_FUNCTION(transform)

}  // namespace cute

template <class... T> struct std::tuple_size<cute::tuple<T...>> : std::integral_constant<size_t, sizeof...(T)> {};
template <std::size_t I, class... T> struct std::tuple_element<I, cute::tuple<T...>> { using type = int; };

#pragma clang force_cuda_host_device end
