"""Published sets that recipes name, each with the one command that brings it into `data/`."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

_FOUR: Final = "{train,t10k}-{images-idx3,labels-idx1}-ubyte.gz"


def _fetched(name: str, address: str) -> str:
    return f'curl --create-dirs --output-dir data/{name} -LO "{address}"'


#: By the name of the set; `--data data/NAME` or HANDGRAD_DATA=data reads what the command brings.
COMMANDS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "mnist": _fetched("mnist", f"https://ossci-datasets.s3.amazonaws.com/mnist/{_FOUR}"),
        "fashion-mnist": _fetched(
            "fashion-mnist",
            f"http://fashion-mnist.s3-website.eu-central-1.amazonaws.com/{_FOUR}",
        ),
        "cifar10": (
            "mkdir -p data/cifar10 && curl -L "
            "https://www.cs.toronto.edu/~kriz/cifar-10-binary.tar.gz | tar xz -C data/cifar10"
        ),
        "vowels": (
            "curl -L -o vowels.zip "
            "https://timeseriesclassification.com/aeon-toolkit/JapaneseVowels.zip && "
            "python -m zipfile -e vowels.zip data/vowels"
        ),
        "pronounce": _fetched(
            "pronounce",
            "https://raw.githubusercontent.com/cmusphinx/cmudict/master/cmudict.dict",
        ),
    }
)


def how_to_get(name: str) -> str:
    """The command for this set, as the end of a sentence; empty for one that is not published."""
    command = COMMANDS.get(name)
    return "" if command is None else f"; get it with: {command}"
