"""The report of a run: one self-contained HTML file, its drawings written as SVG and PNG."""

from handgrad.training.report.judgement import Judged
from handgrad.training.report.page import write_report

__all__ = ["Judged", "write_report"]
