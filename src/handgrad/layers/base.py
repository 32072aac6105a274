"""The base of layers: parameters, a forward, and a backward that returns gradients by name."""

from __future__ import annotations

import copy
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import MappingProxyType, ModuleType
from typing import TYPE_CHECKING, Any, ClassVar, Final, NoReturn, Self, TypeAlias

import numpy as np

from handgrad.arrays import Array
from handgrad.calls import construct
from handgrad.dispatch import SKIP
from handgrad.elsewhere import OF_LAYERS
from handgrad.errors import ArgumentError, HandgradError
from handgrad.kernels.sums import add
from handgrad.layers.construction import Construction, LayerType
from handgrad.layers.construction import Shape as Shape
from handgrad.layers.flat import FlatArrays, NamedArrays, written_into
from handgrad.layers.inputs import reads_tokens as reads_tokens
from handgrad.layers.summary import Row as Row
from handgrad.layers.summary import Summary, layer_text
from handgrad.lazy import public
from handgrad.ops.activation import own_options
from handgrad.printing import html_text
from handgrad.suggestions import NoAttributeError, raise_own_error

if TYPE_CHECKING:
    from torch import nn

#: Properties of a class that those derived from it do not inherit.
_PROMISES: Final = (
    "capturable",
    "forward_capturable",
    "backward_reads_output",
    "adds_residual_forward",
    "adds_residual_backward",
)


#: The gradient of the one input, of several a tuple of them; None where it is not wanted.
InputGradients: TypeAlias = Array | tuple[Array | None, ...] | None


class NotBuiltError(ArgumentError, AttributeError):
    """A layer is used before the sizes and generators it was made without are known."""


class Layer(metaclass=LayerType):
    """Parameters, forward and backward.

    Calling a layer, y = layer(x), is its forward without training and without the cache.

    Forward takes arrays in the type of the layer's parameters. Other floats, and integers and
    booleans in the place of x unless it is tokens, are converted, with one HandgradWarning for each
    type; gradients come back in the type of the parameters. The decorator `in_own_type`
    above forward does that; one without it takes what it is given.

    A subclass keeps its parameters, buffers and generators in attributes and names them in
    `parameter_names`, `buffer_names` and `generator_names` (an attribute that is None is absent);
    buffers that training leaves as they are made are also in `constant_names`. A container keeps
    its children in `layers`, by name. Every dictionary that goes in or out is flat: a child's array
    is `<child>.<name>`, such as `0.weight` or `block.conv.weight`.

    Parameters that are `frozen` stay as they are in training: they are among the buffers, and
    neither gradients nor optimizers nor checkpoints have them.

    Forward does not change the layer, with two exceptions that say so: BatchNorm's running
    statistics and Dropout's generator, both only in training.

    A class can declare five properties that make training and use faster. Each is a promise about
    the code of that very class, so it is not inherited: a derived class that does not repeat it has
    the default again, because what it overrides may break the promise.

    - capturable (False): forward and backward compute by ops, losses and layers of handgrad alone:
      nothing by NumPy or another library, no random numbers, no branch on values, no attribute
      changed. Only then can `hg.training.TrainingStep` replay the calls of kernels that one batch
      made on the next batch without running the layer's Python. Shapes, settings and views of
      arrays, such as x.reshape(...) or x.transpose(...), may be used freely. All layers of a model,
      and the loss, have to be capturable.
    - forward_capturable (False): the same of `forward_y` at inference alone, which
      `hg.inference.Session` replays; a capturable layer is so anyway.
    - backward_reads_output (True): backward reads the y that forward returned, which may be through
      a cache that keeps it. Where a model declares False, the training step writes the gradient of
      y over y. y then has to be an array that forward made, and no other array a view of it.
    - adds_residual_forward, adds_residual_backward (False): see forward and backward.
    """

    # Slots, because they are no settings: no part of a copy or of what identifies a run.
    __slots__ = ("__dict__", "__weakref__", "_input_type", "_warned_of")
    _input_type: Any
    _warned_of: tuple[np.dtype[Any], ...]

    parameter_names: tuple[str, ...] = ()
    buffer_names: ClassVar[tuple[str, ...]] = ()
    constant_names: ClassVar[tuple[str, ...]] = ()
    generator_names: ClassVar[tuple[str, ...]] = ()
    #: Those of `parameter_names` that are not trained; `freeze` and `unfreeze` set them.
    frozen: tuple[str, ...] = ()
    layers: Mapping[str, Layer] = MappingProxyType({})
    #: True if the first input is tokens, which have no gradient.
    takes_tokens: bool = False

    capturable: bool = False
    forward_capturable: bool = False
    backward_reads_output: bool = True
    adds_residual_forward: bool = False
    adds_residual_backward: bool = False

    _construction: Construction

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        for name in _PROMISES:
            setattr(cls, name, vars(cls).get(name, getattr(Layer, name)))

    if not TYPE_CHECKING:  # for type checkers a layer has the attributes that it declares

        def __getattr__(self, name: str) -> NoReturn:
            self._check_built()
            raise_own_error(self, name)
            raise NoAttributeError(self, name, OF_LAYERS)

    def __call__(self, *inputs: Array, **settings: object) -> Array:
        """y for these inputs, as `forward` gives it without training."""
        forward: Any = self.forward
        y: Array = forward(*inputs, training=False, **settings)[0]
        return y

    def forward(self, x: Array, *, training: bool = False) -> tuple[Array, object]:
        """y and what backward needs.

        A layer of several inputs, such as attention to a memory, takes the others as further
        positional arrays, and what has no gradient, such as masks, by keyword. One that declares
        `adds_residual_forward` also takes `residual`, an array that it adds to y as it writes it;
        `forward_residual` calls any layer so.
        """
        raise NotImplementedError

    def backward(
        self,
        dy: Array,
        cache: Any,
        *,
        gradients: Mapping[str, Array] | None = None,
        input_gradient: bool = True,
    ) -> tuple[Array | None, Mapping[str, Array]]:
        """dx and the gradients of the parameters, by name.

        In the place of dx stand the gradients of the inputs that forward was given: one bare,
        several as a tuple in their order. So a layer that was called with x alone gives dx alone,
        whatever else it can take; that is how `Sequential` and all that composes layers of one
        input call it.

        `gradients` gives arrays to write into, one for every parameter, and is what comes back.
        With `input_gradient=False`, dx is None and not computed.

        A layer that declares `adds_residual_backward` also takes `residual`, an array that it adds
        to dx as it writes it; `backward_residual` calls any layer so.
        """
        raise NotImplementedError

    def forward_y(self, *inputs: Array, **settings: object) -> tuple[Array, object]:
        """Forward as a container calls it: y alone, also of a layer that returns its state too."""
        forward: Any = self.forward
        return forward(*inputs, **settings)

    def backward_y(
        self, dy: Array, cache: object, **settings: object
    ) -> tuple[InputGradients, Mapping[str, Array]]:
        """The backward of `forward_y`: without the gradient of a state."""
        backward: Any = self.backward
        return backward(dy, cache, **settings)

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        """A layer with arrays and generators of its own; the ops it refers to stay the same."""
        twin = object.__new__(type(self))
        memo[id(self)] = twin
        for name, value in vars(self).items():
            shared = isinstance(value, ModuleType)
            setattr(twin, name, value if shared else copy.deepcopy(value, memo))
        return twin

    @property
    def settings(self) -> dict[str, object]:
        """The arguments that the constructor was given, by name and in its order.

        Those that are at their default, and generators, are left out; lists are tuples. Of a
        constructor that takes any number of layers, they stand as a tuple under "*layers", and
        further ones under their own names.
        """
        record = vars(self).get("_construction")
        return {} if record is None else record.settings()

    @property
    def is_built(self) -> bool:
        """Return whether no size and no generator is left open, here and in the children."""
        return not any(layer._lacks() for _, layer in walk(self))

    def build(self, input_shape: Shape | None = None, *, seed: int = 0) -> Self:
        """Give sizes that are None, and generators that were left out, to all layers; in place.

        input_shape: of one example, without the batch axis. Layers without a generator draw their
        first weights, in the order in which they stand, from the one that `seed` makes; those of a
        `Sequential` with a seed of its own from that. Layers that lack nothing stay as they are.
        Raises ArgumentError where a size is None and there is no shape, and what constructors
        raise.
        """
        self._build(input_shape, np.random.default_rng(seed), "")
        return self

    def save(self, path: str | os.PathLike[str]) -> None:
        """`hg.save`: write weights, buffers and the model's description to a .safetensors file."""
        public("save")(self, path)

    def load_weights(self, path: str | os.PathLike[str]) -> None:
        """`hg.load_weights`: put the arrays of a file that `save` or a run wrote into it."""
        public("load_weights")(self, path)

    def to_torch(self) -> nn.Module:
        """`hg.to_torch`: a torch.nn.Module that computes the same, with a copy of the weights."""
        return public("to_torch")(self)

    def _lacks(self) -> tuple[str, ...]:
        """The arguments of its own constructor that are left open."""
        record = vars(self).get("_construction")
        return () if record is None else record.missing

    def _check_built(self) -> None:
        missing = self._lacks()
        if missing:
            raise NotBuiltError(
                f"{type(self).__name__} has no weights yet, because {' and '.join(missing)} "
                f"{'was' if len(missing) == 1 else 'were'} left open; allowed: build(input_shape) "
                "first, or Trainer.fit"
            )

    def _build(self, shape: Shape | None, rng: np.random.Generator, name: str) -> None:
        if self._lacks():
            self._construct(shape, rng, name)
        self._build_children(shape, rng, name)

    def _construct(self, shape: Shape | None, rng: np.random.Generator, name: str) -> None:
        """Run the constructor that was put off."""
        record, kind = self._construction, type(self)
        what = f"build: {kind.__name__}{f' (layer {name})' if name else ''}"
        if record.sizes and not shape:
            raise ArgumentError(
                f"{what} has {record.sizes[0]} None; allowed: with build(input_shape)"
            )
        # A layer that draws while it trains has a generator of its own.
        own = rng.spawn(1)[0] if "rng" in kind.generator_names else rng
        bound = record.filled(shape, own)
        try:
            construct(self, bound.args, bound.kwargs)
        except HandgradError as error:
            raise type(error)(f"{what}: {error}") from None

    def _build_children(self, shape: Shape | None, rng: np.random.Generator, name: str) -> None:
        """Build the children, which take what the layer takes unless it overrides this."""
        for child_name, child in self.layers.items():
            child._build(shape, rng, f"{name}.{child_name}" if name else child_name)

    def freeze(self) -> Self:
        """Leave every parameter as it is from here on, in nested layers too.

        Backward then computes no gradient for them, and none below the first layer that is trained.
        """
        for _, layer in walk(self):
            if layer.parameter_names:
                layer.frozen = layer.parameter_names
        return self

    def unfreeze(self) -> Self:
        """Train every parameter again, in nested layers too."""
        for _, layer in walk(self):
            vars(layer).pop("frozen", None)
        return self

    @property
    def trained_names(self) -> tuple[str, ...]:
        """The names of `parameter_names` that are not frozen."""
        return tuple(name for name in self.parameter_names if name not in self.frozen)

    @property
    def is_trained(self) -> bool:
        """Return whether a parameter here or in the children is there and not frozen."""
        return any(
            getattr(layer, name) is not None
            for _, layer in walk(self)
            for name in layer.trained_names
        )

    @property
    def parameters(self) -> NamedArrays:
        """Every parameter that is trained, by name: the arrays themselves, not copies.

        `layer.parameters["weight"] = values` writes values into the array that is there.
        """
        return NamedArrays(self._collect(lambda layer: layer.trained_names))

    @property
    def parameter_bytes(self) -> int:
        """The memory that all parameters take, frozen ones too."""
        arrays = (*self.parameters.values(), *self.frozen_parameters.values())
        return sum(array.nbytes for array in arrays)

    @property
    def buffers(self) -> NamedArrays:
        """Every array that is part of the model but not trained, such as running statistics."""
        return NamedArrays(self._collect(lambda layer: (*layer.buffer_names, *layer.frozen)))

    @property
    def frozen_parameters(self) -> NamedArrays:
        """Those of the buffers that are parameters, which `unfreeze` would train again."""
        return NamedArrays(self._collect(lambda layer: layer.frozen))

    @property
    def generators(self) -> dict[str, np.random.Generator]:
        """Every random generator that forward draws from; a checkpoint keeps their states."""
        return self._collect(lambda layer: layer.generator_names)

    def _collect(self, names_of: Callable[[Layer], tuple[str, ...]]) -> dict[str, Any]:
        """The attributes that `names_of` names, here and in the children."""
        self._check_built()
        own = {name: getattr(self, name) for name in names_of(self)}
        found = {name: value for name, value in own.items() if value is not None}
        for child_name, child in self.layers.items():
            for name, value in child._collect(names_of).items():
                found[f"{child_name}.{name}"] = value
        return found

    def update_parameters(self, parameters: Mapping[str, Array]) -> None:
        """Set every parameter, in nested layers too, writing into the arrays that are there.

        Raises ArgumentError for a missing or unknown key, what is no array of real numbers, or a
        number too large for the parameter's type, and ShapeError for a wrong shape; then nothing
        has been changed.
        """
        written_into(self.parameters, parameters, "update_parameters")

    def update_buffers(self, buffers: Mapping[str, Array]) -> None:
        """Set every buffer, as `update_parameters` sets every parameter."""
        written_into(self.buffers, buffers, "update_buffers")

    def bind(self, flat: FlatArrays | None = None) -> FlatArrays:
        """Move every parameter into one flat buffer, keep views of it instead, and return it.

        `flat`, if given, is the buffer to use; it has exactly the parameters' names and shapes.
        """
        if flat is None:
            flat = FlatArrays.of(self.parameters)
        else:
            flat.copy_from(self.parameters)
        self._rebind(flat)
        return flat

    def _rebind(self, flat: FlatArrays) -> None:
        for name in self.trained_names:
            if getattr(self, name) is not None:
                setattr(self, name, flat[name])
        for name, child in self.layers.items():
            child._rebind(flat.child(name))

    def output_shape(self, input_shape: Shape) -> Shape:
        """The shape of y for one example of this shape, both without the batch axis.

        Raises ShapeError where the layer cannot take such an input.
        """
        raise NotImplementedError(f"{type(self).__name__} has no method output_shape of its own")

    def flops(self, input_shape: Shape) -> int:
        """Floating-point operations of forward for one example; a multiply-add is 2."""
        raise NotImplementedError

    def input_flops(self, input_shape: Shape) -> int:
        """Those of `flops` whose operand is x itself: what backward saves where it gives no dx.

        Tokens have no gradient to save, and into a layer of layers x goes by the first of them. One
        that takes x elsewhere has a method of its own.
        """
        if self.takes_tokens:
            return 0
        for first in self.layers.values():
            return first.input_flops(input_shape)
        return self.flops(input_shape)

    def rows(self, input_shape: Shape, name: str = "") -> list[Row]:
        """The rows of the summary, one per layer that computes something."""
        parameters = sum(_own_size(layer) for _, layer in walk(self))
        kind = type(self).__name__
        return [
            Row(name, kind, self.output_shape(input_shape), parameters, self.flops(input_shape))
        ]

    def summary(self, input_shape: Shape | None = None) -> Summary:
        """The layers as a table: outputs and FLOPs for an example of this shape, and parameters.

        input_shape: of one example, without the batch axis; None leaves outputs and FLOPs out.
        Raises ShapeError where a layer cannot take its input.
        """
        kind = type(self).__name__
        if input_shape is None:
            found = [
                Row(name, type(layer).__name__, None, _own_size(layer), 0)
                for name, layer in walk(self)
                if not layer.layers or layer.parameter_names
            ]
        else:
            found = self.rows(input_shape)
        trained = sum(array.size for array in self.parameters.values())
        return Summary(kind, input_shape, tuple(found), self.parameter_bytes, trained)

    def __repr__(self) -> str:
        return layer_text(type(self), self.settings)

    def _repr_html_(self) -> str:
        return html_text(repr(self)) + (self.summary()._repr_html_() if self.is_built else "")


class OpLayer(Layer):
    """A layer that is one op: its parameters are the op's differentiable inputs after x, in order.

    A subclass has forward; backward is the op's, and is the same for all of them.
    """

    op: ModuleType

    def backward(
        self,
        dy: Array,
        cache: object,
        *,
        gradients: Mapping[str, Array] | None = None,
        input_gradient: bool = True,
        residual: Array | None = None,
    ) -> tuple[Array | None, Mapping[str, Array]]:
        names = self.parameter_names
        added = {} if residual is None else {"residual": residual}
        if not names:
            dx = self.op.backward(dy, cache, **added) if input_gradient else None
            return dx, {} if gradients is None else gradients
        out_dx = None if input_gradient else SKIP
        skipped = [getattr(self, name) is None or name in self.frozen for name in names]
        if gradients is None:
            out: list[Any] = [SKIP if skip else None for skip in skipped]
            dx, *found = self.op.backward(dy, cache, out=(out_dx, *out), **added)
            pairs = zip(names, found, strict=True)
            return dx, {name: gradient for name, gradient in pairs if gradient is not None}
        out = [SKIP if skip else gradients[name] for name, skip in zip(names, skipped, strict=True)]
        dx = self.op.backward(dy, cache, out=(out_dx, *out), **added)[0]
        return dx, gradients


def _own_size(layer: Layer) -> int:
    own = (getattr(layer, name) for name in layer.parameter_names)
    return sum(array.size for array in own if array is not None)


def forward_residual(
    layer: Layer, residual: Array | None, *inputs: Array, **settings: Any
) -> tuple[Array, Any]:
    """y + residual and the cache; y alone where residual is None."""
    if residual is not None and layer.adds_residual_forward:
        return layer.forward(*inputs, residual=residual, **settings)  # type: ignore[call-arg]
    y, cache = layer.forward_y(*inputs, **settings)
    return (y if residual is None else add(residual, y)), cache


def backward_residual(
    layer: Layer, residual: Array | None, dy: Array, cache: Any, **settings: Any
) -> tuple[Any, Mapping[str, Array]]:
    """dx + residual, of several inputs the first one's, and the gradients of the parameters."""
    if residual is not None and layer.adds_residual_backward:
        return layer.backward(dy, cache, residual=residual, **settings)  # type: ignore[call-arg]
    dinputs: Any
    dinputs, gradients = layer.backward_y(dy, cache, **settings)
    if residual is None:
        return dinputs, gradients
    dx, *dothers = dinputs if isinstance(dinputs, tuple) else (dinputs,)
    dx = add(residual, dx)
    return (dx, *dothers) if dothers else dx, gradients


def activation_options(activation: str, negative_slope: float, approximate: str) -> dict[str, Any]:
    """The keyword arguments of a fused op for this activation, without what is not its own."""
    return {"activation": activation, **own_options(activation, negative_slope, approximate)}


def part(gradients: Mapping[str, Array] | None, name: str) -> Mapping[str, Array] | None:
    """The arrays that the child `name` writes its gradients into; None where none are given."""
    if gradients is None:
        return None
    if type(gradients) is FlatArrays:
        return gradients.child(name)
    prefix = name + "."
    inside = [key for key in gradients if key.startswith(prefix)]
    return {key.removeprefix(prefix): gradients[key] for key in inside}


def merge(parts: Mapping[str, Mapping[str, Array]]) -> dict[str, Array]:
    """The gradients of several children as one flat dictionary."""
    return {
        f"{child}.{name}": array
        for child, gradients in parts.items()
        for name, array in gradients.items()
    }


def first_trained(layers: Sequence[Layer]) -> int:
    """The position of the first layer with parameters that are trained; behind the last if none."""
    return next((i for i, layer in enumerate(layers) if layer.is_trained), len(layers))


def walk(layer: Layer, name: str = "") -> Iterator[tuple[str, Layer]]:
    """Every layer of a model with its full name, the model itself first."""
    yield name, layer
    for child_name, child in layer.layers.items():
        yield from walk(child, f"{name}.{child_name}" if name else child_name)
