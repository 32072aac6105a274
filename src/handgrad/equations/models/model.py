"""The notes of a model: its layers, a drawing, the whole forward and the whole backward pass."""

from __future__ import annotations

import copy
from collections.abc import Callable
from functools import partial
from typing import Any, Final

import numpy as np

from handgrad.documents.document import Block, Document, Mono, Paragraph
from handgrad.documents.labels import label
from handgrad.documents.story import Story
from handgrad.equations.alive.story import story
from handgrad.equations.models import overview
from handgrad.equations.models.chain import Chain
from handgrad.equations.models.costs import costs
from handgrad.equations.models.flow import Flow, Shape, example_shape, flow_of, flow_of_inputs
from handgrad.equations.models.names import Sizes, parameters_of
from handgrad.equations.models.passes import loss_subject, run_forward
from handgrad.equations.models.sample import (
    as_batch,
    batch_unlike,
    example,
    is_unlike,
    target_for,
    too_large,
)
from handgrad.equations.models.sections import Sections
from handgrad.equations.models.steps import WrittenNode
from handgrad.equations.translations import named
from handgrad.errors import ArgumentError
from handgrad.layers import Layer
from handgrad.optimizers import SGD, Optimizer
from handgrad.recipes import Recipe, build_loss, tasks
from handgrad.recipes.building import build_optimizer

#: In how many examples caches are measured where none are given.
_MEASURED: Final = 32
#: The learning rate where no optimizer is given.
_RATE: Final = 0.1
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
    input_shape: Shape | None = None,
    alive: bool = False,
) -> Document:
    """The notes of a model for examples like those of the batch `x`, or of shape `input_shape`.

    `x` is a tuple for a model that takes several inputs, in the order of its forward. Neither is
    needed where the first layer fixes the shape. `loss` is one of `hg.losses`, with `target` what
    it compares the output with, or anything that fits; `optimizer` says how parameters are updated,
    plain SGD if there is none. With `numbers` every equation of a small model goes on with the
    values that it has for `x`; with `alive` the document has the story of that run too. The model
    is not changed.

    Raises ArgumentError where the shape of an example is not known, there is no layer, or a model
    that is to be alive is too large for numbers, ShapeError where an example does not fit.
    """
    if x is not None:
        x = as_batch(model, x)
    flow = _flow(model, x, input_shape)
    rule = optimizer or SGD(_RATE)
    blocks, told = _written(flow, x, None, loss, target, rule, lang, numbers, alive)
    return Document(title, lang, blocks, told)


def _flow(model: Layer, x: Any, input_shape: Shape | None) -> Flow:
    if isinstance(x, tuple):
        return flow_of_inputs(copy.deepcopy(model), x)
    if x is not None:
        input_shape = x.shape[1:]
    shape = example_shape(model) if input_shape is None else tuple(input_shape)
    if shape is None:
        raise ArgumentError(
            "notes: the shape of one example is not known; allowed: inputs for the model, or "
            "input_shape="
        )
    return flow_of(copy.deepcopy(model), shape)


def recipe_document(
    recipe: Recipe,
    model: Layer,
    *,
    title: str,
    lang: str = "en",
    numbers: bool = False,
    alive: bool = False,
) -> Document:
    """The notes of a completed recipe's model or a run's, with its loss and its optimizer."""

    def draw(count: int) -> Any:
        inputs = tasks.example(recipe, count, np.random.default_rng(0))
        return inputs if len(inputs) > 1 else inputs[0]

    first = draw(_SMALL)
    several = isinstance(first, tuple)
    flow = _flow(model, first if several else None, None if several else first.shape[1:])
    loss, optimizer = build_loss(recipe), build_optimizer(recipe)
    drawn = draw if several else None
    blocks, told = _written(flow, None, drawn, loss, None, optimizer, lang, numbers, alive)
    description = recipe.tables.get("description")
    introduction = (Paragraph(f"{description}."),) if description not in (None, "", title) else ()
    return Document(title, lang, (*introduction, *blocks), told)


def _written(
    flow: Flow,
    given: Any,
    draw: Callable[[int], Any] | None,
    loss: Any,
    target: Any,
    optimizer: Optimizer,
    lang: str,
    numbers: bool,
    alive: bool,
) -> tuple[tuple[Block, ...], Story | None]:
    """The blocks of a model, and where it is alive the story of its run."""
    numbers = numbers or alive
    draw = draw or partial(example, flow)
    measured = draw(_MEASURED) if given is None else given
    cost = costs(flow, measured)
    refused = too_large(flow, _SMALL if given is None else _count(given)) if numbers else ""
    if refused and alive:
        raise ArgumentError(
            f"notes: alive is given for a model with {refused} to write out; allowed: a smaller one"
        )
    numbers = numbers and not refused
    batch = _SMALL if numbers else batch_unlike(flow)
    several = isinstance(given, tuple)
    x = given if given is not None and (numbers or several) else draw(batch)
    batch = _count(x)
    sizes = Sizes({} if numbers or not is_unlike(flow, batch) else {"N": batch})
    parameters = {
        node.number: {name: node.layer.parameters[name].copy() for name in parameters_of(node)}
        for node in flow.nodes
    }
    run = run_forward(flow, x)
    chain = Chain(flow, run, sizes, lang, exact=numbers)
    last = _last_step(chain, loss, target)
    steps = [(chain.gathered(node.number), chain.node(node)) for node in reversed(flow.nodes)]
    written = [step for _, step in reversed(steps)]
    blocks: list[Block] = list(overview.drawings(overview.plan(chain, written), loss, lang))
    if refused:
        blocks.append(Paragraph((f"{label(lang, 'model_too_large')} ", Mono(refused), ".")))
    sections = Sections(flow, chain, named(type(loss).__name__, lang), numbers)
    if numbers:
        blocks += sections.given(x, parameters)
    blocks += sections.forward(written, last)
    blocks += sections.backward(steps, last)
    blocks += sections.updates(optimizer, parameters)
    blocks.append(overview.table(cost, _count(measured), lang))
    blocks += sections.sources()
    passes = sections.computed["forward"], sections.computed["backward"]
    return tuple(blocks), story(*passes, sections.board.anchor) if alive else None


def _count(x: Any) -> int:
    """The number of examples."""
    return len(x[0] if isinstance(x, tuple) else x)


def _last_step(chain: Chain, loss: Any, target: Any) -> WrittenNode | None:
    """The loss; where there is none, any gradient comes in."""
    y = chain.run.values[-1]
    if loss is not None:
        target = target_for(loss, y) if target is None else np.asarray(target)
        return chain.loss(loss_subject(loss, y, target))
    whole = np.random.default_rng(1).permutation(np.arange(y.size) % 7 - 3)
    chain.found.values[chain.flow.output] = whole.astype(y.dtype).reshape(y.shape)
    return None
