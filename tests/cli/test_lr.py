from __future__ import annotations

import re

import pytest


@pytest.mark.slow
def test_a_rate_is_suggested_with_the_command_that_uses_it(handgrad, tmp_path):
    picture = tmp_path / "lr.html"
    result = handgrad("lr", "digits", "--steps", 60, "-o", picture)
    assert result.exit_code == 0, result.output
    rate = re.search(r"falls fastest at (\S+);", result.stdout)
    assert rate is not None
    assert f"handgrad train digits --set optimizer.lr={rate[1]}" in result.stdout
    assert "<h1>Learning rates for digits</h1>" in picture.read_text("utf-8")


@pytest.mark.slow
def test_quiet_prints_nothing(handgrad, tmp_path):
    result = handgrad("lr", "digits", "--steps", 60, "-q", "-o", tmp_path / "lr.svg")
    assert (result.exit_code, result.output) == (0, "")


def test_another_file_is_refused_before_anything_is_read(refused, tmp_path):
    assert "allowed: .html or .svg" in refused("lr", "mnist-mlp", "-o", tmp_path / "lr.png")
