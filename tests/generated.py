"""Lists of ops and layers, written from what the modules declare: `python -m tests.generated`.

The stubs of packages, the list in the README and the table of layers in docs/recipes.md; a test
fails where one of them is not what this would write.
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from inspect import isclass
from pathlib import Path
from pkgutil import iter_modules
from textwrap import TextWrapper
from types import ModuleType
from typing import Final

import handgrad.layers
from handgrad.layers.base import Layer, OpLayer
from handgrad.layers.recurrent import Recurrent
from handgrad.ops import OPS

ROOT: Final = Path(__file__).parents[1]
PACKAGE: Final = ROOT / "src" / "handgrad"

#: The names that `handgrad.layers` has beside layers, by the module that defines it.
_BESIDE_LAYERS: Final = {
    "attention": ("KeysValues",),
    "base": ("Layer", "OpLayer", "Row", "merge", "part", "walk"),
    "flat": ("FlatArrays",),
    "inputs": ("in_own_type",),
}


def layers() -> dict[str, list[type[Layer]]]:
    """Every layer class that has a public name, by the module that defines it."""
    found: dict[str, list[type[Layer]]] = {}
    for each in iter_modules(handgrad.layers.__path__):
        module = import_module(f"handgrad.layers.{each.name}")
        own = [value for name, value in vars(module).items() if _is_layer(name, value, module)]
        found[each.name] = own
    return found


def _is_layer(name: str, value: object, module: ModuleType) -> bool:
    return (
        isclass(value)
        and issubclass(value, Layer)
        and value not in (Layer, OpLayer, Recurrent)
        and value.__module__ == module.__name__
        and not name.startswith("_")
    )


def _imports(module: str, names: Sequence[str]) -> list[str]:
    """One line each, in the order of isort: constants, classes, functions."""

    def kind(name: str) -> tuple[bool, bool, str]:
        return not name.isupper(), name[0].islower(), name.lower()

    return [f"from {module} import {name} as {name}" for name in sorted(names, key=kind)]


def ops_stub() -> str:
    lines = ["from typing import Final", "", *_imports(".", OPS), ""]
    return "\n".join((*lines, "OPS: Final[tuple[str, ...]]\n"))


def layers_stub() -> str:
    lines: list[str] = []
    for module, found in layers().items():
        names = [layer.__name__ for layer in found] + list(_BESIDE_LAYERS.get(module, ()))
        lines += _imports(f"handgrad.layers.{module}", names)
    return "\n".join((*lines, ""))


def package_stub() -> str:
    """The stub as it is, with the lines of the layers written anew."""
    names = [layer.__name__ for found in layers().values() for layer in found]
    start = "    from handgrad.layers import "
    new = [f"    {line}" for line in _imports("handgrad.layers", names)]
    lines: list[str] = []
    for line in (PACKAGE / "__init__.pyi").read_text("utf-8").splitlines():
        if not line.startswith(start):
            lines.append(line)
        elif new:
            lines += new
            new = []
    return "\n".join((*lines, ""))


def readme() -> str:
    """The README with the list of ops as the modules have it."""
    start = "- **Operations** (`hg.ops.<name>.forward` and `.backward`): "
    end = " Names and settings"
    before, rest = (ROOT / "README.md").read_text("utf-8").split(start)
    item, following = rest.split("\n- **", 1)
    item = _item(start + ", ".join(OPS) + "." + end + item.partition(end)[2])
    return f"{before}{item}\n- **{following}"


def recipes() -> str:
    """docs/recipes.md with the table of layers as their constructors have it."""
    # Imported once the stub of the layers is written, which says what layers there are.
    from handgrad.recipes.keys import LAYERS

    start = "## Layers"
    before, rest = (ROOT / "docs" / "recipes.md").read_text("utf-8").split(f"{start}\n", 1)
    said, _, rest = rest.partition("| type |")
    rows: dict[str, list[str]] = {}
    for name, keys in LAYERS.items():
        found = [f"`{key}`{' *' if each.required else ''}" for key, each in keys.items()]
        rows.setdefault(", ".join(found) or "–", []).append(f"`{name}`")
    table = [f"| {', '.join(names)} | {keys} |" for keys, names in rows.items()]
    lines = ("| type | settings |", "| --- | --- |", *table)
    return f"{before}{start}\n{said}" + "\n".join(lines) + "\n\n" + rest.split("\n\n", 1)[1]


def _item(words: str) -> str:
    """A list item in lines of the README's width."""
    wrap = TextWrapper(100, subsequent_indent="  ", break_on_hyphens=False, break_long_words=False)
    return wrap.fill(" ".join(words.split()))


FILES: Final = {
    "README.md": readme,
    "src/handgrad/__init__.pyi": package_stub,
    "src/handgrad/layers/__init__.pyi": layers_stub,
    "src/handgrad/ops/__init__.pyi": ops_stub,
    "docs/recipes.md": recipes,
}


def main() -> None:
    for path, text in FILES.items():
        (ROOT / path).write_text(text(), "utf-8")


if __name__ == "__main__":
    main()
