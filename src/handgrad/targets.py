"""The targets that a user hands to check, notes and derive, as objects or by name.

Named are an op, the model of a recipe or run, an object of the user's module or file.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from itertools import product
from pathlib import Path
from types import FunctionType, MethodType, ModuleType
from typing import TYPE_CHECKING, Any, Final

from handgrad.default_type import default_type
from handgrad.errors import ArgumentError
from handgrad.importing import NoModuleError, module_of
from handgrad.ops import OPS
from handgrad.seeding import seeded
from handgrad.suggestions import did_you_mean

if TYPE_CHECKING:
    from handgrad.recipes import Recipe

#: One example of each data set known by name, so that a model needs no data. All have 10 classes.
_EXAMPLES: Final[dict[str, tuple[int, ...]]] = {
    "digits": (1, 8, 8),
    "mnist": (1, 28, 28),
    "fashion-mnist": (1, 28, 28),
    "cifar10": (3, 32, 32),
    "table": (6,),
}
_CLASSES: Final = 10
#: Keys of [data] that leave an example as it is.
_PLAIN: Final = {"name", "standardize", "validation"}

#: Names of a forward, of its backward, of a function by its value, and of its slope, as they stand
#: in an object, a class or a module.
_AHEAD: Final = (
    *("forward", "forward_pass", "forward_prop", "forward_propagation", "forwardpass"),
    *("forward_propagate", "feedforward", "feed_forward", "propagate", "fprop", "fwd"),
    *("forwardPropagate", "compute_forward"),
)
_BACK: Final = (
    *("backward", "backward_pass", "backward_prop", "backward_propagation", "backwardpass"),
    *("backward_propagate", "back_propagate", "back_propagation", "back_prop", "backprop"),
    *("backpropagate", "backpropagation", "bprop", "bwd", "compute_gradients"),
    *("backwardPropagate", "compute_backward"),
)
_VALUE: Final = (
    *("__call__", "call", "activate", "activation", "function", "fn", "compute", "evaluate"),
    *("compute_output", "loss", "calculate"),
)
_SLOPE: Final = (
    *("derivative", "gradient", "gradients", "grad", "prime", "deriv"),
    *("get_derivative", "get_gradient", "get_grad"),
)
#: Those that are a pair, the most telling first.
PAIRS: Final = (
    *product(_AHEAD, _BACK),
    *product(("__call__", "loss", "calculate"), _BACK[:1]),
    *product(_AHEAD + _VALUE, _SLOPE),
)

#: Names of the first argument of a forward that keeps what backward needs in it.
CONTEXTS: Final = ("ctx", "context")

#: Arguments that ask a function for its derivative.
_FLAG: Final = re.compile(
    r"(is_|return_)?(deriv(ative|ate|ed|e)?|prime|grad(ient)?|backward|back)s?"
)


class Bare(str):
    """The text of a setting that is no literal: a name, or a string without its quotes."""

    __slots__ = ()


@dataclass(frozen=True)
class Target:
    """The object of a TARGET; for the model of a recipe or run also its completed recipe."""

    name: str
    value: Any
    recipe: Recipe | None = None
    #: The arguments that its constructor was given.
    made_of: tuple[str, ...] = ()


def op_of(target: Any) -> ModuleType | None:
    """The op that a target is or names; None for any other."""
    if isinstance(target, str):
        return import_module(f"handgrad.ops.{target}") if target in OPS else None
    is_op = isinstance(target, ModuleType) and target.__name__.startswith("handgrad.ops.")
    return target if is_op else None


def pair_of(target: Any) -> tuple[Callable[..., Any], Callable[..., Any]] | None:
    """Forward and backward, of whatever has both; None for any other target.

    They are a pair; functions or methods of an object, a class or a module under two names that
    belong together, such as forward_pass and backward_pass; a function whose partner stands in its
    module, as affine_backward does for affine_forward; a function that gives its derivative where
    one of its arguments says so, as `sigmoid(x, derivative=True)`; a module with one such pair.
    """
    match target:
        case (forward, backward):
            return (forward, backward) if callable(forward) and callable(backward) else None
        case ModuleType():
            pairs = pairs_of(target)
            return _named(target) or (pairs[0] if len(pairs) == 1 else None)
        case type():
            made = _made(target)
            return _named(target if made is None else made)
        case FunctionType():
            found = (target.__globals__.get(each) for each in partners(target.__name__))
            partner = next((each for each in found if inspect.isfunction(each)), None)
            return _by_flag(target) if partner is None else (target, partner)
    return _named(target)


def pairs_of(module: ModuleType) -> list[tuple[Callable[..., Any], Callable[..., Any]]]:
    """The pairs of functions that a module defines under names that belong together."""
    own = [each for name in _public(module) if inspect.isfunction(each := vars(module)[name])]
    pairs = ((each, pair_of(each)) for each in own if each.__globals__ is vars(module))
    return [pair for _, pair in pairs if pair is not None]


def _named(target: Any) -> tuple[Callable[..., Any], Callable[..., Any]] | None:
    """The two that an object or a module has under names that belong together."""
    for one, other in PAIRS:
        backward = getattr(target, other, getattr(target, f"_{other}", None))
        forward = getattr(target, one, None) if callable(backward) else None
        if one == "__call__" and not isinstance(forward, MethodType):
            continue
        if callable(forward) and callable(backward):
            return forward, backward
    if isinstance(target, ModuleType):
        return None
    methods = dict(inspect.getmembers(target, inspect.ismethod))
    found = [(name, other) for name in methods for other in partners(name) if other in methods]
    return (methods[found[0][0]], methods[found[0][1]]) if len(found) == 1 else None


def _by_flag(
    function: Callable[..., Any],
) -> tuple[Callable[..., Any], Callable[..., Any]] | None:
    """A function and itself with the flag set by which it gives its derivative, if it has one."""
    for name, each in inspect.signature(function).parameters.items():
        if each.default is False and _FLAG.fullmatch(name):
            return function, partial(function, **{name: True})
    return None


def partners(name: str) -> Iterator[str]:
    """The names that the backward of a function of this name may have."""
    for one, other in (("forward", "backward"), ("fwd", "bwd"), ("fprop", "bprop")):
        for change in (str, str.capitalize):
            if change(one) in name:
                yield name.replace(change(one), change(other))
    if name.startswith("for"):
        yield f"back{name.removeprefix('for')}"
    for affix in ("backward", "bwd", "grad", "gradient", "prime", "derivative", "deriv", "vjp"):
        yield f"{name}_{affix}"
        yield f"{affix}_{name}"
        yield f"{name}{affix.capitalize()}"
    yield from (f"d_{name}", f"d{name}")


def _made(kind: type) -> Any:
    """An object of a class whose forward takes self, if it takes no other arguments to make one."""
    if not _needs_object(kind):
        return None
    try:
        inspect.signature(kind).bind()
        return kind()
    except Exception:  # a constructor with arguments, or one that cannot do without its caller
        return None


def resolve(
    text: str,
    settings: Mapping[str, Any] | None = None,
    *,
    arrays: Mapping[str, Any] | None = None,
    seed: int = 0,
) -> Target:
    """The object that a TARGET names.

    An op; a recipe by name or .toml file, or the folder of a run: its model; `module:object` or
    `file.py:object`, where two objects, `forward,backward`, are a pair; a module or file alone, if
    it has forward and backward. Modules are looked for from the current directory first, a file in
    a package is imported as its module. A class is made into an object: `settings` are arguments of
    its constructor, and so are those of `arrays` whose names it has and forward has not; what it
    draws comes from `seed`.

    Raises ArgumentError where there is none of these, or where importing it fails, with the line of
    the user's code that failed; RecipeError and RunError as `handgrad train` does.
    """
    home, colon, _ = text.partition(":")
    if settings and not colon:
        raise ArgumentError(
            f"{text} has no constructor for {', '.join(settings)}; allowed: settings of a class, "
            "file.py:CLASS"
        )
    if colon:
        with seeded(seed):
            return _objects(module_of(home), text, Maker(settings or {}, arrays or {}))
    if text in OPS:
        return _op(text)
    if not text.endswith(".py"):
        from handgrad import recipes  # with all of training, which a user's file does without

        if text in recipes.names() or text.endswith(".toml"):
            return _recipe_model(text)
        if "/" in text.rstrip("/") or (Path(text) / "config.toml").is_file():
            return _run_model(Path(text))
    try:
        with seeded(seed):
            module = module_of(home)
    except NoModuleError:
        raise _unknown(text) from None
    if not all(callable(getattr(module, name, None)) for name in ("forward", "backward")):
        if Path(text).is_dir() and not _public(module):
            raise _unknown(text)
        raise ArgumentError(
            f"{text} has no functions forward and backward; allowed: {text}:NAME, or "
            f"{text}:FORWARD,BACKWARD, of {_listed(_public(module))}"
        )
    return Target(text, module)


def _op(name: str) -> Target:
    if Path(f"{name}.py").is_file():
        raise ArgumentError(
            f"{name} is an op, and {name}.py is a file here; allowed: {name}.py for the file, "
            f"handgrad.ops.{name} for the op"
        )
    return Target(name, import_module(f"handgrad.ops.{name}"))


def _recipe_model(text: str) -> Target:
    from handgrad import recipes

    recipe = recipes.read(text)
    if recipe.data.keys() <= _PLAIN and recipe.data["name"] in _EXAMPLES:
        found: dict[str, Any] = {
            "shape": list(_EXAMPLES[recipe.data["name"]]),
            "classes": [str(i) for i in range(_CLASSES)],
        }
        recipe = recipe.changed("data", **found)
    else:
        recipe = recipes.completed(recipe, recipes.load_task(recipe))
    return Target(text, recipes.build_model(recipe), recipe)


def _run_model(folder: Path) -> Target:
    from handgrad.recipes.runs import load_model, read_recipe

    recipe = read_recipe(folder)
    return Target(str(folder), load_model(folder, recipe), recipe)


# -- the objects of a user's module ----------------------------------------------------------------


def _unknown(text: str) -> ArgumentError:
    from handgrad import recipes

    if Path(text).is_dir():
        folder = text.rstrip("/")
        return ArgumentError(
            f"{text} is a folder without a run or a package; allowed: a file in it, "
            f"{folder}/FILE.py or {folder}/FILE.py:NAME"
        )
    if Path(text).is_file():
        return ArgumentError(
            f"{text} is a file that is no Python; allowed: file.py, file.py:NAME, module:NAME, an "
            "op, a recipe or the folder of a run"
        )
    hint = did_you_mean(text, (*OPS, *recipes.names()))
    return ArgumentError(
        f"{text!r} is no op, recipe, run or module; allowed: an op ({', '.join(OPS)}), a recipe "
        f"({', '.join(recipes.names())}), the folder of a run, module:object, file.py:object{hint}"
    )


def _objects(module: ModuleType, text: str, maker: Maker) -> Target:
    """One object of a module, or the pair of two."""
    home, _, names = text.partition(":")
    found = tuple(_object(module, home, name.strip(), maker) for name in names.split(","))
    if len(found) > 2:
        raise ArgumentError(f"{text} has {len(found)} names; allowed: one, or two, a pair")
    if unused := maker.settings.keys() - {*maker.used}:
        raise ArgumentError(
            f"{text} has no constructor for {', '.join(sorted(unused))}; allowed: settings of a "
            "class, or --option for what forward takes"
        )
    value = found if len(found) == 2 else found[0]
    return Target(text, value, made_of=tuple(maker.used))


def _object(module: ModuleType, home: str, path: str, maker: Maker) -> Any:
    """`name`, or `name.attribute`, of a module; of a class an object."""
    value: Any = module
    for part in path.split("."):
        if not hasattr(value, part):
            known = _public(module)
            hint = did_you_mean(part, known)
            raise ArgumentError(f"{home} has no {path!r}; allowed: {_listed(known)}{hint}")
        value = getattr(value, part)
    is_class = isinstance(value, type) and _needs_object(value)
    return maker.made(value, module, f"{home}:{path}") if is_class else value


class Maker:
    """Makes objects of a user's classes from settings and arrays, and keeps which were used."""

    def __init__(self, settings: Mapping[str, Any], arrays: Mapping[str, Any]) -> None:
        self.settings = settings
        self.arrays = arrays
        self.used: list[str] = []

    def made(self, kind: type, module: ModuleType, name: str) -> Any:
        """An object of a class. Raises ArgumentError where its constructor wants other arguments.

        A setting that is a name of the module, as `Relu`, or of another one, as
        `activations.Relu`, or a class of it called without arguments, as `Relu()`, stands for that
        object, unless the default is a string.
        """
        try:
            parameters = dict(inspect.signature(kind).parameters)
        except (TypeError, ValueError):
            parameters = {}
        takes_any = any(each.kind is each.VAR_KEYWORD for each in parameters.values())
        of_forward = _arguments_of(kind)
        named = {
            key: each
            for key, each in parameters.items()
            if each.kind in (each.POSITIONAL_OR_KEYWORD, each.KEYWORD_ONLY)
        }
        for key in self.settings:
            if key not in named and not takes_any:
                hint = did_you_mean(key, named)
                allowed = ", ".join(named) or "none"
                hint = hint or (f" (or, for forward, --option {key}=...)" * (key in of_forward))
                raise ArgumentError(f"{name} takes no argument {key!r}; allowed: {allowed}{hint}")
        given = {key: x for key, x in self.arrays.items() if key in named and key not in of_forward}
        lacking = [
            key
            for key, each in named.items()
            if each.default is each.empty and key not in {*given, *self.settings}
        ]
        if lacking:
            raise ArgumentError(
                f"{name} is a class that needs {', '.join(lacking)}; allowed: "
                f"{' '.join(f'--set {key}=...' for key in lacking)}, or --shape for arrays"
            )
        try:
            for key, each in self.settings.items():
                given[key] = _meant(each, named.get(key), module)
            with default_type():
                value = kind(**given)
        except Exception as error:
            first = (str(error).splitlines() or ["no message"])[0]
            raise ArgumentError(
                f"{name} cannot be made: {type(error).__name__}: {first}; allowed: other settings"
            ) from None
        self.used += given
        return value


def _meant(value: Any, parameter: inspect.Parameter | None, module: ModuleType) -> Any:
    """A setting, or the object of the module that a bare text names."""
    wants_text = parameter is not None and (
        isinstance(parameter.default, str) or parameter.annotation in (str, "str")
    )
    if not isinstance(value, Bare) or wants_text:
        return value
    name, is_call, _ = value.partition("()")
    home, dot, rest = name.partition(".")
    found: Any = module
    if dot and not hasattr(module, home):
        try:
            found, name = module_of(home), rest
        except NoModuleError:
            return value
    for part in name.split("."):
        found = getattr(found, part, None)
    return value if found is None else found() if is_call else found


def _arguments_of(kind: type) -> tuple[str, ...]:
    """The names of forward's arguments, of an object of this class."""
    forward = _forward_of(kind)
    is_plain = inspect.isfunction(forward)
    return tuple(inspect.signature(forward).parameters) if is_plain else ()


def _forward_of(kind: type) -> Any:
    """Forward as it stands in a class: a function, or a method that is static or the class's."""
    names = dict.fromkeys(name for name, _ in PAIRS if name != "__call__")
    paired = (name for name in vars(kind) if any(other in vars(kind) for other in partners(name)))
    found = (inspect.getattr_static(kind, name, None) for name in (*names, "__call__", *paired))
    kinds = (FunctionType, staticmethod, classmethod)
    return next((each for each in found if isinstance(each, kinds)), None)


def _needs_object(kind: type) -> bool:
    """Return whether forward takes self, unlike the static method of torch.autograd.Function."""
    forward = _forward_of(kind)
    if not inspect.isfunction(forward):
        return False
    first = next(iter(inspect.signature(forward).parameters.values()), None)
    # A decorator that is not told to wraps leaves its own (*args, **kwargs).
    return first is not None and (first.name == "self" or first.kind is first.VAR_POSITIONAL)


def _public(module: ModuleType) -> list[str]:
    """The names that a module defines itself."""
    return [
        name
        for name, value in vars(module).items()
        if not name.startswith("_")
        and (callable(value) or isinstance(value, tuple))
        and getattr(value, "__module__", module.__name__) == module.__name__
    ]


def _listed(names: Sequence[str]) -> str:
    return ", ".join(names) or "nothing, because it defines no functions or classes"
