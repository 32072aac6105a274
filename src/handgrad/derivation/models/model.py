"""The notes of a model: its layers, a drawing, the whole forward and the whole backward pass."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from dataclasses import replace
from typing import Any, Final

import numpy as np

from handgrad.derivation.documents.document import Block, Document, Mono, Paragraph
from handgrad.derivation.documents.labels import label
from handgrad.derivation.models import overview
from handgrad.derivation.models.chain import Chain
from handgrad.derivation.models.costs import costs
from handgrad.derivation.models.flow import Flow, Shape, example_shape, flow_of
from handgrad.derivation.models.names import Sizes, parameters_of
from handgrad.derivation.models.passes import loss_subject, run_forward
from handgrad.derivation.models.sample import as_batch, batch_unlike, example, target_for, too_large
from handgrad.derivation.models.sections import Sections
from handgrad.derivation.models.steps import Step
from handgrad.errors import ArgumentError
from handgrad.layers import Layer
from handgrad.optimizers import SGD, Optimizer
from handgrad.recipes import Recipe, build_loss
from handgrad.recipes.building import build_optimizer

#: In how many examples caches are measured where none are given.
_MEASURED: Final = 32
#: A batch that is written out in numbers.
_SMALL: Final = 2


def model_document(
    model: Layer,
    x: Any = None,
    *,
    title: str,
    lang: str = "en",
    numbers: bool = False,
    loss: Any = None,
    target: Any = None,
    optimizer: Optimizer | None = None,
    eta: float = 0.1,
    input_shape: Shape | None = None,
) -> Document:
    """The notes of a model for examples like those of the batch `x`, or of shape `input_shape`.

    Neither is needed where the first layer fixes the shape. `loss` is one of `hg.losses`, with
    `target` what it compares the output with, or anything that fits; `optimizer` says how
    parameters are updated, plain SGD with the learning rate `eta` if there is none. With `numbers`
    every equation of a small model goes on with the values that it has for `x`. The model is not
    changed.

    Raises ArgumentError where the shape of an example is not known or there is no layer, ShapeError
    where an example does not fit.
    """
    if x is not None:
        x = as_batch(model, x)
        input_shape = x.shape[1:]
    shape = example_shape(model) if input_shape is None else tuple(input_shape)
    if shape is None:
        raise ArgumentError(
            "notes: the shape of one example is not known; allowed: inputs for the model, or "
            "input_shape="
        )
    flow = flow_of(copy.deepcopy(model), shape)
    blocks = _blocks(flow, x, loss, target, optimizer or SGD(eta), lang, numbers)
    return Document(title, lang, tuple(blocks))


def recipe_document(
    recipe: Recipe,
    model: Layer,
    input_shape: Shape,
    *,
    title: str,
    lang: str = "en",
    numbers: bool = False,
) -> Document:
    """The notes of a recipe's model or a run's, with its loss and its optimizer."""
    document = model_document(
        model,
        title=title,
        lang=lang,
        numbers=numbers,
        loss=build_loss(recipe),
        optimizer=build_optimizer(recipe),
        input_shape=input_shape,
    )
    description = recipe.tables.get("description")
    introduction = (Paragraph(f"{description}."),) if description else ()
    return replace(document, blocks=(*introduction, *document.blocks))


def _blocks(
    flow: Flow,
    given: Any,
    loss: Any,
    target: Any,
    optimizer: Optimizer,
    lang: str,
    numbers: bool,
) -> Iterator[Block]:
    measured = example(flow, _MEASURED) if given is None else given
    cost = costs(flow, measured)
    refused = too_large(flow, _SMALL if given is None else len(given)) if numbers else ""
    numbers = numbers and not refused
    batch = _SMALL if numbers else batch_unlike(flow)
    x = given if numbers and given is not None else example(flow, batch)
    sizes = Sizes({} if numbers else {batch: "N"})
    parameters = {
        node.number: {name: node.layer.parameters[name].copy() for name in parameters_of(node)}
        for node in flow.nodes
    }
    run = run_forward(flow, x)
    chain = Chain(flow, run, sizes, lang)
    last = _last_step(chain, loss, target)
    steps = [(chain.gathered(node.number), chain.node(node)) for node in reversed(flow.nodes)]
    yield from overview.table(cost, len(measured), lang)
    yield from overview.drawings(flow, chain.symbols_of, loss, lang)
    if refused:
        yield Paragraph((f"{label(lang, 'model_too_large')} ", Mono(refused), "."))
    sections = Sections(flow, chain, type(loss).__name__, numbers)
    if numbers:
        yield from sections.given(x, parameters)
    yield from sections.forward([step for _, step in reversed(steps)], last)
    yield from sections.backward(steps, last)
    yield from sections.updates(optimizer, parameters)


def _last_step(chain: Chain, loss: Any, target: Any) -> Step | None:
    """The loss; where there is none, any gradient comes in."""
    y = chain.run.values[-1]
    if loss is not None:
        target = target_for(loss, y) if target is None else np.asarray(target)
        return chain.loss(loss_subject(loss, y, target))
    whole = np.random.default_rng(1).permutation(np.arange(y.size) % 7 - 3)
    chain.found.values[chain.flow.output] = whole.astype(y.dtype).reshape(y.shape)
    return None
