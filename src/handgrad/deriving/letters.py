"""Where the length of each letter is read off in an emitted function."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from handgrad.program.naming import Names
from handgrad.program.sizes import Size

#: An array's expression, and its shape.
Shaped = tuple[str, tuple[Size, ...]]


def letters_from(
    arrays: Sequence[Shaped], wanted: Iterable[str], known: Mapping[str, str] | None = None
) -> dict[str, str]:
    """An expression for each letter that is an axis of an array, or can be found from one.

    known: the variables of letters that are there already.
    """
    found: dict[str, str] = {}
    axes = [(f"{text}.shape[{k}]", s) for text, shape in arrays for k, s in enumerate(shape)]
    wanted = list(wanted)
    for letter in wanted:
        for text, size in axes:
            if size == Size.of(letter):
                found.setdefault(letter, text)
    names = dict(known or {}) | {letter: letter for letter in found}
    count = -1
    while count != len(names):
        count = len(names)
        for letter in wanted:
            for text, size in axes:
                if letter not in names and (way := solution(size, letter, names)) is not None:
                    found[letter] = way.format(text)
                    names[letter] = letter
    return found


def solution(size: Size, letter: str, known: Mapping[str, str]) -> str | None:
    """A letter from the size that it is in, where all other letters are known."""
    if letter not in size.letters or not size.letters <= {letter, *known}:
        return None
    try:
        once = size.at({letter: 1})  # not 0, by which the size may be divided
        factor = size.at({letter: 2}) - once
    except ZeroDivisionError:  # as N // (N // 2) has it at 1
        return None
    rest = once - factor
    if letter in factor.letters or size != Size.of(letter) * factor + rest:
        return None
    names = Names()
    names.letters.update(known)
    base = "{}"
    if rest != Size.of(0):
        added = rest.constant is not None and rest.constant < 0
        text, precedence = names.size(-rest if added else rest)
        base += f" {'+' if added else '-'} {text if precedence > 5 else f'({text})'}"
    if factor == Size.of(1):
        return base
    text, precedence = names.size(factor)
    whole = base if base == "{}" else f"({base})"
    return f"{whole} // {text if precedence == 9 else f'({text})'}"
