"""A gradient checker that says which term is wrong."""

from handgrad.checking.entry import check
from handgrad.checking.report import CheckError, CheckReport, Fault, GradientRow, TrialRow

__all__ = ["CheckError", "CheckReport", "Fault", "GradientRow", "TrialRow", "check"]
