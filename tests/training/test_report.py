"""The report: one file that needs nothing else and shows what it must."""

from __future__ import annotations

import base64
import io
import re
import zlib
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest

from handgrad import layers
from handgrad.losses import CrossEntropy, SquaredError
from handgrad.optimizers import SGD
from handgrad.training import Trainer, train
from handgrad.training.report.charts import Series, line_chart
from handgrad.training.report.matrix import confusion_matrix, matrix_chart
from handgrad.training.report.pictures import first_filters, image_pixels, png
from tests.training import problem


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("runs") / "a <b> run"
    train(**problem.parts(epochs=2), out=folder)
    return (folder / "report.html").read_text("utf-8")


def test_every_section_is_there(page: str) -> None:
    headings = re.findall("<h2>(.*?)</h2>", page)
    judged = ["How it learned", "Confusion matrix", "Class by class", "How sure it may be"]
    assert headings[:4] == judged
    assert headings[4] in ("Worst mistakes", "Closest calls")
    assert headings[5:] == ["What the first layer looks for", "Gradients", "Layers", "The run"]
    for text in ("test accuracy", "prefers-color-scheme: dark", "width=device-width", "Conv2d"):
        assert text in page
    assert page.count('class="chart"') == 4
    assert page.count("data:image/png") > 4


def test_nothing_is_loaded_from_elsewhere(page: str) -> None:
    assert not re.findall(r"""(?:src|href)=["'](?!data:)""", page)
    assert "http" not in re.sub('http-equiv|xmlns="[^"]*"', "", page)
    assert not re.findall(r"<script|@import|url\((?!#)", page)
    assert len(page) < 200_000


def test_the_page_is_well_formed(page: str) -> None:
    class Checker(HTMLParser):
        void = ("meta", "img", "br")

        def __init__(self) -> None:
            super().__init__()
            self.open: list[str] = []

        def handle_starttag(self, tag: str, attrs: object) -> None:
            if tag not in self.void:
                self.open.append(tag)

        def handle_startendtag(self, tag: str, attrs: object) -> None:
            pass

        def handle_endtag(self, tag: str) -> None:
            assert self.open.pop() == tag

    checker = Checker()
    checker.feed(page)
    assert checker.open == []
    for drawing in re.findall("<svg.*?</svg>", page, re.S):
        ElementTree.fromstring(drawing)
    assert "a &lt;b&gt; run" in page
    assert "nan" not in re.sub(r"data:[^\"]*", "", page).lower()


def test_a_regression_of_tables_has_a_report_too(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(20, 4))
    model = layers.Sequential(layers.Dense(4, 1, rng=rng, dtype=np.float64))
    trainer = Trainer(model, SquaredError(), SGD(lr=0.1), out=tmp_path / "run", progress="off")
    history = trainer.fit(x, x[:, :1], validation_data=(x, x[:, :1]), epochs=1)
    assert history.summary is not None
    assert history.summary["test_accuracy"] is None
    page = (tmp_path / "run" / "report.html").read_text("utf-8")
    headings = re.findall("<h2>(.*?)</h2>", page)
    judged = ["How it learned", "How near it comes", "Worst mistakes"]
    assert headings == [*judged, "Gradients", "Layers", "The run"]
    errors = {name: history.summary[name] for name in ("baseline_error", "r2")}
    assert errors["baseline_error"] == pytest.approx(np.std(x[:, 0]))
    error = history.summary["root_mean_squared_error"]
    assert errors["r2"] == pytest.approx(1 - (error / errors["baseline_error"]) ** 2)


def test_what_was_judged_on_validation_data_is_called_so(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(30, 4)).astype(np.float32), rng.integers(0, 2, 30)
    model = layers.Sequential(layers.Dense(4, 2, rng=rng))
    trainer = Trainer(model, CrossEntropy(), SGD(lr=0.1), out=tmp_path / "run", progress="off")
    trainer.fit(x, y, validation_data=(x, y), epochs=2)
    page = (tmp_path / "run" / "report.html").read_text("utf-8")
    text = re.sub(r"<style>.*?</style>|<details>.*?</details>", "", page, flags=re.S)
    assert "Of 30 validation examples" in text
    assert re.search(r"of 30 validation examples are wrong|No validation example is wrong", text)
    assert not re.search(r"\btest\b", text)
    names = re.findall('class="name"[^>]*>(.*?)<', text)
    assert names[:2] == ["training", "validation"]
    assert names[-1] == "0 Dense", "a number alone would not tell layers apart"


def test_the_heading_is_the_description_of_the_recipe(tmp_path: Path) -> None:
    parts = problem.parts(epochs=1)
    text = 'description = "squares & circles"\n[data]\npath = "/data/mine.npz"\n'
    parts["config"] = replace(parts["config"], text=text)
    train(**parts, out=tmp_path / "first")
    page = (tmp_path / "first" / "report.html").read_text("utf-8")
    assert "<title>first · handgrad</title>" in page
    assert "<h1>Squares &amp; circles</h1><p>Run first on mine.npz. Trained" in page


def test_the_page_can_be_printed(page: str) -> None:
    assert "@media print" in page


def test_png_is_what_decoders_read() -> None:
    pixels = np.random.default_rng(0).integers(0, 256, (5, 7, 3)).astype(np.uint8)
    file = base64.b64decode(png(pixels).partition(",")[2])
    assert file[:8] == b"\x89PNG\r\n\x1a\n"
    start = file.index(b"IDAT") + 4
    rows = np.frombuffer(zlib.decompressobj().decompress(file[start:]), np.uint8).reshape(5, -1)
    assert not rows[:, 0].any()
    np.testing.assert_array_equal(rows[:, 1:].reshape(pixels.shape), pixels)


def test_png_in_pillow() -> None:
    image = pytest.importorskip("PIL.Image")
    pixels = np.arange(12, dtype=np.uint8).reshape(3, 4) * 20
    file = io.BytesIO(base64.b64decode(png(pixels).partition(",")[2]))
    np.testing.assert_array_equal(np.asarray(image.open(file)), pixels)


def test_pictures_of_examples_and_filters() -> None:
    assert image_pixels(np.zeros(10)) is None
    assert image_pixels(np.zeros((2, 4, 4))) is None
    np.testing.assert_array_equal(image_pixels(np.array([[[0.0, 1.0]]])), [[0, 255]])
    stretched = image_pixels(np.array([[[-1.0, 3.0]]]))
    np.testing.assert_array_equal(stretched, [[0, 255]])
    assert first_filters({"weight": np.zeros((6, 1, 3, 3))}, (1, 8, 8))[5].shape == (3, 3, 3)
    assert first_filters({"weight": np.ones((2, 64))}, (1, 8, 8))[0].shape == (8, 8, 3)
    assert first_filters({"weight": np.ones((2, 64))}, (64,)) == []
    assert first_filters({"gamma": np.ones(3)}, (3, 8, 8)) == []


@pytest.mark.parametrize("values", [[1.0], [2.0, 2.0], [0.0, 1e-9], [1e-8, 1e6], [float("nan")]])
@pytest.mark.parametrize("log", [True, False])
def test_charts_of_awkward_values(values: list[float], log: bool) -> None:
    series = [Series("a & b", list(range(len(values))), values, "red")]
    drawing = line_chart(series, label="x", x_label="step", log=log)
    assert drawing == "" or ElementTree.fromstring(drawing) is not None
    assert "nan" not in drawing


def test_confusion_matrix() -> None:
    targets, predictions = np.array([0, 1, 2, 2, 2]), np.array([0, 1, 1, 2, 2])
    counts = confusion_matrix(targets, predictions, 3)
    np.testing.assert_array_equal(counts, [[1, 0, 0], [0, 1, 0], [0, 1, 2]])
    drawing = matrix_chart(counts, ["T-shirt/top", "a&b", "c"])
    ElementTree.fromstring(drawing)
    assert "c read as a&amp;b: 1" in drawing


def test_two_classes_have_large_cells_with_shares() -> None:
    drawing = matrix_chart(np.array([[171, 9], [0, 20]]), ["no", "yes"])
    ElementTree.fromstring(drawing)
    assert "95.0 %" in drawing
    sizes = [int(size) for size in re.findall(r'<rect[^>]* width="(\d+)"', drawing)]
    assert len(sizes) == 4
    assert min(sizes) >= 48
    assert "predicted" in drawing
    assert "true" in drawing


def test_long_names_of_layers_are_told_apart() -> None:
    parts = (
        "attention.norm",
        "attention.inner.q_proj",
        "attention.inner.k_proj",
        "feed_forward.norm",
    )
    names = [f"encoder.blocks.{i}.{part}" for i in (0, 11) for part in parts]
    series = [Series(name, [0, 1], [1, 2], "red") for name in names]
    drawing = line_chart(series, label="x", x_label="step")
    written = re.findall(r'class="name"[^>]*>([^<]+)</text>', drawing)
    assert len(set(written)) == len(names)
    assert all(len(name) <= 24 and name.startswith(("blocks.0…", "blocks.11…")) for name in written)
