"""Folders, git refs and their files. Releases from an index are in test_release.py."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tracer.checkout import open_checkout
from tracer.checkout.identity import tidy_repository
from tracer.errors import CheckoutError, NameNotFound, SourceError
from tracer.model import Location

Write = Callable[..., Path]


def git(folder: Path, *arguments: str) -> str:
    identity = ["-c", "user.name=t", "-c", "user.email=t@localhost", "-c", "init.defaultBranch=trunk"]
    done = subprocess.run(["git", *identity, "-C", str(folder), *arguments], capture_output=True, text=True, check=True)
    return done.stdout.strip()


@pytest.fixture
def repository(checkout_with: Write) -> Path:
    folder = checkout_with(name="clone")
    git(folder, "init", "-q")
    git(folder, "add", ".")
    git(folder, "commit", "-q", "-m", "first")
    git(folder, "tag", "v1.2.3")
    return folder


# A folder


def test_a_folder_says_what_it_is(checkout_with: Write) -> None:
    checkout = open_checkout(str(checkout_with()))
    assert (checkout.flavour, checkout.version, checkout.source) == ("tiny-attention", "1.2.3", "folder")
    assert (checkout.commit, checkout.dirty, checkout.ref) == (None, False, None)


@pytest.mark.parametrize(
    ("files", "flavour", "version"),
    [
        ({"PKG-INFO": "Metadata-Version: 2.1\nName: flash_attn\nVersion: 9.9\n"}, "flash-attention", "1.2.3"),
        ({"PKG-INFO": "Name: flash-attn\nVersion: 9.9\n", "tiny_attn/__init__.py": ""}, "flash-attention", "9.9"),
        (
            {"setup.py": 'NAME = "vllm-flash-attn"\nsetup(name=NAME, version="3.1")\n', "tiny_attn/__init__.py": ""},
            "vllm-flash-attention",
            "3.1",
        ),
        (
            {"setup.py": 'setup(name="tiny_attn")', "another/__init__.py": '__version__ = "7"'},
            "tiny-attention",
            "1.2.3",
        ),
        ({"setup.py": "def broken(:\n", "tiny_attn/__init__.py": "__version__ = compute()\n"}, "tiny-attention", None),
    ],
    ids=[
        "own __version__ first",
        "then PKG-INFO",
        "then setup.py",
        "package named like the project",
        "unreadable setup.py",
    ],
)
def test_identity_comes_from_the_files(
    checkout_with: Write, files: dict[str, str], flavour: str, version: str | None
) -> None:
    checkout = open_checkout(str(checkout_with(files)))
    assert (checkout.flavour, checkout.version) == (flavour, version)


def test_setup_py_is_never_run(checkout_with: Write, tmp_path: Path) -> None:
    trap = tmp_path / "was-run"
    folder = checkout_with({"setup.py": f"open({str(trap)!r}, 'w')\nsetup(name='tiny_attn')\n"})
    assert open_checkout(str(folder)).flavour == "tiny-attention"
    assert not trap.exists()


def test_a_checkout_can_be_sent_to_another_process(repository: Path) -> None:
    checkout = open_checkout(str(repository))
    assert pickle.loads(pickle.dumps(checkout)).commit == git(repository, "rev-parse", "HEAD")


@pytest.mark.parametrize(
    ("place", "expected"),
    [
        ("checkout/csrc", ("csrc", "inside a checkout", "{root}/checkout")),
        ("checkout/csrc/tiny", ("csrc/tiny", "{root}/checkout")),
        ("checkout/tiny_attn", ("tiny_attn", "{root}/checkout")),
        (".", ("no checkout", "{root}/checkout")),
        ("python-only", ("only the Python side", "tiny_attn", "csrc")),
        ("no-cuda", ("no CUDA sources", "csrc", "notes.txt")),
        ("other", ("no csrc/ folder", "readme.txt", "pypi:VERSION")),
        ("empty", ("no csrc/ folder", "an empty folder")),
        ("chekcout", ("no such folder", "checkout")),
        ("nothing/like/it", ("no such folder", "nothing")),
        ("other/readme.txt", ("is a file",)),
        ("", ("no checkout given",)),
        ("long" * 2000, ("longlong", "cannot be looked up")),
        ("~nobody-of-that-name/x", ("~nobody-of-that-name/x",)),
    ],
)
def test_what_is_no_checkout_is_said_in_one_line(
    checkout_with: Write, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: str, expected: tuple[str, ...]
) -> None:
    checkout_with()
    checkout_with({"csrc/tiny/api.cpp": None, "csrc/tiny/kernel.cu": None}, name="python-only")
    checkout_with({"csrc/tiny/api.cpp": None, "csrc/tiny/kernel.cu": None, "csrc/notes.txt": ""}, name="no-cuda")
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "readme.txt").touch()
    (tmp_path / "empty").mkdir()
    monkeypatch.chdir(tmp_path)
    with pytest.raises(CheckoutError) as caught:
        open_checkout(place)
    message = str(caught.value)
    assert "\n" not in message
    for part in expected:
        assert part.format(root=tmp_path) in message


# Its files


def test_python_files_are_the_importable_modules(checkout_with: Write) -> None:
    folder = checkout_with(
        {
            "tiny_attn/ops/layer.py": "",
            "tiny_attn/utils/benchmark.py": "",
            "tiny_attn/test_layer.py": "",
            "tiny_attn/tests/helper.py": "",
            "module.py": "",
            "conftest.py": "",
            "second/setup.py": "",
            "second/second_interface.py": "",
            "tests/__init__.py": "",
            "tests/test_all.py": "",
            "benchmarks/bench.py": "",
            "build/tiny_attn/__init__.py": "",
            "scripts/run.py": "",
            ".hidden/__init__.py": "",
        }
    )
    assert open_checkout(str(folder)).python_files() == (
        "module.py",
        "second/second_interface.py",
        "tiny_attn/__init__.py",
        "tiny_attn/interface.py",
        "tiny_attn/ops/layer.py",
        "tiny_attn/utils/benchmark.py",
    )


def test_links_are_not_followed_in_circles_nor_out(checkout_with: Write, tmp_path: Path) -> None:
    folder = checkout_with()
    outside = tmp_path / "outside.py"
    outside.write_text("secret = 1\n")
    (folder / "tiny_attn" / "again").symlink_to(folder / "tiny_attn")
    (folder / "tiny_attn" / "loop.py").symlink_to(folder / "tiny_attn" / "loop.py")
    (folder / "tiny_attn" / "out.py").symlink_to(outside)
    (folder / "tiny_attn" / "same.py").symlink_to("interface.py")
    checkout = open_checkout(str(folder))
    assert not any("again" in file for file in checkout.python_files())
    assert checkout.read_text("tiny_attn/same.py") == "import tiny_cuda\n"
    assert not checkout.exists("tiny_attn/loop.py")
    assert not checkout.exists("tiny_attn/out.py")
    for file, reason in (("tiny_attn/loop.py", "symbolic links"), ("tiny_attn/out.py", "leads out of the checkout")):
        with pytest.raises(SourceError, match=f"{file}.*{reason}"):
            checkout.read_text(file)


@pytest.mark.parametrize(
    ("file", "content", "expected"),
    [
        ("csrc/tiny/a.h", b"int a;\nint b\0;\n", r"^csrc/tiny/a\.h:2: binary.*byte 12 "),
        ("tiny_attn/a.py", b"\x7fELF\0\0", r"^tiny_attn/a\.py:1: binary"),
        ("csrc/tiny/a.h", b"// ok\n// caf\xe9\n", r"^csrc/tiny/a\.h:2: not utf-8: byte 12 is 0xe9"),
        ("tiny_attn/a.py", b"# -*- coding: klingon -*-\n", r"^tiny_attn/a\.py:1: .*klingon"),
        ("csrc/tiny/a.h", b"x" * (20 * 2**20), r"^csrc/tiny/a\.h: 20\.0 MiB.*8 MiB"),
        ("csrc/tiny", None, r"^csrc/tiny: is a directory"),
        ("csrc/tiny/none.h", None, r"^csrc/tiny/none\.h: cannot be read.*no such file"),
        ("../outside.h", None, r"^\.\./outside\.h: .*(no such file|leads out)"),
    ],
    ids=[
        "binary header",
        "binary Python",
        "Latin-1 header",
        "unknown coding",
        "20 MiB",
        "directory",
        "missing",
        "outside",
    ],
)
def test_what_is_no_source_text_is_said_with_file_and_line(
    checkout_with: Write, file: str, content: bytes | None, expected: str
) -> None:
    folder = checkout_with()
    if content is not None:
        (folder / file).write_bytes(content)
    with pytest.raises(SourceError, match=expected) as caught:
        open_checkout(str(folder)).read_text(file)
    assert "\n" not in str(caught.value)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_an_unreadable_file_is_named(checkout_with: Write) -> None:
    folder = checkout_with()
    (folder / "csrc/tiny/api.cpp").chmod(0)
    with pytest.raises(SourceError, match=r"^csrc/tiny/api\.cpp: cannot be read.*permission denied"):
        open_checkout(str(folder)).read_text("csrc/tiny/api.cpp")


def test_a_python_file_is_read_in_the_encoding_it_names(checkout_with: Write) -> None:
    folder = checkout_with()
    (folder / "tiny_attn/latin.py").write_bytes(b"# coding: latin-1\nname = 'caf\xe9'\n")
    (folder / "tiny_attn/mark.py").write_bytes(b"\xef\xbb\xbfx = 1\r\n")
    checkout = open_checkout(str(folder))
    assert "café" in checkout.read_text("tiny_attn/latin.py")
    assert checkout.read_text("tiny_attn/mark.py") == "x = 1\r\n"


# git


def test_a_clone_knows_commit_changes_and_where_it_is_published(repository: Path, tmp_path: Path) -> None:
    commit = git(repository, "rev-parse", "HEAD")
    before = (repository / ".git" / "index").read_bytes()
    local = open_checkout(str(repository))
    assert (local.commit, local.dirty, local.ref) == (commit, False, None)
    assert (repository / ".git" / "index").read_bytes() == before

    git(repository, "remote", "add", "origin", "git@github.com:somebody/fork.git")
    git(repository, "update-ref", "refs/remotes/origin/trunk", commit)
    (repository / "tiny_attn/interface.py").write_text("changed = True\n")
    published = open_checkout(str(repository))
    assert published.dirty
    assert published.repository == "https://github.com/somebody/fork"
    link = published.permalink(Location("csrc/tiny/api.cpp", 7))
    assert link == f"https://github.com/somebody/fork/blob/{commit}/csrc/tiny/api.cpp#L7"
    assert published.permalink(Location("tiny_attn/interface.py", 1)) is None

    git(repository, "commit", "-q", "-a", "-m", "not pushed")
    assert open_checkout(str(repository)).permalink(Location("csrc/tiny/api.cpp", 7)) is None


def test_a_release_inside_a_foreign_repository_claims_no_commit(repository: Path, checkout_with: Write) -> None:
    inner = checkout_with(name="clone/vendor/tiny")
    checkout = open_checkout(str(inner))
    assert (checkout.commit, checkout.dirty, checkout.ref) == (None, False, None)
    with pytest.raises(CheckoutError, match="no git repository"):
        open_checkout(f"{inner}@v1.2.3")


@pytest.mark.parametrize("bare", [False, True], ids=["clone", "bare"])
def test_a_ref_is_read_without_touching_the_work_tree(
    repository: Path, tmp_path: Path, own_cache: Path, bare: bool
) -> None:
    (repository / "tiny_attn/interface.py").write_text("newer = True\n")
    (repository / "picture.png").write_bytes(b"\x89PNG")
    (repository / "tiny_attn/link.py").symlink_to("/etc/passwd")
    git(repository, "add", ".")
    git(repository, "commit", "-q", "-m", "second")
    (repository / "tiny_attn/interface.py").write_text("not committed\n")
    source = repository
    if bare:
        source = tmp_path / "mirror.git"
        git(tmp_path, "clone", "-q", "--bare", str(repository), str(source))
    status = git(repository, "status", "--porcelain")
    tag, head = open_checkout(f"{source}@v1.2.3"), open_checkout(f"{source}@trunk")
    assert tag.read_text("tiny_attn/interface.py") == "import tiny_cuda\n"
    assert head.read_text("tiny_attn/interface.py") == "newer = True\n"
    assert (head.source, head.version, head.dirty) == ("git", "1.2.3", False)
    assert head.commit == git(source, "rev-parse", "trunk")
    assert not head.exists("picture.png")
    assert not head.exists("tiny_attn/link.py")
    assert git(repository, "status", "--porcelain") == status
    assert head.root == own_cache / "checkouts" / str(head.commit)


def test_a_ref_is_unpacked_once(repository: Path, own_cache: Path) -> None:
    first = open_checkout(f"{repository}@v1.2.3")
    mark = first.root / "mark.py"
    mark.touch()
    assert open_checkout(f"{repository}@{first.commit}").exists("mark.py")
    assert not open_checkout(f"{repository}@v1.2.3", cache=False).exists("mark.py")


def test_submodules_and_lost_objects_are_left_out(repository: Path, own_cache: Path) -> None:
    git(repository, "update-index", "--add", "--cacheinfo", f"160000,{git(repository, 'rev-parse', 'HEAD')},csrc/lib")
    git(repository, "commit", "-q", "-m", "with a submodule")
    lost = git(repository, "rev-parse", "HEAD:tiny_attn/interface.py")
    (repository / ".git" / "objects" / lost[:2] / lost[2:]).unlink()
    checkout = open_checkout(f"{repository}@HEAD")
    assert checkout.exists("csrc/tiny/api.cpp")
    assert not checkout.exists("tiny_attn/interface.py")


def test_a_ref_that_does_not_exist_gets_the_nearest(repository: Path, own_cache: Path) -> None:
    with pytest.raises(NameNotFound) as caught:
        open_checkout(f"{repository}@v1.2.4")
    assert caught.value.nearest == ("v1.2.3",)
    assert not list(own_cache.glob("checkouts/*"))


def test_a_ref_of_what_is_no_repository(checkout_with: Write, own_cache: Path) -> None:
    with pytest.raises(CheckoutError, match="no git repository"):
        open_checkout(f"{checkout_with()}@v1")


def test_a_folder_with_an_at_sign_is_a_folder(checkout_with: Write) -> None:
    assert open_checkout(str(checkout_with(name="tiny@v2"))).source == "folder"


def test_without_git_a_folder_has_no_commit(repository: Path, own_cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    assert open_checkout(str(repository)).commit is None
    with pytest.raises(CheckoutError, match="git is not installed"):
        open_checkout(f"{repository}@v1.2.3")


@pytest.mark.parametrize(
    ("url", "tidy"),
    [
        ("git@github.com:a/b.git", "https://github.com/a/b"),
        ("ssh://git@github.com/a/b.git", "https://github.com/a/b"),
        ("https://user:token@github.com/a/b.git/", "https://github.com/a/b"),
        ("https://github.com/a/b", "https://github.com/a/b"),
        ("/srv/mirrors/b.git", None),
        ("../b", None),
        ("https://example.org", None),
    ],
)
def test_a_remote_becomes_a_page(url: str, tidy: str | None) -> None:
    assert tidy_repository(url) == tidy


def test_opening_a_folder_loads_nothing_heavy(checkout_with: Write) -> None:
    code = (
        "import sys; from tracer.checkout import open_checkout; open_checkout(sys.argv[1]);"
        "print(*(name for name in ('unearth', 'subprocess', 'packaging', 'platformdirs') if name in sys.modules))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(checkout_with())], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == ""
