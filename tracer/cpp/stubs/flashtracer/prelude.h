// Everything that a flash-attention checkout takes from libraries, declared just far enough for a parser.
//
// A checkout includes headers of torch, CUTLASS, CuTe, CUDA and the C++ library, which most readers do not have. These
// stubs stand in for them: libclang then gives every variable, every call and every template argument that the sources
// write, and finds the declarations of the checkout that they refer to. Nothing here can be compiled to a program, and
// the *values* that clang computes from these declarations mean nothing: sizes, constants and types of library
// expressions are placeholders.
//
// What a declaration here must achieve, in this order:
//   1. No statement is lost. clang drops a statement that it cannot type, and an initialiser of a variable whose type
//      it does not know. Where the true type of a library expression is beyond a stub, it is `flashtracer::Any`.
//   2. What the source writes stays visible: calls stay calls, explicit template arguments stay arguments, conditions
//      and messages of checks stay expressions. A macro is used only where the library has a macro.
//   3. Names lie in the namespaces and classes in which the library has them.
//
// Headers are declared from what the libraries document; no text is taken from theirs. This file is passed with
// -include, and each library header that a checkout can name forwards to one of the files below. In a sentence: a new
// library function needs one line in the file of its library, a new header one line in a file of its name.
#pragma once

#include <flashtracer/language.h>
#include <flashtracer/any.h>
#include <flashtracer/std.h>
#include <flashtracer/cuda.h>
#include <flashtracer/cutlass.h>
#include <flashtracer/cute.h>
#include <flashtracer/cute_sm90.h>
#include <flashtracer/cutlass_sm90.h>
#include <flashtracer/torch.h>
#include <flashtracer/torch_stable.h>
#include <flashtracer/pybind.h>
