"""Saved results: one JSON file for each day and CPU."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final

from benchmarks import picture
from benchmarks.machine import slug

FOLDER: Final = Path(__file__).parent / "results"


def file_name(result: dict[str, Any]) -> str:
    """The name of a result's files."""
    return f"{result['date']}-{slug(result['machine']['cpu'])}"


def save(result: dict[str, Any], folder: Path = FOLDER) -> list[Path]:
    """Write the result, over what the same day and CPU had of the same measurements.

    The paths of the JSON and, where workloads were measured, of their picture.
    """
    folder.mkdir(exist_ok=True)
    path = folder / f"{file_name(result)}.json"
    if path.exists():
        earlier = json.loads(path.read_text("utf-8"))["sections"]
        sections = {
            name: {**earlier.get(name, {}), **result["sections"].get(name, {})}
            for name in {**earlier, **result["sections"]}
        }
        result = {**result, "sections": sections}
    path.write_text(json.dumps(result, indent=2, ensure_ascii=False) + "\n", "utf-8")
    if not picture.drawn(result):
        return [path]
    drawing = path.with_suffix(".svg")
    drawing.write_text(picture.svg(result), "utf-8")
    return [path, drawing]


def newest(folder: Path = FOLDER) -> list[dict[str, Any]]:
    """The latest result of every CPU, latest first."""
    latest: dict[str, dict[str, Any]] = {}
    for path in sorted(folder.glob("*.json")):
        result = json.loads(path.read_text("utf-8"))
        latest[result["machine"]["cpu"]] = result
    return sorted(latest.values(), key=lambda result: str(result["date"]), reverse=True)
