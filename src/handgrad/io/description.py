"""A model as JSON: the class of each layer and the arguments of its constructor, nothing that runs.

A description names layers and models of handgrad and initializers of `handgrad.initializers`. It
comes from files that nobody trusts, so a layer is made without drawing values, and sizes that the
arrays of the file could not fill end in a sentence before memory is asked for.
"""

from __future__ import annotations

import functools
import inspect
import math
from collections.abc import Iterator, Mapping
from typing import Any, Final

import numpy as np

from handgrad import initializers
from handgrad.arrays import Array
from handgrad.errors import ArgumentError, DataError, HandgradError
from handgrad.escaping import cut, listed
from handgrad.layers.base import Layer, walk

#: Levels of layers in layers.
_DEEPEST: Final = 64
#: A size may be this large whatever the arrays are, such as the longest sequence of a model.
_LARGEST: Final = 2**20
#: Draws of first values that a model makes for each of its arrays, at most.
_DRAWS: Final = 4
#: Errors of constructors for settings of other kinds than they take.
_UNFIT: Final = (
    TypeError,
    ValueError,
    AttributeError,
    LookupError,
    ArithmeticError,
    MemoryError,
)
#: Names of arguments whose values are no sizes.
_NO_SIZES: Final = ("seed",)


class UndescribedError(Exception):
    """A model that no description can be made of; the text is the reason."""


def describe(model: Layer) -> dict[str, Any]:
    """The class and the settings of a model as plain values for JSON.

    Raises UndescribedError with the reason for a model that would not be built again as it is: one
    with classes or functions that are not handgrad's, with a layer that stands in it twice, or with
    attributes that were changed since it was made.
    """
    from handgrad.models.adapting import settings_of

    described = _layer(model, 0, set())
    adaptation = settings_of(model)
    if adaptation is not None:
        described["lora"] = adaptation
    arrays = {**model.parameters, **model.buffers}
    rebuilt = rebuild(described, {name: a.shape for name, a in arrays.items()})
    difference = next(_differences(model, rebuilt), None)
    if difference is not None:
        raise UndescribedError(f"its {difference} was changed after it was made")
    return described


def _differences(model: Layer, rebuilt: Layer) -> Iterator[str]:
    from handgrad.io.identity import compare, describe_model

    # A model that was read is trained whole, so that it does not matter what was frozen.
    left_out = {*(name.rpartition(".")[2] for name in model.generators), "frozen"}
    for path, _, _ in compare(describe_model(model), describe_model(rebuilt)):
        if path.partition("[")[0].rpartition(".")[2] not in left_out:
            yield path


def _layer(layer: Layer, depth: int, seen: set[int]) -> dict[str, Any]:
    kind = type(layer)
    if known_layers().get(kind.__name__) is not kind:
        raise UndescribedError(f"{kind.__name__} is no layer of handgrad's")
    if id(layer) in seen:
        raise UndescribedError(f"a {kind.__name__} stands in it twice")
    if depth == _DEEPEST:
        raise UndescribedError(f"it has more than {_DEEPEST} layers in one another")
    seen.add(id(layer))
    settings = {
        name: _value(name, value, depth, seen)
        for name, value in layer.settings.items()
        if name != "rng"
    }
    return {"class": kind.__name__, "settings": settings}


def _value(name: str, value: Any, depth: int, seen: set[int]) -> Any:
    match value:
        case None | bool() | int() | str():
            return value
        case float() if math.isfinite(value):
            return value
        case np.bool_() | np.integer() | np.floating() if np.isfinite(value):
            return value.item()
        case tuple():
            return [_value(name, each, depth, seen) for each in value]
        case dict() if all(isinstance(key, str) for key in value):
            return {"mapping": {key: _value(key, item, depth, seen) for key, item in value.items()}}
        case np.ndarray() if value.dtype.kind == "f":
            return {"array": value.tolist(), "dtype": value.dtype.name}
        case Layer():
            return _layer(value, depth + 1, seen)
        case np.dtype() | type():
            return {"dtype": np.dtype(value).name}
        case functools.partial() if not value.args and _is_initializer(value.func):
            settings = {key: _value(key, item, depth, seen) for key, item in value.keywords.items()}
            return {"initializer": value.func.__name__, "settings": settings}
    if _is_initializer(value):
        return {"initializer": value.__name__, "settings": {}}
    raise UndescribedError(f"{name} is a {type(value).__name__}, which has no form in JSON")


def _is_initializer(value: Any) -> bool:
    return value is _initializers().get(getattr(value, "__name__", ""))


@functools.cache
def _initializers() -> dict[str, Any]:
    """The functions that give a parameter its first values, by name."""
    return {
        name: value
        for name, value in vars(initializers).items()
        if inspect.isfunction(value) and list(inspect.signature(value).parameters)[1:2] == ["rng"]
    }


@functools.cache
def known_layers() -> dict[str, type[Layer]]:
    """Every layer and model of handgrad with a public name."""
    from handgrad import layers, models

    found = [getattr(layers, name) for name in dir(layers)]
    found += [getattr(models, name) for name in models.__all__]
    return {
        each.__name__: each for each in found if isinstance(each, type) and issubclass(each, Layer)
    }


# -- from JSON -------------------------------------------------------------------------------------


def rebuild(described: Any, shapes: Mapping[str, tuple[int, ...]]) -> Layer:
    """The model of a description, with parameters that are all 0, for arrays of these shapes.

    Raises DataError for a description of another form, and where the model has more parameters
    than there are arrays; HandgradError as the constructors do.
    """
    room, adaptation = _Room(shapes), None
    if isinstance(described, dict) and "lora" in described:
        adaptation = _adaptation(described["lora"])
        described = {name: each for name, each in described.items() if name != "lora"}
    model = room.layer(described, "model", 0)
    if adaptation is not None:
        from handgrad.models.adapting import adapt

        adapt(model, **adaptation)
    generators: dict[int, np.random.Generator] = {}
    for _, layer in walk(model):
        for name in layer.generator_names:
            if getattr(layer, name) is not None:
                own = generators.setdefault(
                    id(getattr(layer, name)), np.random.default_rng(len(generators))
                )
                setattr(layer, name, own)
    return model


def _adaptation(described: Any) -> dict[str, Any]:
    """The settings of `handgrad.lora.adapt` in a description."""
    match described:
        case {
            "rank": int(),
            "alpha": int() | float(),
            "targets": list(targets),
            "dropout": int() | float(),
            "bias": str(),
        } if len(described) == 5 and all(isinstance(each, str) for each in targets):
            return dict(described)
    raise DataError(f"model.lora is {cut(str(described))}; expected the settings of an adapter")


def blank(
    kind: type[Layer], settings: Mapping[str, Any], shapes: Mapping[str, tuple[int, ...]]
) -> Layer:
    """A model of this class and settings as `rebuild` makes it, for settings that nobody trusts.

    Raises as `rebuild` does, and ArgumentError for a setting of a kind that no description has.
    """
    try:
        described = {name: _value(name, value, 0, set()) for name, value in settings.items()}
    except UndescribedError as error:
        raise ArgumentError(f"{kind.__name__}: {error}; allowed: plain values") from None
    return rebuild({"class": kind.__name__, "settings": described}, shapes)


class _Room:
    """The layers of one description, and the numbers that its arrays have room for."""

    def __init__(self, shapes: Mapping[str, tuple[int, ...]]) -> None:
        self._numbers = sum(math.prod(shape) for shape in shapes.values())
        self._largest = max(_LARGEST, self._numbers)
        self._left = self._numbers
        self._rng = _Blank(_DRAWS * (self._numbers + 1), _DRAWS * (len(shapes) + 1))

    def layer(self, described: Any, path: str, depth: int) -> Layer:
        match described:
            case {"class": str(name), "settings": dict(settings)} if len(described) == 2:
                kind = known_layers().get(name)
            case _:
                raise DataError(
                    f"{path} is {cut(str(described))}; expected a class and its settings"
                )
        if kind is None:
            raise DataError(f"{path} is a {cut(str(name))}; expected a layer or model of handgrad")
        if depth > _DEEPEST:
            raise DataError(f"it has more than {_DEEPEST} layers in one another; expected less")
        several = next((key for key in settings if key.startswith("*")), None)
        arguments = {
            key: self._value(value, f"{path}.{key}", key, depth)
            for key, value in settings.items()
            if key != several
        }
        first = self._value(settings[several], f"{path}.layers", "", depth) if several else ()
        initializer = arguments.get("initializer")
        if initializer is not None:
            arguments["initializer"] = self._rng.initialize
        if "rng" in arguments:
            raise DataError(f"{path}.rng is {cut(str(settings['rng']))}; expected no generator")
        if "rng" in inspect.signature(kind).parameters:
            arguments["rng"] = self._rng
        try:
            layer = kind(*first, **arguments)
            is_built = layer.is_built
        except HandgradError as error:
            raise DataError(f"{path}: {cut(str(error), 300)}") from None
        except _UNFIT:
            found = listed(settings)
            raise DataError(f"{path} is no {name} with {found}; expected its settings") from None
        if not is_built:
            raise DataError(f"{path} has a size that is null; expected a number")
        if initializer is not None:
            _restore_initializer(layer, self._rng.initialize, initializer)
        self._count(layer, path, bool(first) or any(map(_is_layer, arguments.values())))
        return layer

    def _count(self, layer: Layer, path: str, is_container: bool) -> None:
        if not is_container:
            self._left -= sum(array.size for array in layer.parameters.values())
        if self._left < 0:
            raise DataError(f"{path} has more parameters than its file; expected as many")

    def _value(self, value: Any, path: str, key: str, depth: int) -> Any:
        match value:
            case {"class": _}:
                return self.layer(value, path, depth + 1)
            case {"dtype": "float32" | "float64" as name} if len(value) == 1:
                return np.dtype(name).type
            case {"array": list(numbers), "dtype": "float32" | "float64" as name}:
                try:
                    return np.array(numbers, np.dtype(name))
                except (TypeError, ValueError, OverflowError):
                    raise DataError(f"{path} is {cut(str(numbers))}; expected numbers") from None
            case {"initializer": str(name), "settings": dict(settings)}:
                return self._initializer(name, settings, path)
            case {"mapping": dict(items)} if len(value) == 1:
                return {
                    name: self._value(item, f"{path}.{name}", name, depth)
                    for name, item in items.items()
                }
            case list():
                return tuple(self._value(each, path, key, depth) for each in value)
            case bool() | None | str() | float():
                return value
            case int() if key in _NO_SIZES or abs(value) <= self._largest:
                return value
        raise DataError(
            f"{path} is {cut(str(value))}; expected a setting that the arrays have room for"
        )

    def _initializer(self, name: str, settings: dict[str, Any], path: str) -> Any:
        function = _initializers().get(name)
        if function is None:
            raise DataError(
                f"{path} is {cut(str(name))}; expected one of {', '.join(_initializers())}"
            )
        own = list(inspect.signature(function).parameters)[2:]
        if not all(
            key in own and isinstance(each, int | float | str) for key, each in settings.items()
        ):
            raise DataError(f"{path} has {cut(str(settings))}; expected settings of {name}")
        return functools.partial(function, **settings) if settings else function


class _Zeros(np.ndarray):
    """Zeros in no memory, which become some in memory that nothing has touched yet."""

    def astype(self, dtype: Any, *args: Any, **kwargs: Any) -> Any:
        return np.zeros(self.shape, dtype)


class _Blank(np.random.Generator):
    """A generator that gives zeros, and no more of them than are expected."""

    def __init__(self, numbers: int, draws: int) -> None:
        super().__init__(np.random.PCG64(0))
        self._numbers = numbers
        self._draws = draws
        #: The same object each time, so that it is found in the layers that keep it.
        self.initialize = self._blank

    def _zeros(self, size: Any) -> Array:
        self._numbers -= math.prod(size) if isinstance(size, tuple) else int(size or 1)
        self._draws -= 1
        if self._numbers < 0 or self._draws < 0:
            raise DataError("it has more parameters than its file; expected as many")
        return np.broadcast_to(0.0, () if size is None else size).view(_Zeros)

    def _blank(self, shape: tuple[int, ...], rng: Any, *, dtype: Any = np.float32) -> Array:
        """Zeros in the place of an initializer's values."""
        self._zeros(shape)
        return np.zeros(shape, dtype)

    def uniform(self, low: Any = 0.0, high: Any = 1.0, size: Any = None) -> Any:
        return self._zeros(size)

    def normal(self, loc: Any = 0.0, scale: Any = 1.0, size: Any = None) -> Any:
        return self._zeros(size)

    def standard_normal(self, size: Any = None, dtype: Any = np.float64, out: Any = None) -> Any:
        return self._zeros(size)

    def spawn(self, n_children: int) -> list[np.random.Generator]:
        return [self] * n_children


def _restore_initializer(layer: Layer, blank: Any, initializer: Any) -> None:
    """Say of a layer that was made with a blank initializer how its values are drawn."""
    layer._construction.arguments["initializer"] = initializer
    for _, each in walk(layer):
        if vars(each).get("initializer") is blank:
            vars(each)["initializer"] = initializer


def _is_layer(value: Any) -> bool:
    return isinstance(value, Layer)
