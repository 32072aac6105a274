"""The arguments of a forward: arrays by example or by shape, alone or in dicts, tuples, lists and
objects with attributes, such as dataclasses.

Everything else is a setting: a number stays a variable, a whole number is a letter as well.
"""

from __future__ import annotations

import ast
import inspect
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field, fields, is_dataclass, replace
from types import SimpleNamespace
from typing import Any, Final

import numpy as np

from handgrad.deriving.letters import letters_from
from handgrad.errors import ArgumentError
from handgrad.program.reading import package_of
from handgrad.program.sizes import Size
from handgrad.program.tensors.module import of_tensor

Path = tuple[str | int, ...]

_KINDS: Final = {float: "f", int: "i", bool: "b"}
#: Letters for the axes of example arrays.
_LETTERS: Final = ("N", "D", "H", "C", "M", "K", "P", "Q", "R", "S", "T", "U", "V", "W")
#: Packages whose objects are no plain holders of a user's own things.
_LIBRARIES: Final = {"builtins", "numpy", "scipy", "torch", "jax", "jaxlib", "handgrad"}
_OPERATORS: Final[dict[type[ast.operator], Callable[[Size, Size], Size]]] = {
    ast.Add: lambda a, b: a + b,
    ast.Sub: lambda a, b: a - b,
    ast.Mult: lambda a, b: a * b,
    ast.FloorDiv: lambda a, b: a // b,
    ast.Div: lambda a, b: a // b,
}


@dataclass(frozen=True)
class Spec:
    """An array: its axes, whether it is of floats (f), integers (i) or truths (b), an example.

    is_computed: it is one that a forward keeps, which not each may be. is_single: the example is of
    single precision.
    """

    path: Path
    shape: tuple[Size, ...]
    kind: str
    example: Any = None
    is_computed: bool = False
    is_single: bool = False

    @property
    def name(self) -> str:
        return "_".join(map(str, self.path))

    def lengths(self, letters: Mapping[str, int]) -> tuple[int, ...]:
        """The shape in numbers."""
        found = [size.at(dict(letters)).constant for size in self.shape]
        return tuple(int(n) for n in found if n is not None)


@dataclass(frozen=True)
class Setting:
    """An argument that is no array.

    letter: the one that a whole setting stands for. is_fixed: what is derived is for its value
    alone. tried: the value that the forward is traced with, where that is another.
    """

    path: Path
    value: Any
    letter: str = ""
    is_fixed: bool = False
    tried: int | None = None

    @property
    def example(self) -> Any:
        return self.value if self.tried is None else self.tried

    @property
    def name(self) -> str:
        return "_".join(map(str, self.path))

    @property
    def is_free(self) -> bool:
        """Return whether the setting is a number, which stays a variable."""
        is_number = isinstance(self.value, int | float) and not isinstance(self.value, bool)
        return is_number and not self.is_fixed


@dataclass(frozen=True)
class Arguments:
    """What a forward is called with: a tree of specs and settings for each parameter."""

    parameters: Mapping[str, inspect.Parameter]
    trees: Mapping[str, Any]
    #: The library of an example that is an array of PyTorch or JAX.
    library: str = ""
    #: Lengths of letters that may not have each.
    lengths: Mapping[str, int] = field(default_factory=dict)
    #: What a forward keeps at lengths of letters, for arguments that are its cache.
    keeping: Callable[[np.random.Generator, Mapping[str, int]], Sequence[Any]] | None = None

    @property
    def specs(self) -> list[Spec]:
        return [leaf for leaf in self._leaves() if isinstance(leaf, Spec)]

    @property
    def settings(self) -> list[Setting]:
        return [leaf for leaf in self._leaves() if isinstance(leaf, Setting)]

    def _leaves(self) -> Iterator[Spec | Setting]:
        for tree in self.trees.values():
            yield from leaves(tree)

    @property
    def letters(self) -> list[str]:
        """The letters of shapes, in order; those of whole settings are not among them."""
        own = {s.letter for s in self.settings if s.value is not None and s.letter == s.name}
        found = (x for spec in self.specs for size in spec.shape for x in ordered(size))
        return [x for x in dict.fromkeys(found) if x not in own]

    def lengths_of(self, values: Mapping[str, Any]) -> dict[str, int]:
        """The lengths of letters by the arrays of a call, and by its whole settings."""
        named = {f"x{k}": np.asarray(at(values, s.path)) for k, s in enumerate(self.specs)}
        shapes = list(zip(named, (spec.shape for spec in self.specs), strict=True))
        own = {s.letter: int(at(values, s.path)) for s in self.settings if s.letter}
        found = letters_from(shapes, self.letters, {x: str(n) for x, n in own.items()})
        for letter, text in found.items():
            own[letter] = eval(text, {**named, **own})
        return own

    @property
    def known(self) -> dict[str, int]:
        """The lengths of letters by examples, and of those that may not have each."""
        found = dict(self.lengths)
        for spec in self.specs:
            if spec.example is not None:
                for size, n in zip(spec.shape, spec.example.shape, strict=True):
                    found |= {letter: n for letter in size.letters if size == Size.of(letter)}
        return found

    def mapped(self, function: Callable[[Spec | Setting], Any]) -> dict[str, Any]:
        """The arguments with every leaf replaced."""
        return {name: mapped(tree, function) for name, tree in self.trees.items()}

    def text(self, path: Path) -> str:
        """The text of a leaf: params["w"][0], or layer.w of an object."""
        tree, found = self.trees[str(path[0])], str(path[0])
        for part in path[1:]:
            parts = parts_of(tree)
            found += f"[{part!r}]" if parts is None else f".{part}"
            tree = tree[part] if parts is None else parts[str(part)]
        return found

    def with_fixed(self, paths: Collection[Path]) -> Arguments:
        """The same with some settings for their values alone."""

        def changed(leaf: Spec | Setting) -> Spec | Setting:
            if isinstance(leaf, Setting) and leaf.path in paths:
                return replace(leaf, letter="", is_fixed=True)
            return leaf

        return replace(self, trees=self.mapped(changed))

    def with_tried(self, values: Mapping[Path, int]) -> Arguments:
        """The same with other values of some settings to trace with."""

        def changed(leaf: Spec | Setting) -> Spec | Setting:
            if isinstance(leaf, Setting) and leaf.path in values:
                return replace(leaf, tried=values[leaf.path])
            return leaf

        return replace(self, trees=self.mapped(changed))

    def with_letters(self, letters: Mapping[str, Size]) -> Arguments:
        """The same with other sizes for some letters."""

        def changed(leaf: Spec | Setting) -> Spec | Setting:
            if isinstance(leaf, Setting):
                return leaf
            return replace(leaf, shape=tuple(size.at(dict(letters)) for size in leaf.shape))

        return replace(self, trees=self.mapped(changed))


def parts_of(value: Any) -> dict[str, Any] | None:
    """The attributes of an object of the user's own that holds things; None for all else."""
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return dict(zip(value._fields, value, strict=True))
    own = type(value)
    if own.__module__.partition(".")[0] in _LIBRARIES or hasattr(value, "dtype"):
        return None
    if is_dataclass(value):
        return {field.name: getattr(value, field.name) for field in fields(value)}
    is_plain = own is SimpleNamespace or is_bare(own)
    return dict(getattr(value, "__dict__", {})) or None if is_plain else None


def is_bare(own: type) -> bool:
    """Return whether the objects of a class show as no more than its name and their place."""
    return getattr(own, "__repr__", None) is getattr(object, "__repr__", None)


def with_parts(value: Any, parts: Mapping[str, Any]) -> Any:
    """A copy of an object that holds other things."""
    if isinstance(value, tuple):
        return type(value)(*parts.values())
    made = copy(value)
    for name, part in parts.items():
        object.__setattr__(made, name, part)
    return made


def leaves(tree: Any) -> Iterator[Any]:
    """The leaves of dicts, tuples, lists and objects, in order."""
    parts = tree if isinstance(tree, dict) else parts_of(tree)
    if parts is not None:
        tree = list(parts.values())
    if isinstance(tree, list | tuple):
        for each in tree:
            yield from leaves(each)
    else:
        yield tree


def flat(result: Any) -> list[Any]:
    """Results one by one; None stands for one that a forward leaves out."""
    return [leaf for leaf in leaves(result) if leaf is not None]


def mapped(tree: Any, function: Callable[[Any], Any]) -> Any:
    """Dicts, tuples, lists and objects with every leaf replaced."""
    if isinstance(tree, dict):
        return {key: mapped(each, function) for key, each in tree.items()}
    if (parts := parts_of(tree)) is not None:
        return with_parts(tree, mapped(parts, function))
    if isinstance(tree, list | tuple):
        return type(tree)(mapped(each, function) for each in tree)
    return function(tree)


def at(values: Any, path: Path) -> Any:
    """The leaf of a tree at a path."""
    for part in path:
        parts = parts_of(values)
        values = values[part] if parts is None else parts[str(part)]
    return values


def readings(
    forward: Callable[..., Any], examples: Sequence[Any], given: Mapping[str, Any]
) -> Iterator[Arguments]:
    """The ways to read the arguments of a forward.

    A tuple of whole numbers beside shapes in letters, such as kernel=(2, 2), is a shape, or else a
    setting. Raises ArgumentError as `read_arguments`, which is the first way.
    """
    first = read_arguments(forward, examples, given)
    yield first
    numbers = {str(spec.path[0]) for spec in first.specs if _is_numbers(spec)}
    if len(numbers) == len(first.specs):
        return
    for settings in dict.fromkeys([*((name,) for name in sorted(numbers)), tuple(sorted(numbers))]):
        yield read_arguments(forward, examples, given, settings)


def _is_numbers(spec: Spec) -> bool:
    plain = spec.example is None and len(spec.path) == 1 and bool(spec.shape)
    return plain and not any(size.letters for size in spec.shape)


def read_arguments(
    forward: Callable[..., Any],
    examples: Sequence[Any],
    given: Mapping[str, Any],
    settings: Collection[str] = (),
) -> Arguments:
    """The arguments of a forward; tuples of whole numbers are shapes.

    They are settings among `settings`, and where the default or the annotation says so. Raises
    ArgumentError for what the forward does not take, for a random generator, and where there is no
    array.
    """
    signature = inspect.signature(forward)
    try:
        bound = signature.bind(*examples, **given)
    except TypeError as error:
        name = getattr(forward, "__name__", type(forward).__name__)
        raise ArgumentError(
            f"derive: {error}; allowed: the arguments of {name}{_text(signature)}, arrays or "
            'their shapes in letters, such as ("N", "D")'
        ) from None
    given_names = set(bound.arguments)
    bound.apply_defaults()
    trees: dict[str, Any] = {}
    homes = {package_of(each) for each in leaves([*examples, *given.values()])}
    library = next((each for each in ("torch", "jax") if each in homes), "")
    for name, value in bound.arguments.items():
        if name not in given_names and is_shape(value):  # words, which look like letters
            trees[name] = Setting((name,), value)
            continue
        is_setting = name in settings or name not in given_names
        is_setting = is_setting or _takes_numbers(signature.parameters[name])
        trees[name] = _tree((name,), value, is_setting=is_setting)
    arguments = Arguments(dict(signature.parameters), trees, library)
    if not arguments.specs:
        raise ArgumentError("derive: no array is given; allowed: arrays or their shapes in letters")
    return _settled(arguments)


def _text(signature: inspect.Signature) -> inspect.Signature:
    """The signature without defaults that are arrays, whose numbers nobody reads."""
    own = signature.parameters.values()
    empty = inspect.Parameter.empty
    parameters = [p.replace(default=empty) if hasattr(p.default, "shape") else p for p in own]
    try:
        return signature.replace(parameters=parameters)
    except ValueError:  # an argument without a default would stand behind one with
        return signature


def _takes_numbers(parameter: inspect.Parameter) -> bool:
    """Return whether a parameter is one of numbers by its default or its annotation."""
    is_number = isinstance(parameter.default, int | tuple)
    note = parameter.annotation
    return is_number or str(getattr(note, "__origin__", note)).partition("[")[0].endswith("tuple")


def _settled(arguments: Arguments) -> Arguments:
    """A setting that is a letter of a shape stands for its length."""
    known = {x for spec in arguments.specs for size in spec.shape for x in size.letters}

    def settled(leaf: Spec | Setting) -> Spec | Setting:
        if isinstance(leaf, Setting) and isinstance(leaf.value, str) and leaf.value in known:
            default = arguments.parameters[str(leaf.path[0])].default
            value = default if isinstance(default, int) else None
            return Setting(leaf.path, value, leaf.value)
        return leaf

    return replace(arguments, trees=arguments.mapped(settled))


def _tree(path: Path, value: Any, *, is_setting: bool = False) -> Any:
    if is_shape(value, alone=not is_setting):
        kind = _KINDS[value[-1]] if value and isinstance(value[-1], type) else "f"
        axes = [each for each in value if not isinstance(each, type)]
        return Spec(path, tuple(size_of(each) for each in axes), kind)
    if isinstance(value, dict):
        return {key: _tree((*path, key), each) for key, each in value.items()}
    if (parts := parts_of(value)) is not None:
        given = {k: _tree((*path, k), each, is_setting=is_setting) for k, each in parts.items()}
        return with_parts(value, given)
    if isinstance(value, list | tuple) and not _plain(value):
        return type(value)(_tree((*path, k), each) for k, each in enumerate(value))
    if not isinstance(value, type) and hasattr(value, "shape") and hasattr(value, "dtype"):
        return _example(path, value)
    name = "_".join(map(str, path))
    if isinstance(value, np.random.Generator | np.random.RandomState):
        raise ArgumentError(
            f"derive: {name} is a random generator, of which each run draws other numbers; "
            "allowed: what is drawn, as an array"
        )
    is_whole = isinstance(value, int) and not isinstance(value, bool)
    return Setting(path, value, name if is_whole else "")


def _plain(value: Any) -> bool:
    """Return whether a tuple or list has no array in it, and no shape."""
    return all(
        not hasattr(leaf, "shape") and not is_shape(leaf) and not isinstance(leaf, str)
        for leaf in leaves(value)
    )


def _example(path: Path, value: Any) -> Spec:
    """An array as given, each of its axes a letter of its own."""
    own = of_tensor(value)
    array = np.asarray(value) if own is None else own
    kind = array.dtype.kind.replace("u", "i")
    if kind not in "fib":
        raise ArgumentError(
            f"derive: {'.'.join(map(str, path))} is an array of {array.dtype}; allowed: floats, "
            "integers or truths"
        )
    name = "_".join(map(str, path))
    shape = [Size.of(1) if n == 1 else Size.of(f"{name}_{k}") for k, n in enumerate(array.shape)]
    is_single = array.dtype == np.float32
    own = array.astype(float) if kind == "f" else array
    return Spec(path, tuple(shape), kind, own, is_single=is_single)


def is_shape(value: Any, *, alone: bool = False) -> bool:
    """Return whether an argument is a shape in letters, such as ("N", "4 * H"), ("N", bool) or ().

    alone: a tuple of numbers is one as well.
    """
    if type(value) is not tuple:
        return False
    has_kind = bool(value) and any(value[-1] is kind for kind in _KINDS)
    axes = value[:-1] if has_kind else value
    if axes is value and not alone and not any(isinstance(each, str) for each in axes):
        return False
    return all(type(each) is int or (isinstance(each, str) and _is_size(each)) for each in axes)


def _is_size(text: str) -> bool:
    try:
        size_of(text)
    except (SyntaxError, KeyError, TypeError, AttributeError, ZeroDivisionError):
        return False
    return True


def size_of(text: str | int) -> Size:
    """`2 * D`, `H / 2` or `N - 1` as a size."""
    if isinstance(text, int):
        return Size.of(text)

    def of(node: ast.expr) -> Size:
        if isinstance(node, ast.BinOp):
            return _OPERATORS[type(node.op)](of(node.left), of(node.right))
        if isinstance(node, ast.Name):
            return Size.of(node.id)
        if isinstance(node, ast.Constant) and type(node.value) is int:
            return Size.of(node.value)
        raise TypeError(text)

    return of(ast.parse(text.strip(), mode="eval").body)


def ordered(size: Size) -> list[str]:
    """The letters of a size, in the order of the alphabet."""
    return sorted(size.letters)


def solved(equations: Sequence[tuple[Size, Size]], letters: Sequence[str]) -> dict[str, Size]:
    """Letters in terms of others, from sizes that a program lines up.

    Later letters give way to earlier ones; an equation that no letter solves is left alone.
    """
    found: dict[str, Size] = {}
    for left, right in equations:
        rest = left.at(dict(found)) - right.at(dict(found))
        for letter in sorted(rest.letters & set(letters), key=letters.index, reverse=True):
            alone = [c for atoms, c in rest.terms if atoms == (letter,)]
            without = rest - Size.of(letter) * (alone[0] if alone else 0)
            if not alone or abs(alone[0]) != 1 or letter in without.letters:
                continue
            value = without * -alone[0]
            if value.constant is not None:
                continue
            found = {x: size.at({letter: value}) for x, size in found.items()}
            found[letter] = value
            break
    return found


def renamed(arguments: Arguments) -> dict[str, Size]:
    """Single letters for the axes of examples, in their order."""
    made = {f"{spec.name}_{k}" for spec in arguments.specs for k in range(len(spec.shape))}
    own = [x for x in arguments.letters if x in made]
    taken = {*arguments.letters, *(spec.name for spec in arguments.specs), *arguments.parameters}
    free = [x for x in _LETTERS if x not in taken]
    if len(own) > len(free):
        return {}
    return {x: Size.of(new) for x, new in zip(own, free, strict=False)}
