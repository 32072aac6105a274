"""MLPClassifier and MLPRegressor with the arguments, attributes and results of scikit-learn's."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, ClassVar, Final

import numpy as np
from sklearn.base import ClassifierMixin, RegressorMixin
from sklearn.metrics import accuracy_score, r2_score
from sklearn.model_selection import train_test_split
from sklearn.utils import check_random_state
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import check_classification_targets, type_of_target, unique_labels
from sklearn.utils.validation import check_is_fitted, column_or_1d, validate_data

from handgrad.arrays import Array
from handgrad.dispatch.values import shown
from handgrad.errors import ArgumentError
from handgrad.layers import Dense, Layer, Sequential
from handgrad.losses import CrossEntropy, Loss, SquaredError, Weighted
from handgrad.ops import sigmoid, softmax
from handgrad.sklearn.examples import Examples, converted
from handgrad.sklearn.lbfgs import minimize
from handgrad.sklearn.losses import Poisson, TwoScores
from handgrad.sklearn.network import Network
from handgrad.sklearn.objective import Objective
from handgrad.sklearn.weights import sample_weights, with_class_weights

#: scikit-learn's names of activations that handgrad calls otherwise.
_ACTIVATIONS: Final = {"logistic": "sigmoid"}


def perceptron(
    random_state: Any, sizes: Sequence[int], activation: str, dtype: Any
) -> Sequential:
    """Dense layers of these sizes, drawn layer by layer as scikit-learn draws them, or zero.

    Source: Glorot, Bengio, Understanding the difficulty of training deep feedforward neural
    networks (2010), for the bound √(6/(in + out)); scikit-learn has 2 for 6 before a sigmoid.
    """
    layers = []
    for i, (features, outputs) in enumerate(pairwise(sizes), start=2):
        bound = math.sqrt((2.0 if activation == "logistic" else 6.0) / (features + outputs))
        f = _ACTIVATIONS.get(activation, activation) if i < len(sizes) else "identity"
        layer = Dense(
            features, outputs, rng=random_state, activation=f, initializer=_zeros, dtype=dtype
        )
        if random_state is not None:
            layer.weight[...] = random_state.uniform(-bound, bound, (features, outputs)).T
            layer.bias[...] = random_state.uniform(-bound, bound, outputs)
        layers.append(layer)
    return Sequential(*layers)


def _zeros(shape: tuple[int, ...], rng: Any, *, dtype: Any) -> Array:
    return np.zeros(shape, dtype=dtype)


@dataclass(kw_only=True, eq=False, repr=False)
class Perceptron(Network):
    """What MLPClassifier and MLPRegressor share."""

    max_fun: int = 15000

    choices: ClassVar[dict[str, tuple[Any, ...]]] = {
        "activation": ("identity", "logistic", "tanh", "relu"),
        **Network.choices,
        "solver": ("adam", "sgd", "lbfgs"),
    }
    # The first arguments of the subclasses, where they may stand by position.
    hidden_layer_sizes: ClassVar[Any]
    activation: ClassVar[Any]

    def _hidden_sizes(self) -> list[int]:
        given = self.hidden_layer_sizes
        sizes = list(given) if isinstance(given, Iterable) else [given]
        if not all(isinstance(size, int | np.integer) and size > 0 for size in sizes):
            raise ArgumentError(
                f"{type(self).__name__}: hidden_layer_sizes is {shown(given)}; allowed: integers "
                "> 0, one or a sequence"
            )
        return [int(size) for size in sizes]

    def _build(self, random_state: Any = None, **architecture: Any) -> Layer:
        return perceptron(random_state, **architecture)

    # -- scikit-learn's attributes ----------------------------------------------------------------

    @property
    def coefs_(self) -> list[Array]:
        """The weights (in, out) of every layer: views of those that are used."""
        return [layer.weight.T for layer in self._dense_layers("coefs_")]

    @property
    def intercepts_(self) -> list[Array]:
        """The bias of every layer."""
        return [layer.bias for layer in self._dense_layers("intercepts_")]

    @property
    def n_layers_(self) -> int:
        """The number of layers, that of the inputs too."""
        return len(self._dense_layers("n_layers_")) + 1

    @property
    def n_outputs_(self) -> int:
        """The number of outputs."""
        return int(self._dense_layers("n_outputs_")[-1].out_features)

    def _dense_layers(self, attribute: str) -> list[Any]:
        if "_model" not in vars(self):
            raise AttributeError(f"{type(self).__name__} is not fitted and has no {attribute!r}")
        return list(self._model.layers.values())

    def __sklearn_is_fitted__(self) -> bool:
        return "_model" in vars(self)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    # -- training ---------------------------------------------------------------------------------

    def _targets(self, y: Array, dtype: str, *, reset: bool) -> Array:
        """The targets as the loss takes them, (N, outputs) or class numbers (N,)."""
        raise NotImplementedError

    def _loss(self) -> tuple[Loss, float]:
        """The loss, and the factor of its coefficients."""
        raise NotImplementedError

    def _outputs(self, targets: Array) -> int:
        raise NotImplementedError

    def _score_of(self, x: Any, y: Array, weight: Array | None) -> float:
        raise NotImplementedError

    def _weights(self, weights: Array | None, y: Array) -> Array | None:
        return weights

    def _trained(self) -> Layer:
        return self._model

    def _fit(self, X: Any, y: Any, sample_weight: Any, *, incremental: bool) -> Any:
        self._check_settings()
        hidden = self._hidden_sizes()
        if incremental and self.early_stopping:
            raise ArgumentError(
                f"{type(self).__name__}: partial_fit with early_stopping=True; allowed: without, "
                "because one call is one epoch"
            )
        fresh = "_model" not in vars(self) or not (self.warm_start or incremental)
        X, y = validate_data(
            self,
            X,
            y,
            accept_sparse=["csr", "csc"],
            multi_output=True,
            y_numeric=isinstance(self, RegressorMixin),
            dtype=(np.float64, np.float32),
            reset=fresh,
        )
        dtype = self._float(len(y), incremental) if fresh else self._model_dtype()
        X = converted(X, dtype)
        if y.ndim == 2 and y.shape[1] == 1:
            y = column_or_1d(y, warn=True)
        targets = self._targets(y, dtype, reset=fresh)
        weights = sample_weights(type(self).__name__, sample_weight, len(targets))
        weights = self._weights(weights, y)
        random_state = check_random_state(self.random_state)
        sizes = (int(X.shape[1]), *hidden, self._outputs(targets))
        if fresh:
            self._set_model(random_state, sizes=sizes, activation=self.activation, dtype=dtype)
        elif sizes != self._architecture["sizes"]:
            raise ArgumentError(
                f"{type(self).__name__}: the layers have {sizes} units; allowed: "
                f"{self._architecture['sizes']}, as in the fit that is continued"
            )
        self._learn(X, targets, y, weights, random_state, incremental=incremental)
        return self

    def _learn(
        self,
        X: Any,
        targets: Array,
        y: Array,
        weights: Array | None,
        random_state: Any,
        *,
        incremental: bool,
    ) -> None:
        dtype = self._model_dtype()
        loss, scale = self._loss()
        if self._objective is None or not incremental:
            self._objective = Objective(self._trained(), loss, float(self.alpha))
        if self.solver == "lbfgs":
            minimize(self, self._objective, Examples(X, targets, weights, dtype, scale))
            return
        score: Callable[[], float] | None = None
        if self.early_stopping:
            learned, judged = train_test_split(
                np.arange(len(targets)),
                random_state=random_state,
                test_size=self.validation_fraction,
                stratify=y if isinstance(self, ClassifierMixin) and y.ndim == 1 else None,
            )
            if len(judged) < 2:
                raise ArgumentError(
                    f"{type(self).__name__}: validation_fraction {self.validation_fraction} of "
                    f"{len(targets)} examples is {len(judged)}; allowed: 2 examples or more"
                )
            x_judged, y_judged = X[judged], y[judged]
            w_judged = None if weights is None else weights[judged]
            score = lambda: self._score_of(x_judged, y_judged, w_judged)  # noqa: E731
            X, targets = X[learned], targets[learned]
            weights = None if weights is None else weights[learned]
        data = Examples(X, targets, weights, dtype, scale)
        self._fit_epochs(
            self._objective, data, random_state, score=score, incremental=incremental
        )

    def _has_epochs(self) -> bool:
        if self.solver == "lbfgs":
            raise AttributeError(
                "partial_fit is there for the solvers adam and sgd, which go by epochs; "
                "solver is 'lbfgs'"
            )
        return True

    def _predicted_scores(self, X: Any) -> Array:
        check_is_fitted(self)
        X = validate_data(
            self,
            X,
            accept_sparse=["csr", "csc"],
            dtype=(np.float64, np.float32),
            reset=False,
        )
        return self._scores(converted(X, self._model_dtype()))


@dataclass(eq=False, repr=False)
class MLPClassifier(ClassifierMixin, Perceptron):
    """scikit-learn's MLPClassifier on handgrad's training steps.

    Arguments, attributes and the course of training are scikit-learn's; the same `random_state`
    draws the same first weights and batches. Two arguments are added: `class_weight`, None,
    "balanced" or a dictionary, and `dtype` ("auto": float32, for lbfgs float64).

    Raises ArgumentError, a ValueError, for arguments that are not allowed.
    """

    hidden_layer_sizes: Any = (100,)
    activation: str = "relu"
    class_weight: Any = None

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> MLPClassifier:
        """Train on X (N, features), dense or sparse, and labels y (N,), or (N, labels) of 0 and 1."""
        self._fit(X, y, sample_weight, incremental=False)
        return self

    @available_if(Perceptron._has_epochs)
    def partial_fit(
        self, X: Any, y: Any, sample_weight: Any = None, classes: Any = None
    ) -> MLPClassifier:
        """One epoch over X and y; the first call has to name all `classes`."""
        if "_model" not in vars(self):
            if classes is None:
                raise ArgumentError(
                    "MLPClassifier: classes must be passed on the first call to partial_fit"
                )
            self.classes_ = unique_labels(classes)
        elif classes is not None and not np.array_equal(self.classes_, unique_labels(classes)):
            raise ArgumentError(
                f"MLPClassifier: classes is {shown(classes)}; allowed: the same as in the first "
                f"call to partial_fit, {shown(self.classes_)}"
            )
        self._fit(X, y, sample_weight, incremental=True)
        return self

    def predict(self, X: Any) -> Array:
        """The most probable class of each row; of several labels, 0 or 1 for each."""
        return self._labels(self._predicted_scores(X))

    def predict_proba(self, X: Any) -> Array:
        """The probability of each class, in the order of `classes_`."""
        z = self._predicted_scores(X)
        if self.out_activation_ == "softmax":
            return softmax.forward(z)[0]
        p = sigmoid.forward(z)[0]
        return np.concatenate([1 - p, p], axis=1) if self.n_outputs_ == 1 else p

    def predict_log_proba(self, X: Any) -> Array:
        """The logarithm of `predict_proba`."""
        return np.log(self.predict_proba(X))

    def _labels(self, z: Array) -> Array:
        if self._multilabel:
            return (z > 0).astype(int)
        index = (z[:, 0] > 0).astype(int) if self.n_outputs_ == 1 else z.argmax(axis=1)
        if len(self.classes_) == 1:
            index = np.zeros_like(index)
        return self.classes_[index]

    def _targets(self, y: Array, dtype: str, *, reset: bool) -> Array:
        check_classification_targets(y)
        kind = type_of_target(y, input_name="y")
        if kind == "multiclass-multioutput":
            raise ArgumentError(
                "MLPClassifier: y has several columns of classes; allowed: one column, or several "
                "of 0 and 1"
            )
        self._multilabel = kind == "multilabel-indicator"
        if self._multilabel and not isinstance(y, np.ndarray):
            y = y.toarray()
        found = np.arange(y.shape[1]) if self._multilabel else unique_labels(y)
        is_first_part = "_model" not in vars(self) and hasattr(self, "classes_")
        if reset and not is_first_part or not hasattr(self, "classes_"):
            self.classes_ = found
        elif self.warm_start and set(found) != set(self.classes_):
            raise ArgumentError(
                f"MLPClassifier: y has the classes {shown(found)} and warm_start is True; allowed: "
                f"those of the fit before, {shown(self.classes_)}"
            )
        elif len(np.setdiff1d(found, self.classes_)):
            raise ArgumentError(
                f"MLPClassifier: y has the classes {shown(found)}; allowed: {shown(self.classes_)}"
            )
        if self._multilabel:
            return y.astype(np.int64)
        index = np.searchsorted(self.classes_, y).astype(np.int64)
        return index if len(self.classes_) > 2 else index[:, None]

    def _outputs(self, targets: Array) -> int:
        softmaxed = targets.ndim == 1
        self.out_activation_ = "softmax" if softmaxed else "logistic"
        return len(self.classes_) if softmaxed else int(targets.shape[1])

    def _trained(self) -> Layer:
        if self.out_activation_ == "softmax":
            return self._model
        return Sequential(self._model, TwoScores(self._model_dtype()))

    def _loss(self) -> tuple[Loss, float]:
        return Weighted(CrossEntropy(reduction="none", class_axis=-1)), 1.0

    def _weights(self, weights: Array | None, y: Array) -> Array | None:
        return with_class_weights(weights, self.class_weight, y)

    def _score_of(self, x: Any, y: Array, weight: Array | None) -> float:
        labels = self._labels(self._scores(x))
        return float(accuracy_score(y, labels, sample_weight=weight))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_label = True
        return tags


@dataclass(eq=False, repr=False)
class MLPRegressor(RegressorMixin, Perceptron):
    """scikit-learn's MLPRegressor on handgrad's training steps.

    Arguments, attributes and the course of training are scikit-learn's, with half the squared error
    or half the Poisson deviance as `loss`. `dtype` is added ("auto": float32, for lbfgs float64).

    Raises ArgumentError, a ValueError, for arguments that are not allowed.
    """

    loss: str = "squared_error"
    hidden_layer_sizes: Any = (100,)
    activation: str = "relu"

    choices: ClassVar[dict[str, tuple[Any, ...]]] = {
        "loss": ("squared_error", "poisson"),
        **Perceptron.choices,
    }

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> MLPRegressor:
        """Train on X (N, features), dense or sparse, and numbers y (N,) or (N, outputs)."""
        self._fit(X, y, sample_weight, incremental=False)
        return self

    @available_if(Perceptron._has_epochs)
    def partial_fit(self, X: Any, y: Any, sample_weight: Any = None) -> MLPRegressor:
        """One epoch over X and y."""
        self._fit(X, y, sample_weight, incremental=True)
        return self

    def predict(self, X: Any) -> Array:
        """Numbers (N,), or (N, outputs) for several."""
        return self._values(self._predicted_scores(X))

    @property
    def out_activation_(self) -> str:
        """The function that makes predictions of the outputs."""
        return "exp" if self.loss == "poisson" else "identity"

    def _values(self, z: Array) -> Array:
        values = np.exp(z) if self.loss == "poisson" else z
        return values.ravel() if values.shape[1] == 1 else values

    def _targets(self, y: Array, dtype: str, *, reset: bool) -> Array:
        if self.loss == "poisson" and np.min(y) < 0:
            raise ArgumentError(
                f"MLPRegressor: y has the value {np.min(y)} and loss is 'poisson'; allowed: 0 or "
                "more"
            )
        targets: Array = y.reshape(len(y), -1).astype(dtype)
        return targets

    def _outputs(self, targets: Array) -> int:
        return int(targets.shape[1])

    def _loss(self) -> tuple[Loss, float]:
        if self.loss == "poisson":
            return Poisson(), 1.0
        return Weighted(SquaredError(reduction="none")), 0.5

    def _score_of(self, x: Any, y: Array, weight: Array | None) -> float:
        values = self._values(self._scores(x))
        if not np.isfinite(values).all():
            return np.nan
        return float(r2_score(y, values, sample_weight=weight))
