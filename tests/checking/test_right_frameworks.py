"""Right gradients written for PyTorch and JAX are called right, and wrong twins wrong."""

from __future__ import annotations

import numpy as np
import pytest

import handgrad as hg
from handgrad.checking import CheckReport

RNG = np.random.default_rng(0)
X, GAMMA, BETA = RNG.standard_normal((5, 7)), RNG.standard_normal(7), RNG.standard_normal(7)
WHOLE = RNG.integers(-2, 3, (4, 6)).astype(float)


def functions():
    """Subclasses of torch.autograd.Function by name: the function, a wrong one, and inputs."""
    torch = pytest.importorskip("torch")
    function = torch.autograd.Function

    def of(forward, right, wrong):
        return tuple(
            type(
                "Custom",
                (function,),
                {"forward": staticmethod(forward), "backward": staticmethod(backward)},
            )
            for backward in (right, wrong)
        )

    def norm(ctx, x, gamma, beta, eps):
        c = x - x.mean(-1, keepdim=True)
        s = torch.rsqrt((c * c).mean(-1, keepdim=True) + eps)
        ctx.save_for_backward(c * s, s, gamma)
        return gamma * c * s + beta

    def norm_back(ctx, dy):
        h, s, gamma = ctx.saved_tensors
        d = dy * gamma
        dx = s * (d - d.mean(-1, keepdim=True) - h * (d * h).mean(-1, keepdim=True))
        return dx, (dy * h).sum(0), dy.sum(0), None

    def norm_wrong(ctx, dy):
        dx, dgamma, dbeta, _ = norm_back(ctx, dy)
        return dx, dgamma, -dbeta, None

    def clamp(ctx, x, low, high):
        ctx.save_for_backward(x)
        ctx.low, ctx.high = low, high
        return x.clamp(low, high)

    def clamp_back(ctx, dy):
        (x,) = ctx.saved_tensors
        return dy * ((x >= ctx.low) & (x <= ctx.high)), None, None

    def clamp_wrong(ctx, dy):
        return dy, None, None

    def pool(ctx, x, size):
        windows = x.view(x.shape[0], -1, size)
        y, where = windows.max(-1)
        ctx.where, ctx.shape = where, windows.shape
        return y

    def pool_back(ctx, dy):
        dx = dy.new_zeros(ctx.shape)
        return dx.scatter_(-1, ctx.where[..., None], dy[..., None]).flatten(1), None

    def pool_wrong(ctx, dy):
        return dy[..., None].expand(ctx.shape).flatten(1), None

    def mask(ctx, x, kept, scale=2.0):
        ctx.save_for_backward(kept)
        ctx.scale = scale
        return x * kept * scale

    def mask_back(ctx, dy):
        (kept,) = ctx.saved_tensors
        return dy * kept * ctx.scale, None, None

    def mask_wrong(ctx, dy):
        (kept,) = ctx.saved_tensors
        return dy * kept, None, None

    def view(ctx, x):
        ctx.save_for_backward(x)
        return x.sin()

    def view_back(ctx, dy):
        (x,) = ctx.saved_tensors
        return dy.contiguous().view(-1).mul(x.reshape(-1).cos()).view(x.shape)

    def view_only(ctx, dy):
        (x,) = ctx.saved_tensors
        return dy.view(-1).mul(x.reshape(-1).cos()).view(x.shape)

    def view_wrong(ctx, dy):
        (x,) = ctx.saved_tensors
        return dy * x.sin()

    return {
        "layer norm with eps": (*of(norm, norm_back, norm_wrong), (X, GAMMA, BETA, 1e-5)),
        "layer norm with eps as an array": (
            *of(norm, norm_back, norm_wrong),
            (X, GAMMA, BETA, np.array(1e-5)),
        ),
        "tensors": (
            *of(norm, norm_back, norm_wrong),
            tuple(torch.tensor(each) for each in (X, GAMMA, BETA, 1e-5)),
        ),
        "clamp at its edges": (*of(clamp, clamp_back, clamp_wrong), (WHOLE, -1.0, 1)),
        "pooling of equals": (*of(pool, pool_back, pool_wrong), (WHOLE, 3)),
        "mask of floats": (*of(mask, mask_back, mask_wrong), (WHOLE, 1.0 * (WHOLE > 0), 0.5)),
        "mask of booleans": (*of(mask, mask_back, mask_wrong), (X, X > 0, 3)),
        "sine": (*of(view, view_back, view_wrong), (X,)),
        "sine of contiguous dy only": (*of(view, view_only, view_wrong), (X,)),
    }


NAMES = (
    "layer norm with eps",
    "layer norm with eps as an array",
    "tensors",
    "clamp at its edges",
    "pooling of equals",
    "mask of floats",
    "mask of booleans",
    "sine",
    "sine of contiguous dy only",
)


@pytest.mark.parametrize("name", NAMES)
def test_a_torch_function(name: str) -> None:
    right, wrong, inputs = functions()[name]
    report = hg.check(right, *inputs)
    assert report.verdict == "right", report
    report = hg.check(wrong, *inputs)
    assert report.verdict == "wrong", report


def test_wrt_and_options_of_a_torch_function() -> None:
    _, wrong, (x, gamma, beta, _) = functions()["layer norm with eps"]
    verdicts = [hg.check(wrong, x, gamma, beta, eps=1e-5, wrt=(n,)).verdict for n in ("x", "beta")]
    assert verdicts == ["right", "wrong"]
    report = hg.check(wrong, x, gamma, beta, 1e-5, wrt=("x", "gamma"))
    assert [row.gradient for row in report.gradients[:2]] == ["x", "gamma"]


def test_none_for_a_float_input_is_told() -> None:
    right, _, inputs = functions()["layer norm with eps as an array"]
    (remark,) = hg.check(right, *inputs).remarks
    assert (remark.gradient, remark.kind) == ("eps", "constant")


def test_a_torch_function_that_ends_the_interpreter_is_one_sentence() -> None:
    torch = pytest.importorskip("torch")

    class Ends(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            raise SystemExit(3)

        @staticmethod
        def backward(ctx, dy):
            return dy

    report = hg.check(Ends, X)
    assert report.verdict == "undecided"
    (fault,) = report.faults
    assert "raises SystemExit: 3 (line " in fault.message
    assert "test_right_frameworks.py" in fault.message


def test_jax_functions() -> None:
    jax = pytest.importorskip("jax")
    np_ = jax.numpy

    def made(forward, keep, right, wrong):
        found = []
        for backward in (right, wrong):
            function = jax.custom_vjp(forward)
            function.defvjp(keep, backward)
            found.append(function)
        return found

    cases = {
        "relu at 0": (
            made(
                lambda x: np_.maximum(x, 0),
                lambda x: (np_.maximum(x, 0), x),
                lambda x, d: (d * (x >= 0),),
                lambda x, d: (d * (x < 0),),
            ),
            (WHOLE,),
        ),
        "a constant": (
            made(
                lambda x, p: x * x * p,
                lambda x, p: (x * x * p, (x, p)),
                lambda c, d: (2 * c[0] * c[1] * d, None),
                lambda c, d: (c[0] * c[1] * d, None),
            ),
            (X, 3.0),
        ),
    }
    for name, ((right, wrong), inputs) in cases.items():
        assert hg.check(right, *inputs).verdict == "right", name
        report: CheckReport = hg.check(wrong, *inputs)
        assert report.verdict == "wrong", name
