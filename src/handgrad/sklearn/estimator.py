"""Fitting: from X and y to a trained network, the same way for every estimator."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import ClassifierMixin
from sklearn.metrics import accuracy_score
from sklearn.model_selection import train_test_split
from sklearn.utils import check_random_state
from sklearn.utils.multiclass import check_classification_targets, unique_labels
from sklearn.utils.validation import check_is_fitted

from handgrad.arrays import Array
from handgrad.data.ragged import Sequences
from handgrad.dispatch.values import shown
from handgrad.errors import ArgumentError
from handgrad.layers import Layer
from handgrad.losses import CrossEntropy, Loss, Weighted
from handgrad.ops import softmax
from handgrad.sklearn.examples import Examples, converted, taken
from handgrad.sklearn.lbfgs import minimize
from handgrad.sklearn.network import Data, Network
from handgrad.sklearn.objective import Objective
from handgrad.sklearn.weights import sample_weights, with_class_weights


@dataclass(kw_only=True, eq=False, repr=False)
class Estimator(Network):
    """A network with `_fit`; a subclass says what its data, its model and its loss are."""

    def _validated(self, X: Any, y: Any, *, reset: bool) -> tuple[Any, Any]:
        """X, as an array, a sparse matrix or Sequences, and y; y is None for a prediction."""
        raise NotImplementedError

    def _targets(self, y: Any, dtype: str, *, reset: bool) -> Any:
        """The targets as the loss takes them; reset: y says which classes there are."""
        raise NotImplementedError

    def _design(self, x: Any, targets: Any) -> dict[str, Any]:
        """The settings that a model for these data is built by, but for its dtype."""
        raise NotImplementedError

    def _loss(self) -> tuple[Loss, float]:
        """The loss, one number per value, and the factor of its coefficients."""
        raise NotImplementedError

    def _score_of(self, x: Any, y: Any, weights: Any) -> float:
        """The score by which training stops early."""
        raise NotImplementedError

    def _reported(self, targets: Any) -> float:
        """The share of the loss that is reported."""
        return 1.0

    def _stratified(self, y: Any) -> bool:
        """Return whether the examples to judge by are to be of all classes alike."""
        return isinstance(self, ClassifierMixin) and np.ndim(y) == 1

    def _trained(self) -> Layer:
        """The layer that is trained: the model, and what the loss needs beyond it."""
        return self._model

    def _weights(self, given: Any, y: Any) -> Any:
        """The weights of the examples; None where all count alike."""
        return sample_weights(type(self).__name__, given, len(y))

    def _examples(self, x: Any, targets: Any, weights: Any) -> Data:
        return Examples(x, targets, weights, self._model_dtype(), self._loss()[1])

    def __sklearn_is_fitted__(self) -> bool:
        return self._is_fitted()

    def _is_fitted(self) -> bool:
        return "_model" in vars(self)

    def _fit(self, X: Any, y: Any, sample_weight: Any, *, incremental: bool) -> None:
        """fit, or with `incremental` partial_fit."""
        name = type(self).__name__
        self._check_settings()
        if incremental and self.early_stopping:
            raise ArgumentError(
                f"{name}: partial_fit with early_stopping=True; allowed: without, because one "
                "call is one epoch"
            )
        if y is None:
            raise ArgumentError(
                f"{name}: requires y to be passed, but the target y is None; allowed: the targets "
                "of the examples"
            )
        fresh = not self._is_fitted() or not (self.warm_start or incremental)
        x, y = self._validated(X, y, reset=fresh)
        dtype = self._float(len(y), incremental) if fresh else self._model_dtype()
        x = converted(x, dtype)
        targets = self._targets(y, dtype, reset=fresh and not incremental)
        weights = self._weights(sample_weight, y)
        random_state = check_random_state(self.random_state)
        design = {**self._design(x, targets), "dtype": dtype}
        if fresh:
            self._set_model(random_state, **design)
        elif design != self._architecture:
            changed = [key for key in design if design[key] != self._architecture[key]]
            raise ArgumentError(
                f"{name}: {changed[0]} of the network is {shown(design[changed[0]])}; allowed: "
                f"{shown(self._architecture[changed[0]])}, as in the fit that is continued"
            )
        if self._objective is None or not incremental:
            self._objective = Objective(
                self._trained(), self._loss()[0], float(self.alpha), self._reported(targets)
            )
        if self.solver == "lbfgs":
            minimize(self, self._objective, self._examples(x, targets, weights))
            return
        score: Callable[[], float] | None = None
        if self.early_stopping:
            learned, judged = self._split(y, random_state)
            score = self._judge(*(taken(each, judged) for each in (x, y, weights)))
            x, targets, weights = (taken(each, learned) for each in (x, targets, weights))
        data = self._examples(x, targets, weights)
        self._fit_epochs(self._objective, data, random_state, score=score, incremental=incremental)

    def _split(self, y: Any, random_state: Any) -> tuple[Array, Array]:
        """The examples to learn from, and those to judge by, of all classes where that is one."""
        learned, judged = train_test_split(
            np.arange(len(y)),
            random_state=random_state,
            test_size=self.validation_fraction,
            stratify=y if self._stratified(y) else None,
        )
        if len(judged) < 2:
            raise ArgumentError(
                f"{type(self).__name__}: validation_fraction {self.validation_fraction} of "
                f"{len(y)} examples is {len(judged)}; allowed: 2 examples or more"
            )
        return learned, judged

    def _judge(self, x: Any, y: Any, weights: Any) -> Callable[[], float]:
        return lambda: self._score_of(x, y, weights)

    def _predicted_scores(self, X: Any) -> Array:
        check_is_fitted(self)
        x, _ = self._validated(X, None, reset=False)
        return self._scores(converted(x, self._model_dtype()))


def log_softmax(scores: Array) -> Array:
    """log softmax, finite however far the scores are apart."""
    shifted = scores - scores.max(axis=-1, keepdims=True)
    found: Array = shifted - np.log(np.exp(shifted).sum(axis=-1, keepdims=True))
    return found


def listed(classes: Array) -> str:
    """The first classes as an error names them."""
    shown_ones = ", ".join(map(str, classes[:10]))
    return f"{shown_ones}, ..." if len(classes) > 10 else shown_ones


def labels_in(y: Any) -> Array:
    """All labels, of sequences one after the other."""
    values: Array = y.values if isinstance(y, Sequences) else y
    return values


@dataclass(kw_only=True, eq=False, repr=False)
class Classifier(ClassifierMixin, Estimator):  # type: ignore[misc]
    """An estimator whose network has a score for every class; it has their softmax for loss.

    `class_weight` is None, "balanced" or a dictionary of weights by class.
    """

    class_weight: Mapping[Hashable, float] | str | None = None

    def fit(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Train on X and the labels y, with a weight for each example where they are given."""
        self._fit(X, y, sample_weight, incremental=False)
        return self

    def partial_fit(
        self,
        X: ArrayLike,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        classes: ArrayLike | None = None,
    ) -> Self:
        """One epoch over X and y; the first call has to name all `classes`."""
        name = type(self).__name__
        if not self._is_fitted():
            if classes is None:
                raise ArgumentError(
                    f"{name}: classes must be passed on the first call to partial_fit"
                )
            self.classes_ = unique_labels(classes)
        elif classes is not None and not np.array_equal(self.classes_, unique_labels(classes)):
            raise ArgumentError(
                f"{name}: classes are {listed(unique_labels(classes))}; allowed: "
                f"{listed(self.classes_)}, as in the first call to partial_fit"
            )
        if self.class_weight == "balanced":
            raise ArgumentError(
                f"{name}: partial_fit with class_weight 'balanced'; allowed: None or a "
                "dictionary, because one part of the data does not tell how often a class comes"
            )
        self._fit(X, y, sample_weight, incremental=True)
        return self

    def predict(self, X: ArrayLike) -> Array:
        """The most probable class of each example."""
        return self._labels(self._predicted_scores(X))

    def predict_proba(self, X: ArrayLike) -> Array:
        """The probability of each class, in the order of `classes_`."""
        return softmax.forward(self._predicted_scores(X))[0]

    def predict_log_proba(self, X: ArrayLike) -> Array:
        """The logarithm of `predict_proba`."""
        return log_softmax(self._predicted_scores(X))

    def _labels(self, scores: Array) -> Array:
        labels: Array = self.classes_[scores.argmax(axis=-1)]
        return labels

    def _note_classes(self, found: Array, *, reset: bool) -> None:
        """Take these classes, or check that they are known; of a warm start they are the same."""
        if reset:
            if len(found) == 1:
                raise ArgumentError(
                    f"{type(self).__name__} needs samples of at least 2 classes in the data, but "
                    f"the data contains only one class: {found[0]}"
                )
            self.classes_ = found
            return
        same = not self.warm_start or not self._is_fitted() or set(found) == set(self.classes_)
        if not same or len(np.setdiff1d(found, self.classes_)):
            raise ArgumentError(
                f"{type(self).__name__}: y has the classes {listed(found)}; allowed: "
                f"{listed(self.classes_)}, as in the call before"
            )

    def _targets(self, y: Any, dtype: str, *, reset: bool) -> Any:
        labels = labels_in(y)
        check_classification_targets(labels)
        self._note_classes(unique_labels(labels), reset=reset)
        index = np.searchsorted(self.classes_, labels).astype(np.int64)
        return index

    def _loss(self) -> tuple[Loss, float]:
        return Weighted(CrossEntropy(reduction="none", class_axis=-1)), 1.0

    def _weights(self, given: Any, y: Any) -> Any:
        return with_class_weights(super()._weights(given, y), self.class_weight, labels_in(y))

    def _score_of(self, x: Any, y: Any, weights: Any) -> float:
        return float(accuracy_score(y, self._labels(self._scores(x)), sample_weight=weights))
