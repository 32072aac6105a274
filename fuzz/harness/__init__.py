"""Everything the fuzzed surfaces share: what a case is, the worker, the watchdog, the report."""

from __future__ import annotations

from fuzz.harness.surface import Case, Fault

__all__ = ["Case", "Fault"]
