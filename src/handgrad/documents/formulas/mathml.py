"""A formula as MathML, by way of LaTeX and latex2mathml, corrected for what browsers draw.

Browsers draw MathML Core, which has no `mathvariant` but "normal", no named spaces and no idea that
a word is a function; latex2mathml writes for older MathML.
"""

from __future__ import annotations

import html
import itertools
from xml.etree import ElementTree
from xml.etree.ElementTree import Element

from handgrad.documents.formulas.formula import Formula
from handgrad.documents.formulas.latex import TALL_ROW_END, to_latex
from handgrad.errors import HandgradError

#: What latex2mathml takes for operators, though they are letters, and the other way round.
_IDENTIFIERS = frozenset("∂∞∇∅⊤")
_OPERATORS = frozenset("¬±′:;")

#: What latex2mathml writes for an accent: what fonts have for it over one letter, and over several.
ACCENTS = {"^": "ˆ\u0302", "~": "˜\u0303", "¯": "¯¯", "―": "¯¯", "˙": "˙˙"}

_BIG = frozenset("∑∏")
_LIMITS = {"msub": "munder", "msup": "mover", "msubsup": "munderover"}

#: What makes the fences around it grow.
_TALL = frozenset(["mfrac", "msqrt", "mroot", "mtable", "munder", "munderover"])

#: Letters that stand upright, where MathML would slant a letter that is alone.
_UPRIGHT = frozenset("ΓΔΘΛΞΠΣΥΦΨΩ∞∇∅⊤")
_SIGNED = frozenset("−+±")
_CLOSING = frozenset(")]")
_THIN = "0.167em"

#: (mathvariant, first letter) -> its first code point among the mathematical letters.
BOLD = {
    ("bold", "A"): 0x1D400,
    ("bold", "a"): 0x1D41A,
    ("bold", "Α"): 0x1D6A8,
    ("bold", "α"): 0x1D6C2,
    ("bold-italic", "A"): 0x1D468,
    ("bold-italic", "a"): 0x1D482,
    ("bold-italic", "Α"): 0x1D71C,
    ("bold-italic", "α"): 0x1D736,
}


def to_mathml(formula: Formula, *, display: bool = False) -> str:
    """A `<math>` element, as a block of its own with `display`.

    Raises HandgradError where latex2mathml is not installed.
    """
    try:
        from latex2mathml.converter import convert_to_element
    except ImportError as error:
        raise HandgradError(
            "notes: HTML needs the package latex2mathml, which is not installed; "
            "install it with: pip install latex2mathml"
        ) from error
    # latex2mathml knows `split` but not `aligned`, and sets \mathrm{d} in italics.
    latex = to_latex(formula).replace("{aligned}", "{split}").replace(r"\mathrm{", r"\text{")
    latex = latex.replace(TALL_ROW_END, r"\\")
    math = convert_to_element(latex, display="block" if display else "inline")
    for element in math.iter():
        _correct(element)
    for element in list(math.iter()):
        if element.tag in ("mrow", "mtd"):
            _correct_fences(element)
            _space(element)
    return ElementTree.tostring(math, encoding="unicode")


def _correct(element: Element) -> None:
    text = html.unescape(element.text or "")
    variant = element.attrib.pop("mathvariant", "normal")
    if variant != "normal":
        text = "".join(_bold(variant, character) for character in text)
    if element.tag == "mtext":
        text = text.replace(r"\_", "_")
    if element.tag == "mo" and (text in _IDENTIFIERS or _is_word(text)):
        element.tag = "mi"
    if element.tag == "mi" and text in _OPERATORS:
        element.tag = "mo"
    if element.tag == "mi" and text in _UPRIGHT:
        element.set("mathvariant", "normal")
    if element.get("width") == "thinmathspace":
        element.set("width", _THIN)
    if element.tag == "mover":
        _correct_accent(element)
    if element.tag in _LIMITS and _takes_limits(element[0]):
        element.tag = _LIMITS[element.tag]
    element.text = text or None


def _is_word(text: str) -> bool:
    return text.isascii() and text.isalnum()


def _takes_limits(base: Element) -> bool:
    """Σ and Π, whose limits move beside them within a line, and words such as mean, where not."""
    return html.unescape(base.text or "") in _BIG or bool(base.attrib.pop("movablelimits", ""))


def _correct_accent(element: Element) -> None:
    body, mark = element
    narrow_and_wide = ACCENTS.get(html.unescape(mark.text or ""))
    if narrow_and_wide:
        wide = len(body) > 1
        element.set("accent", "true")
        mark.text = narrow_and_wide[wide]
        mark.set("stretchy", "true" if wide else "false")


def _correct_fences(element: Element) -> None:
    """Fonts give a fence that may stretch too much room where it need not."""
    if len(element) and element[0].get("fence") and not any(e.tag in _TALL for e in element.iter()):
        for fence in (element[0], element[-1]):
            fence.set("stretchy", "false")


def _bold(variant: str, character: str) -> str:
    for (style, first), code in BOLD.items():
        if style == variant and 0 <= ord(character) - ord(first) < 26:
            return chr(code + ord(character) - ord(first))
    return character


def _space(parent: Element) -> None:
    """Thin spaces around the names of functions; none after a minus that is a sign."""
    children = list(parent)
    for before, after in itertools.pairwise(children):
        if after.text in _SIGNED and _is_operator(before):
            after.set("form", "prefix")
        elif (_is_function(before) and not _starts_with_operator(after)) or (
            _is_function(after) and not _is_operator(before)
        ):
            parent.insert(list(parent).index(after), Element("mspace", width=_THIN))


def _is_operator(element: Element) -> bool:
    """An operator or a space, but no closing fence: what follows it is an operand."""
    closing = element.get("form") == "postfix" or element.text in _CLOSING
    return element.tag in ("mo", "mspace") and not closing


def _starts_with_operator(element: Element) -> bool:
    if element.tag == "mrow" and len(element):
        return _starts_with_operator(element[0])
    return element.tag in ("mo", "mspace")


def _is_function(element: Element) -> bool:
    if element.tag in ("munder", "msub", "msup", "msubsup", "mrow") and len(element):
        return _is_function(element[0])
    return element.tag == "mi" and len(element.text or "") > 1
