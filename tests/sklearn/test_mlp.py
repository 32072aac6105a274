"""MLPClassifier and MLPRegressor take the course that scikit-learn's take."""

from __future__ import annotations

import pickle
import warnings
from typing import Any

import numpy as np
import pytest
from scipy import sparse
from sklearn import neural_network
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import load_digits, load_iris, make_multilabel_classification
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from handgrad.errors import ArgumentError
from handgrad.sklearn import MLPClassifier, MLPRegressor

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")

RNG = np.random.default_rng(0)
X = RNG.normal(size=(120, 6))
TWO = (X[:, 0] + X[:, 1] > 0).astype(int)
THREE = np.digitize(X[:, 0], [-0.5, 0.5])
LABELS = np.array(["no", "yes"])[TWO]
NUMBERS = X @ RNG.normal(size=6)
COUNTS = RNG.poisson(np.exp(0.3 * X[:, 0]))
WEIGHTS = RNG.uniform(0.1, 2, size=120)
SEVERAL = make_multilabel_classification(120, 6, n_classes=4, random_state=0)[1]

CLASSIFIED = [
    {},
    {"activation": "tanh", "hidden_layer_sizes": (8, 5)},
    {"activation": "logistic", "batch_size": 32},
    {"activation": "identity", "shuffle": False, "batch_size": 50},
    {"solver": "sgd", "learning_rate": "invscaling", "learning_rate_init": 0.1},
    {"solver": "sgd", "learning_rate": "adaptive", "tol": 0.05, "learning_rate_init": 0.2},
    {"solver": "sgd", "momentum": 0.5, "nesterovs_momentum": False, "alpha": 0.1},
    {"solver": "sgd", "momentum": 0, "batch_size": 40},
    {"solver": "lbfgs", "alpha": 1.0},
    {"early_stopping": True, "batch_size": 20, "n_iter_no_change": 3, "learning_rate_init": 0.01},
    {"beta_1": 0.8, "beta_2": 0.9, "epsilon": 1e-3, "hidden_layer_sizes": 7},
]


def check_same_course(ours: Any, theirs: Any, X: Any) -> None:
    assert ours.n_iter_ == theirs.n_iter_
    assert ours.out_activation_ == theirs.out_activation_
    assert (ours.n_layers_, ours.n_outputs_) == (theirs.n_layers_, theirs.n_outputs_)
    np.testing.assert_allclose(ours.loss_, theirs.loss_, rtol=1e-6)
    for attribute in ("loss_curve_", "best_loss_", "t_", "validation_scores_"):
        wanted = getattr(theirs, attribute, None)
        if wanted is not None:
            np.testing.assert_allclose(getattr(ours, attribute), wanted, rtol=1e-6)
    for mine, other in zip(ours.coefs_, theirs.coefs_, strict=True):
        np.testing.assert_allclose(mine, other, rtol=1e-4, atol=1e-7)
    for mine, other in zip(ours.intercepts_, theirs.intercepts_, strict=True):
        np.testing.assert_allclose(mine, other, rtol=1e-4, atol=1e-7)
    for method in ("predict", "predict_proba", "predict_log_proba"):
        if not hasattr(theirs, method):
            continue
        found, wanted = getattr(ours, method)(X), getattr(theirs, method)(X)
        if wanted.dtype.kind == "f":
            np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-7)
        else:
            np.testing.assert_array_equal(found, wanted)


@pytest.mark.parametrize("settings", CLASSIFIED, ids=str)
def test_a_classifier_in_float64_takes_scikit_learns_course(settings: dict[str, Any]) -> None:
    arguments = {"max_iter": 25, "random_state": 3, **settings}
    for y in (THREE, LABELS):
        theirs = neural_network.MLPClassifier(**arguments).fit(X, y)
        check_same_course(MLPClassifier(**arguments, dtype="float64").fit(X, y), theirs, X)


@pytest.mark.parametrize("weights", [None, WEIGHTS], ids=["", "weights"])
@pytest.mark.parametrize("y", [THREE, TWO, SEVERAL], ids=["three", "two", "several labels"])
def test_weights_and_labels(y: np.ndarray, weights: np.ndarray | None) -> None:
    arguments = {"max_iter": 20, "random_state": 0, "batch_size": 50}
    theirs = neural_network.MLPClassifier(**arguments).fit(X, y, weights)
    check_same_course(MLPClassifier(**arguments, dtype="float64").fit(X, y, weights), theirs, X)


@pytest.mark.parametrize("weights", [None, WEIGHTS], ids=["", "weights"])
@pytest.mark.parametrize(
    ("y", "settings"),
    [
        (NUMBERS, {}),
        (NUMBERS, {"solver": "lbfgs", "max_iter": 10}),
        (NUMBERS, {"early_stopping": True, "batch_size": 30}),
        (X[:, :2] ** 2, {"batch_size": 64}),
        (COUNTS, {"loss": "poisson"}),
    ],
    ids=["numbers", "lbfgs", "early stopping", "two outputs", "poisson"],
)
def test_a_regressor_in_float64_takes_scikit_learns_course(
    y: np.ndarray, settings: dict[str, Any], weights: np.ndarray | None
) -> None:
    arguments = {"max_iter": 20, "random_state": 1, **settings}
    theirs = neural_network.MLPRegressor(**arguments).fit(X, y, weights)
    check_same_course(MLPRegressor(**arguments, dtype="float64").fit(X, y, weights), theirs, X)


def test_parts_and_warm_starts_go_on_as_scikit_learns_do() -> None:
    arguments = {"random_state": 0, "max_iter": 5, "solver": "sgd", "learning_rate_init": 0.05}
    theirs = neural_network.MLPClassifier(**arguments)
    ours = MLPClassifier(**arguments, dtype="float64")
    for part in (slice(0, 50), slice(50, 120), slice(0, 120)):
        for each in (ours, theirs):
            each.partial_fit(X[part], THREE[part], classes=[0, 1, 2])
        ours = pickle.loads(pickle.dumps(ours))
    check_same_course(ours, theirs, X)
    for each in (ours, theirs):
        each.set_params(warm_start=True).fit(X, THREE)
    check_same_course(ours, theirs, X)


def test_float32_ends_near_scikit_learn() -> None:
    images, digits = load_digits(return_X_y=True)
    arguments = {"random_state": 0, "max_iter": 30}
    ours = MLPClassifier(**arguments).fit(images[:1000] / 16, digits[:1000])
    theirs = neural_network.MLPClassifier(**arguments).fit(images[:1000] / 16, digits[:1000])
    assert {array.dtype for array in ours.coefs_} == {np.dtype(np.float32)}
    np.testing.assert_allclose(ours.loss_curve_, theirs.loss_curve_, rtol=1e-3)


def test_sparse_rows_are_as_dense_ones() -> None:
    arguments = {"random_state": 0, "max_iter": 10, "batch_size": 32}
    dense = MLPClassifier(**arguments).fit(X, THREE)
    thin = MLPClassifier(**arguments).fit(sparse.csr_array(X), THREE)
    np.testing.assert_array_equal(dense.predict_proba(X), thin.predict_proba(sparse.csc_array(X)))


def test_a_pickle_has_its_arrays_as_safetensors() -> None:
    model = MLPClassifier(random_state=0, max_iter=5, class_weight="balanced").fit(X, LABELS)
    state = model.__getstate__()
    assert isinstance(state["_packed"], bytes)
    assert not any(
        isinstance(each, np.ndarray) and each.dtype.kind == "f" for each in state.values()
    )
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.predict_proba(X), model.predict_proba(X))
    assert repr(again) == repr(model)


def test_it_stands_in_pipelines_searches_and_calibration() -> None:
    iris, kinds = load_iris(return_X_y=True, as_frame=True)
    network = MLPClassifier(random_state=0, max_iter=60, learning_rate_init=0.02)
    pipeline = make_pipeline(StandardScaler().set_output(transform="pandas"), network)
    search = GridSearchCV(pipeline, {"mlpclassifier__alpha": [1e-4, 1e-2]}, cv=2).fit(iris, kinds)
    assert search.best_score_ > 0.9
    assert list(search.best_estimator_[-1].feature_names_in_) == [
        f"{name}" for name in iris.columns
    ]
    assert cross_val_score(pipeline, iris, kinds, cv=2).mean() > 0.9
    calibrated = CalibratedClassifierCV(pipeline, cv=2).fit(iris, kinds)
    assert calibrated.score(iris, kinds) > 0.9


def test_class_weights_count_as_sample_weights() -> None:
    arguments = {"random_state": 0, "max_iter": 10}
    by_class = MLPClassifier(**arguments, class_weight={0: 3.0, 1: 0.5}).fit(X, TWO)
    by_sample = MLPClassifier(**arguments).fit(X, TWO, np.where(TWO == 0, 3.0, 0.5))
    np.testing.assert_array_equal(by_class.predict_proba(X), by_sample.predict_proba(X))


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"activation": "gelu"}, "activation is 'gelu'; allowed: 'identity', 'logistic'"),
        ({"solver": "rmsprop"}, "solver is 'rmsprop'; allowed: 'adam', 'sgd', 'lbfgs'"),
        ({"alpha": -1}, "alpha is -1; allowed: a number from 0"),
        ({"momentum": 1.0}, "momentum is 1.0; allowed: a number from 0 below 1"),
        ({"max_iter": 0.5}, "max_iter is 0.5; allowed: an integer from 1"),
        ({"batch_size": "all"}, "batch_size is 'all'; allowed: 'auto' or an integer from 1"),
        ({"hidden_layer_sizes": (3, 0)}, r"hidden_layer_sizes is \(3, 0\); allowed: integers > 0"),
        ({"dtype": "float16"}, "dtype is 'float16'; allowed: 'auto', 'float32', 'float64'"),
    ],
)
def test_wrong_arguments(settings: dict[str, Any], sentence: str) -> None:
    with pytest.raises(ArgumentError, match=sentence):
        MLPClassifier(**settings).fit(X, TWO)


def test_wrong_data() -> None:
    model = MLPClassifier(max_iter=2)
    with pytest.raises(ArgumentError, match="every sample_weight is zero"):
        model.fit(X, TWO, np.zeros(120))
    with pytest.raises(ArgumentError, match="classes must be passed on the first call"):
        model.partial_fit(X, TWO)
    with pytest.raises(ValueError, match="too large"):
        model.fit(np.where(X > 2, 1e300, X)[np.arange(240) % 120], TWO[np.arange(240) % 120])
    model.fit(X, TWO)
    with pytest.raises(ArgumentError, match=r"y has the classes 0, 1, 2; allowed: 0, 1"):
        model.partial_fit(X, THREE)
    with pytest.raises(ArgumentError, match="weights that are not finite"):
        MLPRegressor(solver="sgd", learning_rate_init=1e9).fit(X, 1e9 * NUMBERS)
    with pytest.raises(AttributeError, match="partial_fit"):
        MLPClassifier(solver="lbfgs").partial_fit(X, TWO)
    with pytest.raises(ArgumentError, match="early_stopping=True; allowed: without"):
        MLPClassifier(early_stopping=True).partial_fit(X, TWO, classes=[0, 1])


def test_an_end_without_convergence_is_said() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(ConvergenceWarning, match="max_iter = 3 epochs"):
            MLPClassifier(max_iter=3).fit(X, TWO)
