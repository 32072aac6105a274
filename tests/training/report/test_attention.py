"""Attention maps."""

from __future__ import annotations

import re

import numpy as np
import pytest

from handgrad.training.report.attention import attention_map, small_map, visible
from tests.training.html import check_html, opacity


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        (" the", "␣the"),
        ("a\n\t", "a⏎⇥"),
        ("\N{COMBINING ACUTE ACCENT}", "◌\N{COMBINING ACUTE ACCENT}"),
        ("\N{NO-BREAK SPACE}", "\N{REPLACEMENT CHARACTER}"),
        ("\x00\N{RIGHT-TO-LEFT MARK}", "\N{REPLACEMENT CHARACTER}" * 2),
        ("年", "年"),
    ],
)
def test_every_token_can_be_seen(text: str, shown: str) -> None:
    assert visible(text) == shown


def test_the_largest_weight_is_full() -> None:
    weights = np.array([[0.5, 0.25, 0.25], [0.1, 0.4, 0.5]])
    text = attention_map(weights, ["a", "<"], ["x", "&", " "], label="where")
    check_html(text)
    (shown,) = opacity(text)
    np.testing.assert_allclose(shown, 2 * weights, atol=0.003)
    assert re.findall(">([^<]+)</text>", text) == ["x", "&amp;", "␣", "a", "&lt;"]
    assert "rotate" not in text
    check_html(small_map(weights, "head <1>", 4))


def test_long_names_are_slanted_and_have_room() -> None:
    text = attention_map(np.zeros((1, 2)), ["made"], ["x", "something"], label="where")
    check_html(text)
    assert text.count("rotate") == 2
    width, height = map(float, re.findall(r'viewBox="0 0 ([\d.]+) ([\d.]+)"', text)[0])
    assert width > 100
    assert height > 60
