"""The growth of a text in a tokenizer of Hugging Face, bounded by its file before it is run.

Its steps may replace a character by several, one after the other: seven steps of a → 16 a's make
268 million of one. A step that adds to all characters, or that Unicode decides, counts with its
worst case; a replacement counts for the character that it begins with, so that a list of
independent ones, as many tokenizers have, does not multiply.
"""

from __future__ import annotations

import base64
from collections.abc import Iterator, Mapping
from typing import Any, Final

#: Characters, or tokens, that one may become: the bound of ALBERT's, the most of those known, is
#: 2,592.
MOST: Final = 3000

#: The lists of steps, by the key that a step of several steps has.
_LISTS: Final = ("normalizers", "pretokenizers", "processors", "decoders")
#: The most characters that one of ASCII and another one may become.
_FACTORS: Final[Mapping[str, tuple[int, int]]] = {
    "NFC": (1, 3),
    "NFD": (1, 4),
    "NFKC": (1, 18),
    "NFKD": (1, 18),
    "Lowercase": (1, 2),
    "BertNormalizer": (1, 24),
    "ByteLevel": (2, 8),
    **dict.fromkeys(("Metaspace", "BPEDecoder", "CTC", "WordPiece"), (2, 2)),
    **dict.fromkeys(
        ("Strip", "StripAccents", "Nmt", "Split", "Digits", "Punctuation", "Whitespace"), (1, 1)
    ),
    **dict.fromkeys(
        ("WhitespaceSplit", "BertPreTokenizer", "CharDelimiterSplit", "UnicodeScripts"), (1, 1)
    ),
    **dict.fromkeys(("FixedLength", "Fuse", "ByteFallback"), (1, 1)),
}
_UNKNOWN: Final = (2, 24)


def growth(content: Any) -> int:
    """The most characters or tokens that one becomes, in the value of a tokenizer.json."""
    if not isinstance(content, dict):
        return 1
    before = [*_steps(content.get("normalizer")), *_steps(content.get("pre_tokenizer"))]
    tokens = 1
    for step in _steps(content.get("post_processor")):
        tokens = max(_tokens(step, tokens, "single"), _tokens(step, tokens, "pair"))
    return max(_Weights(before).most, _Weights([*_steps(content.get("decoder"))]).most, tokens)


def _steps(value: Any) -> Iterator[dict[str, Any]]:
    """The steps in their order, those of lists within lists too."""
    waiting = [value]
    while waiting:
        step = waiting.pop()
        if isinstance(step, list):
            waiting += step[::-1]
        elif isinstance(step, dict):
            inner = [step[name] for name in _LISTS if isinstance(step.get(name), list)]
            waiting += inner
            if not inner:
                yield step


class _Weights:
    """The lengths that characters come to by the steps behind, from the last step to the first."""

    def __init__(self, steps: list[dict[str, Any]]) -> None:
        self._ascii = self._other = 1
        self._own: dict[str, int] = {}
        self._added = 0
        for step in reversed(steps):
            if "content" in step and "pattern" in step:
                self._replace(step["pattern"], str(step["content"]))
            elif "prepend" in step:
                self._added += self._of(str(step["prepend"]))
            elif "precompiled_charsmap" in step:
                self._spread(*2 * (_longest(step["precompiled_charsmap"]),))
            else:
                self._spread(*_FACTORS.get(str(step.get("type")), _UNKNOWN))

    @property
    def most(self) -> int:
        return max(self._ascii, self._other, *self._own.values(), 0) + self._added

    def _of(self, text: str) -> int:
        own, other = self._own, (self._other, self._ascii)
        return sum(own.get(each, other[each.isascii()]) for each in text)

    def _replace(self, pattern: Any, content: str) -> None:
        made = self._of(content)
        literal = pattern.get("String") if isinstance(pattern, dict) else pattern
        if isinstance(literal, str) and literal:
            first = literal[0]
            self._own[first] = max(self._of(first), made)
            return
        # An expression may match every character, and nothing before each of them.
        for name in ("_ascii", "_other"):
            setattr(self, name, max(getattr(self, name), made) + made)
        self._own = {each: max(weight, made) + made for each, weight in self._own.items()}

    def _spread(self, ascii: int, other: int) -> None:
        """A step that may make each character of any other one."""
        most = max(self._ascii, self._other, *self._own.values(), 0)
        self._ascii, self._other, self._own = ascii * most, other * most, {}


def _longest(charsmap: Any) -> int:
    """The longest text that SentencePiece's table puts in the place of a character."""
    try:
        content = base64.b64decode(str(charsmap))
    except ValueError:
        return 1  # which the package refuses as well
    texts = content[4 + int.from_bytes(content[:4], "little") :].split(b"\0")
    return max(1, *(len(each.decode("utf-8", "replace")) for each in texts))


def _tokens(step: Mapping[str, Any], tokens: int, name: str) -> int:
    """The tokens of a text or pair, each of `tokens`, behind a step that adds marks."""
    parts, marks = step.get(name), step.get("special_tokens")
    if not isinstance(parts, list):
        return tokens + 4  # the marks of BERT and RoBERTa
    made = 0
    for part in parts:
        match part:
            case {"SpecialToken": {"id": str(mark)}} if isinstance(marks, dict):
                found = marks.get(mark)
                ids = found.get("ids") if isinstance(found, dict) else None
                made += len(ids) if isinstance(ids, list) else 1
            case _:
                made += tokens
    return made
