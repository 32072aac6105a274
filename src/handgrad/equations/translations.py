"""Texts of docstrings in other languages, for the ops that the notes cover in them.

A text is found by its English words, so that no translation outlives what it translates: where a
docstring changes, the notes of its op are in English again, and a test names what is missing.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from handgrad.equations import romanian

TRANSLATIONS: Final[dict[str, Mapping[str, str]]] = {"ro": romanian.TEXTS}
#: Of each language the names of layers that it has.
_NAMES: Final[dict[str, Mapping[str, str]]] = {"ro": romanian.NAMES}

#: Author and title, the year, and what of it or why.
_CITATION: Final = re.compile(r"(?P<work>.*) \((?P<year>undated|\d{4})\)(?:, (?P<remark>.*))?")


def translated(text: str, lang: str) -> str:
    """The text in a language; in English where it is not known there."""
    return TRANSLATIONS.get(lang, {}).get(text, text)


def named(kind: str, lang: str) -> str:
    """The name of a class of layers or losses in a language; its own where it has none there."""
    return _NAMES.get(lang, {}).get(kind, kind)


def is_translated(text: str, lang: str) -> bool:
    return not text or text in TRANSLATIONS.get(lang, {})


def cited(source: str, lang: str) -> str:
    """Sources with author and title as they are, and the remarks in a language."""
    return "; ".join(_cited(each, lang) for each in source.removesuffix(".").split("; ")) + "."


def _cited(citation: str, lang: str) -> str:
    found = _CITATION.fullmatch(citation)
    if found is None:
        return citation
    remark = f", {translated(found['remark'], lang)}" if found["remark"] else ""
    return f"{found['work']} ({translated(found['year'], lang)}){remark}"
