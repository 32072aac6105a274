"""Trained models in use: what describes them, what goes in, what they answer, and their files."""

from handgrad.inference.session import Session

__all__ = ["Session"]
