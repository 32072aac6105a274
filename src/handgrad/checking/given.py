"""The arguments that a forward is given, with the arrays among them named, and put back."""

from __future__ import annotations

import copy
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np

from handgrad.checking.affixes import plain, without_affix
from handgrad.checking.tensors import as_arrays, is_tensor

#: Names of the gradient of whatever a function is given, without underscores.
_GENERAL = re.compile(
    r"(d|grad|gradient|g|delta|nabla)?(x|in|input|inputs|prev|xprev|aprev|a0)"
    r"|(in|input|inputs|x)(grad|gradient|delta)|delta|grad|gradient|error|downstream"
)

#: Names under which tapes keep the number or array that they stand for.
_DATA = ("data", "value", "array", "val", "_data", "_value")


@dataclass(frozen=True)
class Leaf:
    """The place of an array among arguments; `tape` is the object whose data it is."""

    index: int
    tape: Any = None
    attribute: str = ""


@dataclass(frozen=True)
class Given:
    """Arguments with a Leaf in the place of every array, and the way to each."""

    template: tuple[Any, ...]
    arrays: tuple[Any, ...]
    paths: tuple[tuple[Any, ...], ...]

    @classmethod
    def of(cls, values: Sequence[Any]) -> Given:
        """Arrays, tensors and tapes vary, wherever they are; everything else stays as it is."""
        arrays: list[Any] = []
        paths: list[tuple[Any, ...]] = []

        def placed(value: Any, path: tuple[Any, ...]) -> Any:
            if isinstance(value, np.ndarray) or is_tensor(value):
                found = Leaf(len(arrays))
                arrays.append(as_arrays(value))
            elif (attribute := tape_data(value)) is not None:
                found = Leaf(len(arrays), value, attribute)
                arrays.append(np.asarray(getattr(value, attribute), np.float64))
            elif isinstance(value, Mapping):
                return {key: placed(each, (*path, key)) for key, each in value.items()}
            elif isinstance(value, list | tuple):
                return type(value)([placed(each, (*path, i)) for i, each in enumerate(value)])
            else:
                return value
            paths.append(path)
            return found

        template = tuple(placed(value, (i,)) for i, value in enumerate(values))
        return cls(template, tuple(arrays), tuple(paths))

    @property
    def is_plain(self) -> bool:
        """Return whether every argument is an array."""
        return all(isinstance(each, Leaf) and each.tape is None for each in self.template)

    @property
    def tapes(self) -> bool:
        """Return whether an argument is a tape."""
        return any(leaf.tape is not None for leaf in leaves_of(self.template))

    def filled(self, arrays: Sequence[Any]) -> list[Any]:
        """The arguments, with these arrays in the places of those that were given."""

        def put(value: Any) -> Any:
            if isinstance(value, Leaf):
                array = arrays[value.index]
                return array if value.tape is None else on_tape(value, array)
            if isinstance(value, dict):
                return {key: put(each) for key, each in value.items()}
            if isinstance(value, list | tuple):
                return type(value)([put(each) for each in value])
            return copy.deepcopy(value)

        return [put(value) for value in self.template]

    def placed(self, values: Sequence[Any]) -> list[Any]:
        """What stands in the places of the arrays."""
        found = []
        for path in self.paths:
            value: Any = values
            for key in path:
                value = value[key]
            found.append(value)
        return found

    def names(self, arguments: Sequence[str]) -> list[str]:
        """The names of the arrays: those of arguments, or of their entries where they differ."""
        short = [
            _name(path, arguments) if len(path) > 1 else arguments[path[0]] for path in self.paths
        ]
        return [
            name if short.count(name) == 1 else ".".join([arguments[path[0]], *map(str, path[1:])])
            for name, path in zip(short, self.paths, strict=True)
        ]


def _name(path: tuple[Any, ...], arguments: Sequence[str]) -> str:
    *_, last = path
    return f"{arguments[path[0]]}{''.join(map(str, path[1:]))}" if isinstance(last, int) else last


def leaves_of(template: Any) -> Iterator[Leaf]:
    """Every place of an array, in order."""
    if isinstance(template, Leaf):
        yield template
    elif isinstance(template, dict):
        for each in template.values():
            yield from leaves_of(each)
    elif isinstance(template, list | tuple):
        for each in template:
            yield from leaves_of(each)


def tape_data(value: Any) -> str | None:
    """The attribute with the data of a tape: an object with a gradient that can go backward."""
    if is_tensor(value) or isinstance(value, type) or not hasattr(value, "grad"):
        return None
    if not callable(getattr(value, "backward", None)):
        return None
    for name in _DATA:
        data = getattr(value, name, None)
        if isinstance(data, int | float | np.ndarray | np.generic):
            return name
    return None


def on_tape(leaf: Leaf, array: Any) -> Any:
    """A new tape of the same kind that holds this array, as if nothing had been computed yet.

    One of another shape is made anew where that can be done, as it may keep its shape beside.
    """
    if np.shape(array) != np.shape(getattr(leaf.tape, leaf.attribute)):
        with suppress(Exception):
            made = type(leaf.tape)(np.array(array))
            if hasattr(made, "requires_grad"):
                made.requires_grad = leaf.tape.requires_grad
            return made
    tape = copy.deepcopy(leaf.tape)
    is_array = isinstance(getattr(leaf.tape, leaf.attribute), np.ndarray)
    setattr(tape, leaf.attribute, array if is_array or np.ndim(array) else np.float64(array))
    if isinstance(tape.grad, np.ndarray):
        tape.grad = np.zeros(np.shape(array), tape.grad.dtype)
    return tape


def entry_of(gradients: Mapping[Any, Any], name: str) -> Any:
    """The key of the gradient of an array of this name; None if there is none."""
    if name in gradients:
        return name
    last = name.rpartition(".")[2]
    for key in gradients:
        spelled = [str(key), *without_affix(str(key))]
        if plain(last) in map(plain, spelled):
            return key
    return None


def entries_of(
    gradients: Mapping[Any, Any], shapes: Mapping[str, tuple[int, ...]]
) -> dict[str, Any]:
    """The keys of the gradients of arrays of these names and shapes, of those that there are.

    Where no entry is called after the one input left, one called after inputs at large is it.
    """
    named = {name: entry_of(gradients, name) for name in shapes}
    keys = {name: key for name, key in named.items() if key is not None}
    lacking = [name for name in shapes if name not in keys]
    rest = [key for key in gradients if key not in keys.values()]
    general = [key for key in rest if _GENERAL.fullmatch(plain(str(key)))]
    if len(lacking) == len(general) == 1 and np.shape(gradients[general[0]]) == shapes[lacking[0]]:
        keys[lacking[0]] = general[0]
    return keys


def flat(gradients: Any) -> list[Any]:
    """The gradients in nested tuples, lists and dictionaries, in order."""
    if isinstance(gradients, Mapping):
        return [leaf for each in gradients.values() for leaf in flat(each)]
    if isinstance(gradients, list | tuple):
        return [leaf for each in gradients for leaf in flat(each)]
    return [gradients]


def chosen(
    found: Sequence[Any], arrays: Sequence[Any], inputs: Sequence[int], likely: Sequence[int]
) -> tuple[int, ...] | None:
    """The inputs that so many gradients belong to, by their shapes; None where it cannot be told.

    `likely` are those of the inputs that are no targets of a loss.
    """
    shapes = [np.shape(each) for each in found]
    for among in (inputs, likely, [i for i in likely if np.ndim(arrays[i])]):
        if [np.shape(arrays[i]) for i in among] == shapes:
            return tuple(among)
    taken: list[int] = []
    for shape in shapes:
        left = [i for i in likely if i not in taken and np.shape(arrays[i]) == shape]
        if not left:
            return None
        taken.append(left[0])
    return tuple(taken)
