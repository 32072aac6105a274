"""Diagnosis by changes of the user's own source that are run: those that put everything right."""

from __future__ import annotations
