"""Names of an emitted function: one space for those of users, letters, adjoints and helpers."""

from __future__ import annotations

import keyword
from collections.abc import Iterable
from typing import Final

from handgrad.program.sizes import Quotient, Size

#: Names that emitted code needs for itself where no argument has taken them.
_NEEDED: Final = ("forward", "backward", "cache", "dy", "ctx")


class Names:
    """Gives names out, each once; what an argument is called stays with the argument."""

    def __init__(self, taken: Iterable[str] = ()) -> None:
        self.arguments = set(taken)
        self.taken = {*keyword.kwlist, *taken}
        self.letters: dict[str, str] = {}
        self.builtins: dict[str, str] = {}

    def reserve(self, names: Iterable[str] = _NEEDED) -> None:
        self.taken.update(names)

    def fresh(self, base: str) -> str:
        """A name that is not taken yet, the base itself if it can be."""
        base = base if base.isidentifier() else "t"
        name, count = base, 1
        while name in self.taken:
            count += 1
            name = f"{base}_{count}"
        self.taken.add(name)
        return name

    def letter(self, letter: str) -> str:
        """The variable of a letter."""
        if letter not in self.letters:
            self.letters[letter] = self.fresh(letter)
        return self.letters[letter]

    def counter(self, letter: str) -> str:
        """The variable that counts the rounds of a loop; those of loops inside are i, j, k."""
        if letter not in self.letters:
            depth = int(letter[1:]) if letter[1:].isdecimal() else 0
            self.letters[letter] = self.fresh("tijk"[min(depth, 3)])
        return self.letters[letter]

    def builtin(self, name: str) -> str:
        """What a function of Python is called here: otherwise where an argument has its name."""
        if name not in self.builtins:
            self.builtins[name] = self.fresh(name)
        return self.builtins[name]

    @property
    def imports(self) -> list[str]:
        """Lines for the functions of Python that are called otherwise here."""
        return [
            f"from builtins import {name} as {own}"
            for name, own in self.builtins.items()
            if name != own
        ]

    def size(self, size: Size | int) -> tuple[str, int]:
        """A size as an expression, and its precedence."""
        size = Size.of(size)
        if not size.terms:
            return "0", 9
        text, first = "", True
        for atoms, coefficient in size.terms:
            alone = len(atoms) == len(size.terms) == coefficient == 1
            factors = [self._atom(atom, not alone) for atom in atoms]
            if abs(coefficient) != 1 or not factors:
                factors = [str(abs(coefficient)), *factors]
            body = " * ".join(factors)
            sign = "-" if coefficient < 0 else ""
            text += f" {sign or '+'} {body}" if not first else sign + body
            first = False
        if len(size.terms) > 1:
            return text, 5
        ((atoms, coefficient),) = size.terms
        if coefficient < 0:
            return text, 7 if len(atoms) <= 1 else 5
        return text, 9 if text.isidentifier() or text.isdecimal() else 6

    def _atom(self, atom: str | Quotient, beside: bool) -> str:
        if isinstance(atom, str):
            return self.letter(atom)
        parts = []
        for part in (atom.top, atom.bottom):
            text, precedence = self.size(part)
            parts.append(text if precedence == 9 else f"({text})")
        text = " // ".join(parts)
        return f"({text})" if beside else text
