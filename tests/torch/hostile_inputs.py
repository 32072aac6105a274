"""Inputs that modules were not made for: `python -m tests.torch.hostile_inputs NAME ...`.

A kernel that reads beyond its arrays can end the interpreter, so this is a program of its own. Each
input is given to PyTorch's module and to ours: both have the same outputs and gradients, or both
raise. Prints `ended TIMES HOW` for each way in which both ended, `otherwise` for any other.
"""

from __future__ import annotations

import sys
import warnings
from collections import Counter
from collections.abc import Iterator
from typing import Any, Final

import torch
from torch.nn.utils.rnn import PackedSequence, pack_padded_sequence

import handgrad.torch as ours
from tests.tolerances import assert_close
from tests.torch.hostile import MODULES

DTYPES = (
    *(torch.float16, torch.bfloat16, torch.float32, torch.complex128),
    *(torch.int32, torch.int64, torch.bool),
)


#: The names of the masks over pairs of steps, and over steps.
MASKED: Final = {
    "MultiheadAttention": ("attn_mask", "key_padding_mask"),
    "TransformerEncoderLayer": ("src_mask", "src_key_padding_mask"),
}


def inputs(shape: tuple[int, ...]) -> Iterator[tuple[str, Any]]:
    """Tensors of other sizes, layouts, types and places than a module was made for."""
    generator = torch.Generator().manual_seed(1)

    def drawn(*sizes: int) -> Any:
        return torch.randn(sizes, dtype=torch.float64, generator=generator)

    usual = drawn(*shape)
    for axis in range(len(shape)):
        for size in (0, 1, 7):
            yield f"axis {axis} of {size}", drawn(*shape[:axis], size, *shape[axis + 1 :])
        yield f"axis {axis} flipped", usual.flip(axis)
        one = drawn(*shape[:axis], 1, *shape[axis + 1 :])
        yield f"axis {axis} expanded", one.expand(shape)
    yield "axes in another order", drawn(*shape[::-1]).permute(*reversed(range(len(shape))))
    every_second = drawn(*(2 * size for size in shape))
    yield "every second", every_second[tuple(slice(None, None, 2) for _ in shape)]
    yield "overlapping", drawn(64).as_strided(shape, [1] * len(shape))
    yield "with an offset", drawn(usual.numel() + 3)[3:].reshape(shape)
    yield "one number", drawn(1).expand(shape)
    yield "2**40 examples", drawn(1).expand(2**40, *shape[1:])
    yield "no axis", drawn()
    yield "no batch", drawn(*shape[1:])
    yield "another axis", drawn(2, *shape)
    yield "negated", torch.complex(usual, usual).conj().imag
    yield from ((str(dtype), usual.to(dtype)) for dtype in DTYPES)
    yield "on no device", usual.to("meta")
    yield "sparse", usual.to_sparse()
    yield "NaN", usual * float("nan")
    yield "None", None
    yield "a list", usual.tolist()
    yield "an array", usual.numpy()


def packed(name: str, shape: tuple[int, ...]) -> Iterator[tuple[str, Any]]:
    """Packed sequences that say other things than their rows."""
    if name not in ("LSTM", "GRU", "RNN"):
        return
    x = torch.randn(shape, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    rows, sizes, *_ = pack_padded_sequence(x, [3, 1], batch_first=True)
    far, numbers = torch.tensor([7, 7]), torch.tensor([0, 1])
    wrong = {
        "many": (sizes * 1000,),
        "more than rows": (sizes + torch.tensor([5, 0, 0]),),
        "fewer than rows": (sizes[:2] - 1,),
        "growing": (sizes.flip(0),),
        "negative": (sizes - 3,),
        "none": (sizes[:0],),
        "of 32 bits": (sizes.int(),),
        "floats": (sizes.double(),),
        "of two axes": (sizes[None],),
        "sorted elsewhere": (sizes, far, far),
        "unsorted elsewhere": (sizes, numbers, far),
    }
    yield from ((f"packed {what}", PackedSequence(rows, *given)) for what, given in wrong.items())


def targets(classes: int) -> Iterator[tuple[str, Any]]:
    """Targets of three examples that no classes have, and such that are no targets."""
    usual = torch.tensor([0, 3, 1])
    for number in (classes, -1, -100, 2**31, 2**62, -(2**62)):
        yield f"class {number}", torch.tensor([0, number, 1])
    for dtype in (torch.int32, torch.uint8, torch.float64, torch.bool):
        yield f"classes of {dtype}", usual.to(dtype)
    yield "two", usual[:2]
    yield "flipped", usual.flip(0)
    yield "on no device", usual.to("meta")
    yield "None", None


def cases(name: str, shape: tuple[int, ...]) -> Iterator[tuple[str, tuple[Any, ...], Any]]:
    given = [*inputs(shape), *packed(name, shape)]
    for what, x in given:
        if name == "CrossEntropyLoss":
            yield what, (x, torch.tensor([0, 3, 1])), {}
        elif name == "MultiheadAttention":
            yield what, (x, x, x), {"need_weights": False}
        else:
            yield what, (x,), {}
    if name in MASKED:
        x = dict(given)["axis 0 flipped"]
        batch, steps = shape[:2]
        for dtype in (torch.bool, torch.int32, torch.int64, torch.uint8, torch.float64):
            pair = torch.zeros(steps, steps, dtype=dtype), torch.zeros(batch, steps, dtype=dtype)
            for key, mask in zip(MASKED[name], pair, strict=True):
                more = {"need_weights": False} if name == "MultiheadAttention" else {}
                inputs_of = (x, x, x) if more else (x,)
                yield f"{key} of {dtype}", inputs_of, {key: mask, **more}
    if name == "CrossEntropyLoss":
        x = dict(given)["axis 0 flipped"]
        yield from ((f"targets: {what}", (x, target), {}) for what, target in targets(shape[1]))


def outcome(module: Any, given: tuple[Any, ...], options: Any) -> list[Any] | None:
    """Outputs and gradients of the parameters; None where the module raises."""
    module.zero_grad()
    try:
        found = module(*given, **options)
        y = found[0] if isinstance(found, tuple) else found
        y = y if torch.is_tensor(y) else y.data
        # PyTorch's slope of a ReLU at NaN is 1 and ours 0; the outputs are NaN in both.
        if y.requires_grad and y.device.type == "cpu" and not y.isnan().all():
            weights = torch.linspace(-1, 1, y.numel()).reshape(y.shape)
            (y * weights.to(y.dtype)).sum().backward()
    except Exception:  # of PyTorch or of handgrad
        return None
    return [y.detach(), *(each.grad for each in module.parameters())]


def compare(name: str, dtype: Any, given: tuple[Any, ...], options: Any) -> str:
    """How both ended, in a word."""
    settings, more, _ = MODULES[name]
    torch.manual_seed(0)
    theirs = getattr(torch.nn, name)(*settings, **more).to(dtype)
    mine = getattr(ours, name)(*settings, **more).to(dtype)
    mine.load_state_dict(theirs.state_dict())
    expected, found = (outcome(module, given, options) for module in (theirs, mine))
    if expected is None or found is None:
        if (expected is None) != (found is None):
            raise AssertionError(f"{'handgrad' if found is None else 'PyTorch'} alone raises")
        return "refused"
    for own, wanted in zip(found, expected, strict=True):
        assert (own is None) == (wanted is None)
        if own is not None:
            assert (own.shape, own.dtype, own.device) == (wanted.shape, wanted.dtype, wanted.device)
            if own.device.type == "cpu" and own.numel():
                kind = "float32 functions, saturated"
                if own.dtype is torch.float64:
                    kind = "torch float64"
                elif own.dtype is not torch.float32 or given[0].dtype is not torch.float32:
                    kind = "bf16 training"
                own, wanted = (each.nan_to_num().double().numpy() for each in (own, wanted))
                assert_close(own, wanted, kind, name)
    return "same"


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    ends: Counter[str] = Counter()
    for name in sys.argv[1:]:
        for what, given, options in cases(name, MODULES[name][2]):
            for dtype in (torch.float64, torch.float32):
                print("input", name, dtype, what, flush=True)
                try:
                    ends[compare(name, dtype, given, options)] += 1
                except Exception as error:
                    print("otherwise", name, dtype, what, repr(error)[:300], flush=True)
    for end, times in ends.items():
        print("ended", times, end)
