"""A training's measurements as a table."""

from __future__ import annotations

from handgrad.training import History


def history(count: int) -> History:
    return History(
        [
            {
                "kind": "epoch",
                "epoch": i + 1,
                "loss": 1.0 / (i + 1),
                "accuracy": None,
                "seconds": 0.5,
            }
            for i in range(count)
        ]
    )


def test_a_row_for_every_epoch() -> None:
    assert repr(history(2)).splitlines() == [
        "epoch    loss  seconds",
        "    1  1.0000      0.5",
        "    2  0.5000      0.5",
    ]
    html = history(2)._repr_html_()
    assert html.startswith("<table><thead><tr><th>epoch</th><th>loss</th><th>seconds</th>")
    assert "<td>0.5000</td>" in html


def test_long_ones_are_cut_in_the_middle() -> None:
    lines = repr(history(200)).splitlines()
    assert len(lines) == 22
    assert lines[-1].split() == ["200", "0.0050", "0.5"]
    assert set(lines[11].split()) == {"…"}


def test_none_is_said() -> None:
    assert repr(History()) == "History of no epoch"
