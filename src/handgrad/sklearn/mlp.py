"""MLPClassifier and MLPRegressor with the arguments, attributes and results of scikit-learn's."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any, ClassVar, Final, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import RegressorMixin
from sklearn.metrics import r2_score
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import type_of_target
from sklearn.utils.validation import column_or_1d, validate_data

from handgrad.arrays import Array
from handgrad.dispatch.values import shown
from handgrad.errors import ArgumentError
from handgrad.layers import Dense, Layer, Sequential
from handgrad.losses import Loss, SquaredError, Weighted
from handgrad.ops import sigmoid, softmax
from handgrad.sklearn.estimator import Classifier, Estimator, log_softmax
from handgrad.sklearn.losses import Poisson, TwoScores

#: scikit-learn's names of activations that handgrad calls otherwise.
_ACTIVATIONS: Final = {"logistic": "sigmoid"}


def perceptron(random_state: Any, sizes: Sequence[int], activation: str, dtype: Any) -> Sequential:
    """Dense layers of these sizes, drawn layer by layer as scikit-learn draws them, or zero.

    The bound is √(6/(in + out)); in a network of sigmoids scikit-learn has 2 for 6.
    Source: Glorot, Bengio, Understanding the difficulty of training deep feedforward neural
    networks (2010), for the bound.
    """
    layers = []
    unused = np.random.default_rng(0)
    for i, (features, outputs) in enumerate(pairwise(sizes), start=2):
        bound = math.sqrt((2.0 if activation == "logistic" else 6.0) / (features + outputs))
        f = _ACTIVATIONS.get(activation, activation) if i < len(sizes) else "identity"
        layer: Any = Dense(
            features, outputs, rng=unused, activation=f, initializer=_zeros, dtype=dtype
        )
        if random_state is not None:
            layer.weight[...] = random_state.uniform(-bound, bound, (features, outputs)).T
            layer.bias[...] = random_state.uniform(-bound, bound, outputs)
        layers.append(layer)
    return Sequential(*layers)


def _zeros(shape: tuple[int, ...], rng: Any, *, dtype: Any) -> Array:
    return np.zeros(shape, dtype=dtype)


@dataclass(kw_only=True, eq=False, repr=False)
class Perceptron(Estimator):
    """What MLPClassifier and MLPRegressor share."""

    max_fun: int = 15000

    choices: ClassVar[dict[str, tuple[Any, ...]]] = {
        "activation": ("identity", "logistic", "tanh", "relu"),
        **Estimator.choices,
        "solver": ("adam", "sgd", "lbfgs"),
    }
    if TYPE_CHECKING:  # fields of the subclasses, where they may stand by position
        hidden_layer_sizes: int | Sequence[int]
        activation: str

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

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    def _validated(self, X: Any, y: Any, *, reset: bool) -> tuple[Any, Any]:
        settings = {"accept_sparse": ["csr", "csc"], "dtype": (np.float64, np.float32)}
        if y is None:
            return validate_data(self, X, **settings, reset=reset), None
        X, y = validate_data(
            self,
            X,
            y,
            **settings,
            multi_output=True,
            y_numeric=isinstance(self, RegressorMixin),
            reset=reset,
        )
        if y.ndim == 2 and y.shape[1] == 1:
            y = column_or_1d(y, warn=True)
        return X, y if isinstance(y, np.ndarray) else y.toarray()

    def _design(self, x: Any, targets: Array) -> dict[str, Any]:
        sizes = (int(x.shape[1]), *self._hidden_sizes(), self._outputs(targets))
        return {"sizes": sizes, "activation": self.activation}

    def _outputs(self, targets: Array) -> int:
        """The number of units of the last layer."""
        return int(targets.shape[1])

    def _has_epochs(self) -> bool:
        if self.solver == "lbfgs":
            raise AttributeError(
                "partial_fit is there for the solvers adam and sgd, which go by epochs; "
                "solver is 'lbfgs'"
            )
        return True


@dataclass(eq=False, repr=False)
class MLPClassifier(Classifier, Perceptron):
    """scikit-learn's MLPClassifier on handgrad's training steps.

    Arguments, attributes and the course of training are scikit-learn's; the same `random_state`
    draws the same first weights and batches. Two arguments are added: `class_weight`, None,
    "balanced" or a dictionary, and `dtype` ("auto": float32, for lbfgs float64).

    Raises ArgumentError, a ValueError, for arguments that are not allowed.
    """

    hidden_layer_sizes: int | Sequence[int] = (100,)
    activation: str = "relu"

    @available_if(Perceptron._has_epochs)  # type: ignore[untyped-decorator]
    def partial_fit(
        self,
        X: ArrayLike,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        classes: ArrayLike | None = None,
    ) -> Self:
        """One epoch over X and y; the first call has to name all `classes`."""
        return super().partial_fit(X, y, sample_weight, classes)

    def predict_proba(self, X: ArrayLike) -> Array:
        """The probability of each class, in the order of `classes_`."""
        z = self._predicted_scores(X)
        if self.out_activation_ == "softmax":
            return softmax.forward(z)[0]
        p = sigmoid.forward(z)[0]
        return np.concatenate([1 - p, p], axis=1) if self.n_outputs_ == 1 else p

    def predict_log_proba(self, X: ArrayLike) -> Array:
        """The logarithm of `predict_proba`."""
        z = self._predicted_scores(X)
        if self.out_activation_ == "softmax":
            return log_softmax(z)
        yes = -np.logaddexp(0, -z)
        return np.concatenate([-np.logaddexp(0, z), yes], axis=1) if self.n_outputs_ == 1 else yes

    def _labels(self, z: Array) -> Array:
        if self._multilabel:
            return (z > 0).astype(int)
        index = (z[:, 0] > 0).astype(int) if self.n_outputs_ == 1 else z.argmax(axis=1)
        return self.classes_[index]

    def _targets(self, y: Array, dtype: str, *, reset: bool) -> Array:
        kind = type_of_target(y, input_name="y")
        if kind == "multiclass-multioutput":
            raise ArgumentError(
                "MLPClassifier: y has several columns of classes; allowed: one column, or several "
                "of 0 and 1"
            )
        self._multilabel = kind == "multilabel-indicator"
        if self._multilabel:
            self._note_classes(np.arange(y.shape[1]), reset=reset)
            return y.astype(np.int64)
        index: Array = super()._targets(y, dtype, reset=reset)
        return index if len(self.classes_) > 2 else index[:, None]

    def _outputs(self, targets: Array) -> int:
        softmaxed = targets.ndim == 1
        self.out_activation_ = "softmax" if softmaxed else "logistic"
        return len(self.classes_) if softmaxed else super()._outputs(targets)

    def _stratified(self, y: Array) -> bool:
        return y.ndim == 1 and self.n_outputs_ == 1  # for three classes scikit-learn does not

    def _trained(self) -> Layer:
        if self.out_activation_ == "softmax":
            return self._model
        return Sequential(self._model, TwoScores(self._model_dtype()))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_label = True
        return tags


@dataclass(eq=False, repr=False)
class MLPRegressor(RegressorMixin, Perceptron):  # type: ignore[misc]
    """scikit-learn's MLPRegressor on handgrad's training steps.

    Arguments, attributes and the course of training are scikit-learn's, with half the squared error
    or half the Poisson deviance as `loss`. `dtype` is added ("auto": float32, for lbfgs float64).

    Raises ArgumentError, a ValueError, for arguments that are not allowed.
    """

    loss: str = "squared_error"
    hidden_layer_sizes: int | Sequence[int] = (100,)
    activation: str = "relu"

    choices: ClassVar[dict[str, tuple[Any, ...]]] = {
        "loss": ("squared_error", "poisson"),
        **Perceptron.choices,
    }

    def fit(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Train on X (N, features), dense or sparse, and numbers y (N,) or (N, outputs)."""
        self._fit(X, y, sample_weight, incremental=False)
        return self

    @available_if(Perceptron._has_epochs)  # type: ignore[untyped-decorator]
    def partial_fit(
        self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None
    ) -> Self:
        """One epoch over X and y."""
        self._fit(X, y, sample_weight, incremental=True)
        return self

    def predict(self, X: ArrayLike) -> Array:
        """Numbers (N,), or (N, outputs) for several."""
        return self._values(self._predicted_scores(X))

    @property
    def out_activation_(self) -> str:
        """The function that makes predictions of the outputs."""
        return "exp" if self.loss == "poisson" else "identity"

    def _values(self, z: Array) -> Array:
        values = np.exp(z) if self.loss == "poisson" else z
        return values.ravel() if values.shape[1] == 1 else values

    def _reported(self, targets: Array) -> float:
        # scikit-learn reports the mean over the outputs and descends along the gradient of the sum.
        is_mean = self.loss == "squared_error" and self.solver != "lbfgs"
        return 1.0 / targets.shape[1] if is_mean else 1.0

    def _targets(self, y: Array, dtype: str, *, reset: bool) -> Array:
        if self.loss == "poisson" and np.min(y) < 0:
            raise ArgumentError(
                f"MLPRegressor: y has the value {np.min(y)} and loss is 'poisson'; allowed: 0 or "
                "more"
            )
        targets: Array = y.reshape(len(y), -1).astype(dtype)
        return targets

    def _loss(self) -> tuple[Loss, float]:
        if self.loss == "poisson":
            return Poisson(), 1.0
        return Weighted(SquaredError(reduction="none")), 0.5

    def _score_of(self, x: Any, y: Array, weight: Array | None) -> float:
        values = self._values(self._scores(x))
        if not np.isfinite(values).all():
            return np.nan
        return float(r2_score(y, values, sample_weight=weight))
