"""What is said where onnx is not installed."""

from __future__ import annotations

import pytest

import handgrad as hg


def test_a_call_says_what_to_install(monkeypatch, tmp_path) -> None:
    monkeypatch.setattr("handgrad.onnx.find_spec", lambda name: None)
    for call in (lambda: hg.export_onnx(hg.Flatten(), tmp_path / "a"), lambda: hg.import_onnx("a")):
        with pytest.raises(hg.errors.ArgumentError, match="pip install 'handgrad\\[onnx\\]'"):
            call()
