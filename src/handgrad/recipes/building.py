"""From a recipe to the objects it describes."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from os import PathLike
from typing import Any, Final

import numpy as np

from handgrad import losses, optimizers, training
from handgrad.data.tokens import PAD
from handgrad.errors import RecipeError
from handgrad.layers import Layer
from handgrad.lora import is_adapted
from handgrad.optimizers import Optimizer, Schedule
from handgrad.recipes import models, sequential, tasks
from handgrad.recipes.changes import to_toml
from handgrad.recipes.keys import task_of
from handgrad.recipes.recipe import LAYERS, Recipe
from handgrad.recipes.tasks import Task
from handgrad.training.callbacks import SaveAdapter

_AUGMENTATIONS: Final[dict[str, Callable[..., training.Augmentation]]] = {
    "affine": training.Affine,
    "shift": training.Shift,
    "flip": training.Flip,
}


@dataclass(frozen=True)
class Built:
    """Everything `handgrad.training.train` takes, and the task it comes from."""

    config: training.RunConfig
    model: Layer
    loss: Any
    optimizer: Optimizer
    task: Task

    def train(
        self,
        out: str | PathLike[str],
        *,
        resume: bool = False,
        changes: str = "",
        progress: str = "auto",
        replicas: training.Replicas = training.ALONE,
    ) -> dict[str, Any]:
        """Train in the folder `out`; returns what summary.json holds.

        changes: what is otherwise on purpose when a run is resumed, see `training.train`;
        replicas: the processes that train together, see `Trainer`.
        """
        callbacks = [*self.config.callbacks]
        if is_adapted(self.model):
            callbacks.append(SaveAdapter(out))
        return training.train(
            replace(self.config, progress=progress, replicas=replicas, callbacks=callbacks),
            self.model,
            self.loss,
            self.optimizer,
            self.task.data,
            str(out),
            resume,
            changes=changes,
            review=self.task.review,
            prepare=self.task.save,
        )


def build(recipe: Recipe, task: Task) -> Built:
    """The objects of a recipe for its data, with a config text that needs neither to be rebuilt."""
    # Those of classes are in the loss and beside the model.
    values = {
        key: value
        for key, value in recipe.training.items()
        if key not in ("class_weights", "threshold")
    }
    complete = completed(recipe, task)
    optimizer = build_optimizer(recipe)
    steps = math.ceil(task.examples / (values.get("batch_size", 64) * values.get("accumulate", 1)))
    # The scores of a large vocabulary are the largest arrays, so judging takes no more examples.
    is_large = recipe.model.type == "pretrained"
    judging = {"evaluation_batch": values.get("batch_size", 64)} if is_large else {}
    config = training.RunConfig(
        text=to_toml(complete.changed("training", seed=recipe.seed).tables),
        augment=build_augmentation(recipe),
        schedule=build_schedule(recipe, optimizer.lr, steps),
        about={**task.about, "tokenizers": task.tokenizers},
        **judging,
        **values,
    )
    return Built(
        config=config,
        model=build_model(complete),
        loss=build_loss(complete),
        optimizer=optimizer,
        task=task,
    )


def completed(recipe: Recipe, task: Task) -> Recipe:
    """The recipe with the values found in its data, so that rebuilding a run reads no data."""
    return recipe.changed("data", **task.found)


def build_model(recipe: Recipe) -> Layer:
    """The model of a completed recipe, its first weights drawn from the seed.

    Raises RecipeError naming the setting or the layer that does not fit.
    """
    # A stream of its own: shuffling and augmentation use the seed itself.
    rng = np.random.default_rng((recipe.seed, 1))
    try:
        if recipe.model.type == LAYERS:
            shape = tuple(recipe.data["shape"])
            vectors = tasks.vectors(recipe)
            outputs = models.outputs(recipe.data)
            return sequential.build(recipe.layers, shape, outputs, rng, vectors)
        return models.build(recipe, rng)
    except RecipeError as error:
        raise RecipeError(f"{recipe.name}: {error}") from None


def load_task(recipe: Recipe, path: str | PathLike[str] | None = None) -> Task:
    """The recipe's data, from `path`, or where it says, or from HANDGRAD_DATA."""
    return tasks.load(recipe, path)


# -- the rest --------------------------------------------------------------------------------------


def build_loss(recipe: Recipe) -> Any:
    """Over classes, over numbers where a completed recipe has no classes, or over the tokens of
    every step, of which those after the end do not count.

    Raises RecipeError for weights of classes where there are no classes.
    """
    settings = dict(recipe.loss.settings)
    task = task_of(recipe.model.type)
    numbers = recipe.loss.type == "mse" or recipe.data.get("classes") == []
    if "class_weights" in recipe.training:
        if task != "classification" or numbers:
            found = "a number" if task == "classification" else "a text"
            raise RecipeError(
                f"{recipe.name}: training.class_weights are given, and {found} is to be learned; "
                "allowed: with classes"
            )
        settings["weight"] = np.array(recipe.data["class_weights"], np.float32)
    match task:
        case "text":
            return losses.CrossEntropy(class_axis=-1, **settings)
        case "pairs":
            return losses.CrossEntropy(class_axis=-1, ignore_index=PAD, **settings)
        case _ if numbers:
            return losses.SquaredError()
        case _:
            return losses.CrossEntropy(**settings)


def build_optimizer(recipe: Recipe) -> Optimizer:
    """The optimizer of a recipe."""
    settings: dict[str, Any] = {
        key: tuple(value) if isinstance(value, list) else value
        for key, value in recipe.optimizer.settings.items()
    }
    return optimizers.BY_NAME[recipe.optimizer.type](**settings)


def build_schedule(recipe: Recipe, lr: float, steps_per_epoch: int) -> Schedule:
    """The learning rate by step, from the optimizer's `lr`; a recipe counts its time in epochs."""
    settings = dict(recipe.schedule.settings)
    total = steps_per_epoch * recipe.training["epochs"]

    def steps(epochs: float) -> int:
        return max(1, round(epochs * steps_per_epoch))

    match recipe.schedule.type:
        case "step":
            return optimizers.Step(lr, steps(settings.pop("epochs")), **settings)
        case "cosine":
            first = steps(settings.pop("warmup")) if "warmup" in settings else 0
            cosine = optimizers.Cosine(lr, max(1, total - first), **settings)
            return optimizers.LinearWarmup(cosine, first) if first else cosine
        case "linear_warmup":
            first = steps(settings.pop("epochs"))
            return optimizers.LinearWarmup(optimizers.Constant(lr), first, **settings)
        case "one_cycle":
            return optimizers.OneCycle(lr, total, **settings)
        case _:
            return optimizers.Constant(lr)


def build_augmentation(recipe: Recipe) -> training.Augmentation | None:
    """The augmentation of a recipe's training batches; None without steps."""
    steps = [_AUGMENTATIONS[step.type](**step.settings) for step in recipe.augmentation]
    return training.Compose(steps) if steps else None
