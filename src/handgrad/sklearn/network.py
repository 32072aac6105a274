"""The base of all estimators here: scikit-learn's arguments for training, and its epochs."""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any, ClassVar, Final, Protocol

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import gen_batches

from handgrad import optimizers
from handgrad.arrays import Array
from handgrad.dispatch.values import shown
from handgrad.errors import ArgumentError
from handgrad.layers import Layer
from handgrad.sklearn.arguments import is_fraction, is_size
from handgrad.sklearn.examples import ExampleBatch, inputs_of
from handgrad.sklearn.objective import Objective
from handgrad.sklearn.state import packed, unpacked

#: The batch of "auto".
AUTO_BATCH: Final = 200
#: "adaptive" divides the rate by this as long as it is above the smallest.
_RATE_DIVISOR: Final = 5.0
_SMALLEST_RATE: Final = 1e-6

#: The numbers among the arguments: the type, the least and the largest, each with "may it be so".
_NUMBERS: Final[dict[str, tuple[Any, float, bool, float, bool]]] = {
    "alpha": (Real, 0, True, np.inf, False),
    "learning_rate_init": (Real, 0, False, np.inf, False),
    "power_t": (Real, 0, True, np.inf, False),
    "max_iter": (Integral, 1, True, np.inf, False),
    "tol": (Real, 0, True, np.inf, True),
    "momentum": (Real, 0, True, 1, False),
    "validation_fraction": (Real, 0, True, 1, False),
    "beta_1": (Real, 0, True, 1, False),
    "beta_2": (Real, 0, True, 1, False),
    "epsilon": (Real, 0, False, np.inf, False),
    "n_iter_no_change": (Real, 1, True, np.inf, True),
    "max_fun": (Integral, 1, True, np.inf, False),
}


def generator(random_state: Any) -> np.random.Generator:
    """A generator that goes on from scikit-learn's random state; any one where there is none."""
    return np.random.default_rng(None if random_state is None else random_state.randint(2**31))


class Data(Protocol):
    """Examples or Tagged."""

    def __len__(self) -> int: ...

    def batch(self, index: Array) -> ExampleBatch: ...


@dataclass(kw_only=True, eq=False, repr=False)
class Network(BaseEstimator):  # type: ignore[misc]
    """Training with scikit-learn's arguments, on handgrad's captured steps.

    A subclass builds its model in `_build(**self._architecture)` from plain settings, so that a
    pickle needs to hold no more than these and the arrays. `_model` is the network whose outputs
    are scores.

    `dtype` is that of the arithmetic. "auto" is float32, whose rounding is less than the noise of
    batches, and float64 where there is no such noise: with all examples in one batch, and for
    lbfgs, whose line search needs it.
    """

    solver: str = "adam"
    alpha: float = 0.0001
    batch_size: int | str = "auto"
    learning_rate: str = "constant"
    learning_rate_init: float = 0.001
    power_t: float = 0.5
    max_iter: int = 200
    shuffle: bool = True
    random_state: int | np.random.RandomState | None = None
    tol: float = 0.0001
    verbose: bool | int = False
    warm_start: bool = False
    momentum: float = 0.9
    nesterovs_momentum: bool = True
    early_stopping: bool = False
    validation_fraction: float = 0.1
    beta_1: float = 0.9
    beta_2: float = 0.999
    epsilon: float = 1e-8
    n_iter_no_change: float = 10
    dtype: str = "auto"

    #: The most examples that a prediction takes at a time.
    prediction_batch: ClassVar[int] = 4096
    #: Allowed values of arguments that are words; a subclass adds its own.
    choices: ClassVar[dict[str, tuple[Any, ...]]] = {
        "solver": ("adam", "sgd"),
        "learning_rate": ("constant", "invscaling", "adaptive"),
        "dtype": ("auto", "float32", "float64"),
    }

    def _check_settings(self) -> None:
        """Raise ArgumentError for the first argument with a value that is not allowed."""
        name = type(self).__name__
        settings = self.get_params(deep=False)
        for key, allowed in self.choices.items():
            if settings[key] not in allowed:
                raise ArgumentError(
                    f"{name}: {key} is {shown(settings[key])}; "
                    f"allowed: {', '.join(map(repr, allowed))}"
                )
        for key, (kind, low, has_low, high, has_high) in _NUMBERS.items():
            if key not in settings:
                continue
            value: Any = settings[key]
            fits = isinstance(value, kind) and (
                (low < value < high) or (has_low and value == low) or (has_high and value == high)
            )
            if not fits:
                noun = "an integer" if kind is Integral else "a number"
                below = f" {'to' if has_high else 'below'} {high}" if high < np.inf else ""
                raise ArgumentError(
                    f"{name}: {key} is {shown(value)}; allowed: {noun} "
                    f"{'from' if has_low else 'above'} {low}{below}"
                )
        size = self.batch_size
        if size != "auto" and not is_size(size):
            raise ArgumentError(
                f"{name}: batch_size is {shown(size)}; allowed: 'auto' or an integer from 1"
            )

    def _check_fraction(self, key: str, value: Any) -> None:
        if not is_fraction(value):
            raise ArgumentError(
                f"{type(self).__name__}: {key} is {shown(value)}; allowed: a number from 0 below 1"
            )

    # -- the model --------------------------------------------------------------------------------

    def _build(self, random_state: Any = None, **architecture: Any) -> Layer:
        """The network for these settings; its weights are drawn where there is a random state."""
        raise NotImplementedError

    def _set_model(self, random_state: Any, **architecture: Any) -> None:
        """Begin anew with first weights."""
        self._architecture = architecture
        self._model = self._build(random_state, **architecture)
        self._objective: Objective | None = None
        self._optimizer: optimizers.Optimizer | None = None
        self.n_iter_ = 0
        self.t_ = 0
        self.loss_curve_: list[float] = []
        self.best_loss_ = None if self.early_stopping else np.inf
        self.validation_scores_: list[float] | None = [] if self.early_stopping else None
        self.best_validation_score_ = -np.inf if self.early_stopping else None
        self._no_improvement = 0

    def _float(self, examples: int, incremental: bool) -> str:
        if self.dtype != "auto":
            return self.dtype
        most = AUTO_BATCH if isinstance(self.batch_size, str) else self.batch_size
        whole = self.solver == "lbfgs" or (examples <= most and not incremental)
        return "float64" if whole else "float32"

    def _model_dtype(self) -> str:
        dtype: str = self._architecture["dtype"]
        return dtype

    def _scores(self, x: Any) -> Array:
        """The model's outputs for all examples, some at a time."""
        every = np.arange(x.shape[0])
        parts = [
            self._model.forward(*inputs_of(x, every[part], self._model_dtype()))[0]
            for part in gen_batches(len(every), self.prediction_batch)
        ]
        return parts[0] if len(parts) == 1 else np.concatenate(parts)

    def _arrays(self) -> dict[str, Array]:
        return {**self._model.parameters, **self._model.buffers}

    def _put_back(self, arrays: dict[str, Array]) -> None:
        for name, array in self._arrays().items():
            array[...] = arrays[name]

    def __getstate__(self) -> dict[str, Any]:
        state: dict[str, Any] = super().__getstate__().copy()
        if "_model" in state:
            optimizer = state.pop("_optimizer")
            kept = {} if optimizer is None else {"optimizer": optimizer.state}
            del state["_model"], state["_objective"]
            state["_packed"] = packed(model=self._arrays(), **kept)
            state["_rate"] = None if optimizer is None else optimizer.lr
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        state = dict(state)
        data, rate = state.pop("_packed", None), state.pop("_rate", None)
        super().__setstate__(state)
        if data is not None:
            groups = unpacked(data)
            self._model = self._build(**self._architecture)
            self._put_back(groups["model"])
            self._objective, self._optimizer = None, None
            if rate is not None:
                self._optimizer = self._new_optimizer()
                self._optimizer.load_state(groups["optimizer"])
                self._optimizer.lr = rate

    # -- training ---------------------------------------------------------------------------------

    def _new_optimizer(self) -> optimizers.Optimizer:
        lr = float(self.learning_rate_init)
        if self.solver == "adam":
            betas = float(self.beta_1), float(self.beta_2)
            return optimizers.Adam(lr, betas=betas, eps=float(self.epsilon))
        if self.momentum == 0:
            return optimizers.SGD(lr)
        if self.nesterovs_momentum:
            return optimizers.Nesterov(lr, momentum=float(self.momentum))
        return optimizers.Momentum(lr, momentum=float(self.momentum), form="classical")

    def _set_rate(self, optimizer: optimizers.Optimizer, lr: float) -> None:
        """scikit-learn's velocity has the rates in it that its gradients came with."""
        for name, array in optimizer.state.items():
            if name.startswith("velocity."):
                array *= optimizer.lr / lr
        optimizer.lr = lr

    def _step(self, optimizer: optimizers.Optimizer, objective: Objective) -> None:
        if self.solver == "adam":
            # scikit-learn adds epsilon to √v, handgrad and the paper's algorithm to √v̂.
            correction = 1 - self.beta_2 ** (optimizer.steps + 1)
            optimizer.hyperparameters["eps"] = float(self.epsilon / math.sqrt(correction))
        optimizer.step(objective.parameters, objective.gradients)

    def _batch_size(self, examples: int) -> int:
        if isinstance(self.batch_size, str):
            return min(AUTO_BATCH, examples)
        if self.batch_size > examples:
            warnings.warn(
                f"{type(self).__name__}: batch_size is {self.batch_size} for {examples} examples; "
                "all of them are one batch",
                stacklevel=2,
            )
        return min(self.batch_size, examples)

    def _run_epoch(
        self,
        objective: Objective,
        optimizer: optimizers.Optimizer,
        data: Data,
        order: Array,
        size: int,
    ) -> float:
        """One pass over the data; the mean of the batches' losses over the examples."""
        total = 0.0
        for first in range(0, len(data), size):
            index = order[first : first + size]
            inputs, targets, weight = data.batch(index)
            if weight == 0:  # nothing to learn
                continue
            total += objective(inputs, targets, weight) * len(index)
            self._step(optimizer, objective)
        return total / len(data)

    def _fit_epochs(
        self,
        objective: Objective,
        data: Data,
        random_state: Any,
        *,
        score: Any = None,
        incremental: bool = False,
    ) -> None:
        """Epochs until there is no improvement, of `score()` where there is one, else of the loss.

        incremental: one epoch, with the optimizer of the call before. Raises ArgumentError where
        the loss or the weights are not finite at the end of an epoch.
        """
        if self._optimizer is None or not incremental:
            self._optimizer = self._new_optimizer()
        optimizer = self._optimizer
        size = self._batch_size(len(data))
        order = np.arange(len(data))
        best: dict[str, Array] | None = None
        self.n_iter_ = 0
        try:
            while self.n_iter_ < self.max_iter:
                if self.shuffle:
                    drawn = np.arange(len(data))  # the draws of sklearn.utils.shuffle
                    random_state.shuffle(drawn)
                    order = order[drawn]
                with np.errstate(over="ignore", invalid="ignore"):
                    self.loss_ = self._run_epoch(objective, optimizer, data, order, size)
                self.n_iter_ += 1
                self.t_ += len(data)
                self.loss_curve_.append(self.loss_)
                self._check_weights(objective)
                if self.verbose:
                    print(f"Iteration {self.n_iter_}, loss = {self.loss_:.8f}")
                if score is None:
                    self._note_loss()
                elif self._note_score(score()):
                    best = {name: array.copy() for name, array in self._arrays().items()}
                if self.solver == "sgd" and self.learning_rate == "invscaling":
                    start = float(self.learning_rate_init)
                    self._set_rate(optimizer, start / (self.t_ + 1) ** self.power_t)
                if self._no_improvement > self.n_iter_no_change:
                    if self._stops(
                        optimizer, "Training loss" if score is None else "Validation score"
                    ):
                        break
                    self._no_improvement = 0
                if incremental:
                    break
                if self.n_iter_ == self.max_iter:
                    warnings.warn(
                        f"{type(self).__name__}: training has not converged after max_iter = "
                        f"{self.max_iter} epochs; more epochs or a larger learning_rate_init may "
                        "help",
                        ConvergenceWarning,
                        stacklevel=2,
                    )
        except KeyboardInterrupt:
            warnings.warn("Training interrupted by user.", stacklevel=2)
        if best is not None:
            self._put_back(best)

    def _note_loss(self) -> None:
        assert self.best_loss_ is not None
        worse = self.loss_ > self.best_loss_ - self.tol
        self._no_improvement = self._no_improvement + 1 if worse else 0
        self.best_loss_ = min(self.loss_, self.best_loss_)

    def _note_score(self, score: float) -> bool:
        """Return whether it is the best so far."""
        assert self.validation_scores_ is not None
        assert self.best_validation_score_ is not None
        self.validation_scores_.append(score)
        if self.verbose:
            print(f"Validation score: {score:f}")
        worse = score < self.best_validation_score_ + self.tol
        self._no_improvement = self._no_improvement + 1 if worse else 0
        better = score > self.best_validation_score_
        if better:
            self.best_validation_score_ = score
        return better

    def _stops(self, optimizer: optimizers.Optimizer, judged: str) -> bool:
        """Without improvement training stops; "adaptive" first goes on with smaller rates."""
        adaptive = self.solver == "sgd" and self.learning_rate == "adaptive"
        stops = not adaptive or optimizer.lr <= _SMALLEST_RATE
        if not stops:
            self._set_rate(optimizer, optimizer.lr / _RATE_DIVISOR)
        if self.verbose:
            what = "Stopping." if stops else f"Setting learning rate to {optimizer.lr:f}"
            print(
                f"{judged} did not improve more than tol={self.tol:f} for "
                f"{self.n_iter_no_change} consecutive epochs. {what}"
            )
        return stops

    def _check_weights(self, objective: Objective) -> None:
        if not (np.isfinite(self.loss_) and np.isfinite(objective.parameters.buffer).all()):
            raise ArgumentError(
                f"{type(self).__name__}: training gives a loss or weights that are not finite; "
                "allowed: data of moderate size, as StandardScaler makes it, and a "
                "learning_rate_init with which the loss does not grow"
            )
