"""The tables that the families fill: NumPy's signatures, helpers of emitted code, and refusals.

A signature takes nodes, sizes and Python's values as NumPy takes arrays, and gives nodes back.
"""

import ast
import importlib
import inspect
import sys
import types
from collections.abc import Callable
from typing import Any, NoReturn, TypeVar

from handgrad.program.node import Node, world

Signature = TypeVar("Signature", bound=Callable[..., Any])
Spelling = str | Callable[[Any, Node], str | tuple[str, int]]

# NumPy's or SciPy's function, or (ufunc, "reduce"), (ufunc, "accumulate") → its signature.
FUNCTIONS: dict[Any, Callable[..., Any]] = {}
_UNMET: set["OfSciPy"] = set()  # those of SciPy that are known by name alone
CREATION: set[Any] = set()  # traced without a traced operand, so that sizes keep their letters
CHANGING: set[Any] = set()  # in place: the result takes the first operand's place
# What emitted code may call: name → library → source, in which `np` is the library's module.
HELPERS: dict[str, dict[str, str]] = {}
#: The types of the kinds: Python's, by which NumPy and JAX take their own, and PyTorch's.
TYPES = {"f": "float", "i": "int", "b": "bool", "c": "complex"}
TORCH_TYPES = {"f": "torch.float64", "i": "torch.int64", "b": "torch.bool", "c": "torch.complex128"}


def refuse(reason: str, instead: str = "") -> NoReturn:
    """Ends the trace in one sentence; `instead` is what the user may write."""
    world().refuse(reason + (f"; write {instead}" if instead else ""))


class OfSciPy:
    """A function of SciPy, which is imported where the function is first called.

    Where SciPy is not installed, it says so there.
    """

    def __init__(self, module: str, name: str) -> None:
        self.__module__, self.__name__ = module, name

    def __call__(self, *args: Any, **keywords: Any) -> Any:
        try:
            module = importlib.import_module(self.__module__)
        except ModuleNotFoundError:
            refuse(f"{self.__module__}.{self.__name__} is needed; install SciPy")
        return getattr(module, self.__name__)(*args, **keywords)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, OfSciPy) and self._place == other._place

    def __hash__(self) -> int:
        return hash(self._place)

    @property
    def _place(self) -> tuple[str, str]:
        return self.__module__, self.__name__


class SciPyModule(types.ModuleType):
    """A module of SciPy that need not be imported yet."""

    def __getattr__(self, name: str) -> OfSciPy:
        if name.startswith("__"):
            raise AttributeError(name)
        return OfSciPy(self.__name__, name)


def module_of_scipy(name: str) -> Any:
    """A module of SciPy by its functions, none of which is imported before it is called."""
    return SciPyModule(f"scipy.{name}")


def signature_of(function: Any) -> Callable[..., Any] | None:
    """The signature of a function of NumPy or SciPy; None for one that is not known."""
    if function not in FUNCTIONS:
        _meet_scipy()
    return FUNCTIONS.get(function)


def _meet_scipy() -> None:
    """Enter the functions of SciPy's modules that somebody has imported, as they are."""
    for each in [x for x in _UNMET if x.__module__ in sys.modules]:
        _UNMET.remove(each)
        if (own := getattr(sys.modules[each.__module__], each.__name__, None)) is not None:
            FUNCTIONS.setdefault(own, FUNCTIONS[each])


def known(*functions: Any) -> Callable[[Signature], Signature]:
    """Registers a signature for some functions of NumPy or SciPy."""

    def keep(signature: Signature) -> Signature:
        FUNCTIONS.update(dict.fromkeys(functions, signature))
        _UNMET.update(each for each in functions if isinstance(each, OfSciPy))
        return signature

    return keep


def creation(*functions: Any) -> Callable[[Signature], Signature]:
    """Registers a signature for functions that make arrays from sizes."""
    CREATION.update(functions)
    return known(*functions)


def applied(function: Any, *args: Any, **keywords: Any) -> Node:
    """A function with one result that another family has the signature of, on nodes."""
    result: Node = FUNCTIONS[function](*args, **keywords)
    return result


def changing(*functions: Any) -> Callable[[Signature], Signature]:
    """Registers a signature for functions that change their first operand and return nothing."""
    CHANGING.update(functions)
    return known(*functions)


def refused(reason: str, instead: str, *functions: Any, always: bool = False) -> None:
    """Registers a sentence for functions without a derivative; `{name}` is the function's."""
    for function in functions:
        name = getattr(function, "__name__", str(function))

        def signature(*_: Any, name: str = name, **__: Any) -> NoReturn:
            refuse(reason.format(name=name), instead)

        FUNCTIONS.setdefault(function, signature)
    if always:
        CREATION.update(functions)


def helper(library: str = "numpy") -> Callable[[Signature], Signature]:
    """Registers a function as a helper of emitted code: its own source, without types."""

    def keep(function: Signature) -> Signature:
        HELPERS.setdefault(function.__name__, {})[library] = plain_source(function)
        return function

    return keep


def plain_source(function: Callable[..., Any]) -> str:
    """The source of a function as code without annotations, docstring and decorators."""
    tree = ast.parse(inspect.getsource(function))
    definition = tree.body[0]
    assert isinstance(definition, ast.FunctionDef)
    definition.decorator_list, definition.returns = [], None
    for argument in [*definition.args.args, *definition.args.kwonlyargs]:
        argument.annotation = None
    if ast.get_docstring(definition):
        del definition.body[0]
    return ast.unparse(tree) + "\n"


def plain(node: Node) -> bool:
    """A number of Python in emitted code: a constant, a size, or arithmetic of them."""
    if node.op in ("const", "size"):
        return True
    return node.ndim == 0 and bool(node.args) and all(map(plain, node.args))


def with_tensors(name: str) -> Spelling:
    """A function of torch that takes no numbers: they become tensors like another operand."""

    def text(e: Any, n: Node) -> str:
        like = next((a for a in n.args if not e.is_number(a)), None)
        if like is None:
            return f"{name}({', '.join(f'torch.tensor({e.arg(a)})' for a in n.args)})"
        args = (
            f"torch.full_like({e.arg(like)}, {e.arg(a)})" if e.is_number(a) else e.arg(a)
            for a in n.args
        )
        return f"{name}({', '.join(args)})"

    return text
