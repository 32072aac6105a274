"""The report of a run: one self-contained HTML file, its drawings written as SVG and PNG."""

from handgrad.training.report.page import Judged, write_report

__all__ = ["Judged", "write_report"]
