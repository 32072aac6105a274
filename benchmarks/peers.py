"""The other libraries: whether they are installed, and how to get them.

A peer is a library in one way of using it, such as `torch-compile`; what stands before the hyphen
is the library.
"""

from __future__ import annotations

from collections.abc import Iterable
from importlib.metadata import version
from importlib.util import find_spec
from typing import Final

_TORCH: Final = "pip install torch --index-url https://download.pytorch.org/whl/cpu"
INSTALL: Final = {
    "torch": _TORCH,
    "torch-compile": _TORCH,
    "torch-bf16": _TORCH,
    "jax": "pip install jax",
    "onnxruntime": "pip install onnxruntime onnx",
    "sklearn": "pip install scikit-learn",
}
TITLES: Final = {
    "handgrad": "handgrad",
    "handgrad-bf16": "handgrad bf16",
    "numpy": "NumPy",
    "blis": "BLIS",
    "torch": "PyTorch",
    "torch-compile": "PyTorch compiled",
    "torch-bf16": "PyTorch bf16",
    "jax": "JAX",
    "onnxruntime": "onnxruntime",
    "sklearn": "scikit-learn",
}
#: The distributions of a library whose files are spread, or have another name.
DISTRIBUTIONS: Final = {"jax": ("jax", "jaxlib"), "sklearn": ("scikit-learn",)}


def library(peer: str) -> str:
    return peer.partition("-")[0]


def libraries(peers: Iterable[str]) -> list[str]:
    """The libraries behind these peers, each once."""
    return list(dict.fromkeys(map(library, peers)))


def library_version(name: str) -> str:
    return version(DISTRIBUTIONS.get(name, (name,))[0])


def precision(contender: str) -> str:
    """The precision of its products; only those of one precision are compared."""
    return "bf16" if contender.endswith("-bf16") else "float32"


def installed(wanted: list[str]) -> tuple[list[str], list[str]]:
    """The wanted peers that are here, and one line for each library that is not."""
    here = [name for name in wanted if find_spec(library(name)) is not None]
    absent = libraries(name for name in wanted if name not in here)
    missing = [
        f"{TITLES[name]} is not installed and is left out; {INSTALL[name]}" for name in absent
    ]
    return here, missing
