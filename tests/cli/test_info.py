from __future__ import annotations

import pytest

from handgrad import dispatch, kernels


def test_info_says_what_is_in_use(handgrad):
    result = handgrad("info")
    assert result.exit_code == 0, result.output
    for word in ("handgrad", "engine", "Python", "numpy", "safetensors"):
        assert word in result.stdout


@pytest.mark.skipif(kernels.native is None, reason="the kernels were not compiled")
def test_info_with_kernels(handgrad):
    result = handgrad("info")
    for word in (kernels.instruction_set, "CPU features", "threads"):
        assert word in result.stdout
    with dispatch.engine("reference"):
        assert "reference, as asked" in handgrad("info").stdout


def test_info_says_why_there_are_no_kernels(handgrad, monkeypatch):
    monkeypatch.setattr(kernels, "native", None)
    monkeypatch.setattr(kernels, "reason", "there was no compiler")
    result = handgrad("info")
    assert "reference, because there was no compiler" in result.stdout
    assert "instruction set" not in result.stdout
