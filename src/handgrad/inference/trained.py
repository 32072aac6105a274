"""A trained model with what belongs to its use: preprocessing, names of classes, tokenizers."""

from __future__ import annotations

import inspect
import os
import warnings
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np

from handgrad.arrays import Array
from handgrad.data.cells import in_columns
from handgrad.data.dataset import Pixels
from handgrad.data.encoding import TableEncoding
from handgrad.data.given import Examples, as_examples, as_tags, as_targets, check_finite, encoded
from handgrad.data.ragged import Sequences
from handgrad.data.tokens import TextCodec
from handgrad.errors import ArgumentError, DataError, HandgradWarning, ShapeError
from handgrad.inference.figures import class_figures, number_figures
from handgrad.inference.pictures import Cut, Framing, Reading
from handgrad.inference.preprocessing import Preprocessing, Standardization
from handgrad.layers.base import Layer, reads_tokens
from handgrad.lazy import public
from handgrad.ops import sigmoid, softmax
from handgrad.paths import as_path

#: The kinds of outputs: scores of classes for an example or for each step, logits of yes and no,
#: numbers, what comes next in a text, one text from another.
TASKS: Final = ("classification", "tagging", "binary", "regression", "text", "pairs")

#: Examples that go through the model together.
BATCH: Final = 256


@dataclass(frozen=True)
class TrainedModel:
    """A model that answers: data go in as they come, names or numbers come out.

    `hg.load` reads one, `hg.Trainer` has one as `trainer.trained`. `model` is the layer; `task` is
    what its outputs are, one of `TASKS`, or None where nobody said it; `classes` are the names of
    the classes by index, or None; `input_shape` is that of an example for the model, if known;
    `preprocessing` are the steps between data and model, the same as in training; `columns` the
    names of a table's columns; `targets` the mean and deviation of the numbers that a regression
    learned in place of them, where it did; `threshold` the probability from which the second of two
    classes is answered, or None for the more probable one.
    """

    model: Layer
    task: str | None = None
    classes: tuple[str, ...] | None = None
    input_shape: tuple[int, ...] | None = None
    preprocessing: Preprocessing = field(default_factory=Preprocessing)
    tokenizers: Mapping[str, TextCodec] = field(default_factory=dict)
    columns: tuple[str, ...] = ()
    targets: Standardization | None = None
    threshold: float | None = None

    def __post_init__(self) -> None:
        if self.threshold is not None and not 0 < self.threshold < 1:
            raise ArgumentError(
                f"TrainedModel: threshold is {self.threshold}; allowed: between 0 and 1, or None"
            )
        if self.task not in (None, *TASKS):
            raise ArgumentError(
                f"TrainedModel: task is {self.task!r}; allowed: {', '.join(TASKS)}, or None"
            )

    def predict(self, x: Examples) -> Array | list[Array]:
        """The answer for each example of x: an array, or of sequences a list of arrays.

        The most probable class, or of two the one that `threshold` decides for, by name where
        there are names, else by index; of a tagger one for each step; numbers (N,) or (N, K) of a
        regression; 0 or 1 for each logit of yes and no.
        x: an array (N, ...), a list, a frame, `Pixels`, or sequences of different lengths, all
        before preprocessing. Raises DataError and ShapeError for data that do not fit.
        """
        task, examples = self._task("predict"), self._examples(x)
        if task == "regression":
            outputs = np.concatenate(list(self._outputs(examples)))
            if self.targets is not None:
                outputs = self.targets.undo(outputs)
            return outputs[:, 0] if outputs.ndim == 2 and outputs.shape[1] == 1 else outputs
        found = [self._named(each) for each in self._decided(examples)]
        return found if self._is_ragged(examples) else np.array(found)

    def predict_proba(self, x: Examples) -> Array | list[Array]:
        """The probability of each class: (N, K), of sequences a list of (T, K).

        Of one logit of yes and no, (N, 2): no and yes; of several, that of yes for each, (N, K).
        Raises ArgumentError for a model of another task.
        """
        task = self._task("predict_proba")
        if task == "regression":
            raise ArgumentError("predict_proba: a regression has no classes; allowed: predict")
        examples = self._examples(x)
        found = [row for outputs in self._outputs(examples) for row in self._probabilities(outputs)]
        return found if self._is_ragged(examples) else np.array(found)

    def decide(self, probabilities: Array) -> Array:
        """The index of the class that is answered, for probabilities (..., K)."""
        if self.threshold is not None and probabilities.shape[-1] == 2:
            return np.asarray(probabilities[..., 1] >= self.threshold).astype(np.int64)
        return probabilities.argmax(axis=-1)

    def read_picture(self, path: str | os.PathLike[str]) -> tuple[Array, Reading]:
        """The probabilities (K,) of an image file's classes, and how it was read.

        The picture is brought into the form of the training images, in several views where those
        are drawings; the probabilities are the mean over the views. Raises DataError for a file
        that is no picture, or shows nothing, ArgumentError for a model that was trained on no
        images.
        """
        file = as_path("read_picture", path)
        for step in self.preprocessing.steps:
            if isinstance(step, Cut | Framing):
                reading = step.read(file)
                return np.asarray(self.predict_proba(reading.x)).mean(axis=0), reading
        raise ArgumentError(
            f"{file} is read as a picture, and the model was trained on none; allowed: data such "
            "as it was trained on"
        )

    def evaluate(self, x: Examples, y: Examples) -> dict[str, float]:
        """How well the answers for x fit the targets y, by the names of the metrics.

        Of classes "accuracy" and "cross_entropy", the mean of −log p of the right one, and for one
        class an example "macro_precision", "macro_recall" and "macro_f1", means over the classes,
        "auc" and "calibration_error"; of numbers "mean_squared_error" and its root,
        "root_mean_squared_error", "mean_absolute_error" and "r2". See `inference.figures`. Beside
        them stands "examples".
        y: names or indices of classes, of sequences a list of arrays, or numbers.
        Raises DataError for a class that the model does not know, ShapeError for other lengths.
        """
        if self._task("evaluate") == "regression":
            return self._regression(np.asarray(self.predict(x)), y)
        probabilities = self.predict_proba(x)
        if isinstance(probabilities, list):
            y, probabilities = as_tags(y, None, 0)[0].values, np.concatenate(probabilities)
        targets = self._numbers(y)
        if targets.shape != probabilities.shape[: targets.ndim] or len(targets) == 0:
            raise ShapeError(
                f"evaluate: y has shape {targets.shape}; allowed: {probabilities.shape[:-1]}, one "
                "for each prediction"
            )
        if targets.shape == probabilities.shape:  # yes or no for each of several questions
            more: dict[str, float] = {}
            right = (probabilities > (self.threshold or 0.5)) == (targets > 0)
            p = np.where(targets > 0, probabilities, 1 - probabilities)
        else:
            count = probabilities.shape[-1]
            wrong = np.argwhere((targets < 0) | (targets >= count))
            if len(wrong):
                at = tuple(int(i) for i in wrong[0])
                raise DataError(
                    f"y has the label {targets[at]} in row {at[0]}; expected 0 to {count - 1}, or "
                    "names of classes"
                )
            answers = self.decide(probabilities)
            right = answers == targets
            more = class_figures(targets, probabilities, answers) if targets.ndim == 1 else {}
            p = np.take_along_axis(probabilities, targets[..., None], -1)
        least = np.finfo(p.dtype).tiny
        return {
            "accuracy": float(right.mean()),
            "cross_entropy": float(-np.log(np.maximum(p, least)).mean()),
            **{name: value for name, value in more.items() if name != "accuracy"},
            "examples": len(targets),
        }

    def generate(
        self,
        prompt: str = "\n",
        *,
        length: int = 500,
        temperature: float = 1.0,
        top_k: int | None = None,
        top_p: float | None = None,
        seed: int = 0,
    ) -> str:
        """The prompt and `length` tokens that the model writes after it; see `models.sample`.

        Raises ArgumentError for a model that continues no text.
        """
        (tokens,) = self._tokenizers("generate", "text", "tokens")
        if not prompt:
            raise ArgumentError("generate: prompt is empty; allowed: one character or more")
        model: Any = self.model
        written = model.generate(
            tokens.encode(prompt)[None],
            length=length,
            rng=np.random.default_rng(seed),
            temperature=temperature,
            top_k=top_k,
            top_p=top_p,
        )
        return tokens.decode(written[0].tolist())

    def translate(
        self,
        texts: str | Iterable[str],
        *,
        longest: int = 200,
        beam: int = 1,
        length_penalty: float = 0.0,
    ) -> str | list[str]:
        """The model's text for each of `texts`, a list; for one text, a str, that of this one.

        Raises ArgumentError for a model that makes no text from another.
        """
        from handgrad.models import translate

        source, target = self._tokenizers("translate", "pairs", "source", "target")
        model: Any = self.model
        several = [texts] if isinstance(texts, str) else list(texts)
        made = translate(
            model,
            source,
            target,
            several,
            longest=longest,
            width=beam,
            length_penalty=length_penalty,
        )
        return made[0] if isinstance(texts, str) else made

    def save(self, path: str | os.PathLike[str]) -> None:
        """`hg.save`: write all of it to one .safetensors file, which `hg.load` reads."""
        public("save")(self, path)

    @property
    def takes_any_length(self) -> bool:
        """Return whether an example is a sequence of any number of steps."""
        return "lengths" in inspect.signature(self.model.forward).parameters

    def name_of(self, index: int) -> str:
        """The name of a class, or its index where it has none."""
        if self.classes is None:
            return str(index)
        self._check_classes(index + 1)
        return self.classes[index]

    def _check_classes(self, outputs: int) -> None:
        """Raise DataError where the model has outputs without a name."""
        if self.classes is not None and outputs > len(self.classes):
            raise DataError(
                f"the model has {outputs} outputs and {len(self.classes)} classes; expected the "
                "name of a class for each, or none"
            )

    # -- inputs and outputs -----------------------------------------------------------------------

    def _task(self, method: str) -> str:
        if self.task is None:
            raise ArgumentError(
                f"{method}: nothing says what the outputs of this model are; allowed: "
                f"hg.TrainedModel(model, task=...) with {', '.join(TASKS[:4])}, or trained.model(x)"
            )
        if self.task in ("text", "pairs"):
            instead = "generate" if self.task == "text" else "translate"
            raise ArgumentError(f"{method}: the model makes text; allowed: {instead}")
        return self.task

    def _tokenizers(self, method: str, task: str, *names: str) -> list[TextCodec]:
        if self.task != task or any(name not in self.tokenizers for name in names):
            instead = {"text": "generate", "pairs": "translate"}.get(self.task or "", "predict")
            found = self.task or "an unknown task"
            raise ArgumentError(f"{method}: the model is one of {found}; allowed: {instead}")
        return [self.tokenizers[name] for name in names]

    def _examples(self, x: Any) -> Array | Pixels | Sequences:
        """The examples of x, once they are such as the model takes."""
        first = next(iter(self.preprocessing.steps), None)
        if isinstance(first, TableEncoding):
            examples: Any = first.cells(x)
            for doubt in first.doubts(examples):
                warnings.warn(doubt, HandgradWarning, stacklevel=3)
        else:
            examples = as_examples(in_columns(x, self.columns))
        self._check_shape(examples)
        return examples

    def _is_ragged(self, examples: Any) -> bool:
        return isinstance(examples, Sequences) and self.task == "tagging"

    def _outputs(self, examples: Array | Pixels | Sequences) -> Iterator[Array]:
        """The outputs of the model, batch by batch; of a tagger those of the real steps alone."""
        dtype = next((a.dtype for a in self.model.parameters.values()), np.dtype(np.float32))
        for first in range(0, len(examples), BATCH):
            batch: Any = examples[first : first + BATCH]
            if isinstance(examples, Sequences):
                values = self._prepared(batch.x, dtype)
                outputs = self.model(values, batch.lengths)
            elif isinstance(examples, Pixels):
                outputs = self.model(batch.astype(dtype, copy=False))
            else:
                outputs = self.model(self._prepared(batch, dtype))
            if isinstance(examples, Sequences) and self.task == "tagging":
                yield from (row[None, :n] for row, n in zip(outputs, batch.lengths, strict=True))
            else:
                yield np.array(outputs)

    def _prepared(self, x: Array, dtype: np.dtype[Any]) -> Array:
        values = self.preprocessing(np.asarray(x))
        if reads_tokens(self.model):
            return values
        return np.ascontiguousarray(values, dtype)

    def _check_shape(self, examples: Any) -> None:
        if len(examples) == 0:
            raise DataError("x has no examples; expected one or more")
        check_finite(examples, "x", self.columns)
        if isinstance(examples, Sequences | Pixels) or self.preprocessing.steps:
            return
        found = tuple(examples.shape[1:])
        known = self.input_shape
        if known not in (None, found) and not (self.takes_any_length and found[1:] == known[1:]):
            hint = "; for one example x[None]" if examples.shape == self.input_shape else ""
            raise ShapeError(f"x has examples of shape {found}; allowed: {known}{hint}")

    def _probabilities(self, outputs: Array) -> Array:
        if self.task != "binary":
            self._check_classes(outputs.shape[-1])
            return softmax.forward(outputs)[0]
        yes = sigmoid.forward(outputs)[0]
        if yes.ndim == 1 or yes.shape[1] == 1:
            self._check_classes(2)
            yes = yes.reshape(len(yes), 1)
            return np.concatenate([1 - yes, yes], axis=1)
        return yes

    def _decided(self, examples: Any) -> Iterator[Array]:
        """The index of the best class for each example; 0 or 1 for each of several logits."""
        for outputs in self._outputs(examples):
            probabilities = self._probabilities(outputs)
            if self.task == "binary" and outputs.ndim == 2 and outputs.shape[1] > 1:
                yield from (probabilities > (self.threshold or 0.5)).astype(np.int64)
            else:
                yield from self.decide(probabilities)

    def _named(self, indices: Array) -> Any:
        return indices if self.classes is None else np.array(self.classes)[indices]

    def _numbers(self, y: Any) -> Array:
        """Targets as indices of classes. Raises DataError for one that is unknown."""
        return encoded(y, self.classes or (), "y").astype(np.int64)

    def _regression(self, predicted: Array, y: Any) -> dict[str, float]:
        targets = as_targets(y)[0].astype(np.float64)
        if targets.shape != predicted.shape:
            targets = targets.reshape(-1) if targets.size == predicted.size else targets
        if targets.shape != predicted.shape:
            raise ShapeError(f"evaluate: y has shape {targets.shape}; allowed: {predicted.shape}")
        found = number_figures(targets, predicted)
        return {
            "mean_squared_error": found["root_mean_squared_error"] ** 2,
            "r2": float("nan"),
            **found,
            "examples": len(targets),
        }
