"""A case of the corpus: a backward that somebody could have written, and what is wrong with it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

Forward = Callable[..., Any]
Backward = Callable[[Any, Any], Any]


@dataclass(frozen=True)
class Bug:
    """A wrong backward, labelled by hand.

    Eighteen labels were widened after a run, where the report was as true as what was expected
    (1/D left out of a whole gradient is a sum where a mean belongs); none was narrowed.

    `gradients` are all inputs whose gradient is wrong; none for a fault of the whole call, such as
    writing into dy. `kinds` are the names of the mistake that a reader would accept, and `terms`
    the words of which one must appear in the report, if there are any.
    """

    backward: Backward
    what: str
    kinds: frozenset[str]
    gradients: tuple[str, ...] = ()
    terms: tuple[str, ...] = ()
    #: The forward, where the mistake lies in its cache or needs another one.
    forward: Forward | None = None

    @property
    def name(self) -> str:
        return self.backward.__name__


@dataclass(frozen=True)
class Exercise:
    """A forward, its right backward and wrong ones.

    `inputs` draws what forward takes. `like` is the op that forward is, if it is one of ours and
    takes its inputs in the same order; the bugs are then also checked with `like` and no inputs.
    `wrt` names the inputs with a gradient, where these are not all inputs of floats.
    """

    name: str
    forward: Forward
    right: Backward
    inputs: Callable[[np.random.Generator], tuple[Any, ...]]
    bugs: tuple[Bug, ...] = ()
    like: str | None = None
    wrt: tuple[str, ...] | None = None


def kinds(*names: str) -> frozenset[str]:
    return frozenset(names)
