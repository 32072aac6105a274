"""Sizes of caches: as the system says, as HANDGRAD_CACHE says, and the block sizes from them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import handgrad as hg
from handgrad import kernels
from handgrad.dispatch import cpu_caches
from handgrad.dispatch.cpu_caches import DEFAULTS, LINE, CpuCache, known_caches
from handgrad.errors import EngineError


def _index(folder: Path, number: int, **files: str) -> None:
    index = folder / f"index{number}"
    index.mkdir()
    for name, text in files.items():
        (index / name).write_text(f"{text}\n")


def test_the_system_is_asked(tmp_path, monkeypatch):
    monkeypatch.delenv("HANDGRAD_CACHE", raising=False)
    monkeypatch.setattr(cpu_caches, "_SYSTEM", tmp_path)
    monkeypatch.setattr(cpu_caches.sys, "platform", "linux")
    rows = [("1", "Data", "48K", "12", "0"), ("1", "Instruction", "32K", "8", "0")]
    rows += [("2", "Unified", "2048K", "16", "0,4"), ("3", "Unified", "32768K", "16", "0-7")]
    names = ("level", "type", "size", "ways_of_associativity", "shared_cpu_list")
    for number, row in enumerate(rows):
        _index(tmp_path, number, **dict(zip(names, row, strict=True)))
    found = known_caches()
    assert found == {
        "l1": CpuCache(48 << 10, 12),
        "l2": CpuCache(2 << 20, 16, 2),
        "l3": CpuCache(32 << 20, 16, 8),
    }
    assert str(found["l2"]) == "2 MB shared by 2"


def test_a_system_that_does_not_say_has_the_usual_sizes(tmp_path, monkeypatch):
    monkeypatch.delenv("HANDGRAD_CACHE", raising=False)
    monkeypatch.setattr(cpu_caches.sys, "platform", "linux")
    monkeypatch.setattr(cpu_caches, "_SYSTEM", tmp_path / "nowhere")
    assert known_caches() == DEFAULTS
    _index(tmp_path, 0, level="1", type="Data", size="unknown")
    monkeypatch.setattr(cpu_caches, "_SYSTEM", tmp_path)
    assert known_caches() == DEFAULTS


def test_the_environment_decides(monkeypatch):
    monkeypatch.setenv("HANDGRAD_CACHE", "l1:48K:12,l2:2M")
    found = known_caches()
    assert (found["l1"], found["l2"]) == (CpuCache(48 << 10, 12), CpuCache(2 << 20))


@pytest.mark.parametrize("text", ["32K", "l1:32", "l4:1M", "l1:0K", "l1:32K:0", "l1:32K;l2:1M"])
def test_a_wrong_environment_is_one_sentence(monkeypatch, text):
    monkeypatch.setenv("HANDGRAD_CACHE", text)
    with pytest.raises(EngineError, match=r"HANDGRAD_CACHE is .*; allowed: sizes of levels"):
        known_caches()


@pytest.fixture
def _caches_as_before() -> Iterator[None]:
    yield
    assert kernels.native is not None
    l1, l2 = known_caches()["l1"], known_caches()["l2"]
    kernels.native.set_caches(l1.bytes // l1.shared, l1.ways, l2.bytes // l2.shared, LINE)


@pytest.mark.skipif(kernels.native is None, reason="there are no kernels here")
@pytest.mark.usefixtures("_caches_as_before")
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_no_size_changes_a_bit(dtype):
    """Large and small operands, rows of A in place and packed, K of one block and of several."""
    assert kernels.native is not None
    rng = np.random.default_rng(0)
    pairs = [
        (rng.standard_normal((m, k)).astype(dtype), rng.standard_normal((k, n)).astype(dtype))
        for m, k, n in [(300, 1024, 500), (123, 700, 31), (640, 2048, 97), (9, 4096, 64)]
    ]
    found = []
    for sizes in [(32 << 10, 8, 1 << 20), (4 << 10, 2, 64 << 10), (1 << 20, 16, 64 << 20)]:
        kernels.native.set_caches(*sizes, LINE)
        found.append([hg.matmul(a, b) for a, b in pairs])
    for others in found[1:]:
        for actual, wanted in zip(others, found[0], strict=True):
            np.testing.assert_array_equal(actual, wanted)
