"""Packages whose names are loaded when first used: the `.pyi` beside `__init__.py` lists them.

The stub is what type checkers and editors read, and the only list there is. It is parsed when the
first name is asked for, so that importing the package costs next to nothing; for the same reason
nothing is imported here before that, not even `typing`.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any


def attach(package: str, file: str) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """`__getattr__` and `__dir__` of a package, from its name and the path of its `__init__.py`.

    A line `from handgrad.layers import Dense as Dense` of the stub loads that name, and a line
    `from . import ops as ops` a module of the package itself.
    """
    homes: dict[str, str] = {}

    def listed() -> dict[str, str]:
        """Every name with the module that has it."""
        if not homes:
            import ast
            from pathlib import Path

            stub = Path(file).with_suffix(".pyi").read_text(encoding="utf-8")
            for node in ast.walk(ast.parse(stub)):
                if isinstance(node, ast.ImportFrom) and node.module != "typing":
                    homes.update(dict.fromkeys((n.name for n in node.names), node.module or ""))
        return homes

    def load(name: str) -> Any:
        """A name of the stub, when it is first asked for."""
        import sys
        from importlib import import_module

        names = listed()
        if name == "__all__":
            return sorted(names)
        if name not in names:
            from handgrad.suggestions import NoNameError

            raise NoNameError(package, name)
        home = names[name]
        found: Any = (
            getattr(import_module(home), name) if home else import_module(f"{package}.{name}")
        )
        setattr(sys.modules[package], name, found)
        return found

    return load, lambda: sorted(listed())


def public(name: str) -> Any:
    """What `handgrad` has under this name, for a method that is short for a function above it.

    So `model.save(path)` is `hg.save(model, path)`, and a layer knows no more than that name.
    """
    import sys

    return getattr(sys.modules["handgrad"], name)
