// The C++ library and the C functions below it.
#pragma once
#include <flashtracer/any.h>

#pragma clang force_cuda_host_device begin

inline void* operator new(size_t, void* place) noexcept { return place; }

// ---- C --------------------------------------------------------------------------------------------------------------
extern "C" {
struct FILE;
extern FILE* stdout;
extern FILE* stderr;
int printf(const char*, ...);
int fprintf(FILE*, const char*, ...);
int snprintf(char*, size_t, const char*, ...);
int fflush(FILE*);
void exit(int);
void abort();
void* malloc(size_t);
void free(void*);
char* getenv(const char*);
int atoi(const char*);
void* memset(void*, int, size_t);
void* memcpy(void*, const void*, size_t);
int strcmp(const char*, const char*);
}
int abs(int);
#define FLASHTRACER_MATH(name) \
  float name##f(float);        \
  float name(float);           \
  double name(double);         \
  double name(int);
FLASHTRACER_MATH(ceil)
FLASHTRACER_MATH(cos)
FLASHTRACER_MATH(exp)
FLASHTRACER_MATH(erf)
FLASHTRACER_MATH(exp10)
FLASHTRACER_MATH(exp2)
FLASHTRACER_MATH(expm1)
FLASHTRACER_MATH(fabs)
FLASHTRACER_MATH(floor)
FLASHTRACER_MATH(log)
FLASHTRACER_MATH(log10)
FLASHTRACER_MATH(log1p)
FLASHTRACER_MATH(log2)
FLASHTRACER_MATH(round)
FLASHTRACER_MATH(rsqrt)
FLASHTRACER_MATH(sin)
FLASHTRACER_MATH(sqrt)
FLASHTRACER_MATH(tanh)
#undef FLASHTRACER_MATH
#define FLASHTRACER_MATH2(name)  \
  float name##f(float, float);   \
  float name(float, float);      \
  double name(double, double);
FLASHTRACER_MATH2(copysign)
FLASHTRACER_MATH2(fdim)
FLASHTRACER_MATH2(fmax)
FLASHTRACER_MATH2(fmin)
FLASHTRACER_MATH2(fmod)
#undef FLASHTRACER_MATH2
float fmaf(float, float, float);
float fma(float, float, float);
double fma(double, double, double);
float powf(float, float);
template <class A, class B> double pow(A, B);
template <class T> bool isinf(T);
template <class T> bool isnan(T);
template <class T> bool isfinite(T);

namespace std {

using ::int16_t;
using ::int32_t;
using ::int64_t;
using ::int8_t;
using ::intptr_t;
using ::ptrdiff_t;
using ::size_t;
using ::uint16_t;
using ::uint32_t;
using ::uint64_t;
using ::uint8_t;
using ::uintptr_t;
using nullptr_t = decltype(nullptr);

using ::abort;
using ::abs;
using ::atoi;
using ::ceil;
using ::cos;
using ::exit;
using ::exp;
using ::exp2;
using ::floor;
using ::fprintf;
using ::free;
using ::getenv;
using ::isfinite;
using ::isinf;
using ::isnan;
using ::log;
using ::log2;
using ::log2f;
using ::expf;
using ::exp2f;
using ::erf;
using ::expm1;
using ::fabs;
using ::fdim;
using ::fma;
using ::fmaf;
using ::fmax;
using ::fmaxf;
using ::fmin;
using ::fminf;
using ::log10;
using ::log1p;
using ::logf;
using ::sqrtf;
using ::ceilf;
using ::floorf;
using ::malloc;
using ::memcpy;
using ::memset;
using ::pow;
using ::printf;
using ::round;
using ::sin;
using ::sqrt;
using ::strcmp;
using ::tanh;
float abs(float);
double abs(double);
long abs(long);
long long abs(long long);

// ---- type_traits: these are cheap to declare truly, and conditions in the checkout are made of them -----------------
template <class T, T v> struct integral_constant {
  static constexpr T value = v;
  using value_type = T;
  using type = integral_constant;
  constexpr operator T() const { return v; }
  constexpr T operator()() const { return v; }
};
template <bool v> using bool_constant = integral_constant<bool, v>;
using true_type = bool_constant<true>;
using false_type = bool_constant<false>;

template <class T, class U> struct is_same : bool_constant<__is_same(T, U)> {};
template <class T> struct is_void : bool_constant<__is_void(T)> {};
template <class T> struct is_integral : bool_constant<__is_integral(T)> {};
template <class T> struct is_floating_point : bool_constant<__is_floating_point(T)> {};
template <class T> struct is_arithmetic : bool_constant<__is_arithmetic(T)> {};
template <class T> struct is_pointer : bool_constant<__is_pointer(T)> {};
template <class T> struct is_const : bool_constant<__is_const(T)> {};
template <class T> struct is_enum : bool_constant<__is_enum(T)> {};
template <class T> struct is_trivially_copyable : bool_constant<__is_trivially_copyable(T)> {};
template <class B, class D> struct is_base_of : bool_constant<__is_base_of(B, D)> {};
template <class A, class B> struct is_convertible : bool_constant<__is_convertible(A, B)> {};
template <class T, class... A> struct is_constructible : bool_constant<__is_constructible(T, A...)> {};
template <class T, class U> inline constexpr bool is_same_v = __is_same(T, U);
template <class T> inline constexpr bool is_void_v = __is_void(T);
template <class T> inline constexpr bool is_integral_v = __is_integral(T);
template <class T> inline constexpr bool is_floating_point_v = __is_floating_point(T);
template <class T> inline constexpr bool is_arithmetic_v = __is_arithmetic(T);
template <class T> inline constexpr bool is_pointer_v = __is_pointer(T);
template <class T> inline constexpr bool is_const_v = __is_const(T);
template <class T> inline constexpr bool is_enum_v = __is_enum(T);
template <class T> inline constexpr bool is_trivially_copyable_v = __is_trivially_copyable(T);
template <class B, class D> inline constexpr bool is_base_of_v = __is_base_of(B, D);
template <class A, class B> inline constexpr bool is_convertible_v = __is_convertible(A, B);

template <bool B, class T, class F> struct conditional { using type = T; };
template <class T, class F> struct conditional<false, T, F> { using type = F; };
template <bool B, class T, class F> using conditional_t = typename conditional<B, T, F>::type;
template <bool B, class T = void> struct enable_if {};
template <class T> struct enable_if<true, T> { using type = T; };
template <bool B, class T = void> using enable_if_t = typename enable_if<B, T>::type;
template <class...> using void_t = void;
template <class T> struct remove_reference { using type = T; };
template <class T> struct remove_reference<T&> { using type = T; };
template <class T> struct remove_reference<T&&> { using type = T; };
template <class T> using remove_reference_t = typename remove_reference<T>::type;
template <class T> struct remove_const { using type = T; };
template <class T> struct remove_const<T const> { using type = T; };
template <class T> using remove_const_t = typename remove_const<T>::type;
template <class T> struct remove_cv { using type = remove_const_t<T>; };
template <class T> using remove_cv_t = typename remove_cv<T>::type;
template <class T> struct remove_pointer { using type = T; };
template <class T> struct remove_pointer<T*> { using type = T; };
template <class T> using remove_pointer_t = typename remove_pointer<T>::type;
template <class T> struct decay { using type = remove_cv_t<remove_reference_t<T>>; };
template <class T> using decay_t = typename decay<T>::type;
template <class T> struct underlying_type { using type = int; };
template <class T> using underlying_type_t = int;
template <class T> T&& declval();

// ---- utility, algorithm, functional ---------------------------------------------------------------------------------
// std::move and std::forward are builtins of clang like __syncthreads; declared here they are found here.
template <class T> constexpr remove_reference_t<T>&& move(T&& value) {
  return static_cast<remove_reference_t<T>&&>(value);
}
template <class T> constexpr T&& forward(remove_reference_t<T>& value) { return static_cast<T&&>(value); }
template <class T> constexpr void swap(T& a, T& b) {}
template <class A, class B> struct pair {
  A first;
  B second;
};
template <class A, class B> pair<A, B> make_pair(A, B);

template <class T> struct initializer_list {
  const T* data;
  size_t count;
  const T* begin() const;
  const T* end() const;
  constexpr size_t size() const { return count; }
};
template <class T> constexpr T const& max(T const& a, T const& b) { return a < b ? b : a; }
template <class T> constexpr T const& min(T const& a, T const& b) { return b < a ? b : a; }
template <class T> constexpr T max(initializer_list<T>);
template <class T> constexpr T min(initializer_list<T>);
template <class T> constexpr T const& clamp(T const& value, T const& low, T const& high);
template <class I, class T> void fill(I begin, I end, T const& value);
template <class I, class N, class T> void fill_n(I begin, N count, T const& value);
template <class I, class O> O copy(I begin, I end, O out);
template <class I, class T> I find(I begin, I end, T const& value);
template <class I, class F> bool any_of(I begin, I end, F);
template <class I, class F> bool all_of(I begin, I end, F);
template <class I, class... F> void sort(I begin, I end, F...);
template <class I, class T, class... F> T accumulate(I begin, I end, T, F...);
template <class I> I max_element(I begin, I end);
template <class T> struct less { constexpr bool operator()(T const&, T const&) const; };
template <class T> struct plus { constexpr T operator()(T const&, T const&) const; };
template <class T> struct hash { size_t operator()(T const&) const; };
template <class F> struct function;
template <class R, class... A> struct function<R(A...)> {
  template <class F> function(F const&);
  R operator()(A...) const;
};

template <class T> struct numeric_limits {
  static constexpr T infinity() { return T(1); }
  static constexpr T quiet_NaN() { return T(1); }
  static constexpr T max() { return T(1); }
  static constexpr T min() { return T(1); }
  static constexpr T lowest() { return T(1); }
  static constexpr T epsilon() { return T(1); }
};

// ---- tuple ----------------------------------------------------------------------------------------------------------
// Structured bindings ask for tuple_size, tuple_element and get<I>; without them the whole declaration is dropped. The
// elements are stored, because tile sizes are returned as tuples and used as constants.
template <class... T> struct tuple {};
template <class T, class... Rest> struct tuple<T, Rest...> {
  T first;
  tuple<Rest...> rest;
  constexpr tuple() : first(), rest() {}
  template <class A, class... B, typename flashtracer::If<sizeof...(B) == sizeof...(Rest)>::Type = 0>
  constexpr tuple(A const& a, B const&... b) : first(a), rest(b...) {}
  template <class A, class... B>
  constexpr tuple(tuple<A, B...> const& other) : first(other.first), rest(other.rest) {}
  template <class A> constexpr tuple& operator=(A const&) { return *this; }
};
template <class T> struct tuple_size;
template <class... T> struct tuple_size<tuple<T...>> : integral_constant<size_t, sizeof...(T)> {};
template <class A, class B> struct tuple_size<pair<A, B>> : integral_constant<size_t, 2> {};
template <class T> inline constexpr size_t tuple_size_v = tuple_size<T>::value;
template <size_t I, class T> struct tuple_element;
template <class T, class... Rest> struct tuple_element<0, tuple<T, Rest...>> { using type = T; };
template <size_t I, class T, class... Rest>
struct tuple_element<I, tuple<T, Rest...>> : tuple_element<I - 1, tuple<Rest...>> {};
template <class A, class B> struct tuple_element<0, pair<A, B>> { using type = A; };
template <class A, class B> struct tuple_element<1, pair<A, B>> { using type = B; };
template <size_t I, class T> using tuple_element_t = typename tuple_element<I, T>::type;
#define FLASHTRACER_GET(reference)                                                       \
  template <size_t I, class... T>                                                        \
  constexpr tuple_element_t<I, tuple<T...>> reference get(tuple<T...> reference whole) { \
    if constexpr (I == 0) {                                                              \
      return static_cast<tuple_element_t<I, tuple<T...>> reference>(whole.first);        \
    } else {                                                                             \
      return get<I - 1>(static_cast<decltype(whole.rest) reference>(whole.rest));        \
    }                                                                                    \
  }
FLASHTRACER_GET(&)
FLASHTRACER_GET(&&)
FLASHTRACER_GET(const&)
#undef FLASHTRACER_GET
template <size_t I, class A, class B> constexpr tuple_element_t<I, pair<A, B>>& get(pair<A, B>&);
template <size_t I, class A, class B> constexpr tuple_element_t<I, pair<A, B>>&& get(pair<A, B>&&);
template <size_t I, class A, class B> constexpr tuple_element_t<I, pair<A, B>> const& get(pair<A, B> const&);
template <size_t I> constexpr flashtracer::Any get(flashtracer::Any const&);
template <class... T> constexpr tuple<decay_t<T>...> make_tuple(T&&...);
template <class... T> constexpr tuple<T&...> tie(T&...);
template <class F, class T> constexpr flashtracer::Any apply(F const&, T const&);
template <size_t... I> struct index_sequence {};
template <size_t N> using make_index_sequence = index_sequence<N>;

// ---- containers, strings, streams -----------------------------------------------------------------------------------
// Declares what every sequence has. resize and the like take anything, so that no conversion can be refused.
#define FLASHTRACER_SEQUENCE(name)                    \
  name();                                             \
  name(initializer_list<T>);                          \
  explicit name(size_t count);                        \
  name(size_t count, T const& value);                 \
  template <class I> name(I begin, I end);            \
  using value_type = T;                               \
  T& operator[](size_t);                              \
  T const& operator[](size_t) const;                  \
  T& at(size_t);                                      \
  T const& at(size_t) const;                          \
  T& front();                                         \
  T const& front() const;                             \
  T& back();                                          \
  T const& back() const;                              \
  T* data();                                          \
  T const* data() const;                              \
  T* begin();                                         \
  T const* begin() const;                             \
  T* end();                                           \
  T const* end() const;                               \
  size_t size() const;                                \
  bool empty() const;                                 \
  void clear();                                       \
  void reserve(size_t);                               \
  void resize(size_t);                                \
  void resize(size_t, T const&);                      \
  void push_back(T const&);                           \
  void pop_back();                                    \
  template <class... A> T& emplace_back(A const&...); \
  template <class... A> T* insert(A const&...);       \
  template <class... A> T* erase(A const&...)
template <class T> struct vector {
  FLASHTRACER_SEQUENCE(vector);
};
template <class T> struct deque {
  FLASHTRACER_SEQUENCE(deque);
};
#undef FLASHTRACER_SEQUENCE
template <class T, size_t N> struct array {
  T elements[N];
  constexpr T& operator[](size_t i) { return elements[i]; }
  constexpr T const& operator[](size_t i) const { return elements[i]; }
  constexpr size_t size() const { return N; }
  constexpr T* begin();
  constexpr T* end();
  constexpr T* data();
};
template <class K, class V, class... More> struct unordered_map {
  pair<K, V>* find(K const&) const;
  pair<K, V>* begin() const;
  pair<K, V>* end() const;
  V& operator[](K const&);
  V const& at(K const&) const;
  size_t count(K const&) const;
  size_t size() const;
  template <class... A> pair<pair<K, V>*, bool> emplace(A const&...);
  pair<pair<K, V>*, bool> insert(pair<K, V> const&);
};
template <class K, class V, class... More> using map = unordered_map<K, V, More...>;

struct string {
  string();
  string(const char*);
  const char* c_str() const;
  const char* data() const;
  size_t size() const;
  size_t length() const;
  bool empty() const;
  char operator[](size_t) const;
  template <class... A> size_t find(A const&...) const;
  string substr(size_t, size_t = 0) const;
  string& operator+=(string const&);
  static constexpr size_t npos = ~size_t(0);
};
using string_view = string;
string operator+(string const&, string const&);
bool operator==(string const&, string const&);
bool operator!=(string const&, string const&);
bool operator<(string const&, string const&);
template <class T> string to_string(T);
int stoi(string const&);

struct ostream {
  template <class T> ostream& operator<<(T const&);
  ostream& operator<<(ostream& (*)(ostream&));
};
struct ostringstream : ostream {
  string str() const;
};
using stringstream = ostringstream;
extern ostream cout;
extern ostream cerr;
ostream& endl(ostream&);

struct exception {
  const char* what() const;
};
struct runtime_error : exception {
  runtime_error(string const&);
};
struct invalid_argument : exception {
  invalid_argument(string const&);
};

// ---- optional, pointers, threads ------------------------------------------------------------------------------------
struct nullopt_t {};
inline constexpr nullopt_t nullopt{};
template <class T> struct optional {
  optional();
  optional(nullopt_t);
  template <class U> optional(U const&);
  template <class U> optional& operator=(U const&);
  using value_type = T;
  explicit operator bool() const;
  bool has_value() const;
  T& value();
  T const& value() const;
  template <class U> T value_or(U const&) const;
  T* operator->();
  T const* operator->() const;
  T& operator*();
  T const& operator*() const;
  void reset();
  template <class... A> T& emplace(A const&...);
};
template <class T> optional<decay_t<T>> make_optional(T&&);
template <class T, class... A> struct unique_ptr {
  using element_type = T;
  template <class... B> unique_ptr(B const&...);
  T* get() const;
  T* operator->() const;
  // Deduced, because a reference to void, as in shared_ptr<void>, is an error that the whole class would share.
  auto& operator*() const;
  explicit operator bool() const;
};
template <class T> using shared_ptr = unique_ptr<T>;
template <class T, class... A> unique_ptr<T> make_unique(A const&...);
template <class T, class... A> shared_ptr<T> make_shared(A const&...);

struct mutex {
  void lock();
  void unlock();
};
template <class M> struct lock_guard {
  explicit lock_guard(M&);
};
template <class M> lock_guard(M&) -> lock_guard<M>;
template <class M> struct unique_lock {
  explicit unique_lock(M&);
};
struct once_flag {};
template <class F, class... A> void call_once(once_flag&, F const&, A const&...);
template <class T> struct atomic {
  atomic();
  atomic(T);
  T load() const;
  void store(T);
  operator T() const;
};

}  // namespace std

#pragma clang force_cuda_host_device end
