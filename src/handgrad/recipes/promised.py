"""The figure that a recipe promises, and whether a run of it has it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Self

from handgrad.training.review import named

#: Shares of the judged examples that are right, and those that are wrong.
_RIGHT: Final = ("accuracy", "exact_match")
_WRONG: Final = ("phoneme_error_rate",)
#: Standard errors of a share that the promise leaves to other bits of other CPUs and versions.
_ERRORS: Final = 3.0
#: The same for any other figure, as a part of it.
_PART: Final = 0.03


@dataclass(frozen=True)
class Promise:
    """A measure and its value on the test part, as `[about]` of a recipe says them."""

    measure: str
    value: float

    @classmethod
    def of(cls, about: Mapping[str, Any]) -> Self | None:
        """None where a recipe promises nothing."""
        if "expected" not in about:
            return None
        return cls(about.get("measure", "accuracy"), about["expected"])

    def __str__(self) -> str:
        """A share of 1 in percent, with its name where it is no accuracy."""
        return self.shown(self.value)

    def shown(self, value: float) -> str:
        """Another value of this measure, in its form."""
        name = named(self.measure)
        if self._is_share:
            text = f"{100 * value:.4g}\N{NO-BREAK SPACE}%"
            return text if self.measure == "accuracy" else f"{text} {name}"
        return f"{value:.3g} {name}"

    def found(self, summary: Mapping[str, Any]) -> float:
        """The value in the summary of a run."""
        return float(summary["test_accuracy" if self.measure == "accuracy" else self.measure])

    def is_kept(self, summary: Mapping[str, Any]) -> bool:
        """Return whether a run has the promised value, or is below it by chance alone.

        Other CPUs round otherwise, and other versions of packages draw other data: a share may be
        worse by three standard errors for the number of examples, another figure by 3 %.
        """
        found = self.found(summary)
        if not self._is_share:
            return found <= self.value * (1.0 + _PART)
        spread = math.sqrt(self.value * (1.0 - self.value) / summary["test_examples"])
        behind = self.value - found if self.measure in _RIGHT else found - self.value
        return behind <= _ERRORS * spread

    @property
    def _is_share(self) -> bool:
        return self.measure in (*_RIGHT, *_WRONG)
