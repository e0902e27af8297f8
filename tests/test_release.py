"""Releases from a package index: a small index served on this machine, and its failures."""

from __future__ import annotations

import io
import os
import socket
import subprocess
import sys
import tarfile
import threading
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import platformdirs
import pytest
from conftest import SMALL
from releases import release_checkout

from tracer.checkout import open_checkout
from tracer.checkout.cache import cache_folder
from tracer.checkout.identity import stated_tag
from tracer.checkout.pip_settings import read_pip_settings
from tracer.checkout.release import unpack_source_archive
from tracer.errors import CheckoutError, NameNotFound
from tracer.model import Location

TAGGED = (
    'BASE = "https://github.com/somebody/tiny/releases/download/{tag_name}/{wheel}"\n'
    'def url():\n    return BASE.format(tag_name=f"v{tiny_version}", wheel="w")\n'
    'setup(name="tiny_attn", url="https://github.com/somebody/tiny")\n'
)


def archive(files: dict[str, str], top: str = "flash_attn-1") -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as content:
        for name, text in files.items():
            member = tarfile.TarInfo(f"{top}/{name}" if top else name)
            member.size = len(text.encode())
            content.addfile(member, io.BytesIO(text.encode()))
    return buffer.getvalue()


def version_of(version: str, **files: str) -> bytes:
    return archive({**SMALL, "tiny_attn/__init__.py": f'__version__ = "{version}"\n', **files})


class Index:
    """A package index with a few source archives; counts what is asked for."""

    def __init__(self, archives: dict[str, bytes]) -> None:
        self.asked: list[str] = []
        self.seconds_per_archive = 0.0
        pages = {f"/files/{name}": content for name, content in archives.items()}
        links = "".join(
            f'<a href="/files/{name}">{name}</a>' for name in [*archives, "flash_attn-9.0-py3-none-any.whl"]
        )
        pages["/simple/flash-attn/"] = f"<html><body>{links}</body></html>".encode()
        index = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                index.asked.append(self.path)
                found = pages.get(self.path)
                if self.path.startswith("/files/"):
                    time.sleep(index.seconds_per_archive)
                self.send_response(200 if found else 404)
                self.send_header("Content-Type", "text/html" if self.path.endswith("/") else "application/gzip")
                self.send_header("Content-Length", str(len(found or b"")))
                self.end_headers()
                self.wfile.write(found or b"")

            def log_message(self, *arguments: object) -> None:
                """Keep the test's output clean."""

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}/simple"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()


def set_pip(monkeypatch: pytest.MonkeyPatch, **settings: str) -> None:
    """Set pip up from nothing, whatever this machine's pip is set to."""
    for name in [name for name in os.environ if name.startswith("PIP_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("NO_PROXY", "*")
    for name, value in settings.items():
        monkeypatch.setenv(f"PIP_{name.upper()}", value)


@pytest.fixture
def index(monkeypatch: pytest.MonkeyPatch, own_cache: Path) -> Iterator[Index]:
    archives = {
        f"flash_attn-{version}.tar.gz": version_of(version) for version in ("1.9", "2.0.0.post1", "2.5.0", "2.8.3")
    }
    archives["flash_attn-3.0b1.tar.gz"] = version_of("3.0b1")
    served = Index(archives)
    set_pip(monkeypatch, index_url=served.url)
    yield served
    served.server.shutdown()
    served.server.server_close()


def test_a_release_is_fetched_once_and_then_opens_without_the_index(index: Index, own_cache: Path) -> None:
    told: list[str] = []
    checkout = open_checkout("pypi:2.8.3", progress=told.append)
    assert (checkout.source, checkout.version, checkout.commit) == ("pypi", "2.8.3", None)
    assert checkout.root == own_cache / "releases" / "2.8.3"
    assert told
    asked = list(index.asked)
    assert asked.count("/files/flash_attn-2.8.3.tar.gz") == 1
    again = open_checkout("pypi:v2.8.3")
    assert again.read_text("csrc/tiny/api.cpp") == SMALL["csrc/tiny/api.cpp"]
    assert index.asked == asked


def test_a_cached_release_loads_nothing_heavy(index: Index) -> None:
    open_checkout("pypi:2.8.3")
    code = (
        "import sys; from tracer.checkout import open_checkout; open_checkout('pypi:2.8.3');"
        "print(*(name for name in ('unearth', 'subprocess', 'packaging', 'platformdirs') if name in sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == ""


@pytest.mark.parametrize("spec", ["pypi:", "pypi:latest"])
def test_the_newest_release_is_no_prerelease_and_no_wheel(index: Index, spec: str) -> None:
    assert open_checkout(spec).version == "2.8.3"


def test_a_version_may_be_spelled_in_another_way(index: Index) -> None:
    assert open_checkout("pypi:2.0.0-post1").version == "2.0.0.post1"
    asked = list(index.asked)
    assert open_checkout("pypi:2.0.0-post1").version == "2.0.0.post1"
    assert index.asked == asked


@pytest.mark.parametrize(("typed", "nearest"), [("2.8.4", "2.8.3"), ("2.0.0", "2.0.0.post1"), ("2.8", "2.8.3")])
def test_a_version_that_does_not_exist_gets_the_nearest(
    index: Index, own_cache: Path, typed: str, nearest: str
) -> None:
    with pytest.raises(NameNotFound) as caught:
        open_checkout(f"pypi:{typed}")
    assert caught.value.nearest[0] == nearest
    assert not list(own_cache.glob("releases/[!.]*"))


def test_two_processes_download_once(index: Index) -> None:
    index.seconds_per_archive = 1.0
    code = "from tracer.checkout import open_checkout; print(open_checkout('pypi:2.8.3').version)"
    processes = [
        subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        for _ in range(2)
    ]
    assert [process.communicate() for process in processes] == [("2.8.3\n", "")] * 2
    assert index.asked.count("/files/flash_attn-2.8.3.tar.gz") == 1


def test_without_an_index_the_message_says_what_is_left(index: Index, monkeypatch: pytest.MonkeyPatch) -> None:
    open_checkout("pypi:1.9")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        monkeypatch.setenv("PIP_INDEX_URL", f"http://127.0.0.1:{free.getsockname()[1]}/simple")
        with pytest.raises(CheckoutError) as caught:
            open_checkout("pypi:2.8.3")
    message = str(caught.value)
    assert "cannot be reached" in message and "folder" in message and "pypi:1.9" in message
    assert "\n" not in message
    assert open_checkout("pypi:1.9").version == "1.9"


def test_an_index_without_the_package(index: Index, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PIP_INDEX_URL", f"{index.url}/missing")
    with pytest.raises(CheckoutError, match=r"has no source archive of flash-attn: .*404.*no release is cached"):
        open_checkout("pypi:2.8.3")


def test_an_archive_that_cannot_be_fetched(index: Index, own_cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    broken = Index({"flash_attn-4.0.tar.gz": b""})
    monkeypatch.setenv("PIP_INDEX_URL", broken.url)
    with pytest.raises(CheckoutError, match=r"flash_attn-4\.0\.tar\.gz cannot be fetched"):
        open_checkout("pypi:4.0")
    assert not list(own_cache.glob("releases/[!.]*"))
    broken.server.shutdown()


def test_find_links_alone_are_enough(index: Index, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "wheelhouse").mkdir()
    (tmp_path / "wheelhouse" / "flash_attn-5.0.tar.gz").write_bytes(version_of("5.0"))
    set_pip(monkeypatch, index_url=index.url, no_index="1", find_links=str(tmp_path / "wheelhouse"))
    assert open_checkout("pypi:5.0").version == "5.0"
    assert index.asked == []


def test_an_index_that_fails_beside_a_good_one_is_no_failure(
    index: Index, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PIP_EXTRA_INDEX_URL", f"{index.url}/missing http://127.0.0.1:9/simple")
    assert open_checkout("pypi:2.8.3").version == "2.8.3"
    assert [record for record in caplog.records if record.levelname == "WARNING"] == []
    assert capfd.readouterr() == ("", "")


def test_a_cache_that_cannot_be_written_is_said_and_done_without(
    index: Index, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("FLASHTRACER_CACHE", str(tmp_path / "file" / "cache"))
    told: list[str] = []
    checkout = open_checkout("pypi:2.8.3", progress=told.append)
    assert checkout.read_text("csrc/tiny/api.cpp") == SMALL["csrc/tiny/api.cpp"]
    assert any("cannot be written" in line and "FLASHTRACER_CACHE" in line for line in told)


@pytest.mark.parametrize("xdg", [None, "", "/somewhere/else"])
def test_the_cache_is_where_the_platform_keeps_caches(monkeypatch: pytest.MonkeyPatch, xdg: str | None) -> None:
    monkeypatch.delenv("FLASHTRACER_CACHE", raising=False)
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    if xdg is not None:
        monkeypatch.setenv("XDG_CACHE_HOME", xdg)
    assert cache_folder() == Path(platformdirs.user_cache_dir("flashtracer", appauthor=False))


def test_without_the_cache_nothing_is_kept(index: Index, own_cache: Path) -> None:
    assert open_checkout("pypi:2.8.3", cache=False).version == "2.8.3"
    assert not own_cache.exists()


# pip's settings


def test_pip_settings_come_from_files_and_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    file = tmp_path / "pip.conf"
    file.write_text(
        "[global]\nindex-url = https://a.invalid/simple\ntimeout = 60\ncert = /from/file\n"
        "[download]\nextra-index-url =\n    https://b.invalid/simple\n    https://c.invalid/simple\n"
        "[install]\nindex-url = https://other.invalid/simple\n"
    )
    set_pip(monkeypatch, trusted_host="a.invalid d.invalid", cert="/from/environment")
    monkeypatch.setenv("PIP_CONFIG_FILE", str(file))
    settings = read_pip_settings()
    assert settings.index == "https://a.invalid/simple"
    assert settings.extra_indexes[-2:] == ("https://b.invalid/simple", "https://c.invalid/simple")
    assert settings.trusted_hosts == ("a.invalid", "d.invalid")
    assert (settings.certificate, settings.timeout) == ("/from/environment", 60.0)


# Unpacking


@pytest.mark.parametrize("name", ["../evil.py", "/evil.py", "flash_attn-1/../../evil.py", "C:/evil.py"])
def test_an_archive_that_leads_out_of_itself_is_refused(tmp_path: Path, name: str) -> None:
    hostile = tmp_path / "hostile.tar.gz"
    hostile.write_bytes(archive({"flash_attn-1/setup.py": "", name: "boom"}, top=""))
    with pytest.raises(CheckoutError, match="outside of itself"):
        unpack_source_archive(hostile, tmp_path / "inside" / "copy")
    assert not list(tmp_path.rglob("evil.py"))


def test_links_and_what_is_no_source_are_left_out(tmp_path: Path) -> None:
    path = tmp_path / "odd.tar.gz"
    with tarfile.open(path, "w:gz") as content:
        for name, kind in (("link.py", tarfile.SYMTYPE), ("hard.py", tarfile.LNKTYPE), ("fifo.py", tarfile.FIFOTYPE)):
            member = tarfile.TarInfo(f"top/{name}")
            member.type, member.linkname = kind, "/etc/passwd"
            content.addfile(member)
        for name in ("top/real.py", "top/picture.png", "top/PKG-INFO"):
            content.addfile(tarfile.TarInfo(name), io.BytesIO())
    unpack_source_archive(path, tmp_path / "copy")
    assert sorted(file.name for file in (tmp_path / "copy").iterdir()) == ["PKG-INFO", "real.py"]


@pytest.mark.parametrize(
    ("setup", "kept"),
    [
        ('run(["git", "submodule", "update", "--init", "csrc/cutlass"])\n', False),
        ("pass\n", True),
    ],
)
def test_what_setup_py_fetches_as_a_submodule_is_left_out(tmp_path: Path, setup: str, kept: bool) -> None:
    path = tmp_path / "flash_attn-1.tar.gz"
    path.write_bytes(archive({"csrc/cutlass/include/a.h": "", "csrc/cutlass_notes.txt": "", "setup.py": setup}))
    unpack_source_archive(path, tmp_path / "copy")
    assert (tmp_path / "copy/csrc/cutlass/include/a.h").exists() is kept
    assert (tmp_path / "copy/csrc/cutlass_notes.txt").exists()


@pytest.mark.parametrize(
    "content",
    [b"", b"no archive at all", archive(SMALL)[:200], archive({"readme.md": ""})],
    ids=["empty", "text", "truncated", "without sources"],
)
def test_a_damaged_archive_is_named(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "flash_attn-1.tar.gz"
    path.write_bytes(content)
    with pytest.raises(CheckoutError, match=r"flash_attn-1\.tar\.gz"):
        unpack_source_archive(path, tmp_path / "copy")


# Permalinks of releases


def test_a_release_links_to_the_tag_that_its_setup_py_names(index: Index, monkeypatch: pytest.MonkeyPatch) -> None:
    tagged = Index({"flash_attn-6.0.post1.tar.gz": version_of("6.0.post1", **{"setup.py": TAGGED})})
    monkeypatch.setenv("PIP_INDEX_URL", tagged.url)
    checkout = open_checkout("pypi:6.0.post1")
    place = Location("csrc/tiny/api.cpp", 3)
    assert checkout.permalink(place) == "https://github.com/somebody/tiny/blob/v6.0.post1/csrc/tiny/api.cpp#L3"
    tagged.server.shutdown()


@pytest.mark.parametrize(
    "setup",
    [
        TAGGED.replace("v{tiny_version}", "v{wheel_number}"),
        TAGGED.replace("{tag_name}/", ""),
        TAGGED.replace('f"v{tiny_version}"', "compute()"),
    ],
)
def test_a_tag_that_cannot_be_told_is_not_guessed(checkout_with: Callable[..., Path], setup: str) -> None:
    assert stated_tag(checkout_with({"setup.py": TAGGED}, name="good"), "1.2.3") == "v1.2.3"
    assert stated_tag(checkout_with({"setup.py": setup}), "1.2.3") is None


def test_a_release_that_does_not_say_how_it_is_tagged_has_no_link(index: Index) -> None:
    checkout = open_checkout("pypi:1.9")
    assert checkout.repository == "https://github.com/somebody/tiny"
    assert checkout.permalink(Location("csrc/tiny/api.cpp", 3)) is None


@pytest.mark.parametrize(
    ("version", "tag"),
    # 2.0.0.post1 was tagged v2.0.0; the others are what `git tag` of the public repository lists.
    [("2.0.0.post1", None), ("2.4.3.post1", "v2.4.3.post1"), ("2.8.3", "v2.8.3")],
)
def test_tags_of_real_releases(version: str, tag: str | None) -> None:
    checkout = release_checkout(version)
    assert (checkout.flavour, checkout.version, checkout.ref) == ("flash-attention", version, tag)
