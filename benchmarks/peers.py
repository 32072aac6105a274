"""The other libraries: whether they are installed, and how to get them."""

from __future__ import annotations

from importlib.util import find_spec
from typing import Final

INSTALL: Final = {
    "torch": "pip install torch --index-url https://download.pytorch.org/whl/cpu",
    "jax": "pip install jax",
}
TITLES: Final = {
    "handgrad": "handgrad",
    "numpy": "NumPy",
    "torch": "PyTorch",
    "jax": "JAX",
    "sklearn": "scikit-learn",
}
_HOW: Final = INSTALL | {"sklearn": "pip install scikit-learn"}


def installed(wanted: list[str]) -> tuple[list[str], list[str]]:
    """The wanted peers that are here, and one line for each that is not."""
    here = [name for name in wanted if find_spec(name) is not None]
    missing = [
        f"{TITLES[name]} is not installed and is left out; {_HOW[name]}"
        for name in wanted
        if name not in here
    ]
    return here, missing
