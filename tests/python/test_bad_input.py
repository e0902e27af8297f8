"""What the Python room does with files that cannot be read and names that do not exist, and what it reads at all."""

from __future__ import annotations

import warnings

import pytest

from tracer.errors import NameNotFound, SourceError
from tracer.model import Outcome
from tracer.python import PythonSource


def source(files: dict[str, str], read: list[str] | None = None) -> PythonSource:
    def read_text(file: str) -> str:
        if read is not None:
            read.append(file)
        return files[file]

    return PythonSource(read_text, list(files), lambda: ())


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("def entry():\n    return (\n", 2),
        ("def entry():\n    pass\nx = 1 +\n", 3),
        ("def entry():\n    return 0\nx = '\0'\n", 3),
        ("def entry():\n    return 0\n\nx = " + "(" * 500 + ")" * 500 + "\n", 4),
        ("def entry():\n    return 0\n\nx = " + "-" * 30000 + "1\n", 4),
        ("def entry():\n    return f" + ".a" * 30000 + "()\n", 2),
        ("def entry():\n    return f" + "()" * 30000 + "\n", 2),
    ],
    ids=["unclosed", "syntax", "null", "parentheses", "operators", "attributes", "calls"],
)
def test_an_unreadable_module_names_its_line(text: str, line: int) -> None:
    broken = source({"pack/broken.py": text})
    with pytest.raises(SourceError, match=rf"^pack/broken\.py:{line}: [^\n]*$"):
        broken.call_sites("python:pack/broken.py:entry")


def test_expressions_that_parse_but_nest_deeply_are_an_error_too() -> None:
    chain = "entry" + ".a" * 600 + "()"
    nested = source({"deep.py": f"def entry():\n    return {chain}\n"})
    try:
        sites = nested.call_sites("python:deep.py:entry")
    except SourceError as error:
        assert str(error).startswith("deep.py:2: ")
    else:
        assert len(sites) == 1


def test_the_whole_graph_goes_on_past_unreadable_files() -> None:
    def read_text(file: str) -> str:
        if file == "binary.py":
            raise SourceError("binary.py: not UTF-8 text")
        return {"good.py": "def one():\n    two()\n\n\ndef two(): ...\n", "bad.py": "def (\n"}[file]

    facts = PythonSource(read_text, ["bad.py", "binary.py", "good.py"], lambda: ()).everything()
    assert [str(one.location) for one in facts.diagnostics] == ["bad.py:1", "binary.py:1"]
    assert [one.name for one in facts.definitions] == ["good", "one", "two"]
    assert [(site.written, site.outcome) for site in facts.call_sites] == [("two", Outcome.RESOLVED)]


def test_a_missing_entry_names_the_nearest() -> None:
    with pytest.raises(NameNotFound) as caught:
        source({"a.py": "def attention(): ...\n\n\nclass Box:\n    def open(self): ...\n"}).entry("atention")
    assert caught.value.nearest == ("attention",)


def test_names_are_those_of_functions_classes_and_methods() -> None:
    text = "class Box:\n    def open(self):\n        def inner(): ...\n\n\nasync def later(): ...\n"
    assert source({"a.py": text}).names() == ("Box", "Box.open", "later")


@pytest.mark.parametrize("id", ["python:a.py:nobody", "python:b.py:one", "c++:a:b", "nonsense"])
def test_a_missing_definition_is_one_error(id: str) -> None:
    with pytest.raises(NameNotFound):
        source({"a.py": "def one(): ...\n"}).definition(id)


def test_only_what_is_needed_is_parsed() -> None:
    # The unrelated file cannot be parsed; asking about the others must not notice.
    files = {
        "pack/__init__.py": "from .interface import entry\n",
        "pack/interface.py": "from .helper import work\n\n\ndef entry():\n    return work()\n",
        "pack/helper.py": "def work():\n    return 0\n",
        "pack/unrelated.py": "def (\n",
    }
    read: list[str] = []
    lazy = source(files, read)
    assert read == []
    sites = lazy.call_sites(lazy.entry("entry").id)
    assert [target.id for site in sites for target in site.targets] == ["python:pack/helper.py:work"]
    assert "pack/unrelated.py" not in read
    assert lazy.diagnostics() == ()


def test_reading_is_silent() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert source({"a.py": "x = '\\d'\n\n\ndef one(): ...\n"}).entry("one").location.line == 4


def test_imports_in_a_circle_end() -> None:
    files = {"a.py": "from b import thing\nfrom b import *\n", "b.py": "from a import thing\nfrom a import *\n"}
    files["c.py"] = "from a import thing\n\n\ndef use():\n    thing()\n    other()\n"
    assert [site.outcome for site in source(files).call_sites("python:c.py:use")] == [Outcome.UNRESOLVED] * 2


def test_classes_and_functions_in_a_circle_end() -> None:
    classes = "class A(B): ...\n\n\nclass B(A): ...\n\n\n"
    text = classes + "def f():\n    return f()\n\n\ndef use():\n    f()()\n    A().x()\n"
    sites = source({"a.py": text}).call_sites("python:a.py:use")
    assert [site.written for site in sites if site.outcome is Outcome.UNRESOLVED] == ["f()", "A().x"]


def test_the_packages_files_are_neither_tests_nor_vendored() -> None:
    names = [
        "pack/__init__.py",
        "pack/a.py",
        "pack/tests/test_a.py",
        "csrc/lib/gen.py",
        "tests/__init__.py",
        "setup.py",
    ]
    assert source(dict.fromkeys(names, "")).package_files() == ("pack/__init__.py", "pack/a.py")
