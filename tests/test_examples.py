"""Every example runs, prints figures that hold, and writes the picture that stands beside it."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from tests.tolerances import TOLERANCES

#: Every example is a process of its own.
pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[1]
EXAMPLES = ROOT / "examples"
SCRIPTS = sorted(path.stem for path in EXAMPLES.glob("*.py") if path.stem != "picture")
_VALUE = re.compile(r"#[0-9a-f]{6}|-?\d+(?:\.\d+)?")


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[list[str], str]]:
    """The output of each script, as lines, and the picture that it writes."""
    folder = tmp_path_factory.mktemp("examples")
    environment = os.environ | {"PYTHONUTF8": "1", "PYTHONDONTWRITEBYTECODE": "1"}
    found = {}
    for name in SCRIPTS:
        picture = folder / f"{name}.svg"
        command = [sys.executable, "-W", "error", f"examples/{name}.py", "-o", str(picture)]
        run = subprocess.run(
            command, cwd=ROOT, env=environment, capture_output=True, encoding="utf-8"
        )
        assert run.returncode == 0, run.stderr
        found[name] = run.stdout.splitlines(), picture.read_text("utf-8")
    return found


def numbers(line: str) -> list[float]:
    """The numbers that stand alone in a line."""
    return [float(word) for word in line.split() if re.fullmatch(r"-?\d[\d.]*(e[+-]\d+)?", word)]


def levels(value: str) -> tuple[int, ...]:
    """A number as tenths, the last digit of a coordinate, and a colour as its three bytes."""
    if value.startswith("#"):
        return tuple(bytes.fromhex(value[1:]))
    return (round(10 * float(value)),)


@pytest.mark.parametrize("name", SCRIPTS)
def test_the_picture_beside_a_script_is_what_it_writes(name, runs):
    committed = (EXAMPLES / f"{name}.svg").read_text("utf-8")
    written = runs[name][1]
    assert _VALUE.sub("", written) == _VALUE.sub("", committed)
    # Another machine rounds otherwise, which may show in the last digit.
    for new, old in zip(_VALUE.findall(written), _VALUE.findall(committed), strict=True):
        differences = [abs(a - b) for a, b in zip(levels(new), levels(old), strict=True)]
        assert max(differences) <= 1, f"{new} is written, {old} stands in {name}.svg"


@pytest.mark.parametrize("name", SCRIPTS)
def test_every_example_is_in_the_readme(name):
    readme = (EXAMPLES / "README.md").read_text("utf-8")
    assert f"]({name}.py)" in readme
    assert f"]({name}.svg)" in readme


def test_links_of_the_readme_lead_to_files():
    for target in re.findall(r"\]\(([^)]+)\)", (EXAMPLES / "README.md").read_text("utf-8")):
        assert (EXAMPLES / target).exists(), target


def test_gradients_vanish_and_explode_without_gates(runs):
    lines = runs["vanishing_gradients"][0][2:]
    last = {line[16:30].strip(): numbers(line[30:])[3] for line in lines}
    factor = {line[16:30].strip(): numbers(line[30:])[4] for line in lines}
    assert last["tanh, ρ = 0.5"] < 1e-32
    assert last["ReLU, ρ = 2"] > 1e14
    assert last["tanh, ρ = 2"] > 1e6
    for alpha in (0.5, 0.9, 0.99):
        assert factor[f"α = {alpha}"] == alpha
    assert 0.1 < last["α per unit"] < 1.0
    for forget in ("0.95", "0.99"):
        assert 0.2 < last[f"f ≈ {forget}"] < 5.0
    assert last["f ≈ 0.5"] < 1e-19


def test_an_unrolled_network_has_the_gradients_of_the_equations(runs):
    lines = runs["unrolled"][0]
    assert min(numbers(lines[1])) > 0.5
    assert max(numbers(lines[3])) <= TOLERANCES["float64"].relative
    steps = [numbers(line) for line in lines[5:9]]
    assert [later == 0.0 for _, _, later, _ in steps] == [False, False, False, True]
    assert all(abs(own - later) <= both <= own + later + 0.002 for _, own, later, both in steps)
    first, *others = numbers(lines[10])[:4]
    assert first == 0.0
    assert min(others) > 0.0


def test_learning_rates_are_too_small_good_too_large_and_divergent(runs):
    rows = [numbers(line) for line in runs["learning_rates"][0][2:]]
    first = rows[0][1]
    final = {lr: end for lr, _, _, end in rows}
    highest = {lr: top for lr, _, top, _ in rows}
    assert {row[1] for row in rows} == {first}
    assert final[0.01] > 0.8 * first
    assert final[0.5] < 0.1 * first
    assert highest[0.5] == first
    assert final[1.3] < first < highest[1.3]
    assert final[3.0] > 10 * first
    assert 0.5 <= min(final, key=final.__getitem__) <= 1.0


def test_a_soft_query_goes_from_the_mean_to_one_value(runs):
    lines = runs["soft_query"][0]
    assert numbers(lines[1])[-1] <= TOLERANCES["float64"].relative
    rows = np.array([numbers(line) for line in lines[3:]])
    lengths, weights = rows[:, 0], rows[:, 1:6]
    assert lengths[0] == 0.0
    assert set(weights[0]) == {0.2}
    assert np.all(np.abs(weights.sum(axis=1) - 1.0) < 0.03)  # five numbers of two digits each
    assert weights[-1].max() > 0.85


def test_columns_and_rows_agree(runs):
    lines = runs["column_form"][0]
    sums = [float(number) for number in re.findall(r"\d+\.\d*", lines[0])]
    assert sums[:4] == [1.0] * 4
    assert sums[4:] != [1.0] * 4
    assert len(lines[2:]) == 3
    for line in lines[2:]:
        assert numbers(line)[-1] <= TOLERANCES["float64"].relative


def test_a_convolution_and_its_gradients_are_the_sums(runs):
    lines = runs["convolution"][0]
    assert numbers(lines[1]) == [0.0, 0.0]
    assert "6 in each channel" in lines[2]
    assert "9, one for every Z" in lines[3]
    none, once, twice = numbers(lines[4])[-3:]
    assert (none, once + twice) == (7, 42)
    assert numbers(lines[5]) == [0.0]


def test_eight_heads_are_made_of_single_queries(runs):
    lines = runs["multi_head"][0]
    assert numbers(lines[2])[-1] <= TOLERANCES["float64"].relative
    assert numbers(lines[5])[-1] <= TOLERANCES["float64"].relative
    assert "(6, 64)" in lines[4]


def test_a_decoder_looks_at_the_letter_that_it_needs(runs):
    lines = runs["alignment"][0]
    first, last = numbers(lines[0])[-2:]
    assert first > 2.4
    assert last < 0.2
    assert numbers(lines[1])[-1] > 0.9
    for line in lines[2:]:
        word, written, *_ = line.replace(":", ";").split("; ")
        assert written == word[::-1]
        assert numbers(line)[-1] > 0.2
