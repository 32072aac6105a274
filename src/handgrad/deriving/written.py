"""The sources of a pair for one library, and the module that they make."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

import numpy as np

from handgrad.deriving.defined import unmade
from handgrad.deriving.refusals import UnprovedError
from handgrad.program.emit import Emitter
from handgrad.program.libraries import Library, helper


@dataclass
class Written:
    """A forward and a backward as source, and what they need around them."""

    library: Library
    forward: str
    backward: str
    cache: tuple[str, ...]
    #: The letters of sizes at the end of the cache.
    letters: tuple[str, ...]
    emitters: tuple[Emitter, ...]

    def source_of(self, function: str) -> str:
        """One function, after the helpers that it calls."""
        emitter = self.emitters[-1 if function == "backward" else 0]
        return "".join(self._helpers(emitter)) + (
            self.backward if function == "backward" else self.forward
        )

    def _helpers(self, emitter: Emitter) -> list[str]:
        found = []
        for name, own in sorted(emitter.helpers.items()):
            source = helper(name, self.library)
            source = re.sub(r"\b(np|torch|jnp)\.", f"{emitter.alias}.", source)
            found.append(source.replace(f"def {name}(", f"def {own}(", 1) + "\n\n")
        return found

    def imports(self) -> list[str]:
        """The lines of imports, each once."""
        found: list[str] = []
        both = self.forward + self.backward
        for e in self.emitters:
            if e.uses_math:
                found.append("import math" + (f" as {e.math}" if e.math != "math" else ""))
            modules = sorted(set(re.findall(r"\bscipy\.\w+(?=\.)", both)))
            found += [f"import {module}" for module in modules]
            if "types.SimpleNamespace(" in both:
                found.append("import types")
            if re.search(r"\bjax\.", both):
                found.append("import jax")
            found += e.names.imports
            if self.library.name != "torch":
                found.append(self.library.imports.format(e.alias))
                if any(e.table_home(each) == "numpy" for each in e.tables.values()):
                    found.append("import numpy")
            else:
                found.append("import torch" + (f" as {e.alias}" if e.alias != "torch" else ""))
        plain = dict.fromkeys(found)
        return sorted(plain, key=lambda line: (line.startswith("from"), line.split()[1]))

    def tables(self) -> list[str]:
        """Arrays that the forward has from elsewhere."""
        lines = []
        for e in self.emitters:
            for name, value in e.tables.items():
                values = np.asarray(value)
                home = e.table_home(values)
                make = "tensor" if self.library.name == "torch" else "array"
                # PyTorch makes numbers of Python single.
                is_single = make == "tensor" and values.dtype.kind in "fc"
                kind = f", dtype={home}.{values.dtype.name}" if is_single else ""
                lines.append(f"{name} = {home}.{make}({_listed(values, home)}{kind})")
        return list(dict.fromkeys(lines))

    def module(self, extra: str = "", imports: tuple[str, ...] = ()) -> str:
        """A module with both functions."""
        lines = dict.fromkeys([*imports, *self.imports()])
        first = [x for x in lines if x.startswith("from functools")]
        rest = [x for x in lines if x not in first]
        standard = [x for x in (*first, *rest) if x in (*first, "import math")]
        other = [x for x in rest if x not in standard]
        head = "\n".join(standard) + ("\n\n" if standard and other else "") + "\n".join(other)
        helpers = dict.fromkeys([h for e in self.emitters for h in self._helpers(e)])
        tables = "\n".join(self.tables())
        parts = [
            head + "\n\n",
            *([tables + "\n\n"] if tables else []),
            *(h.rstrip("\n") + "\n\n" for h in helpers),
            self.forward,
            *(["", self.backward] if self.backward else []),
        ]
        text = "\n".join(parts)
        return f"{text}\n\n{extra}" if extra else text

    def compiled(self) -> dict[str, Any]:
        """The names of the module, run."""
        return run_source(self.module(), f"<derived for {self.library.name}>")


def run_source(source: str, name: str) -> dict[str, Any]:
    """The names that a source defines; its lines are shown where it fails.

    Raises UnprovedError for one that reads a name before it is made.
    """
    import linecache

    if unknown := unmade(source):
        raise UnprovedError(f"the source reads {', '.join(unknown)} before it is made")

    linecache.cache[name] = (len(source), None, source.splitlines(keepends=True), name)
    space: dict[str, Any] = {"__name__": name.strip("<>").replace(" ", "_")}
    exec(compile(source, name, "exec"), space)
    return space


def _listed(values: Any, home: str) -> str:
    """An array as nested lists."""
    text = repr(values.tolist())
    for word in ("inf", "nan"):
        text = re.sub(rf"\b{word}\b", f"{home}.{word}", text)
    return text
