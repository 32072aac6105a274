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


def test_a_table_of_ones_own(handgrad, tmp_path):
    table = tmp_path / "shapes.csv"
    rows = [f"{i % 7},{i % 3},{'round' if i % 7 > 3 else 'square'}" for i in range(60)]
    table.write_text("\n".join(["width,height,kind", *rows]), "utf-8")
    picture = tmp_path / "lr.svg"
    result = handgrad("lr", table, "--target", "kind", "--steps", 40, "-o", picture)
    assert result.exit_code == 0, result.output
    assert f"handgrad train {table} --target kind --set optimizer.lr=" in result.stdout
    assert picture.exists()
