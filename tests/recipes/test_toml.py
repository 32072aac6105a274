from __future__ import annotations

import time

import pytest

from handgrad.errors import RecipeError
from handgrad.recipes import read
from handgrad.recipes.changes import apply_change
from handgrad.recipes.toml import DEEPEST, read_toml


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a = " + "[" * 100_000, "nested too deep; allowed: 64 levels"),
        ("a = " + "[" * 100_000 + "]" * 100_000, "nested too deep"),
        ("a = " + "{b = " * 100_000, "nested too deep"),
        ("a." * 500 + "b = 1", "nested too deep"),
        ("a." * 100_000 + "b = 1", "a key of more than 1000 parts"),
        ("[" + "'a' . " * 100_000 + "b]", "a key of more than 1000 parts"),
        ("a = " + "9" * 10**6, "not TOML"),
        ("a = 0x" + "f" * 10**6, "an integer beyond 64 bits"),
        ("a = [{b = 9223372036854775808}]", "an integer beyond 64 bits"),
        ("a = 1979-13-41", "not TOML"),
        ("# " + "x" * 2**22, "allowed: at most 4,194,304"),
    ],
)
def test_what_is_too_deep_or_too_large_is_one_sentence(text, message):
    began = time.process_time()
    with pytest.raises(RecipeError, match=message) as caught:
        read_toml(text)
    assert len(str(caught.value)) < 300
    assert time.process_time() - began < 30


def test_the_limits_themselves_are_allowed():
    text = "a = " + "[" * (DEEPEST - 2) + "9223372036854775807" + "]" * (DEEPEST - 2)
    assert "a" in read_toml(text)


@pytest.mark.parametrize("value", ["[" * 10_000, "0x" + "f" * 10**5, "[" * 70 + "]" * 70])
def test_a_change_is_bounded_as_well(value):
    with pytest.raises(RecipeError, match=r"--set training.seed=.*: .*(too deep|64 bits)"):
        apply_change({"training": {}}, f"training.seed={value}")


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("epochs = 1979-05-27", r"training.epochs is 1979-05-27; allowed: an integer"),
        ("epochs = nan", r"training.epochs is nan; allowed: an integer"),
        ("epochs = {a = 1}", r"training.epochs is \{a = 1\}; allowed: an integer"),
        ("clip_norm = inf", r"training.clip_norm is inf; allowed: a number"),
        ("precision = [[1]]", r"training.precision is \[\[1\]\]; allowed: float32, bf16"),
        ('"a\\nb" = 1', r"training\.a\\nb is an unknown key"),
        ('precision = "\\u001b[31m"', r'training.precision is "\\x1b\[31m"'),
    ],
)
def test_a_value_of_another_kind_is_shown_in_one_line(tmp_path, line, message):
    path = tmp_path / "mine.toml"
    path.write_text(
        '[data]\nname = "digits"\n[model]\ntype = "gpt"\nwidth = 8\nheads = 1\nblocks = 1\n'
        f"[optimizer]\n[training]\n{line}\n"
    )
    with pytest.raises(RecipeError, match=message) as caught:
        read(str(path))
    assert "\n" not in str(caught.value)


def test_a_recipe_that_is_no_text(tmp_path):
    path = tmp_path / "mine.toml"
    path.write_bytes(b"name = '\xff'")
    with pytest.raises(
        RecipeError, match=r"byte 0xff at position 8 \(line 1\), which is not UTF-8"
    ):
        read(str(path))
    path.unlink()
    path.mkdir()
    with pytest.raises(RecipeError, match=r"mine\.toml cannot be read: Is a directory"):
        read(str(path))
