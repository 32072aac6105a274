from __future__ import annotations

from handgrad.ops import OPS


def test_every_op_is_listed_with_its_formula_and_layer(handgrad):
    result = handgrad("ops")
    assert result.exit_code == 0, result.output
    first = [line.split()[0] for line in result.stdout.splitlines() if line[0] != " "]
    assert first == ["op", *OPS]
    line = next(line for line in result.stdout.splitlines() if line.startswith("dense "))
    assert "a = x Wᵀ + b" in line
    assert "Dense" in line


def test_a_part_of_the_name_chooses(handgrad, refused):
    assert "relu" in handgrad("ops", "relu").stdout
    assert "dense" not in handgrad("ops", "relu").stdout
    assert "no op has 'conv9'" in refused("ops", "conv9")
