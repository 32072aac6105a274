"""TimeSeriesClassifier and TimeSeriesTagger: recurrent networks and transformers for sequences."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, Final

import numpy as np
from numpy.typing import ArrayLike
from sklearn.metrics import accuracy_score
from sklearn.utils import assert_all_finite, gen_batches
from sklearn.utils.validation import check_is_fitted, column_or_1d, validate_data

from handgrad import models
from handgrad.arrays import Array
from handgrad.data.ragged import Sequences
from handgrad.dispatch.values import shown
from handgrad.errors import ArgumentError, ShapeError
from handgrad.layers import Layer
from handgrad.ops import softmax
from handgrad.sklearn.arguments import is_size
from handgrad.sklearn.encoder import SequenceEncoder
from handgrad.sklearn.estimator import Classifier, log_softmax
from handgrad.sklearn.examples import IGNORED, TaggedSequences, converted, inputs_of
from handgrad.sklearn.network import Data, generator
from handgrad.sklearn.weights import sample_weights, with_class_weights


def is_sequences(X: Any) -> bool:
    """Return whether X is an array of three axes or a list of sequences, so not a matrix.

    A sequence is an array, a frame, or a list of steps that are lists.
    """
    if isinstance(X, np.ndarray) and (X.ndim != 1 or X.dtype != object):
        return X.ndim == 3
    listed = isinstance(X, list | tuple | np.ndarray) and len(X) > 0
    return listed and (_is_array(X[0]) or (isinstance(X[0], list) and _holds_steps(X[0])))


def _is_array(each: Any) -> bool:
    return hasattr(each, "__array__") and np.ndim(each) > 0


def _holds_steps(rows: list[Any]) -> bool:
    """Return whether a list is a sequence of steps (T, features), and not a row of numbers."""
    return len(rows) > 0 and isinstance(rows[0], list | tuple)


def sequences_of(estimator: str, X: Any) -> Sequences:
    """Arrays (T, features), or (T,) of one feature, one after the other.

    Raises ShapeError for a sequence of no steps or of another shape, ArgumentError for what is not
    numbers, ValueError for NaN and infinity.
    """
    arrays = [np.asarray(each) for each in X]
    arrays = [each[:, None] if each.ndim == 1 else each for each in arrays]
    for i, each in enumerate(arrays):
        if each.ndim != 2 or len(each) == 0:
            raise ShapeError(
                f"{estimator}: sequence {i} of X has shape {each.shape}; allowed: (T, features) "
                "or (T,), with one step or more"
            )
        if each.dtype.kind not in "fiub":
            raise ArgumentError(
                f"{estimator}: sequence {i} of X is of {each.dtype}; allowed: real numbers"
            )
    found = Sequences.of(arrays)
    assert_all_finite(found.values, input_name="X")
    return found


def sequence_model(
    rng: np.random.Generator,
    each_step: bool,
    *,
    cell: str,
    features: int,
    hidden_size: int,
    classes: int,
    num_layers: int,
    dropout: float,
    dtype: str,
    **own: Any,
) -> Layer:
    """The network of these settings; `own` are those of its cell alone."""
    if cell == "transformer":
        return SequenceEncoder(
            features,
            hidden_size,
            classes,
            rng=rng,
            blocks=num_layers,
            dropout=dropout,
            each_step=each_step,
            dtype=dtype,
            **own,
        )
    model: Any = models.SequenceTagger if each_step else models.SequenceClassifier
    between = {"dropout": dropout} if each_step else {"dropout": dropout, "head_dropout": dropout}
    found: Layer = model(
        features,
        hidden_size,
        classes,
        rng=rng,
        cell=cell,
        num_layers=num_layers,
        dtype=dtype,
        **between,
        **own,
    )
    return found


@dataclass(kw_only=True, eq=False, repr=False)
class SequenceEstimator(Classifier):
    """The arguments, sequences and networks of TimeSeriesClassifier and TimeSeriesTagger."""

    cell: str = "lstm"
    hidden_size: int = 64
    num_layers: int = 1
    bidirectional: bool = False
    heads: int = 4
    dropout: float = 0.0

    choices: ClassVar[dict[str, tuple[Any, ...]]] = {
        **Classifier.choices,
        "cell": ("lstm", "gru", "transformer"),
        "bidirectional": (False, True),
    }
    prediction_batch: ClassVar[int] = 256
    #: True where there is a label at every step.
    each_step: ClassVar[bool]

    def _check_settings(self) -> None:
        super()._check_settings()
        name = type(self).__name__
        for key in ("hidden_size", "num_layers", "heads"):
            value = getattr(self, key)
            if not is_size(value):
                raise ArgumentError(f"{name}: {key} is {shown(value)}; allowed: an integer from 1")
        self._check_fraction("dropout", self.dropout)
        if self.cell == "transformer" and (self.hidden_size % self.heads or self.hidden_size % 2):
            raise ArgumentError(
                f"{name}: hidden_size is {self.hidden_size} with {self.heads} heads; allowed: an "
                "even multiple of heads"
            )

    def _build(self, random_state: Any = None, **architecture: Any) -> Layer:
        return sequence_model(generator(random_state), self.each_step, **architecture)

    def _design(self, x: Sequences, targets: Any) -> dict[str, Any]:
        own = (
            {"heads": self.heads}
            if self.cell == "transformer"
            else {"bidirectional": self.bidirectional}
        )
        return {
            "cell": self.cell,
            "features": int(x.values.shape[1]),
            "hidden_size": self.hidden_size,
            "classes": len(self.classes_),
            "num_layers": self.num_layers,
            "dropout": self.dropout,
            **own,
        }

    # -- sequences --------------------------------------------------------------------------------

    def _of_matrix(self, x: Array) -> Sequences:
        """The sequences that the rows of a matrix are."""
        raise NotImplementedError

    def _sequences(self, X: Any, y: Any, *, reset: bool) -> tuple[Sequences, Any]:
        """X as sequences, and y, which is checked with X where that is a matrix."""
        name = type(self).__name__
        is_matrix = not is_sequences(X)
        if not reset and is_matrix != self._fitted_on_matrix:
            allowed = "a matrix" if self._fitted_on_matrix else "sequences"
            raise ShapeError(f"{name}: X is {_KINDS[is_matrix]}; allowed: {allowed}, as in fit")
        if is_matrix:
            settings = {"dtype": (np.float64, np.float32), "reset": reset}
            if y is None:
                X = validate_data(self, X, **settings)
            else:
                X, y = validate_data(self, X, y, **settings)
            x = self._of_matrix(X)
        else:
            x = sequences_of(name, X)
            if reset:
                self.n_features_in_ = int(x.values.shape[1])
            elif x.values.shape[1] != self.n_features_in_:
                raise ShapeError(
                    f"{name}: a step of X has {x.values.shape[1]} features; allowed: "
                    f"{self.n_features_in_}, as in fit"
                )
        if reset:
            self._fitted_on_matrix: bool = is_matrix
        return x, y

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.three_d_array = True
        return tags


_KINDS: Final = {True: "a matrix", False: "sequences"}


@dataclass(kw_only=True, eq=False, repr=False)
class TimeSeriesClassifier(SequenceEstimator):
    """One class for each sequence, with scikit-learn's arguments for training.

    X is a list of arrays (T, features) of any lengths, one array (N, T, features), or a matrix
    (N, T), whose rows are sequences of T steps of one feature.

    `cell` is "lstm", "gru" or "transformer". The first two read the final state of `num_layers`
    layers of `hidden_size`, of both directions with `bidirectional`. The transformer has
    `num_layers` blocks of that width with `heads` heads, and reads the mean of the steps. `dropout`
    acts in training.

    Raises ArgumentError or ShapeError, both ValueErrors, for what is not allowed.
    """

    each_step: ClassVar[bool] = False

    def _of_matrix(self, x: Array) -> Sequences:
        return Sequences(x.reshape(-1, 1), np.full(len(x), x.shape[1]))

    def _validated(self, X: Any, y: Any, *, reset: bool) -> tuple[Any, Any]:
        x, y = self._sequences(X, y, reset=reset)
        if y is None:
            return x, None
        y = column_or_1d(y, warn=True)
        if len(y) != len(x):
            raise ShapeError(
                f"TimeSeriesClassifier: X has {len(x)} sequences and y {len(y)} labels; allowed: "
                "one label for each sequence"
            )
        return x, y


@dataclass(kw_only=True, eq=False, repr=False)
class TimeSeriesTagger(SequenceEstimator):
    """One class for each step of each sequence, with scikit-learn's arguments for training.

    X is a list of arrays (T, features) of any lengths and y a list of arrays (T,) of labels, or
    X one array (N, T, features) and y (N, T); predictions are lists of arrays then. A matrix X
    (N, features) has sequences of one step for rows, and y is (N,).

    The arguments are those of TimeSeriesClassifier. A weight counts for all steps of its sequence;
    `score` is the fraction of steps with the right class.

    Raises ArgumentError or ShapeError, both ValueErrors, for what is not allowed.
    """

    each_step: ClassVar[bool] = True

    def _of_matrix(self, x: Array) -> Sequences:
        return Sequences(x, np.ones(len(x), dtype=np.int64))

    def _validated(self, X: Any, y: Any, *, reset: bool) -> tuple[Any, Any]:
        x, y = self._sequences(X, y, reset=reset)
        if y is None:
            return x, None
        if self._fitted_on_matrix:
            return x, Sequences(column_or_1d(y, warn=True), x.lengths)
        labels = [np.asarray(each) for each in y]
        lengths = np.array([each.size if each.ndim == 1 else -1 for each in labels])
        if not np.array_equal(lengths, x.lengths):
            raise ShapeError(
                "TimeSeriesTagger: y has other lengths than X; allowed: one label for each step of "
                "each sequence"
            )
        return x, Sequences(np.concatenate(labels), lengths)

    def _targets(self, y: Any, dtype: str, *, reset: bool) -> Any:
        return Sequences(super()._targets(y, dtype, reset=reset), y.lengths, padding=IGNORED)

    def _weights(self, given: Any, y: Any) -> Any:
        weights = sample_weights(type(self).__name__, given, len(y))
        if weights is not None:
            weights = np.repeat(weights, y.lengths)
        weights = with_class_weights(weights, self.class_weight, y.values)
        return None if weights is None else Sequences(weights, y.lengths)

    def _scores(self, x: Sequences) -> Array:
        """The scores of all steps, sequence after sequence."""
        found = []
        for part in gen_batches(len(x), self.prediction_batch):
            lengths = x.lengths[part]
            scores, _ = self._model.forward(*inputs_of(x, np.arange(len(x))[part], None))
            found.append(scores[np.arange(scores.shape[1]) < lengths[:, None]])
        return np.concatenate(found)

    def predict(self, X: ArrayLike) -> Array | list[Array]:  # type: ignore[override]
        """The most probable class of each step: a list of arrays (T,); (N,) for a matrix."""
        return self._by_sequence(X, self._labels)

    def predict_proba(self, X: ArrayLike) -> Array | list[Array]:  # type: ignore[override]
        """The probability of each class at each step: a list of arrays (T, classes)."""
        return self._by_sequence(X, lambda scores: softmax.forward(scores)[0])

    def predict_log_proba(self, X: ArrayLike) -> Array | list[Array]:  # type: ignore[override]
        """The logarithm of `predict_proba`."""
        return self._by_sequence(X, log_softmax)

    def _by_sequence(self, X: Any, of_scores: Callable[[Array], Array]) -> Any:
        check_is_fitted(self)
        x, _ = self._validated(X, None, reset=False)
        found = of_scores(self._scores(converted(x, self._model_dtype())))
        return found if self._fitted_on_matrix else np.split(found, np.cumsum(x.lengths)[:-1])

    def _examples(self, x: Any, targets: Any, weights: Any) -> Data:
        return TaggedSequences(x, targets, weights, self._model_dtype())

    def _score_of(self, x: Any, y: Any, weights: Any) -> float:
        labels = self._labels(self._scores(x))
        each = None if weights is None else weights.values
        return float(accuracy_score(y.values, labels, sample_weight=each))

    def score(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> float:
        """The fraction of steps with the right class; a weight counts for all of a sequence."""
        x, tags = self._validated(X, y, reset=False)
        weights = sample_weights("TimeSeriesTagger", sample_weight, len(tags))
        each = None if weights is None else np.repeat(weights, tags.lengths)
        labels = self._labels(self._scores(converted(x, self._model_dtype())))
        return float(accuracy_score(tags.values, labels, sample_weight=each))
