"""The gallery on the front of the site: eight pages that step through a run and back again."""

from __future__ import annotations

from concurrent.futures import ProcessPoolExecutor
from html import escape
from pathlib import Path
from typing import Final

#: Targets of `hg.notes`, each with a title and a sentence on what there is to see.
PAGES: Final = {
    "block": (
        "A transformer block",
        "Its whole backward pass, from the residual sums to the queries.",
    ),
    "attention": ("Attention", "Three gradients through one softmax, number by number."),
    "layer_norm": ("LayerNorm", "The three terms of dx, and why two of them are means."),
    "lstm": ("LSTM", "Gradients through time: dh and dc moving left."),
    "conv2d": ("Convolution", "Three products: forward, for x, and for the kernel."),
    "cross_entropy": ("Cross-entropy", "How a softmax and a logarithm leave p − q."),
    "ffn": ("A network by hand", "Two layers, small numbers, every product opened."),
    "batch_norm": ("BatchNorm", "A gradient that goes through the mean of its batch."),
}


def page(target: str) -> str:
    """The HTML of one page."""
    import handgrad as hg

    return hg.notes(target, numbers=True, alive=True).to_html()


def write(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    with ProcessPoolExecutor() as workers:
        for target, text in zip(PAGES, workers.map(page, PAGES), strict=True):
            (folder / f"{target}.html").write_text(text, "utf-8")


def section() -> str:
    """The gallery as a part of the front page, in Markdown with its cards in HTML."""
    cards = "\n".join(
        f'<a href="alive/{target}.html"><b>{escape(title)}</b><span>{escape(words)}</span></a>'
        for target, (title, words) in PAGES.items()
    )
    return f'## Backward passes, step by step\n\n<div class="cards">\n{cards}\n</div>\n'
