"""Calls of constructors: what is missing, unknown or of another kind ends in one sentence.

The annotations of a constructor say what it takes, as those of an op do; of others, such as
callables, nothing is looked at here.
"""

from __future__ import annotations

import functools
import inspect
from abc import ABCMeta
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from handgrad import initializers
from handgrad.dispatch.signature import GENERATOR, NONE, NUMBER, kinds_of, settled
from handgrad.dispatch.values import shown
from handgrad.elsewhere import ARGUMENTS, CALLS
from handgrad.errors import ArgumentError, HandgradError
from handgrad.keywords import full_signature
from handgrad.suggestions import did_you_mean

Method = TypeVar("Method", bound=Callable[..., Any])


def explained(method: Method) -> Method:
    """A method that is called seldom, whose arguments are checked before."""

    @functools.wraps(method)
    def call(self: Any, *args: Any, **kwargs: Any) -> Any:
        return _call(f"{type(self).__name__}.{method.__name__}", method, self, args, kwargs)

    return call  # type: ignore[return-value]


def construct(made: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> None:
    """Run the constructor of an object's class, explained where handgrad has written it."""
    init = type(made).__init__
    if is_own(init):
        _call(type(made).__name__, init, made, args, kwargs)
    else:
        init(made, *args, **kwargs)


def is_own(init: Callable[..., Any]) -> bool:
    """Return whether a constructor is one of handgrad's."""
    return (getattr(init, "__module__", None) or "").startswith("handgrad.")


def _call(
    name: str,
    method: Callable[..., Any],
    self: Any,
    args: tuple[Any, ...],
    kwargs: Mapping[str, Any],
) -> Any:
    check_call(name, method, args, kwargs)
    try:
        return method(self, *args, **kwargs)
    except HandgradError:
        raise
    except ValueError:
        _check_sizes(name, signature_of(method).bind(*args, **kwargs))
        raise


class Explained(ABCMeta):
    """The type of classes whose constructors are explained; one of ABCs, so that they mix."""

    if not TYPE_CHECKING:  # for type checkers, calling a class is calling its constructor

        def __call__(cls, *args: Any, **kwargs: Any) -> Any:
            made = cls.__new__(cls, *args, **kwargs)
            construct(made, args, kwargs)
            return made

        @property
        def __signature__(cls) -> inspect.Signature:
            return constructor_of(cls)


def check_call(
    name: str, method: Callable[..., Any], args: tuple[Any, ...], kwargs: Mapping[str, Any]
) -> None:
    """Raise ArgumentError unless a constructor, or method, takes these arguments after self."""
    signature = signature_of(method)
    try:
        given = signature.bind(*args, **kwargs).arguments
    except TypeError:
        raise ArgumentError(f"{name}: {_refusal(name, signature, args, kwargs)}") from None
    for key, value in given.items():
        parameter = signature.parameters[key]
        several = {key: value}
        if parameter.kind is parameter.VAR_POSITIONAL:
            several = {f"{key}[{i}]": each for i, each in enumerate(value)}
        elif parameter.kind is parameter.VAR_KEYWORD:
            several = value
        for argument, each in several.items():
            if each is not parameter.default:
                _check_kind(name, argument, each, str(parameter.annotation))


def _check_sizes(name: str, given: inspect.BoundArguments) -> None:
    """Raise ArgumentError for an integer of which NumPy can make no array: negative, or huge."""
    for key, value in given.arguments.items():
        if isinstance(value, int) and value < 0:
            raise ArgumentError(f"{name}: {key} is {value}; allowed: 1 or more")
        if isinstance(value, int) and value >= 2**31:
            raise ArgumentError(
                f"{name}: {key} is {value}; allowed: a size whose arrays a memory could hold"
            )


@functools.cache
def signature_of(method: Callable[..., Any]) -> inspect.Signature:
    """The signature of a method, without self."""
    given = full_signature(method)
    return given.replace(parameters=list(given.parameters.values())[1:])


def constructor_of(kind: type) -> inspect.Signature:
    """The signature of a class's constructor, without self."""
    return signature_of(kind.__init__)  # type: ignore[misc]


def _refusal(
    name: str,
    signature: inspect.Signature,
    args: tuple[Any, ...],
    kwargs: Mapping[str, Any],
) -> str:
    parameters = signature.parameters
    known = [key for key, each in parameters.items() if each.kind is not each.VAR_KEYWORD]
    unknown = next((key for key in kwargs if key not in parameters), None)
    if unknown is not None:
        same = [each for each in ARGUMENTS.get(unknown, ()) if each in parameters]
        line = CALLS.get((name, unknown)) or (f"{same[0]}=" if same else "")
        meant = f"; write {line}" if line else did_you_mean(unknown, known)
        return f"{unknown} is unknown; allowed: {', '.join(known)}{meant}"
    positional = [key for key, each in parameters.items() if each.kind is not each.KEYWORD_ONLY]
    if len(args) > len(positional):
        by_name = [f"{key}=" for key in known if key not in positional]
        return (
            f"argument {len(positional) + 1} is given without a name; allowed without one: "
            f"{', '.join(positional) or 'none'}; with one: {', '.join(by_name)}"
        )
    required = {key for key, each in parameters.items() if each.default is each.empty}
    missing = [key for key in known if key in required and key not in kwargs]
    missing = [key for key in missing if key not in positional[: len(args)]]
    if missing:
        found = f"{' and '.join(missing)} {'is' if len(missing) == 1 else 'are'} missing"
        lines = {"rng": "; write rng=np.random.default_rng(0)", "epochs": "; write epochs=10"}
        needed = ", ".join(key for key in known if key in required)
        return f"{found}; needed: {needed}{lines.get(' '.join(missing), '')}"
    twice = next((key for key in positional[: len(args)] if key in kwargs), "an argument")
    return f"{twice} is given twice, first as {shown(args[0])}; allowed: {', '.join(known)}"


def _check_kind(name: str, argument: str, value: Any, annotation: str) -> None:
    if annotation in ("Layer", "Layer | None"):
        if isinstance(value, type) or not hasattr(value, "backward"):
            raise ArgumentError(
                f"{name}: {argument} is {_shown(value)}; allowed: a layer{_layer_line(value)}"
            )
        return
    if annotation.startswith("Initializer") and not callable(value):
        like = did_you_mean(str(value), initializers.__all__) or "; did you mean he_uniform?"
        raise ArgumentError(
            f"{name}: {argument} is {shown(value)}; allowed: a function of hg.initializers{like}"
        )
    if argument == "dtype":
        _check_dtype(name, value)
    kinds = _known_kinds(annotation)
    is_real = isinstance(value, float | np.floating)  # the constructor knows its range
    if kinds is None or (kinds & NUMBER and is_real):
        return
    try:
        settled(name, argument, value, kinds)
    except ArgumentError as error:
        line = ""
        if kinds & GENERATOR:
            seed = value if type(value) is int and value >= 0 else 0
            line = f"; write rng=np.random.default_rng({seed})"
        elif argument == "lr" and isinstance(value, Mapping):
            line = f"; write {name}(lr=0.001), and optimizer.step(model.parameters, gradients)"
        elif argument == "lr" and callable(value):
            line = "; write hg.Trainer(..., schedule=schedule)"
        raise ArgumentError(f"{error}{line}") from None


def _check_dtype(name: str, value: Any) -> None:
    try:
        kind = np.dtype(value).kind
    except TypeError:
        kind = ""
    if kind != "f":
        raise ArgumentError(
            f"{name}: dtype is {_shown(value)}; allowed: np.float32, np.float64, np.float16"
        )


@functools.cache
def _known_kinds(annotation: str) -> int | None:
    if "[" in annotation:  # several values of one kind, which the constructor looks at
        return None
    try:
        kinds = kinds_of("int | None" if annotation == "InputSize" else annotation)
    except (KeyError, SyntaxError):
        return None
    # Of several kinds, as of True, False or "input", the constructor knows the values.
    return kinds if (kinds & ~NONE).bit_count() == 1 else None


def _shown(value: Any) -> str:
    return f"the class {value.__name__}" if isinstance(value, type) else shown(value)


def _layer_line(value: Any) -> str:
    if isinstance(value, list | tuple):
        return "; write hg.Sequential(*layers)"
    if isinstance(value, type) and hasattr(value, "backward"):
        return f"; write {value.__name__}(...), an object of it"
    if callable(value) or isinstance(value, str):
        return '; for a function between layers write hg.Activation("relu")'
    return ""
