"""Names of gradients: `dscores`, `scores_grad` and `grad_scores` are called after `scores`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

_BEFORE: Final = (
    *("d", "grad", "gradient", "g", "delta", "nabla"),
    *("dL_d", "dLd", "d_L_d_", "dloss_d", "dJ_d"),
)


def without_affix(name: str) -> Iterator[str]:
    """The rest of a name that begins or ends as those of gradients do."""
    name = name.lstrip("_")
    for prefix in _BEFORE:
        if name.startswith(prefix) and len(name) > len(prefix):
            yield name.removeprefix(prefix)
    for suffix in ("_grad", "_grads", "_gradient", "_gradients", "_bar", "_delta"):
        if name.endswith(suffix):
            yield name.removesuffix(suffix)


def plain(name: str) -> str:
    """The name without what spellings differ in."""
    return name.replace("_", "").casefold()


def abbreviates(one: str, other: str) -> bool:
    """Return whether one of two names is the beginning of the other, as `w` is of `weight`."""
    first, second = sorted(map(plain, (one, other)), key=len)
    return bool(first) and second.startswith(first)
