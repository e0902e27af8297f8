// The type of every library expression whose true type is beyond a stub.
//
// CuTe computes types: what `make_tensor(...)` returns takes thousands of lines to say. In a template of the checkout
// that does not matter, since nothing there is instantiated; but expressions that depend on no template parameter are
// typed at once, and clang drops the statement when that fails. `Any` makes such statements well-formed: it can be made
// from anything, becomes anything, and takes every operator, call and subscript.
#pragma once
#include <flashtracer/language.h>

// Host code calls device functions and the other way round (a launch template asks CuTe for sizes, a kernel calls
// std::min). Everything declared between these pragmas is callable from both, so that no call is refused.
#pragma clang force_cuda_host_device begin

namespace flashtracer {

template <bool condition> struct If {};
template <> struct If<true> {
  using Type = int;
};

struct Any {
  // From anything; from a number only where a conversion is asked for, since `c ? any : 0` would be ambiguous if both
  // sides could become the other.
  constexpr Any() {}
  template <class A, typename If<!__is_arithmetic(A)>::Type = 0> constexpr Any(A const&) {}
  template <class A, typename If<__is_arithmetic(A)>::Type = 0> constexpr explicit Any(A const&) {}
  template <class A, class B, class... More> constexpr Any(A const&, B const&, More const&...) {}
  // Into anything. Numbers become 1 rather than 0, because constants are divided by constants.
  template <class T> constexpr operator T() const {
    if constexpr (__is_arithmetic(T)) {
      return T(1);
    } else {
      return T{};
    }
  }

  template <class... A> constexpr Any operator()(A const&...) const { return {}; }
  template <class A> constexpr Any operator[](A const&) const { return {}; }
  template <class A> constexpr Any& operator=(A const&) { return *this; }
  template <class A> constexpr Any& operator+=(A const&) { return *this; }
  template <class A> constexpr Any& operator-=(A const&) { return *this; }
  template <class A> constexpr Any& operator*=(A const&) { return *this; }
  template <class A> constexpr Any& operator/=(A const&) { return *this; }
  constexpr Any& operator++() { return *this; }
  constexpr Any& operator--() { return *this; }
  constexpr Any operator++(int) { return {}; }
  constexpr Any operator--(int) { return {}; }
  constexpr Any operator+() const { return {}; }
  constexpr Any operator-() const { return {}; }
  constexpr Any operator~() const { return {}; }
  Any& operator*() const;
  Any* operator->() const;

  // CuTe states a condition on types as `decltype(expression)::value`.
  static constexpr int value = 1;
  static constexpr int rank = 2;
};

// The answer of a comparison: true, and with a `value` that says so, for conditions on types.
struct Truth {
  static constexpr bool value = true;
  constexpr operator bool() const { return true; }
};

template <class A, class B, bool = __is_base_of(Any, A) || __is_base_of(Any, B)> struct IfAny {};
template <class A, class B> struct IfAny<A, B, true> {
  using Value = Any;
  using Answer = Truth;
};

// One template per operator that matches both sides exactly and applies when either is Any or made from it. Overloads
// for (Any, B) and (A, Any) would be ambiguous: with each other for a class made from Any, and with the language's own
// operators because Any becomes a number.
#define FLASHTRACER_ARITHMETIC(op) \
  template <class A, class B> constexpr typename IfAny<A, B>::Value operator op(A const&, B const&) { return {}; }
FLASHTRACER_ARITHMETIC(+)
FLASHTRACER_ARITHMETIC(-)
FLASHTRACER_ARITHMETIC(*)
FLASHTRACER_ARITHMETIC(/)
FLASHTRACER_ARITHMETIC(%)
FLASHTRACER_ARITHMETIC(&)
FLASHTRACER_ARITHMETIC(|)
FLASHTRACER_ARITHMETIC(^)
FLASHTRACER_ARITHMETIC(<<)
FLASHTRACER_ARITHMETIC(>>)
#undef FLASHTRACER_ARITHMETIC

// Comparisons hold: most of those that are evaluated stand in a static_assert.
#define FLASHTRACER_COMPARISON(op) \
  template <class A, class B> constexpr typename IfAny<A, B>::Answer operator op(A const&, B const&) { return {}; }
FLASHTRACER_COMPARISON(<)
FLASHTRACER_COMPARISON(>)
FLASHTRACER_COMPARISON(<=)
FLASHTRACER_COMPARISON(>=)
FLASHTRACER_COMPARISON(==)
FLASHTRACER_COMPARISON(!=)
#undef FLASHTRACER_COMPARISON

}  // namespace flashtracer

// Declares a library function that takes anything, with the explicit arguments that it is called with: values, as in
// name<0, true>, or none; and, for the second macro, types as well, as in name<T> and name<T, 0>. Explicit arguments
// stay in the tree, which a macro of that name would lose. There is no body where nobody evaluates the call: these
// functions are a quarter of what the stubs cost in time, and each form and each body counts.
#define FLASHTRACER_FUNCTION(name) FLASHTRACER_RETURNING(flashtracer::Any, name)
#define FLASHTRACER_RETURNING(type, name) template <auto... I, class... A> constexpr type name(A const&...);
#define FLASHTRACER_TYPED_FUNCTION(name) \
  FLASHTRACER_FUNCTION(name)             \
  template <class T, auto... I, class... A> constexpr flashtracer::Any name(A const&...);

// The same for a function whose value is asked for at compile time, in a static_assert or a template argument.
#define FLASHTRACER_CONSTANT(name) \
  template <auto... I, class... A> constexpr flashtracer::Any name(A const&...) { return {}; }

// The same as a member function.
#define FLASHTRACER_METHOD(name) \
  template <class... A> constexpr flashtracer::Any name(A const&...) const { return {}; }

#pragma clang force_cuda_host_device end
