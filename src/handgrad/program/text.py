"""Names as formulas have them."""

from __future__ import annotations

from typing import Final

_GREEK: Final = {"alpha": "α", "beta": "β", "gamma": "γ", "eps": "ε", "sigma": "σ", "mu": "μ"}
_HAT: Final = "̂"


def symbol(name: str) -> str:
    """`dx_hat` as dx̂, `dgamma` as dγ; other names as they are."""
    short, hat = (name[: -len("_hat")], _HAT) if name.endswith("_hat") else (name, "")
    for word, letter in _GREEK.items():
        if short in (word, "d" + word):
            short = short.replace(word, letter)
    return short + hat
