"""Forwards that ask PyTorch's own functions, take names from its modules and check their types."""

from __future__ import annotations

import numpy as np
import pytest

import handgrad as hg
from handgrad.errors import HandgradError
from tests.deriving.of_torch import assert_equal_to_torch
from tests.rows import rows

torch = pytest.importorskip("torch")
F = torch.nn.functional

from torch import Tensor, int32  # noqa: E402
from torch.autograd import Variable  # noqa: E402
from torch.distributions import Gamma, kl_divergence  # noqa: E402
from torch.special import expit, xlogy  # noqa: E402

X = np.random.default_rng(31).random((4, 3)) + 0.5


def checked(x):
    if not isinstance(x, Tensor):
        raise TypeError("a tensor is wanted")
    torch._assert(x.ndim == 2, "two axes are wanted")
    torch._assert_async((x.detach() > -9).all())
    return x.exp()


def asked(x):
    wide = torch.promote_types(x.dtype, torch.float32)
    if torch.onnx.is_in_onnx_export() or torch.compiler.is_exporting() or x.is_sparse:
        return x
    return x.to(wide) * x if x.layout == torch.strided else x


def by_name(x):
    places = torch.arange(end=3, start=0).to(int32)
    return expit(x) * xlogy(x, x) * places + F.logsigmoid(x) * torch.arange(end=3)


def all_true(x):
    return x * 2 if torch._is_all_true(x * x >= 0) else x


def between(x):
    first = Gamma(x, x + 1, validate_args=False)
    return kl_divergence(first, Gamma(x * x, x, validate_args=False))


def lists_of_slices(x):
    parts = [slice(None)] * x.ndim
    parts[1] = slice(1, None)
    return x[parts] * 2


def over_axes(x):
    axes = torch.arange(1, x.ndim).tolist()
    return x.pow(3).sum(dim=axes)


def padded(x):
    return F.pad(x, (1, 2), value=-1) * x.sum()


def on_the_diagonal(x):
    product = torch.matmul(x.mT, x).contiguous()
    product.view(-1, 9)[:, ::4] += 1
    return torch.linalg.cholesky(product)


def in_a_variable(x):
    ones = Variable(torch.ones(x.shape[1]), requires_grad=False)
    return x * torch.autograd.Variable(ones * 2) * x.stride(0) + x.stride()[-1]


FORWARDS = (
    in_a_variable,
    *(checked, asked, by_name, all_true, between, lists_of_slices, over_axes, padded),
    on_the_diagonal,
)


@pytest.mark.filterwarnings("ignore:Using a non-tuple sequence")
@rows("forward", FORWARDS)
def test_gradients_are_pytorchs(forward):
    assert_equal_to_torch(forward, {"x": ("N", 3)}, [X])


def test_drawn_numbers_are_refused_and_pytorchs_are_not_drawn():
    state = torch.get_rng_state()
    with pytest.raises(HandgradError, match="random numbers are drawn"):
        hg.derive(lambda x: x * torch.rand(3).to(x.dtype), torch.tensor(X))
    assert torch.equal(state, torch.get_rng_state())


class Gaussian:
    """An object whose method makes another one, with a loop in it."""

    def __init__(self, mean):
        self.mean = mean

    @staticmethod
    def joined(parts):
        return Gaussian(torch.cat([part.mean for part in parts]))


def of_objects(x):
    return Gaussian.joined([Gaussian(x), Gaussian(x * x)]).mean


def test_a_method_may_make_another_object_of_its_class():
    assert_equal_to_torch(of_objects, {"x": ("N", 3)}, [X])


def with_keywords(x, *, scale, **kwargs):
    return x * scale


def test_keywords_are_handed_on_in_the_source_for_torch():
    derived = hg.derive(with_keywords, x=("N", 3), scale=(3,))
    assert "scale=scale, kwargs=kwargs)" in derived.to("torch")
