"""The name that was meant where there is none of this name: a near one, or another library's."""

from __future__ import annotations

import difflib
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from importlib import import_module
from typing import Any, Final

from handgrad.elsewhere import NAMES

#: Packages whose names are looked through beside those of the one that was asked.
_PACKAGES: Final = (
    "handgrad",
    "handgrad.layers",
    "handgrad.losses",
    "handgrad.optimizers",
    "handgrad.models",
    "handgrad.training",
    "handgrad.data",
    "handgrad.initializers",
    "handgrad.ops",
)


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """ "; did you mean <name>?" with the nearest of the known names; "" where none is near."""
    near = _nearest(name, known)
    return f"; did you mean {near}?" if near else ""


def suggesting(package: str) -> Callable[[str], Any]:
    """`__getattr__` of a package whose public names are its `__all__`."""

    def missing(name: str) -> Any:
        raise NoNameError(package, name)

    return missing


class NoNameError(AttributeError):
    """A package has no such name; the text, which is made when it is read, says what was meant.

    Not before, because Python asks a package for the modules in it while they are imported.
    """

    def __init__(self, package: str, name: str) -> None:
        super().__init__(name)
        self._package, self._name = package, name

    def __str__(self) -> str:
        sentence = f"module {self._package!r} has no attribute {self._name!r}"
        meant = "" if self._name.startswith("_") else _meant(self._package, self._name)
        return f"{sentence}; write {meant}" if meant else sentence


def raise_own_error(owner: object, name: str) -> None:
    """Raise again what a property of this name raised; return where there is no such property.

    Python asks `__getattr__` after every AttributeError, also after one from inside a property,
    which would be hidden behind a sentence that denies the property.
    """
    found = getattr(type(owner), name, None)
    if isinstance(found, property) and found.fget is not None:
        found.fget(owner)


class NoAttributeError(AttributeError):
    """An object has no such attribute; the text, which is made when it is read, says what has.

    lines: what to write instead of attributes that the same thing has in other libraries.
    """

    def __init__(self, owner: object, name: str, lines: Mapping[str, str]) -> None:
        super().__init__(name)
        self._owner, self._name, self._lines = owner, name, lines

    def __str__(self) -> str:
        sentence = f"{type(self._owner).__name__} has no attribute {self._name!r}"
        if self._name in self._lines:
            return f"{sentence}; write {self._lines[self._name]}"
        known = (each for each in dir(self._owner) if not each.startswith("_"))
        return sentence + ("" if self._name.startswith("_") else did_you_mean(self._name, known))


def _meant(package: str, name: str) -> str:
    known = sys.modules[package].__all__
    own = package.replace("handgrad", "hg", 1)
    plain = _plain(name)
    everywhere = dict(_everywhere())
    if (same := next((each for each in known if _plain(each) == plain), None)) is not None:
        return f"{own}.{same}"
    if (found := NAMES.get(plain) or everywhere.get(plain)) is not None:
        return found
    near = _nearest(name, known)
    if near:
        return f"{own}.{near}"
    near = _nearest(plain, everywhere, cutoff=0.8)
    return everywhere[near] if near else ""


def _everywhere() -> Iterator[tuple[str, str]]:
    """Public names as one finds them, without case and underscores; the shortest path counts."""
    for package in reversed(_PACKAGES):
        for name in import_module(package).__all__:
            yield _plain(name), f"{package.replace('handgrad', 'hg', 1)}.{name}"


def _nearest(name: str, known: Iterable[str], cutoff: float = 0.6) -> str:
    plain = {_plain(each): each for each in known}
    near = difflib.get_close_matches(_plain(name), plain, n=1, cutoff=cutoff)
    return plain[near[0]] if near else ""


def _plain(name: str) -> str:
    return name.replace("_", "").casefold()
