"""The page on one's own data runs, block by block, in one program."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

PAGE = (Path(__file__).parents[1] / "docs" / "own-data.md").read_text("utf-8")


@pytest.mark.slow
def test_every_block_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    kinds = {"rose": (1.2, 0.4), "lily": (5.1, 4.8), "iris": (9.0, 0.0)}
    rows = [
        ",".join([*map(str, rng.normal(mean, 0.5).round(2)), name])
        for name, mean in kinds.items()
        for _ in range(50)
    ]
    Path("flowers.csv").write_text("\n".join(["length,width,kind", *rows]), encoding="utf-8")
    names: dict[str, object] = {}
    for block in re.findall(r"^```python\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL):
        exec(compile(block, "own-data.md", "exec"), names)
        printed = capsys.readouterr().out
        for said in re.findall(r"  # (\[.*\]|True)$", block, re.MULTILINE):
            assert said in printed
