"""Results of checks for other programs: annotations on GitHub, and JUnit's XML."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final
from xml.etree import ElementTree

from handgrad.data.files import read_bytes
from handgrad.errors import DataError
from handgrad.escaping import printable
from handgrad.targets import PAIRS

if TYPE_CHECKING:
    from handgrad.checking import CheckReport
    from handgrad.checking.report import Fault

_LINE: Final = re.compile(r"\(line (\d+)(?: of ([^)]+))?\)")


def github_commands(target: str, report: CheckReport) -> Iterator[str]:
    """A command of GitHub's workflows for each fault, with the file and the line that is wrong."""
    home, _, name = target.partition(":")
    for fault in report.faults:
        line = fault_line(fault, Path(home), name)
        where = [] if line is None else [f"file={_property(home)}", f"line={line}"]
        where.append(f"title={_property(f'handgrad check {target}')}")
        level = "error" if fault.judged else "warning"
        yield f"::{level} {','.join(where)}::{_data(fault.message)}"
    for left in (*report.unjudged, *report.undecided):
        where = [f"file={_property(home)}", f"title={_property(f'handgrad check {target}')}"]
        yield f"::notice {','.join(where)}::{_data(f'the gradient of {left} was not judged')}"


def fault_line(fault: Fault, file: Path, name: str) -> int | None:
    """The line of the fault, or that where the target is defined; None outside of a file."""
    if file.suffix != ".py":
        return None
    match = _LINE.search(fault.message)
    if match is not None and match[2] in (None, file.name):
        return int(match[1])
    return line_of(file, name.rpartition(",")[2].strip()) or 1


def line_of(file: Path, name: str) -> int | None:
    """The line where a function is defined, or a class's backward; None where it is not there."""
    try:
        body = ast.parse(read_bytes(file, "source")).body
    except (DataError, SyntaxError, ValueError):
        return None
    wanted = name.partition(".")[0] or "backward"
    for node in body:
        if isinstance(node, ast.FunctionDef) and node.name == wanted:
            return node.lineno
        if isinstance(node, ast.ClassDef) and node.name == wanted:
            lines = {e.name: e.lineno for e in node.body if isinstance(e, ast.FunctionDef)}
            return next((lines[each] for _, each in PAIRS if each in lines), node.lineno)
    return None


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")


def junit(reports: Sequence[tuple[str, CheckReport | str]]) -> bytes:
    """A test suite with a case for every target; a text is the error that it ended in."""
    suite = ElementTree.Element("testsuite", name="handgrad check", tests=str(len(reports)))
    counts = {"failures": 0, "errors": 0}
    for target, report in reports:
        home, _, name = target.partition(":")
        case = ElementTree.SubElement(suite, "testcase", classname=home, name=name or home)
        if isinstance(report, str):
            counts["errors"] += 1
            ElementTree.SubElement(case, "error", message=printable(report))
            continue
        text = printable(str(report))
        if report.ok:
            ElementTree.SubElement(case, "system-out").text = text
            continue
        kind = "failures" if report.verdict == "wrong" else "errors"
        counts[kind] += 1
        first = report.faults[0].message if report.faults else "a gradient could not be judged"
        ElementTree.SubElement(case, kind[:-1], message=printable(first)).text = text
    for kind, count in counts.items():
        suite.set(kind, str(count))
    content: bytes = ElementTree.tostring(suite, encoding="utf-8", xml_declaration=True)
    return content
