"""The pages that Sphinx is given beside those of the repository, and the table of contents.

docs/index.md is the only list of pages: each of its sections becomes a part of the navigation. A
page of an op is written from `hg.notes`, so that its equations are those of the source that runs;
its headings are Markdown, for the navigation, and all else is the HTML of the notes.
"""

from __future__ import annotations

import importlib
import inspect
import re
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from itertools import groupby
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, Final

from docs.playground.build import build
from docs.site import alive, versions
from handgrad.documents import skeleton
from handgrad.documents.document import Block, Document, Heading
from handgrad.documents.html import block_of

if TYPE_CHECKING:
    from sphinx.application import Sphinx

ROOT: Final = Path(__file__).parents[2]
INDEX: Final = ROOT / "docs" / "index.md"
API: Final = ROOT / "docs" / "api"
NOTEBOOKS: Final = ROOT / "docs" / "notebooks.md"

_LINK = re.compile(r"^- \[([^]]*)\]\(([^)#]+)\.(?:md|rst)\)", re.MULTILINE)
_NOTEBOOK = re.compile(r"\((notebooks/\w+)\.nb\.py\)")
_OP = """
## In Python

```{{eval-rst}}
.. autofunction:: handgrad.ops.{0}.forward
.. autofunction:: handgrad.ops.{0}.backward
```

## The source that runs

```{{literalinclude}} /src/handgrad/ops/{0}.py
:language: python
```
"""


def contents() -> str:
    """The sections of docs/index.md as tables of contents, in the order that it has."""
    parts = [_contents("", ["Documentation <docs/index>"])]
    for section in INDEX.read_text("utf-8").split("\n## ")[1:]:
        title, _, text = section.partition("\n")
        pages = [
            f"{name} <{(INDEX.parent / target).resolve().relative_to(ROOT)}>"
            for name, target in _LINK.findall(text)
        ]
        parts.append(_contents(title, pages))
    listed = "\n".join(parts)
    others = [path.relative_to(ROOT).with_suffix("") for path in sorted(INDEX.parent.glob("*.md"))]
    parts.append(_contents("More", [str(page) for page in others if f"<{page}>" not in listed]))
    notebooks = [f"docs/{name}" for name in _NOTEBOOK.findall(NOTEBOOKS.read_text("utf-8"))]
    parts.append(_contents("Notebooks and examples", [*notebooks, "docs/gallery/index"]))
    packages = [f"docs/api/{name}" for name in sorted(packages_of_handgrad())]
    parts.append(_contents("Python reference", packages))
    return "\n\n".join(parts)


def _contents(caption: str, pages: list[str]) -> str:
    options = [":hidden:", *([f":caption: {caption}"] if caption else [])]
    return "\n".join(["```{toctree}", *options, "", *pages, "```"])


def packages_of_handgrad() -> dict[str, list[str]]:
    """The public names of every public module, as its stub or its `__all__` lists them."""
    import handgrad as hg

    named = {name: getattr(hg, name) for name in dir(hg) if not name.startswith("_")}
    modules = {name: each for name, each in named.items() if inspect.ismodule(each)}
    modules |= {"errors": importlib.import_module("handgrad.errors")}
    found = {
        name: [each for each in getattr(module, "__all__", dir(module)) if _shown(module, each)]
        for name, module in modules.items()
        if name != "ops"
    }
    elsewhere = {each for names in found.values() for each in names}
    found["handgrad"] = [name for name in named if name not in elsewhere and _shown(hg, name)]
    return found | {"ops": []}


def _shown(module: ModuleType, name: str) -> bool:
    value = getattr(module, name)
    own = inspect.isclass(value) or inspect.isfunction(value)
    return own and not name.startswith("_") and value.__module__.startswith("handgrad")


def package_page(name: str, names: list[str]) -> str:
    """A page for a module, with everything that it makes public."""
    import handgrad as hg

    # `hg.hf` is handgrad.io.hf: a module has its own name beside the public one.
    own = getattr(hg, name, None)
    module = own.__name__ if inspect.ismodule(own) else f"handgrad.{name}".removesuffix(".handgrad")
    parts = [f"# {module}", "```{eval-rst}", f".. automodule:: {module}", "   :no-members:", ""]
    for each in names:
        value = getattr(importlib.import_module(module), each)
        kind = "autoclass" if inspect.isclass(value) else "autofunction"
        parts.append(f".. {kind}:: {module}.{each}")
    parts.append("```")
    if name == "ops":
        parts += ["```{toctree}", ":maxdepth: 1", ":glob:", "", "ops/*", "```"]
    return "\n".join([*parts, ""])


def op_page(op: str) -> str:
    """The notes of an op, and its two functions."""
    import handgrad as hg

    return "\n\n".join(_parts(hg.notes(op).document)) + "\n" + _OP.format(op)


def _parts(document: Document) -> Iterator[str]:
    yield f"# {document.title}"
    for is_heading, blocks in groupby(document.blocks, lambda each: isinstance(each, Heading)):
        if is_heading:
            yield from (f"{'#' * (each.level + 1)} {each.content}" for each in blocks)
        else:
            yield _raw(list(blocks), document.lang)


def _raw(blocks: list[Block], lang: str) -> str:
    written = "".join(block_of(block, lang) for block in blocks)
    return f'``````{{raw}} html\n<div class="handgrad">\n{written}</div>\n``````'


def write(app: Sphinx) -> None:
    """Write the reference, a page for every module and op, where it has changed."""
    from handgrad.ops import OPS

    with ProcessPoolExecutor() as workers:
        notes = workers.map(op_page, OPS)
        pages = {f"ops/{op}.md": text for op, text in zip(OPS, notes, strict=True)}
    for name, names in packages_of_handgrad().items():
        pages[f"{name}.md"] = package_page(name, names)
    written = {API / name: text for name, text in pages.items()}
    for path in {*API.rglob("*.md")} - set(written):
        path.unlink()
    for path, text in written.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        if not path.exists() or path.read_text("utf-8") != text:
            path.write_text(text, "utf-8")


def read(app: Sphinx, page: str, source: list[str]) -> None:
    """What a page needs on the site and would not bear in the repository."""
    if page == app.config.root_doc:
        app.env.note_dependency(str(INDEX))
        opening, mark, rest = source[0].partition("\n## ")
        source[0] = f"{opening}\n{alive.section()}{mark}{rest}\n\n{contents()}\n"
    if page == "examples/README":
        source[0] = re.sub(r"\]\((?!picture)(\w+)\.py\)", r"](../docs/gallery/\1.rst)", source[0])
    if page.startswith("docs/notebooks/"):
        name = page.rpartition("/")[2]
        source[0] += f"\n# %% [markdown]\n# {{nb-download}}`{name}.ipynb`\n"
    if page == "docs/playground":
        link = '<p><a href="../playground/index.html">Open the playground</a></p>'
        source[0] = source[0].replace("\n\n", f"\n\n{link}\n\n", 1)


def pictures(block: Any, variables: Any, gallery: Any) -> str:
    """The picture that an example has written, for sphinx-gallery."""
    from sphinx_gallery.scrapers import figure_rst

    written = Path(variables["target_file"]).with_suffix(".svg")
    if not written.exists():
        return ""
    image = Path(next(variables["image_path_iterator"])).with_suffix(".svg")
    written.replace(image)
    return str(figure_rst([str(image)], gallery["src_dir"]))


def arguments(gallery: Any, variables: Any) -> list[str]:
    """The command line on which sphinx-gallery runs an example."""
    return ["-o", str(Path(variables["target_file"]).with_suffix(".svg"))]


def finish(app: Sphinx, error: Exception | None) -> None:
    """Write what stands beside the pages: the way to the first, styles, versions, alive pages."""
    if error is not None or app.builder.name != "html":
        return
    target = app.builder.get_target_uri(app.config.root_doc)
    page = f'<!doctype html><meta http-equiv="refresh" content="0; url={target}">'
    (Path(app.outdir) / "index.html").write_text(page + "<title>handgrad</title>", "utf-8")
    (Path(app.outdir) / "_static" / "notes.css").write_text(skeleton.sheet(), "utf-8")
    versions.write(Path(app.outdir), app.config.version)
    build(Path(app.outdir) / "playground")
    alive.write(Path(app.outdir) / "alive")


def setup(app: Sphinx) -> dict[str, bool]:
    app.connect("builder-inited", write)
    app.connect("source-read", read)
    app.connect("build-finished", finish)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
