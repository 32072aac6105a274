"""A derived pair as source for other libraries: PyTorch's autograd.Function, JAX's custom_vjp."""

from __future__ import annotations

import ast
import importlib.util
import inspect
import re
from collections.abc import Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from handgrad.deriving.evaluation import functions_of
from handgrad.deriving.proving import flat
from handgrad.deriving.source import UnreadableError
from handgrad.errors import ArgumentError

if TYPE_CHECKING:
    from handgrad.deriving.derivation import Derivation

LIBRARIES: Final = ("numpy", "torch", "jax")

#: By how much results may differ, of themselves and at all; JAX computes in float32.
_NEAR: Final = {"numpy": (1e-8, 1e-10), "torch": (1e-8, 1e-10), "jax": (1e-3, 1e-4)}
#: What PyTorch calls otherwise; its functions take NumPy's names of arguments.
_TORCH: Final = {
    "absolute": "abs",
    "max": "amax",
    "min": "amin",
    "expand_dims": "unsqueeze",
    "transpose": "permute",
    "concatenate": "cat",
    "matrix_transpose": "adjoint",
    "power": "pow",
    "astype": "asarray",
}


def source_for(derivation: Derivation, library: str) -> str:
    """A module with the derived functions. Raises ArgumentError for an unknown library."""
    if library not in LIBRARIES:
        raise ArgumentError(f"derive: library is {library!r}; allowed: {', '.join(LIBRARIES)}")
    both = f"{derivation.forward_source}\n\n{derivation.backward_source}"
    if library == "numpy":
        return f"import numpy as np\n\n\n{both}"
    tree = (_Torch() if library == "torch" else _Jax()).visit(ast.parse(both))
    written = ast.unparse(ast.fix_missing_locations(tree)).replace("\ndef ", "\n\n\ndef ")
    written = re.sub(r"\n{4,}", "\n\n\n", written)
    functions = [node for node in tree.body if isinstance(node, ast.FunctionDef)]
    forward = next(node for node in functions if node.name == "forward")
    arrays = [each.arg for each in forward.args.args]
    defaults = forward.args.kw_defaults
    named = [
        f"{each.arg}={ast.unparse(default)}" if default is not None else each.arg
        for each, default in zip(forward.args.kwonlyargs, defaults, strict=True)
    ]
    settings = [each.arg for each in forward.args.kwonlyargs]
    name = "".join(part.title() for part in re.split(r"\W|_", derivation.name) if part) or "Derived"
    taken = ", ".join([*arrays, *named])
    passed = ", ".join([*arrays, *(f"{each}={each}" for each in settings)])
    last = derivation.backward_source.rstrip().rpartition("\n")[2]
    gradients = last.strip().removeprefix("return ").split(", ")
    returned = [f"d{each}" if f"d{each}" in gradients else "None" for each in arrays]
    unpacked = f"{', '.join(gradients)}"
    if library == "torch":
        lines = [
            f"class {name}(torch.autograd.Function):",
            "    @staticmethod",
            f"    def forward(ctx, {taken}):",
            f"        y, ctx.cache = forward({passed})",
            "        return y",
            "",
            "    @staticmethod",
            "    def backward(ctx, *dy):",
            f"        {unpacked} = backward(dy if len(dy) > 1 else dy[0], ctx.cache)",
            f"        return {', '.join(returned + ['None'] * len(settings))}"
            + ("," if len(returned) + len(settings) == 1 else ""),
        ]
        return f"import torch\n\n\n{written}\n\n\n" + "\n".join(lines) + "\n"
    numbers = [str(len(arrays) + i) for i in range(len(settings))]
    nondiff = f", nondiff_argnums=({', '.join(numbers)},)" if numbers else ""
    passed_on = ", ".join([*settings, "cache", "dy"])
    lines = [
        f"@partial(jax.custom_vjp{nondiff})",
        f"def {_plain(derivation.name)}({taken}):",
        f"    return forward({passed})[0]",
        "",
        "",
        f"def _forward({taken}):",
        f"    return forward({passed})",
        "",
        "",
        f"def _backward({passed_on}):",
        f"    {unpacked} = backward(dy, cache)",
        f"    return {', '.join(returned)}{',' if len(returned) == 1 else ''}",
        "",
        "",
        f"{_plain(derivation.name)}.defvjp(_forward, _backward)",
    ]
    head = "from functools import partial\n\nimport jax\nimport jax.numpy as jnp\n\n\n"
    return f"{head}{written}\n\n\n" + "\n".join(lines) + "\n"


def prove(derivation: Derivation, library: str, source: str) -> None:
    """Run a source in its library, where that is installed, beside the functions for NumPy.

    Raises UnreadableError where it fails there, or has other values.
    """
    if importlib.util.find_spec(library) is None or not derivation.arguments:
        return
    taken = inspect.signature(derivation.forward).parameters
    arguments = {name: value for name, value in derivation.arguments.items() if name in taken}
    rng = np.random.default_rng(6)
    try:
        with np.errstate(all="ignore"):
            y, cache = derivation.forward(**arguments)
            dys = tuple(rng.standard_normal(np.shape(each)) for each in flat(y))
            wanted = [*flat(y), *flat(derivation.backward(dys if len(dys) > 1 else dys[0], cache))]
        found = _Running(library, source).results(arguments, dys)
        near = all(
            np.shape(a) == np.shape(b) and np.allclose(a, b, *_NEAR[library], equal_nan=True)
            for a, b in zip(found, wanted, strict=True)
        )
        wrong = "" if near else "has other values than that for NumPy"
    except Exception as error:  # of code that no one wrote
        wrong = f"fails ({type(error).__name__}: {error})"
    if wrong:
        raise UnreadableError(
            f"derive: {derivation.where}: the source for {library} {wrong}; allowed: a forward of "
            "operations that are the same there, or the source for numpy"
        )


class _Running:
    """A source that was written here, in its library."""

    def __init__(self, library: str, source: str) -> None:
        self.library = library
        self.names = functions_of(source)

    def results(self, arguments: Mapping[str, Any], dys: tuple[Any, ...]) -> list[Any]:
        """The results and the gradients, as a user of the source gets them."""
        given = {name: self._array(value) for name, value in arguments.items()}
        cotangents = tuple(map(self._array, dys))
        y, cache = self.names["forward"](**given)
        gradients = self.names["backward"](
            cotangents if len(cotangents) > 1 else cotangents[0], cache
        )
        return [np.asarray(each) for each in (*flat(y), *flat(gradients))]

    def _array(self, value: Any) -> Any:
        if not isinstance(value, np.ndarray | np.generic):
            return value
        library = import_module("jax.numpy" if self.library == "jax" else self.library)
        return library.asarray(np.asarray(value))


def _plain(name: str) -> str:
    found = re.sub(r"\W", "_", name)
    return found if found not in ("forward", "backward") else f"derived_{found}"


class _Torch(ast.NodeTransformer):
    """NumPy's calls as PyTorch's."""

    def visit_Call(self, node: ast.Call) -> ast.AST:
        self.generic_visit(node)
        function = node.func
        if not isinstance(function, ast.Attribute):
            return node
        if function.attr in ("max", "min"):
            function.attr = _TORCH[function.attr]
        if not (isinstance(function.value, ast.Name) and function.value.id == "torch"):
            return node
        if function.attr == "sqrt" and not _is_array(node.args[0]):
            return ast.parse(f"({ast.unparse(node.args[0])}) ** 0.5", mode="eval").body
        if function.attr == "tensordot":
            node.keywords = [ast.keyword("dims", each.value) for each in node.keywords]
        if function.attr == "zeros":
            node.keywords = [
                ast.keyword(name, ast.parse(f"{self._like}.{name}", mode="eval").body)
                for name in ("dtype", "device")
            ]
        return node

    #: An array of the type and on the device that zeros shall have.
    _like = ""

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        first = node.args.args[0].arg
        is_backward = node.name.endswith("backward")
        self._like = f"({first}[0] if isinstance({first}, tuple) else {first})"
        self._like = self._like if is_backward else first
        return self.generic_visit(node)

    def visit_Expr(self, node: ast.Expr) -> ast.AST:
        """np.add.at(a, index, value) as a.index_put_(index, value, accumulate=True)."""
        text = ast.unparse(node)
        if text.startswith("np.add.at("):
            call = node.value
            assert isinstance(call, ast.Call)
            array, index, value = (ast.unparse(self.visit(each)) for each in call.args)
            return ast.parse(f"{array}.index_put_({index}, {value}, accumulate=True)").body[0]
        return self.generic_visit(node)

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        self.generic_visit(node)
        if isinstance(node.value, ast.Name) and node.value.id == "np":
            node.value.id = "torch"
            node.attr = _TORCH.get(node.attr, node.attr)
        return node


class _Jax(ast.NodeTransformer):
    """NumPy's calls as those of jax.numpy, and stores as new arrays."""

    def visit_Name(self, node: ast.Name) -> ast.AST:
        node.id = "jnp" if node.id == "np" else node.id
        return node

    def visit_Assign(self, node: ast.Assign) -> ast.AST:
        self.generic_visit(node)
        target = node.targets[0]
        if isinstance(target, ast.Subscript):
            array, index = ast.unparse(target.value), ast.unparse(target.slice).strip("()")
            return ast.parse(f"{array} = {array}.at[{index}].set({ast.unparse(node.value)})").body[
                0
            ]
        return node

    def visit_Expr(self, node: ast.Expr) -> ast.AST:
        self.generic_visit(node)
        call = node.value
        if isinstance(call, ast.Call) and ast.unparse(call.func) == "jnp.add.at":
            array, index, value = map(ast.unparse, call.args)
            return ast.parse(f"{array} = {array}.at[{index.strip('()')}].add({value})").body[0]
        return node


def _is_array(node: ast.expr) -> bool:
    """Return whether an argument is more than letters of sizes and numbers."""
    names = [each.id for each in ast.walk(node) if isinstance(each, ast.Name)]
    return not all(each.isupper() for each in names)
