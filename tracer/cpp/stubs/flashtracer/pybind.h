// pybind11 and the part of Python's C interface that extension modules write.
#pragma once
#include <flashtracer/std.h>

// A module definition becomes a function whose name starts with flashtracer_pybind_; its body registers the functions.
// The indirection lets arguments that are macros themselves, such as TORCH_EXTENSION_NAME, expand before they are
// pasted. Options behind the module's variable are dropped.
#define PYBIND11_MODULE(name, module, ...) FLASHTRACER_PYBIND11_MODULE(name, module)
#define FLASHTRACER_PYBIND11_MODULE(name, module) static void flashtracer_pybind_##name(pybind11::module_& module)

// The build passes the extension's name with -D; the name in setup.py is the one to report.
#define TORCH_EXTENSION_NAME flashtracer_extension

#pragma clang force_cuda_host_device begin

namespace pybind11 {

struct arg {
  explicit arg(const char* name);
  template <class T> arg& operator=(T&&);
};

struct module_ {
  const char*& doc();
  template <class F, class... Extra> module_& def(const char* name, F&& function, Extra const&... extra);
  template <class T> module_& attr(T const&);
  module_ def_submodule(const char* name);
};
using module = module_;

template <class T> struct class_ {
  template <class... A> class_(A const&...);
  template <class... A> class_& def(A const&...);
  template <class... A> class_& def_readwrite(A const&...);
};

}  // namespace pybind11
namespace py = pybind11;

#define PyMODINIT_FUNC extern "C" PyObject*
#define PyModuleDef_HEAD_INIT 0

struct PyObject;
struct PyModuleDef {
  int base;
  const char* name;
  const char* doc;
  long size;
  void* methods;
  void* slots;
  void* traverse;
  void* clear;
  void* free;
};
extern "C" PyObject* PyModule_Create(PyModuleDef*);

#pragma clang force_cuda_host_device end
