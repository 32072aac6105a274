"""Objects as text: calls of constructors that make them, and tables for terminals and notebooks."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Iterable, Mapping
from html import escape
from io import StringIO
from typing import Any, Final

import numpy as np

_INDENT: Final = "    "
_WIDTH: Final = 100
#: A notebook shows a table as the terminal does, in letters of one width.
_PRE: Final = '<pre style="line-height: 1.3; font-family: monospace">{code}</pre>'


def call_text(
    kind: str, positional: Iterable[Any], named: Mapping[str, Any], *, in_lines: bool = False
) -> str:
    """The call of a constructor; each argument on a line where it is asked for or one is long."""
    given = [value_text(value) for value in positional]
    given += [f"{name}={value_text(value)}" for name, value in named.items()]
    line = f"{kind}({', '.join(given)})"
    if not in_lines and "\n" not in line and len(line) <= _WIDTH:
        return line
    inner = "".join(f"{each},\n" for each in given)
    indented = "".join(f"{_INDENT}{each}" for each in inner.splitlines(keepends=True))
    return f"{kind}(\n{indented})"


def value_text(value: Any) -> str:
    """A value as it is written in code; of an array only its shape and type."""
    match value:
        case str():
            return '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'
        case tuple():
            inner = ", ".join(map(value_text, value))
            return f"({inner},)" if len(value) == 1 else f"({inner})"
        case np.ndarray():
            return f"<{value.dtype} {value.shape}>"
        case np.generic():
            return repr(value.item())
        case np.dtype():
            return f"np.{value}"
        case type() if issubclass(value, np.generic):
            return f"np.{np.dtype(value)}"
        case functools.partial():
            return call_text("partial", (value.func, *value.args), value.keywords)
    if getattr(value, "__module__", None) == "handgrad.initializers":
        return f"hg.initializers.{value.__name__}"
    return str(getattr(value, "__name__", None) or repr(value))


def changed_settings(owner: Any, values: Mapping[str, Any]) -> dict[str, Any]:
    """Those of the values that are not at their default, in the order of its constructor."""
    parameters = inspect.signature(type(owner)).parameters.items()
    return {
        name: values[name]
        for name, parameter in parameters
        if name in values and not _same(parameter.default, values[name])
    }


def _same(default: Any, value: Any) -> bool:
    plain = type(value) in (bool, int, float, str, tuple)
    return value is default or (plain and bool(default == value))


def terminal_text(renderable: Any, width: int = _WIDTH) -> str:
    """What rich prints, without colours."""
    from handgrad.console import Console

    text = StringIO()
    Console(file=text, width=width, no_color=True).print(renderable)
    return "\n".join(line.rstrip() for line in text.getvalue().splitlines())


def html(renderable: Any) -> str:
    """What rich prints, in its colours, for a notebook."""
    from handgrad.console import Console

    console = Console(file=StringIO(), record=True, width=_WIDTH, force_jupyter=False)
    console.print(renderable)
    return console.export_html(inline_styles=True, code_format=_PRE)


def html_text(text: str) -> str:
    """Plain text for a notebook."""
    return _PRE.format(code=escape(text))


def plain(number: float) -> str:
    """Six digits, without an exponent where a person writes none: 2034350, not 2.03435e+06."""
    rounded = float(f"{number:.6g}")
    return f"{rounded:.0f}" if 1e6 <= abs(rounded) < 1e15 else f"{rounded:g}"
