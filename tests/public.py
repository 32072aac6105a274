"""The public face of handgrad, read from its source: every name a user can import, and its types.

Nothing is imported, so that packages are read whose extras are not installed.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Final, TypeAlias

SOURCE: Final = Path(__file__).parents[1] / "src"
#: Packages whose names users import.
PACKAGES: Final = (
    "handgrad",
    "handgrad.data",
    "handgrad.inference",
    "handgrad.jax",
    "handgrad.sklearn",
    "handgrad.torch",
)
#: Methods that users call without writing their names.
CALLED: Final = {"__init__", "__call__", "__iter__", "__getitem__", "__enter__", "__len__"}

Definition: TypeAlias = ast.FunctionDef | ast.ClassDef


@cache
def file_of(module: str) -> Path | None:
    """The file with a module's types: the stub of a package that loads its names lazily."""
    base = SOURCE / module.replace(".", "/")
    files = (base / "__init__.pyi", base / "__init__.py", base.with_suffix(".py"))
    return next((file for file in files if file.exists()), None)


@cache
def names_of(module: str) -> dict[str, ast.stmt | tuple[str, str]]:
    """Each name of a module with its statement, or the module and name that it imports."""
    names: dict[str, ast.stmt | tuple[str, str]] = {}
    file = file_of(module)
    if file is None:
        return names
    package = module if file.stem == "__init__" else module.rpartition(".")[0]
    for node in _statements(ast.parse(file.read_text(encoding="utf-8")).body):
        if isinstance(node, ast.ImportFrom):
            home = node.module or ""
            if node.level:
                above = package.split(".")[: len(package.split(".")) - node.level + 1]
                home = ".".join([*above, *([home] if home else [])])
            names |= {each.asname or each.name: (home, each.name) for each in node.names}
        elif isinstance(node, ast.FunctionDef | ast.ClassDef):
            names[node.name] = node
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            names[node.target.id] = node
        elif isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            names[node.targets[0].id] = node
    return names


def _statements(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    """The statements of a module, with those under a condition."""
    for node in body:
        if isinstance(node, ast.If | ast.Try):
            yield from _statements([*node.orelse, *node.body])
        else:
            yield node


@cache
def home(module: str, name: str) -> tuple[str, ast.stmt | None]:
    """The module that defines a name, and its statement; None for a module or a name of others."""
    if file_of(f"{module}.{name}"):
        return f"{module}.{name}", None
    stands = names_of(module).get(name)
    if isinstance(stands, tuple):
        return home(*stands) if stands[0].startswith("handgrad") else (".".join(stands), None)
    return module, stands


def public_names(module: str) -> list[str]:
    """`__all__` where there is one, and otherwise every name that begins with no underscore."""
    names = names_of(module)
    listed = names.get("__all__")
    file = file_of(module)
    if isinstance(listed, ast.Assign) and isinstance(listed.value, ast.List):
        return list(ast.literal_eval(listed.value))
    own = file is not None and file.suffix == ".pyi"
    return [
        name
        for name, stands in names.items()
        if not name.startswith("_") and (own or not isinstance(stands, tuple))
    ]


def definitions(module: str) -> Iterator[tuple[str, Definition]]:
    """The functions and classes that a package offers, each with the module that defines it."""
    for name in public_names(module):
        where, node = home(module, name)
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            yield where, node
        elif node is None and where == f"{module}.{name}" and module != "handgrad.torch":
            yield from definitions(where)


def classes_above(module: str, node: ast.ClassDef) -> Iterator[tuple[str, ast.ClassDef]]:
    """A class and all that it is derived from, as far as handgrad defines them."""
    yield module, node
    for base in node.bases:
        base = base.value if isinstance(base, ast.Subscript) else base
        if isinstance(base, ast.Name):
            where, found = home(module, base.id)
            if isinstance(found, ast.ClassDef):
                yield from classes_above(where, found)


@cache
def functions() -> dict[str, tuple[str, ast.FunctionDef]]:
    """Every public function and method by its full name, with the module that it stands in."""
    found: dict[str, tuple[str, ast.FunctionDef]] = {}
    for package in PACKAGES:
        for module, node in definitions(package):
            if isinstance(node, ast.FunctionDef):
                found[f"{module}.{node.name}"] = module, node
                continue
            for where, owner in classes_above(module, node):
                for method in _statements(owner.body):
                    if isinstance(method, ast.FunctionDef) and (
                        method.name in CALLED or not method.name.startswith("_")
                    ):
                        found[f"{where}.{owner.name}.{method.name}"] = where, method
    return found


@cache
def fields() -> dict[str, tuple[str, ast.expr]]:
    """The type of every field that the constructor of a public dataclass takes, by its full name.

    The value has the module that it stands in too.
    """
    found: dict[str, tuple[str, ast.expr]] = {}
    for package in PACKAGES:
        for module, node in definitions(package):
            above = classes_above(module, node) if isinstance(node, ast.ClassDef) else ()
            for where, owner in above:
                if not any("dataclass" in ast.unparse(each) for each in owner.decorator_list):
                    continue
                for each in owner.body:
                    is_named = isinstance(each, ast.AnnAssign) and isinstance(each.target, ast.Name)
                    if is_named and "ClassVar" not in ast.unparse(each.annotation):
                        found[f"{where}.{owner.name}.{each.target.id}"] = where, each.annotation
    return found


def annotations(function: ast.FunctionDef) -> Iterator[tuple[str, ast.expr]]:
    """Each parameter with its type, and the result's under the name `return`."""
    given = function.args
    several = [given.vararg, given.kwarg]
    for each in [*given.posonlyargs, *given.args, *given.kwonlyargs, *filter(None, several)]:
        if each.annotation is not None:
            yield each.arg, each.annotation
    if function.returns is not None:
        yield "return", function.returns


def names_in(annotation: ast.expr) -> set[str]:
    """The names of an annotation, and of the annotations that stand in it as text."""
    found = set()
    for node in ast.walk(annotation):
        if isinstance(node, ast.Name):
            found.add(node.id)
    return found


def open_types(module: str, annotation: ast.expr) -> set[str]:
    """The names of an annotation that mean Any, directly or as another name for a type with Any."""
    found = set()
    for name in names_in(annotation):
        where, node = home(module, name)
        if name == "Any":
            found.add(name)
        elif where == "handgrad.arrays" or not isinstance(node, ast.AnnAssign | ast.Assign):
            continue
        elif node.value is not None and open_types(where, node.value):
            found.add(name)
    return found
