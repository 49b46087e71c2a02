"""Compiling the kernel, and doing without."""

import runpy
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from prudent.engines import kernel
from prudent.engines.kernel import build

ROOT = Path(__file__).parents[3]


@pytest.fixture(autouse=True)
def forget(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """What is loaded is looked for once."""
    monkeypatch.setenv("PRUDENT_KERNEL", "")
    kernel._loaded.cache_clear()
    yield
    kernel._loaded.cache_clear()


@pytest.mark.usefixtures("compiled")
def test_the_twin_counts_where_it_is_asked_to(monkeypatch: pytest.MonkeyPatch) -> None:
    assert kernel.compiled()
    monkeypatch.setenv("PRUDENT_KERNEL", "numpy")
    assert not kernel.compiled()


@pytest.mark.usefixtures("compiled")
def test_a_library_of_another_source_is_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    kernel._loaded.cache_clear()
    monkeypatch.setattr(build, "digest", lambda: "another")
    assert not kernel.compiled()


@pytest.mark.parametrize("content", [None, b"", b"not a library"])
def test_a_library_that_does_not_load_is_not_used(
    content: bytes | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "count.lib"
    if content is not None:
        path.write_bytes(content)
    monkeypatch.setattr(build, "LIBRARY", path)
    assert not kernel.compiled()


def test_the_digest_is_of_all_that_is_compiled() -> None:
    compiled = {"count.cpp"}
    for _ in range(5):
        lines = [line for name in compiled for line in (build.FOLDER / name).read_text().splitlines()]
        compiled |= {line.split('"')[1] for line in lines if line.startswith('#include "')}
    assert compiled == {path.name for path in [*build.FOLDER.glob("*.h"), *build.FOLDER.glob("*.cpp")]}


def test_without_a_compiler(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("CXX", raising=False)
    monkeypatch.setattr(build, "find_spec", lambda name: None)
    with pytest.raises(OSError, match="there is no C"):
        build.compile_kernel(tmp_path / "count.lib")
    monkeypatch.setattr(build, "find_spec", lambda name: name == "ziglang")
    assert build.compiler() == [sys.executable, "-m", "ziglang", "c++"]


def test_a_compiler_that_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CXX", f"{sys.executable} -c exit(1)")  # `false` is not everywhere
    with pytest.raises(OSError, match="failed"):
        build.compile_kernel(tmp_path / "count.lib")
    assert list(tmp_path.iterdir()) == []


def test_the_build_needs_nothing_of_prudent() -> None:
    """hatch_build.py runs it by its path, before anything is installed."""
    path = build.FOLDER / "build.py"
    code = f"import runpy, sys; runpy.run_path({str(path)!r}); sys.exit('numpy' in sys.modules)"
    assert subprocess.run([sys.executable, "-I", "-c", code], check=False).returncode == 0
    assert "compile_kernel" in runpy.run_path(str(path))
    assert 'build["compile_kernel"]' in (ROOT / "hatch_build.py").read_text()
