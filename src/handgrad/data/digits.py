"""The 1,797 handwritten digits that come with the package; see ATTRIBUTION beside this file."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from handgrad.data.dataset import Dataset, Pixels, split_dataset
from handgrad.data.npy import read_npz


def load(seed: int = 0) -> Dataset:
    """Real 8×8 scans with values 0 to 16, here 0 to 1; a stratified fifth is the test part.

    Shapes: x (N, 1, 8, 8), y (N,). The split is drawn from `seed`.
    Raises DataError where the installed file is damaged.
    Source: Alpaydin, Kaynak, Optical Recognition of Handwritten Digits (1998), CC BY 4.0.
    """
    arrays, _ = read_npz(Path(__file__).with_name("digits.npz"))
    images, labels = arrays["images"], arrays["labels"]
    x = Pixels(images[:, None], maximum=16.0)
    return split_dataset("digits", x, labels.astype(np.int64), [str(d) for d in range(10)], seed)
