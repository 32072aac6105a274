"""The search for a learning rate: what it suggests, and that it leaves all as it was."""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest

from handgrad.data.dataset import Dataset
from handgrad.errors import ArgumentError
from handgrad.layers import BatchNorm, Dense, Dropout, Sequential
from handgrad.losses import SquaredError
from handgrad.optimizers import SGD, Adam
from handgrad.training import LearningRates, Trainer, find_lr
from tests.training import problem


def classes(count: int = 400) -> tuple[np.ndarray, np.ndarray]:
    """Two classes that a line parts."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(count, 8)).astype(np.float32)
    return x, (x[:, 0] + x[:, 1] > 0).astype(np.int64)


def network(seed: int = 1) -> Sequential:
    rng = np.random.default_rng(seed)
    return Sequential(
        Dense(8, 32, activation="relu", rng=rng),
        BatchNorm(32),
        Dropout(0.1, rng=np.random.default_rng(2)),
        Dense(32, 2, rng=rng),
    )


def test_a_quadratic_is_searched_up_to_where_descent_diverges() -> None:
    """With loss ½ a w², gradient descent diverges above the rate 2/a."""
    x = np.full((64, 1), 10.0)
    model = Sequential(Dense(1, 1, bias=False, rng=np.random.default_rng(0), dtype=np.float64))
    found = find_lr(Trainer(model, SquaredError(), SGD(lr=1.0)), x, 50 * x)
    diverges = 1 / 100  # the mean of (10 w − t)² has the second derivative 200
    assert found.suggestion is not None
    assert diverges / 100 < found.suggestion < diverges
    assert found.rates[-1] < 100 * diverges


def test_the_suggestion_learns() -> None:
    found = find_lr(Trainer(network(), batch_size=20), *classes())
    assert found.suggestion is not None
    assert 1e-4 < found.suggestion < 0.3
    assert len(found.rates) == len(found.losses) == len(found.smoothed)
    assert np.isfinite(found.losses).all()


def test_model_and_optimizer_are_left_as_they_were() -> None:
    model, optimizer = network(), Adam(lr=0.01)
    before = {**model.parameters, **model.buffers}
    before = {name: np.array(array) for name, array in before.items()}
    states = [str(each.bit_generator.state) for each in model.generators.values()]
    find_lr(Trainer(model, optimizer=optimizer, batch_size=20), *classes(), steps=40)
    after = {**model.parameters, **model.buffers}
    for name, array in before.items():
        assert after[name].tobytes() == array.tobytes(), name
    assert [str(each.bit_generator.state) for each in model.generators.values()] == states
    assert optimizer.steps == 0


def test_the_same_seed_gives_the_same_curve() -> None:
    first, second = (
        find_lr(Trainer(network(), optimizer="sgd", lr=1.0), *classes(), steps=30) for _ in range(2)
    )
    assert first.losses.tobytes() == second.losses.tobytes()


def test_a_data_set_and_clipping_go_in_as_in_a_trainer() -> None:
    data = problem.data()
    assert isinstance(data, Dataset)
    found = find_lr(Trainer(problem.model(), clip_norm=1.0, batch_size=4, accumulate=2), data)
    assert found.suggestion is not None


def test_nothing_is_suggested_where_nothing_is_learned() -> None:
    x, _ = classes()
    y = np.random.default_rng(5).integers(0, 2, len(x))
    model = Sequential(Dense(8, 2, rng=np.random.default_rng(0)))
    model.update_parameters({name: 0 * array for name, array in model.parameters.items()})
    found = find_lr(Trainer(model, optimizer="sgd", lr=1.0), x, y, highest=1e-3)
    assert found.suggestion is None


@pytest.mark.parametrize(
    "settings", [{"lowest": 0.0}, {"lowest": 2.0, "highest": 1.0}, {"steps": 3}]
)
def test_impossible_numbers_are_named(settings: dict[str, float]) -> None:
    with pytest.raises(ArgumentError, match="find_lr: "):
        find_lr(Trainer(network()), *classes(), **settings)  # type: ignore[arg-type]


@pytest.fixture
def rates() -> LearningRates:
    curve = np.linspace(2.0, 1.0, 20)
    return LearningRates(np.geomspace(1e-5, 1, 20), curve, curve, 0.0123)


def test_it_is_saved_as_a_page_and_as_a_drawing(tmp_path: Path, rates: LearningRates) -> None:
    rates.save(tmp_path / "lr.html", "a < b")
    page = (tmp_path / "lr.html").read_text("utf-8")
    assert "<h1>Learning rates for a &lt; b</h1>" in page
    assert "<b>0.012</b>" in page
    rates.save(tmp_path / "lr.svg")
    drawing = ElementTree.parse(tmp_path / "lr.svg").getroot()
    assert drawing.tag == "{http://www.w3.org/2000/svg}svg"
    assert "0.012" in "".join(drawing.itertext())
    with pytest.raises(ArgumentError, match=r"allowed: .html or .svg"):
        rates.save(tmp_path / "lr.png")
