"""The report of a run: one self-contained HTML file, its drawings written as SVG and PNG."""

from handgrad.training.report.page import Report, write_report

__all__ = ["Report", "write_report"]
