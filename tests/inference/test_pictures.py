"""Photographs of drawings, brought into the form of the training images."""

from __future__ import annotations

import numpy as np
import pytest

import handgrad as hg
from handgrad.errors import DataError
from handgrad.inference.pictures import Cut, Framing, step_for
from handgrad.inference.preprocessing import Preprocessing

Image = pytest.importorskip("PIL.Image")
DIGITS = hg.data.load("digits")


@pytest.fixture(scope="module")
def frame():
    (step,) = step_for(DIGITS.x_train)
    assert isinstance(step, Framing)
    return step


def photograph(digit, size, *, dark, at):
    """A drawing of the set, enlarged to size and laid on a sheet twice as large."""
    pixels = np.round(255 * DIGITS.x_test[digit][0]).astype(np.uint8)
    drawn = Image.fromarray(pixels).resize((size, size), Image.Resampling.BICUBIC)
    sheet = Image.new("L", (2 * size, 2 * size), 0)
    sheet.paste(drawn, at)
    return Image.fromarray(255 - np.asarray(sheet)) if dark else sheet


@pytest.mark.parametrize("dark", [False, True])
@pytest.mark.parametrize("size", [20, 150])
def test_the_first_view_is_the_drawing_wherever_it_lies(frame, tmp_path, dark, size):
    for digit in range(10):
        photograph(digit, size, dark=dark, at=(3, size // 2)).save(tmp_path / "a.png")
        reading = frame.read(tmp_path / "a.png")
        drawn = DIGITS.x_test[digit][0]
        found = reading.x[:, 0].reshape(len(reading.x), -1).astype(np.float64)
        cosines = found @ drawn.ravel() / np.linalg.norm(found, axis=1) / np.linalg.norm(drawn)
        assert cosines.max() > 0.85
        assert reading.x.min() >= 0
        assert reading.x.max() <= 1
        assert reading.doubts == ()
        assert ("dark and light swapped" in reading.done) == dark


def test_a_set_of_dark_drawings_keeps_its_polarity(tmp_path):
    (step,) = step_for(1 - DIGITS.x_train[:])
    photograph(3, 60, dark=True, at=(30, 30)).save(tmp_path / "a.png")
    reading = step.read(tmp_path / "a.png")
    assert "dark and light swapped" not in reading.done
    assert np.median(reading.x) > 0.5


def _pictures_of_nothing(rng):
    slope = np.linspace(0, 255, 100)
    yield np.zeros((60, 60)) + 255 * (np.add.outer(np.arange(60), np.arange(60)) // 10 % 2)
    yield 255 * rng.random((90, 90))
    yield np.add.outer(slope, slope) / 2
    line = np.full((100, 100), 255.0)
    line[48:52, 10:90] = 0
    yield line
    square = np.full((100, 100), 255.0)
    square[20:80, 20:80] = 0
    yield square


def test_a_picture_of_no_digit_is_doubted(frame, tmp_path):
    for picture in _pictures_of_nothing(np.random.default_rng(0)):
        Image.fromarray(picture.astype(np.uint8)).save(tmp_path / "a.png")
        assert frame.read(tmp_path / "a.png").doubts


def test_an_empty_picture_is_refused(frame, tmp_path):
    Image.new("L", (40, 40), 128).save(tmp_path / "a.png")
    with pytest.raises(DataError, match="the same everywhere"):
        frame.read(tmp_path / "a.png")


def test_coloured_images_are_cut_to_their_proportion(tmp_path):
    rng = np.random.default_rng(0)
    (step,) = step_for(rng.random((30, 3, 10, 20)))
    assert isinstance(step, Cut)
    picture = np.zeros((30, 100, 3), np.uint8)
    picture[:, 20:80] = 255
    Image.fromarray(picture).save(tmp_path / "a.png")
    reading = step.read(tmp_path / "a.png")
    assert reading.x.shape == (1, 3, 10, 20)
    assert (reading.x > 0.9).all()


@pytest.mark.parametrize(
    "x", [np.zeros((4, 5)), np.zeros((3, 2, 8, 8)), np.full((3, 1, 8, 8), 7.0)]
)
def test_other_data_have_no_step_for_pictures(x):
    assert step_for(x) == ()


def test_the_step_comes_back_from_a_file(frame):
    (again,) = Preprocessing.parse(Preprocessing((frame,)).describe()).steps
    assert again == frame


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("shape", (1, 8)),
        ("shape", (3, 8, 8)),
        ("ground", float("nan")),
        ("centre", (0.5,)),
        ("height", 0),
        ("means", ()),
        ("limit", -1),
    ],
)
def test_a_damaged_step_is_refused(frame, name, value):
    (described,) = Preprocessing((frame,)).describe()
    with pytest.raises(DataError, match=r"frame|likeness"):
        Preprocessing.parse([{**described, name: value}])


@pytest.mark.slow
def test_digits_in_a_printed_font(tmp_path):
    """A network that has seen handwriting alone reads 36 of 40 digits of a font."""
    from PIL import ImageDraw, ImageFont

    from handgrad import recipes

    recipe = recipes.read("digits")
    recipes.build(recipe, recipes.load_task(recipe)).train(tmp_path / "run")
    trained = hg.load(tmp_path / "run")
    rng, right = np.random.default_rng(0), 0
    for i in range(40):
        digit, size = i % 10, (20, 48, 150, 400)[i // 10]
        ink, ground = (0, 255) if i % 2 else (255, 0)
        sheet = Image.new("L", (size, size), ground)
        font = ImageFont.load_default(0.6 * size)
        left, top, right_, bottom = font.getbbox(str(digit))
        free = size - (right_ - left), size - (bottom - top)
        x, y = (rng.uniform(0.05, 0.95, 2) if i % 4 < 2 else (0.5, 0.5)) * np.array(free)
        ImageDraw.Draw(sheet).text((x - left, y - top), str(digit), fill=ink, font=font)
        sheet.save(tmp_path / "a.png")
        probabilities, _ = trained.read_picture(tmp_path / "a.png")
        right += int(probabilities.argmax()) == digit
    assert right >= 36
