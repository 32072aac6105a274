"""Pieces of a report: well-formed, and what their pictures hold."""

from __future__ import annotations

import base64
import re
import zlib
from html.parser import HTMLParser
from xml.etree import ElementTree

import numpy as np


def check_html(text: str) -> None:
    """Every tag is closed, every drawing is XML, nothing is loaded from elsewhere."""
    checker = _Checker()
    checker.feed(text)
    assert checker.open == []
    for drawing in re.findall("<svg.*?</svg>", text, re.S):
        ElementTree.fromstring(drawing)
    assert not re.findall(r"""(?:src|href)=["'](?!data:)""", text)
    assert "nan" not in re.sub(r"data:[^\"]*|>[^<]*<", "", text).lower()


class _Checker(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []

    def handle_starttag(self, tag: str, attrs: object) -> None:
        if tag not in ("img", "br"):
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: object) -> None:
        pass

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def pictures(text: str) -> list[np.ndarray]:
    """The pixels (H, W, 4) of every picture with opacity, in the order in which they stand."""
    return [_pixels(base64.b64decode(data)) for data in re.findall(r"base64,([\w+/=]+)", text)]


def _pixels(file: bytes) -> np.ndarray:
    width, height = (int.from_bytes(file[at : at + 4], "big") for at in (16, 20))
    rows = zlib.decompressobj().decompress(file[file.index(b"IDAT") + 4 :])
    return np.frombuffer(rows, np.uint8).reshape(height, -1)[:, 1:].reshape(height, width, 4)


def opacity(text: str) -> list[np.ndarray]:
    """The opacity of every picture, from 0 to 1."""
    return [pixels[..., 3] / 255 for pixels in pictures(text)]
