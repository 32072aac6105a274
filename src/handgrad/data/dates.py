"""Dates as people write them, with the same in ISO 8601: generated, by way of Babel.

Babel (the optional extra `handgrad[dates]`) knows how each language writes a date. A pair is a day
from 1900 to 2100 in one of its ways ("Sonntag, 3. Mai 1998") and "1998-05-03".

What could be two days is never written. The year always has four digits. Where the month is a
number, either the order is year, month, day, or the day cannot be taken for the month, because it
is above 12 or the same number; so "13/05/1998" occurs and "03/05/1998" does not. Croatian is left
out: its listopad is October and the Polish and Czech one November, with only a dot to tell by.
"""

from __future__ import annotations

import datetime
import re
import unicodedata
from collections.abc import Sequence
from typing import Any, Final, NamedTuple

import numpy as np

from handgrad.data.pairs import PairData, Row, assemble
from handgrad.data.tokens import Symbols, TextCodec
from handgrad.errors import ArgumentError, DataError

FIRST_DAY: Final = datetime.date(1900, 1, 1)
LAST_DAY: Final = datetime.date(2100, 12, 31)

#: Languages and regions whose dates are written, in nine scripts.
# fmt: off
LOCALES: Final = (
    "af", "ar", "bg", "ca", "cs", "da", "de", "el", "en_AU", "en_CA", "en_GB", "en_IN", "en_US",
    "es", "es_MX", "et", "eu", "fi", "fr", "fr_CA", "ga", "gl", "he", "hi", "hu", "id", "is", "it",
    "ja", "ko", "lt", "lv", "ms", "nb", "nl", "pl", "pt", "pt_PT", "ro", "ru", "sk", "sl", "sr",
    "sv", "sw", "th", "tr", "uk", "vi", "zh",
)
# fmt: on
_FORMATS: Final = ("full", "long", "medium", "short")
_SKELETONS: Final = ("yMd", "yMMMd", "yMMMEd")
#: The share of all days whose dates are in the validation part, and in the test part.
_SHARE: Final = 0.1


class Style(NamedTuple):
    """One way to write a date. swappable: day and month are numbers that could change places."""

    locale: Any
    pattern: str
    swappable: bool


def load(
    seed: int = 0,
    *,
    train: int = 50_000,
    validation: int = 2_000,
    test: int = 2_000,
    locales: Sequence[str] = LOCALES,
    ascii: bool = False,
) -> PairData:
    """So many pairs for each part, character by character; no part has a day of another.

    ascii: accents are taken away, and what still has other letters is not used; otherwise dates
    are in Unicode (NFKC, without invisible marks). The same seed and version of Babel give the same
    pairs.
    Raises DataError without Babel or where ascii leaves nothing, ArgumentError for a count below 1
    or an unknown locale.
    """
    counts = {"train": train, "validation": validation, "test": test}
    for name, count in counts.items():
        if count < 1:
            raise ArgumentError(f"dates: {name} is {count}; allowed: an integer from 1")
    languages = styles(locales, ascii)
    rng = np.random.default_rng(seed)
    days = rng.permutation((LAST_DAY - FIRST_DAY).days + 1)
    share = round(_SHARE * len(days))
    parts = zip(counts.values(), np.split(days, [len(days) - 2 * share, -share]), strict=True)
    rows = [_rows(count, own, languages, ascii, rng) for count, own in parts]
    return assemble("dates", rows, _learn)


def _learn(train: list[Row]) -> tuple[TextCodec, TextCodec]:
    source = Symbols.learn((text for text, _ in train), marked=True)
    return source, Symbols.learn((text for _, text in train), marked=True)


def styles(locales: Sequence[str], ascii: bool = False) -> list[list[Style]]:
    """For each locale that has any, the ways to write a date that are not ambiguous.

    Raises DataError without Babel, ArgumentError for an unknown locale.
    """
    try:
        from babel import Locale, UnknownLocaleError
    except ImportError:
        raise DataError(
            "dates: generating them needs Babel; expected `pip install 'handgrad[dates]'`"
        ) from None
    found = []
    for name in locales:
        try:
            locale = Locale.parse(name)
        except (UnknownLocaleError, ValueError):
            raise ArgumentError(
                f"dates: locale is {name!r}; allowed: names that Babel knows, such as en_GB"
            ) from None
        patterns = [locale.date_formats[name].pattern for name in _FORMATS]
        skeletons = locale.datetime_skeletons
        patterns += [skeletons[name].pattern for name in _SKELETONS if name in skeletons]
        ways = [_style(locale, pattern) for pattern in dict.fromkeys(patterns)]
        found.append([way for way in ways if way is not None and _usable(way, ascii)])
    found = [ways for ways in found if ways]
    if not found:
        raise DataError(
            f"dates: no date of {', '.join(locales) or 'no locale'} can be written in ASCII; "
            "expected other locales, or ascii = false"
        )
    return found


def _style(locale: Any, pattern: str) -> Style | None:
    """The style of a CLDR pattern, None where it leaves out the century."""
    fields = re.sub(r"'[^']*'", "", pattern)
    if "yy" in fields and "yyyy" not in fields:
        return None
    parts = re.findall(r"y+|[ML]+|d+", fields)
    numeric = any(part in ("M", "MM", "L", "LL") for part in parts)
    order = "".join(part[0] for part in parts)
    return Style(locale, pattern, swappable=numeric and order not in ("yMd", "yLd"))


def _usable(style: Style, ascii: bool) -> bool:
    """Return whether all twelve months can be written; days above 12 stand for the others."""
    days = [datetime.date(1999, month, 20 + month % 7) for month in range(1, 13)]
    return all(write(day, style, ascii) is not None for day in days)


def write(day: datetime.date, style: Style, ascii: bool = False) -> str | None:
    """The day in this style; None where that could be another, or is not ASCII and should be."""
    from babel.dates import format_date

    if style.swappable and day.day <= 12 and day.day != day.month:
        return None
    text = format_date(day, style.pattern, locale=style.locale)
    text = unicodedata.normalize("NFKD" if ascii else "NFKC", text)
    dropped = ("Cf", "Mn") if ascii else ("Cf",)
    text = "".join(c for c in text if unicodedata.category(c) not in dropped)
    return None if ascii and not text.isascii() else " ".join(text.split())


def _rows(
    count: int,
    days: Any,
    languages: list[list[Style]],
    ascii: bool,
    rng: np.random.Generator,
) -> list[Row]:
    rows: list[Row] = []
    while len(rows) < count:
        day = FIRST_DAY + datetime.timedelta(int(rng.choice(days)))
        ways = languages[rng.integers(len(languages))]
        text = write(day, ways[rng.integers(len(ways))], ascii)
        if text is not None:
            rows.append((text, day.isoformat()))
    return rows
