"""The metrics of a run as a table that spreadsheets and pandas read."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from typing import Any

from handgrad.io.checkpoint import finite


def as_csv(epochs: Sequence[Mapping[str, Any]]) -> str:
    """One line for each record of an epoch, with the numbers of metrics.jsonl.

    Cells are empty where there is no number, or none that is finite.
    """
    records = [finite(record) for record in epochs]
    columns = dict.fromkeys(name for record in records for name in record if name != "kind")
    text = io.StringIO()
    writer = csv.DictWriter(text, columns, extrasaction="ignore", lineterminator="\n")
    writer.writeheader()
    writer.writerows(records)
    return text.getvalue()
