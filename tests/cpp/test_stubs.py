"""The stub headers: whole releases parse without an error, and what the sources write is there afterwards.

Errors are what makes clang drop statements, so their number is the test. Three kinds are no fault of the stubs and are
not counted; each must go away when the file is read as a unit of its own, which is checked too:

======================================  =============================================================================
kind                                    why
======================================  =============================================================================
redefinition, duplicate instantiation   a file includes others of its folder, and all are read as one unit
``extern`` after the instantiation      a template is instantiated in one file and declared ``extern`` in a later one
======================================  =============================================================================

Known beyond what is checked here, for sources that are no release on the index:

========================================  ===========================================================================
sources                                   errors left
========================================  ===========================================================================
``csrc/flash_attn`` of every tag from     none, but in the files of head dimension 224 that 2.6.2 to 2.7.2 keep and
0.2.1 on, of main, of vLLM's fork         do not build
``hopper`` from 2.7.3 on, and vLLM's      none
``hopper`` of 2.6 to 2.7.2                up to six: clang takes the specializations of ``seq_len.h`` for other types
``csrc/flash_attn_ck`` from 2.7.4 on      none
``csrc/flash_attn_ck`` of 2.6             up to three a file: pairs inside braces, an argument's variant
========================================  ===========================================================================
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from ctypes import byref, c_uint, c_void_p
from functools import cache, lru_cache
from pathlib import Path

import pytest
from releases import release_checkout

from tracer.checkout import Checkout
from tracer.cpp.libclang import SEVERITY_ERROR, CXCursor, CXSourceLocation, LibClang, load
from tracer.cpp.sources import STUBS, UnitPlan, apart, plan_units
from tracer.extensions import read_extensions

VERSIONS = "1.0.9 2.0.0.post1 2.1.0 2.3.0 2.4.3.post1 2.5.8 2.6.3 2.7.4.post1 2.8.3".split()
JOINED = (
    "redefinition of ",
    "duplicate explicit instantiation of ",
    "explicit instantiation declaration (with 'extern')",
)

# Numbers of libclang's cursor kinds.
CLASS, FUNCTION, VARIABLE, METHOD, NAMESPACE, FUNCTION_TEMPLATE, LINKAGE = 4, 8, 9, 21, 22, 30, 23
CALL, NAME, OVERLOADED, TYPE_NAME, INTEGER, STRING, IF = 103, 101, 49, 43, 106, 109, 205


@cache
def library() -> LibClang:
    return load()


class Unit:
    """One parsed unit, with the few questions that the tests ask."""

    def __init__(self, main: str, arguments: list[str], unsaved: dict[str, str]) -> None:
        self.lib = library()
        flags = [*arguments, "-isystem", str(STUBS), "-include", str(STUBS / "flashtracer" / "prelude.h")]
        unit = self.lib.parse(main, flags, unsaved)
        assert unit is not None, f"libclang gave up on {main}"
        self.unit = unit
        self.root: CXCursor = self.lib.f.clang_getTranslationUnitCursor(unit)

    def errors(self) -> list[tuple[str, int, str]]:
        """Return (file, line, message) of each error."""
        found = []
        for index in range(self.lib.f.clang_getNumDiagnostics(self.unit)):
            diagnostic = self.lib.f.clang_getDiagnostic(self.unit, index)
            if self.lib.f.clang_getDiagnosticSeverity(diagnostic) >= SEVERITY_ERROR:
                file, line, _, _ = self.position(self.lib.f.clang_getDiagnosticLocation(diagnostic))
                found.append((file, line, self.lib.text(self.lib.f.clang_getDiagnosticSpelling(diagnostic))))
            self.lib.f.clang_disposeDiagnostic(diagnostic)
        return found

    def position(self, location: CXSourceLocation) -> tuple[str, int, int, int]:
        """Return (file, line, column, byte offset) of where the text stands."""
        file, line, column, offset = c_void_p(), c_uint(), c_uint(), c_uint()
        self.lib.f.clang_getFileLocation(location, byref(file), byref(line), byref(column), byref(offset))
        name = self.lib.text(self.lib.f.clang_getFileName(file)) if file.value else ""
        return name, line.value, column.value, offset.value

    def name(self, cursor: CXCursor) -> str:
        return self.lib.text(self.lib.f.clang_getCursorSpelling(cursor))

    def place(self, cursor: CXCursor) -> tuple[str, int, int, int]:
        return self.position(self.lib.f.clang_getCursorLocation(cursor))

    def end(self, cursor: CXCursor) -> tuple[str, int]:
        extent = self.lib.f.clang_getCursorExtent(cursor)
        file, _, _, offset = self.position(self.lib.f.clang_getRangeEnd(extent))
        return file, offset

    def below(self, cursor: CXCursor) -> Iterator[CXCursor]:
        for child in self.lib.children(cursor):
            yield child
            yield from self.below(child)

    def functions(self) -> Iterator[CXCursor]:
        """Yield the functions of the sources that have a body, not those of the stubs."""
        waiting = [self.root]
        while waiting:
            for child in self.lib.children(waiting.pop()):
                if child.kind in (NAMESPACE, LINKAGE, CLASS):
                    waiting.append(child)
                elif child.kind in (FUNCTION, FUNCTION_TEMPLATE, METHOD):
                    inside = not self.place(child)[0].startswith(str(STUBS))
                    if inside and self.lib.f.clang_isCursorDefinition(child):
                        yield child

    def function(self, name: str) -> CXCursor:
        found = next((function for function in self.functions() if self.name(function) == name), None)
        assert found is not None, f"{name} is not there"
        return found

    def calls(self, cursor: CXCursor) -> list[str]:
        return [self.name(child) for child in self.below(cursor) if child.kind == CALL]


# As the front end has them.
LANGUAGE = (
    "-x cuda --cuda-gpu-arch=sm_80 --cuda-host-only -nocudainc -nocudalib -nostdinc -nostdinc++ "
    "--no-cuda-version-check -std=c++17 -ferror-limit=0 -Wno-everything"
).split()


def parse_text(text: str, *more: str) -> Unit:
    return Unit("/in-memory/test.cu", [*LANGUAGE, *more], {"/in-memory/test.cu": text})


def parse_plan(checkout: Checkout, plan: UnitPlan) -> Unit:
    main = str(checkout.root / plan.main)
    folders = [f"-I{checkout.root / folder}" for folder in plan.include_dirs]
    return Unit(main, [*plan.arguments, *folders], {} if plan.text is None else {main: plan.text})


@cache
def plans(version: str) -> tuple[Checkout, tuple[UnitPlan, ...], tuple[UnitPlan, ...]]:
    """Return a release's CUDA back end: its units, and each of those files alone that include different headers."""
    checkout = release_checkout(version)
    extension = next(extension for extension in read_extensions(checkout) if extension.backend == "cuda")
    alone: dict[tuple[str, ...], str] = {}
    for source in extension.sources:
        if source.endswith(".cu"):
            alone.setdefault(tuple(re.findall(r"#include.*", checkout.read_text(source))), source)
    return checkout, plan_units(checkout, extension), apart(checkout, extension, alone.values())


@lru_cache(maxsize=4)
def units(version: str) -> tuple[Unit, ...]:
    checkout, together, _ = plans(version)
    return tuple(parse_plan(checkout, plan) for plan in together)


# ---- whole releases ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("version", VERSIONS)
def test_a_release_parses_without_an_error(version: str) -> None:
    checkout, together, alone = plans(version)
    for plan, unit in zip(together, units(version), strict=True):
        assert [error for error in unit.errors() if not error[2].startswith(JOINED)] == [], plan.name
    assert alone
    for plan in alone:
        assert parse_plan(checkout, plan).errors() == [], plan.name


@pytest.mark.parametrize("version", ["2.7.4.post1", "2.8.3"])
def test_the_rocm_back_end_parses_without_an_error(version: str) -> None:
    checkout = release_checkout(version)
    rocm = next(extension for extension in read_extensions(checkout) if extension.backend == "rocm")
    for plan in plan_units(checkout, rocm):
        assert parse_plan(checkout, plan).errors() == [], plan.name


# ---- nothing that is written gets lost -------------------------------------------------------------------------------

_NO_CALL = set("if for while switch return sizeof decltype static_assert constexpr alignas defined".split())
_CASTS = ("static_cast", "reinterpret_cast", "const_cast", "dynamic_cast")
_BUILTIN_TYPES = set("bool char int unsigned float double size_t int64_t uint64_t uint32_t uint16_t uint8_t".split())


def without_comments(text: str) -> str:
    """Blank out comments, literals and preprocessor lines; offsets stay."""
    tokens = re.compile(
        r"//[^\n]*|/\*.*?\*/|\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n])'|^[ \t]*#(?:\\\n|[^\n])*",
        re.DOTALL | re.MULTILINE,
    )
    return tokens.sub(lambda match: re.sub(r"[^\n]", " ", match.group()), text)


def closing(text: str, start: int) -> int:
    """Return the offset of the bracket that closes the one at ``start``."""
    opened = text[start]
    closed = {"(": ")", "{": "}"}[opened]
    depth = 0
    for at in range(start, len(text)):
        depth += (text[at] == opened) - (text[at] == closed)
        if depth == 0:
            return at
    raise AssertionError(f"{opened} at {start} is never closed")


def written_calls(text: str, start: int, end: int) -> dict[int, str]:
    """Return, by the offset behind the closing parenthesis, the name before each pair of parentheses.

    The names of macros, keywords, casts and builtin types are left out. Declarations such as ``Mask mask(a, b)`` are
    not told apart here.
    """
    found = {}
    for match in re.finditer(r"\b([A-Za-z_]\w*)\s*(?=<{0,3}[^=])", text[start:end]):
        name, at = match.group(1), start + match.end()
        if name in _NO_CALL or name in _CASTS or name in _BUILTIN_TYPES or name.isupper():
            continue
        if text.startswith("<<<", at):
            at = text.index(">>>", at) + 3
        elif text[at] == "<":
            arguments = re.compile(r"<[\w\s:,<>()/*+\-]*?>\s*\(").match(text, at)
            if arguments is None or arguments.group().count("<") != arguments.group().replace("->", "").count(">"):
                continue
            at = arguments.end() - 1
        while text[at].isspace():
            at += 1
        if text[at] == "(":
            found[closing(text, at) + 1] = name
    return found


def written_variables(text: str, start: int, end: int) -> Counter[str]:
    """Return the names of the variables that the text declares, by the look of a declaration."""
    declaration = re.compile(
        r"(?:(?<=[;{}(])|(?<=\n))\s*(?:(?:const|constexpr|static|extern|__shared__|typename)\s+)*"
        r"(?!return\b|using\b|else\b|delete\b|case\b|typedef\b|struct\b|namespace\b|if\b)"
        r"[A-Za-z_][\w:]*(?:<[^;{}=]*?>)?(?:::\w+)*[\s&*]+(?:const\s+)?"
        r"([A-Za-z_]\w*)\s*(?:\[[^\]]*\]\s*)?(?=[=;{]|:(?!:)|\((?!\s*\)))"
    )
    return Counter(match.group(1) for match in declaration.finditer(text[start:end]))


def branches(text: str, start: int, end: int) -> list[tuple[int, int]]:
    """Return the (first, last) offsets of each branch of an ``#if`` between ``start`` and ``end``."""
    found: list[tuple[int, int]] = []
    opened: list[int] = []
    for match in re.finditer(r"^[ \t]*#[ \t]*(if|el|endif)", text[start:end], re.MULTILINE):
        if match.group(1) != "if" and opened:
            found.append((opened.pop(), start + match.start()))
        if match.group(1) != "endif":
            opened.append(start + match.end())
    return found


# Host code, the switches around a launch, and the kernel: what reports are made of.
FUNCTIONS = ("compute_attn_1rowblock", "run_flash_fwd", "mha_fwd", "mha_varlen_fwd", "set_params_fprop", "mha_bwd")


@pytest.mark.parametrize("version", [version for version in VERSIONS if not version.startswith("1.")])
def test_every_call_and_every_variable_that_is_written_is_in_the_tree(version: str) -> None:
    seen: Counter[str] = Counter()
    for unit in units(version):
        for function in unit.functions():
            name = unit.name(function)
            if name not in FUNCTIONS:
                continue
            file, _, _, offset = unit.place(function)
            raw = Path(file).read_text(encoding="utf-8")
            text = without_comments(raw)
            start = text.index("{", offset)
            end = closing(text, start)

            below = list(unit.below(function))
            ends = {at for other, at in map(unit.end, below) if other == file}
            calls = {unit.end(cursor)[1] for cursor in below if cursor.kind == CALL and unit.end(cursor)[0] == file}
            places = {(unit.name(cursor), unit.place(cursor)) for cursor in below if cursor.kind == VARIABLE}
            variables = Counter(variable for variable, _ in places)
            # A branch that the preprocessor leaves out has nothing at all in the tree.
            skipped = [(a, b) for a, b in branches(raw, start, end) if not any(a <= at <= b for at in ends)]

            lost = [
                f"{called}, line {text.count(chr(10), 0, at) + 1}"
                for at, called in written_calls(text, start, end).items()
                if at not in calls and called not in variables and not any(a <= at <= b for a, b in skipped)
            ]
            assert lost == [], f"calls of {name}"
            assert written_variables(text, start, end) - variables == Counter(), f"variables of {name}"
            seen[name] += len(calls)
    # A count that says nothing about any release: the check above must have had something to look at.
    assert min(seen[name] for name in FUNCTIONS) >= 5


def test_the_attention_kernel_has_as_many_variables_as_with_the_real_headers() -> None:
    # Measured once with torch, CUTLASS and CUDA installed: 113.
    unit = next(unit for unit in units("2.8.3") for function in unit.functions() if unit.name(function) == FUNCTIONS[0])
    below = unit.below(unit.function("compute_attn_1rowblock"))
    assert len({unit.place(cursor) for cursor in below if cursor.kind == VARIABLE}) == 113


# ---- what the readers of the tree rely on ----------------------------------------------------------------------------


def test_registrations_are_functions_with_known_names() -> None:
    unit = parse_text(
        """
        #include <torch/extension.h>
        #include <torch/csrc/stable/library.h>
        #define OWN(NAME, MODULE) TORCH_LIBRARY(NAME, MODULE)
        at::Tensor forward(at::Tensor q);
        torch::stable::Tensor stable_forward(torch::stable::Tensor q);
        PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) { m.doc() = "x"; m.def("fwd", &forward, py::arg("q"), "Forward"); }
        TORCH_LIBRARY(plain, m) { m.def("fwd(Tensor q) -> Tensor"); }
        OWN(TORCH_EXTENSION_NAME, m) { m.def("fwd", &forward); }
        TORCH_LIBRARY_FRAGMENT(part, m) { m.def("a() -> ()"); }
        TORCH_LIBRARY_FRAGMENT(part, m) { m.def("b() -> ()"); }
        TORCH_LIBRARY_IMPL(TORCH_EXTENSION_NAME, CUDA, m) { m.impl("fwd", &forward); }
        STABLE_TORCH_LIBRARY(steady, m) { m.def("fwd(Tensor q) -> Tensor"); }
        STABLE_TORCH_LIBRARY_IMPL(steady, CUDA, m) { m.impl("fwd", TORCH_BOX(&stable_forward)); }
        """
    )
    assert unit.errors() == []
    names = [re.sub(r"\d+$", "N", unit.name(function)) for function in unit.functions()]
    assert sorted(names) == [
        "flashtracer_library_flashtracer_extension",
        "flashtracer_library_fragment_part__N",
        "flashtracer_library_fragment_part__N",
        "flashtracer_library_impl_flashtracer_extension__CUDA",
        "flashtracer_library_impl_steady__CUDA",
        "flashtracer_library_plain",
        "flashtracer_library_steady",
        "flashtracer_pybind_flashtracer_extension",
    ]
    for name, method, function in (
        ("flashtracer_pybind_flashtracer_extension", "def", "forward"),
        ("flashtracer_library_impl_flashtracer_extension__CUDA", "impl", "forward"),
        ("flashtracer_library_impl_steady__CUDA", "impl", "stable_forward"),
    ):
        below = list(unit.below(unit.function(name)))
        assert method in [unit.name(cursor) for cursor in below if cursor.kind == CALL]
        assert '"fwd"' in [unit.name(cursor) for cursor in below if cursor.kind == STRING]
        assert function in [unit.name(cursor) for cursor in below if cursor.kind == NAME]


def test_a_check_keeps_its_condition_and_its_message() -> None:
    unit = parse_text(
        """
        int limit(); int given(); cudaError_t status();
        void f(at::Tensor q) {
          TORCH_CHECK(q.size(0) <= limit(), "at most ", limit(), ", not ", given());
          if (q.is_cuda()) { TORCH_CHECK(false) } else { STD_TORCH_CHECK(q.dim() == 4); }
          C10_CUDA_CHECK(status());
          C10_CUDA_KERNEL_LAUNCH_CHECK();
          AT_ERROR("never ", given());
          TORCH_ERROR_CODE_CHECK(limit());
          assert(q.numel() > 0);
        }
        """
    )
    assert unit.errors() == []
    called = Counter(unit.calls(unit.function("f")))
    hooks = {name: count for name, count in called.items() if name.startswith("flashtracer_")}
    assert hooks == {
        "flashtracer_torch_check": 4,
        "flashtracer_cuda_check": 2,
        "flashtracer_torch_error_code_check": 1,
        "flashtracer_assert": 1,
    }
    assert (called["limit"], called["given"], called["size"], called["dim"]) == (3, 2, 1, 1)
    assert (called["status"], called["cudaGetLastError"], called["numel"]) == (1, 1, 1)
    conditions = [
        cursor for cursor in unit.lib.children(unit.lib.children(unit.function("f"))[-1]) if cursor.kind == IF
    ]
    assert len(conditions) == 2


def test_a_build_without_asserts_has_none() -> None:
    unit = parse_text("int g(); void f() { assert(g() == 1); }", "-DNDEBUG")
    assert unit.calls(unit.function("f")) == []


def test_explicit_template_arguments_stay() -> None:
    unit = parse_text(
        """
        template <typename T> __global__ void kernel(T n) {
          using namespace cute;
          Tensor a = make_tensor<T>(n);
          get<1, 0>(a);
          cp_async_wait<2>();
          partition_fragment_A<T, 3>(n);
        }
        """
    )
    assert unit.errors() == []
    written: dict[str, list[int]] = {}
    for cursor in unit.below(unit.function("kernel")):
        children = unit.lib.children(cursor)
        names = [unit.name(child) for child in children if child.kind in (NAME, OVERLOADED)]
        if cursor.kind in (NAME, CALL) and len(names) == 1 and names[0] not in ("a", "n"):
            written[names[0]] = [child.kind for child in children if child.kind in (TYPE_NAME, INTEGER)]
        elif cursor.kind == NAME and children:
            written[unit.name(cursor)] = [child.kind for child in children if child.kind in (TYPE_NAME, INTEGER)]
    assert written == {
        "make_tensor": [TYPE_NAME],
        "get": [INTEGER, INTEGER],
        "cp_async_wait": [INTEGER],
        "partition_fragment_A": [TYPE_NAME, INTEGER],
    }


def test_a_launch_keeps_its_configuration() -> None:
    unit = parse_text(
        """
        template <typename T> __global__ void kernel(int n) { __syncthreads(); }
        int size(int); int shared(int);
        void run(int n, cudaStream_t stream) {
          auto chosen = &kernel<float>;
          chosen<<<dim3(size(n)), 128, shared(n), stream>>>(n);
          kernel<int><<<size(n), 128>>>(n);
        }
        """
    )
    assert unit.errors() == []
    calls = Counter(unit.calls(unit.function("run")))
    assert (calls["__cudaPushCallConfiguration"], calls["size"], calls["shared"]) == (2, 2, 1)


def test_library_expressions_outside_of_templates_are_typed() -> None:
    # Here clang wants a type for everything at once. Each line needs one of the properties of flashtracer::Any, of the
    # deduction guides or of the tuples.
    unit = parse_text(
        """
        #include <ATen/core/Tensor.h>
        using namespace cute;
        std::tuple<int, bool> tile(int d) { return {d, true}; }
        constexpr std::tuple<int, bool> kTile = {128, true};
        __global__ void device(float *p, int n, bool c) {
          Tensor a = make_tensor(make_gmem_ptr(p), Shape<_64, Int<32>>{}, Stride<_1, _64>{});
          Layout l = make_layout(make_shape(n, _4{}), LayoutLeft{});
          int rows = c ? size<0>(a) : 0;
          int more = 2 * size<1>(a) + n % size(l);
          a(0, _) = -a(1, _) / 2.f;
          for (int i = 0; i < size<0>(a) && i != rank(l); ++i) { a[i] += more; }
          constexpr int kRows = size(Shape<_64>{}), kHalf = 128 / kRows, kM = std::get<0>(kTile);
          if constexpr (size(Shape<_64>{}) > 1) { rows++; }
          CUTE_STATIC_ASSERT_V(size<0>(a) == size<1>(a));
          CUTE_STATIC_ASSERT_V(_2{} * _4{} == _8{});
          bool many = size<0>(a) > 2;
          Tensor own = make_tensor<float>(Shape<_64>{});
          auto copy_of_thread = make_tiled_copy(Copy_Atom<DefaultCopy, float>{}, l).get_thread_slice(n);
          Tensor part = copy_of_thread.partition_S(a);
          auto [seed, offset] = at::cuda::philox::unpack(at::PhiloxCudaState(1, 2));
        }
        at::Tensor host(at::Tensor q, std::optional<at::Tensor> mask) {
          auto [rows, causal] = tile(q.size(-1));
          auto options = q.options().dtype(torch::kFloat32).device(q.device());
          at::Tensor out = at::empty({}, options), lse = torch::empty({q.size(0), rows}, at::dtype(at::kUInt64));
          at::cuda::CUDAGuard guard{(char)q.get_device()};
          out = q.index({"...", torch::indexing::Slice(torch::indexing::None, rows)}).copy_(lse);
          if (mask) { TORCH_CHECK(mask->sizes() == torch::IntArrayRef({rows, 1}) && q.dtype() != at::kHalf) }
          return out.reshape({rows, -1}).transpose(1, 2);
        }
        """
    )
    assert unit.errors() == []


@pytest.mark.parametrize("name", ["__syncthreads", "printf", "memcpy", "exp2f"])
def test_a_builtin_of_clang_is_found_in_the_stubs(name: str) -> None:
    arguments = {"__syncthreads": "", "printf": '"x"', "memcpy": "a, a, 1", "exp2f": "1.f"}[name]
    unit = parse_text(f"__global__ void f(float *a) {{ {name}({arguments}); }}")
    assert unit.errors() == []
    used = next(
        cursor for cursor in unit.below(unit.function("f")) if cursor.kind == NAME and unit.name(cursor) == name
    )
    assert unit.place(unit.lib.f.clang_getCursorReferenced(used))[0].startswith(str(STUBS))


def test_an_unknown_library_function_costs_its_own_statement_only() -> None:
    unit = parse_text(
        """
        int before(); int after();
        void f() {
          before();
          auto x = cute::not_there_yet(before());
          cute::neither_is_this<4>(after());
          after();
        }
        template <class T> void g(T t) { auto x = not_there_yet(t); x.neither_is_this(t); }
        """
    )
    assert {line for _, line, _ in unit.errors()} == {5, 6}
    assert [name for name in unit.calls(unit.function("f")) if name in ("before", "after")][-1] == "after"
    # What depends on a template parameter is looked up later, so a future CuTe function is a call like any other.
    assert len(unit.calls(unit.function("g"))) == 2


# ---- the files themselves --------------------------------------------------------------------------------------------

HEADERS = sorted(path for path in STUBS.rglob("*") if path.is_file())
OWN = [path for path in HEADERS if path.parent.name == "flashtracer"]


def test_every_header_of_a_library_forwards_to_one_file() -> None:
    wrong = {}
    for path in set(HEADERS) - set(OWN):
        match = re.fullmatch(r"#include <flashtracer/(\w+\.h)>\n", path.read_text(encoding="utf-8"))
        if match is None or STUBS / "flashtracer" / match.group(1) not in OWN:
            wrong[str(path.relative_to(STUBS))] = path.read_text(encoding="utf-8")
    assert wrong == {}


def test_all_headers_together_parse_without_an_error() -> None:
    unit = parse_text("".join(f"#include <{path.relative_to(STUBS).as_posix()}>\n" for path in HEADERS))
    assert unit.errors() == []


@pytest.mark.parametrize("path", OWN, ids=lambda path: path.name)
def test_a_file_of_stubs_brings_what_it_needs(path: Path) -> None:
    main = "/in-memory/test.cu"
    unit = library().parse(main, [*LANGUAGE, "-isystem", str(STUBS)], {main: f"#include <flashtracer/{path.name}>\n"})
    assert unit is not None
    assert library().f.clang_getNumDiagnostics(unit) == 0
