"""The targets that a user hands to check, notes and derive, as objects or by name.

Named are an op, the model of a recipe or run, an object of the user's module or file.
"""

from __future__ import annotations

import importlib.util
import inspect
import sys
import sysconfig
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from types import FunctionType, MethodType, ModuleType
from typing import TYPE_CHECKING, Any, Final

import handgrad
from handgrad.errors import ArgumentError
from handgrad.ops import OPS
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

#: Names under which a forward and its backward stand in an object, a class or a module.
_PAIRS: Final = (
    ("forward", "backward"),
    ("forward_pass", "backward_pass"),
    ("forward_prop", "backward_prop"),
    ("forward_propagation", "backward_propagation"),
    ("forwardpass", "backwardpass"),
    ("forward", "backprop"),
    ("feedforward", "backprop"),
    ("fprop", "bprop"),
    ("fwd", "bwd"),
    ("__call__", "backward"),
    ("__call__", "gradient"),
    ("__call__", "derivative"),
    ("__call__", "grad"),
    ("__call__", "prime"),
    ("fn", "grad"),
    ("fn", "derivative"),
    ("loss", "gradient"),
    ("loss", "grad"),
)

#: Folders of code that is not the user's.
_LIBRARIES: Final = tuple(
    {*(sysconfig.get_path(name) for name in ("stdlib", "purelib", "platlib"))}
    | {str(Path(handgrad.__file__).parent)}
)


@dataclass(frozen=True)
class Target:
    """The object of a TARGET; for the model of a recipe or run also its completed recipe."""

    name: str
    value: Any
    recipe: Recipe | None = None


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
    module, as affine_backward does for affine_forward; a module with one such pair.
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
            found = (target.__globals__.get(each) for each in _partners(target.__name__))
            partner = next((each for each in found if inspect.isfunction(each)), None)
            return None if partner is None else (target, partner)
    return _named(target)


def pairs_of(module: ModuleType) -> list[tuple[Callable[..., Any], Callable[..., Any]]]:
    """The pairs of functions that a module defines under names that belong together."""
    own = [each for name in _public(module) if inspect.isfunction(each := vars(module)[name])]
    pairs = ((each, pair_of(each)) for each in own if each.__globals__ is vars(module))
    return [pair for _, pair in pairs if pair is not None]


def _named(target: Any) -> tuple[Callable[..., Any], Callable[..., Any]] | None:
    """The two that an object or a module has under names that belong together."""
    for one, other in _PAIRS:
        forward, backward = (getattr(target, name, None) for name in (one, other))
        if one == "__call__" and not isinstance(forward, MethodType):
            continue
        if callable(forward) and callable(backward):
            return forward, backward
    return None


def _partners(name: str) -> Iterator[str]:
    """The names that the backward of a function of this name may have."""
    for one, other in (("forward", "backward"), ("fwd", "bwd"), ("fprop", "bprop")):
        for change in (str, str.capitalize):
            if change(one) in name:
                yield name.replace(change(one), change(other))
    for affix in ("backward", "bwd", "grad", "gradient", "prime", "derivative", "vjp"):
        yield f"{name}_{affix}"
        yield f"{affix}_{name}"
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


def resolve(text: str) -> Target:
    """The object that a TARGET names.

    An op; a recipe by name or .toml file, or the folder of a run: its model; `module:object` or
    `file.py:object`, where two objects, `forward,backward`, are a pair; a module or file alone, if
    it has forward and backward. Modules are looked for from the current directory first.

    Raises ArgumentError where there is none of these, or where importing it fails, with the line of
    the user's code that failed; RecipeError and RunError as `handgrad train` does.
    """
    from handgrad import recipes

    home, colon, names = text.partition(":")
    if not colon:
        if text in OPS:
            return _op(text)
        if text in recipes.names() or text.endswith(".toml"):
            return _recipe_model(text)
        if "/" in text.rstrip("/") and not text.endswith(".py"):
            return _run_model(Path(text))
        if (Path(text) / "config.toml").is_file():
            return _run_model(Path(text))
    if colon:
        return Target(text, _objects(_module(home), home, names))
    try:
        module = _module(home)
    except _NoModuleError:
        raise _unknown(text) from None
    if not all(callable(getattr(module, name, None)) for name in ("forward", "backward")):
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


# -- a user's module -------------------------------------------------------------------------------


def _module(home: str) -> ModuleType:
    if home.endswith(".py"):
        return _file(Path(home))
    missing = _NoModuleError(
        f"{home!r} is no module, here or installed; allowed: module:object or file.py:object"
    )
    if not all(part.isidentifier() for part in home.split(".")):
        raise missing
    _look_in(Path.cwd())
    try:
        with _importing(home):
            return import_module(home)
    except ModuleNotFoundError:
        raise missing from None


class _NoModuleError(ArgumentError):
    """There is no module of this name."""


def _unknown(text: str) -> ArgumentError:
    from handgrad import recipes

    hint = did_you_mean(text, (*OPS, *recipes.names()))
    return ArgumentError(
        f"{text!r} is no op, recipe, run or module; allowed: an op ({', '.join(OPS)}), a recipe "
        f"({', '.join(recipes.names())}), the folder of a run, module:object, file.py:object{hint}"
    )


def _file(path: Path) -> ModuleType:
    """The module in a file, run anew, with its folder searched first as `python file.py` does."""
    if not path.is_file():
        raise ArgumentError(f"{path} does not exist; allowed: a Python file")
    _look_in(path.absolute().parent)
    name = path.stem if path.stem not in sys.modules else f"{path.stem} ({path})"
    spec = importlib.util.spec_from_file_location(name, path.absolute())
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # where inspect looks for the source of a class
    with _importing(str(path)):
        spec.loader.exec_module(module)
    return module


def _look_in(folder: Path) -> None:
    if str(folder) not in sys.path:
        sys.path.insert(0, str(folder))


@contextmanager
def _importing(home: str) -> Iterator[None]:
    """Whatever the module raises, as one sentence; except that there is no such module."""
    try:
        yield
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # a user's own class of errors may be none of Exception
        missing = getattr(error, "name", None) if isinstance(error, ModuleNotFoundError) else None
        if missing is not None and f"{home}.".startswith(f"{missing}."):
            raise
        raise ArgumentError(f"{home} cannot be imported: {_told(error)}") from None


def _told(error: BaseException) -> str:
    """The error, and the line of the user's code that raised it."""
    lines = str(error).splitlines() or ["no message"]
    if isinstance(error, SyntaxError) and error.filename:
        return f"{_shown(error.filename)}, line {error.lineno}: {type(error).__name__}: {error.msg}"
    frames = traceback.extract_tb(error.__traceback__)
    own = [f for f in frames if not f.filename.startswith((*_LIBRARIES, "<"))]
    where = f"{_shown(own[-1].filename)}, line {own[-1].lineno}: " if own else ""
    return f"{where}{type(error).__name__}: {lines[0]}"


def _shown(file: str) -> str:
    """A path as short as it can be from here."""
    path = Path(file)
    return str(path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path)


def _objects(module: ModuleType, home: str, names: str) -> Any:
    found = tuple(_object(module, home, name.strip()) for name in names.split(","))
    if len(found) > 2:
        raise ArgumentError(f"{home}:{names} has {len(found)} names; allowed: one, or two, a pair")
    return found if len(found) == 2 else found[0]


def _object(module: ModuleType, home: str, path: str) -> Any:
    """`name`, or `name.attribute`, of a module."""
    value: Any = module
    for part in path.split("."):
        if not hasattr(value, part):
            known = _public(module)
            hint = did_you_mean(part, known)
            raise ArgumentError(f"{home} has no {path!r}; allowed: {_listed(known)}{hint}")
        value = getattr(value, part)
    if isinstance(value, type) and _needs_object(value):
        raise ArgumentError(f"{home}:{path} is a class; allowed: an object of it, {path}(...)")
    return value


def _needs_object(kind: type) -> bool:
    """Return whether forward takes self, unlike the static method of torch.autograd.Function."""
    names = dict.fromkeys(name for name, _ in _PAIRS if name != "__call__")
    found = (inspect.getattr_static(kind, name, None) for name in (*names, "__call__"))
    forward = next((each for each in found if each is not None), None)
    return (
        inspect.isfunction(forward)
        and next(iter(inspect.signature(forward).parameters), "") == "self"
    )


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
