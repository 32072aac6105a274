"""What is wrong with a formula's MathML, as a browser would draw it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise
from xml.etree import ElementTree
from xml.etree.ElementTree import Element

from handgrad.documents.formulas.formula import FENCES

NAMESPACE = "{http://www.w3.org/1998/Math/MathML}"
#: Names with text in them, with parts in a row, with none, and with so many parts.
TOKENS = frozenset(["mi", "mn", "mo", "mtext"])
ROWS = frozenset(["math", "mrow", "msqrt", "mphantom", "mtd", "mtable", "mtr"])
PARTS = {"mfrac": 2, "msub": 2, "msup": 2, "msubsup": 3, "munder": 2, "mover": 2, "munderover": 3}
TALL = frozenset(["mfrac", "msqrt", "mtable", "munder", "munderover"])


def faults(text: str) -> list[str]:
    """Sentences on a `<math>` element, or on several within a page's text."""
    maths = re.findall(r"<math .*?</math>", text)
    assert maths
    found = (fault for math in maths for fault in _faults(ElementTree.fromstring(math)))
    return sorted(set(found))


def _faults(math: Element) -> Iterator[str]:
    for element in math.iter():
        tag, said = _tag(element), element.text or ""
        attributes = {name: value for name, value in element.attrib.items() if name != "display"}
        if tag in TOKENS:
            well = not len(element) and said and not re.search(r"[\\&]|^\s*$", said)
        else:
            well = not said and (tag in ROWS or len(element) == PARTS.get(tag, 0))
        if not well or tag not in {*TOKENS, *ROWS, *PARTS, "mspace"}:
            yield f"<{tag}>{said} with {len(element)} parts is not of MathML Core"
        if attributes.get("mathvariant", "normal") != "normal":
            yield f"mathvariant {attributes['mathvariant']} is not drawn"
        if not re.fullmatch(r"[\d.]+em", attributes.get("width", "0em")):
            yield f"the space {attributes['width']} has no length"
        if tag == "mover":
            yield from _accent_faults(element)
        if tag == "mtable" and len({len(line) for line in element}) != 1:
            yield "the rows of a table differ in length"
        if tag in ROWS:
            yield from _fence_faults(list(element))
            yield from _room_faults(list(element))


def _tag(element: Element) -> str:
    return element.tag.removeprefix(NAMESPACE)


def _accent_faults(element: Element) -> Iterator[str]:
    body, mark = element
    if _tag(mark) == "mo" and mark.get("stretchy"):
        wide = "false" if _tag(body) == "mi" else "true"
        if element.get("accent") != "true" or mark.get("stretchy") != wide:
            yield f"the accent {mark.text} does not fit its body"


def _fence_faults(row: list[Element]) -> Iterator[str]:
    """Fences stand at both ends of a row and grow with what is tall, no other."""
    for place, each in enumerate(row):
        fence, form = each.text or "", each.get("form")
        if _tag(each) != "mo" or fence not in {*FENCES, *FENCES.values()} or not fence:
            continue
        grows = any(_tag(part) in TALL for inner in row for part in inner.iter())
        if grows and each.get("stretchy") != "true":
            yield f"the fence {fence} does not grow"
        if not grows and each.get("stretchy") == "true" and "∑" not in _text(row):
            yield f"the fence {fence} grows around what is flat"
        if (place, form) not in ((0, "prefix"), (len(row) - 1, "postfix")):
            yield f"the fence {fence} stands within its row as {form}"
        closing = row[-1].text or ""
        if form == "prefix" and closing not in FENCES.values() and _tag(row[-1]) != "mtable":
            yield f"the fence {fence} is closed by {closing!r}"


def _room_faults(row: list[Element]) -> Iterator[str]:
    for before, after in pairwise(row):
        named = [each for each in (before, after) if _is_function(each)]
        if named and not any(_is_operator(each) for each in (before, after)):
            yield f"no room beside the function {_text(named)}"
    for place, each in enumerate(row):
        if _tag(each) == "mo" and each.text in ("−", "+", "±") and len(row) > 1:
            opened = place == 0 or (_is_operator(row[place - 1], opening=True))
            if opened != (each.get("form") == "prefix"):
                yield f"{each.text} has the room of a sign where it is none, or none where it is"


def _is_function(element: Element) -> bool:
    if _tag(element) in ("msub", "msup", "msubsup", "munder"):
        return _is_function(element[0])
    return _tag(element) == "mi" and len(element.text or "") > 1


def _is_operator(element: Element, *, opening: bool = False) -> bool:
    """Whether it brings room of its own, or, with `opening`, a value must follow it."""
    tag = _tag(element)
    if opening:
        ends = element.get("form") == "postfix" or element.text in ("!", "′")
        return tag == "mspace" or (tag == "mo" and not ends)
    if tag in ("mrow", "msub", "msup", "msubsup") and len(element):
        return _is_operator(element[0])
    return tag in ("mo", "mspace")


def _text(row: list[Element]) -> str:
    return "".join(text for each in row for text in each.itertext())
