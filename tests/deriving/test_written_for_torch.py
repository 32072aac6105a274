"""Forwards for PyTorch in the ways they are written: where their tensors come from, and go to."""

from __future__ import annotations

import functools
import warnings

import numpy as np
import pytest

import handgrad as hg
from tests.rows import rows

torch = pytest.importorskip("torch")
nn, F, Tensor = torch.nn, torch.nn.functional, torch.Tensor

#: PyTorch's compilers warn of themselves.
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")
N = ("N", "D")
X = np.random.default_rng(11).standard_normal((4, 3))


def autograd(function, x, *parameters, seed=3):
    """PyTorch's result, a cotangent, and the gradients of x and of parameters."""
    given = torch.tensor(x, requires_grad=True)
    y = function(given)
    dy = np.random.default_rng(seed).standard_normal(y.shape)
    wanted = torch.autograd.grad(y, [given, *parameters], torch.tensor(dy))
    return y.detach().numpy(), dy, [each.numpy() for each in wanted]


def assert_equal(derived, function, x=X):
    y, dy, (wanted,) = autograd(function, x)
    found, cache = derived.forward(x)
    np.testing.assert_allclose(found, y, rtol=3e-7, atol=3e-7)
    np.testing.assert_allclose(derived.backward(dy, cache), wanted, rtol=3e-7, atol=3e-7)


# Both libraries have these methods, with other results.


def scaled(x):
    return x / x.std(0)


def scaled_tensor(x: Tensor):
    return x / x.std(0)


def scaled_text(x: "torch.Tensor"):
    return x.var(0) * np.sqrt(2.0)


def scaled_array(x: np.ndarray):
    return x / x.std(0)


def test_methods_of_both_libraries_are_not_guessed():
    with pytest.raises(hg.errors.ArgumentError, match="other results on arrays of numpy than"):
        hg.derive(scaled, x=N)


@rows("function", [scaled_tensor, scaled_text])
def test_an_annotation_says_whose_tensors_they_are(function):
    assert_equal(hg.derive(function, x=N), function)


def test_an_annotation_says_that_they_are_arrays():
    y, _ = hg.derive(scaled_array, x=N).forward(X)
    np.testing.assert_allclose(y, X / X.std(0))


def test_an_example_says_whose_tensors_they_are():
    assert_equal(hg.derive(scaled, torch.tensor(X)), scaled)


def test_methods_of_the_same_meaning_are_derived():
    assert_equal(hg.derive(lambda x: x.sum(0) * x.T.conj().T, x=N), lambda x: x.sum(0) * x)


# Gradients stop where PyTorch stops them.


@torch.no_grad()
def teacher(x):
    return x.sin()


def under_no_grad(x):
    with torch.no_grad():
        largest = x.amax(-1, keepdim=True)
        largest.mul_(0.5)
    return torch.exp(x - largest) * largest


def under_enabled(x):
    with torch.no_grad():
        scale = x.pow(2).mean()
        with torch.enable_grad():
            shift = x.sum()
    return x * scale + shift


def set_to(x):
    with torch.set_grad_enabled(False):
        scale = x.norm()
    with torch.set_grad_enabled(True):
        return x * scale + x.cos()


def distilled(x):
    return (x * x - teacher(x)).pow(2)


@rows("function", [under_no_grad, under_enabled, set_to, distilled])
def test_a_block_without_gradients_is_constant(function):
    assert_equal(hg.derive(function, x=N), function)


def test_a_forward_that_is_decorated_itself_has_its_gradient():
    assert_equal(hg.derive(teacher, x=N), torch.sin)


# Tensors in single precision, wherever they are kept.

WEIGHT = torch.linspace(-1, 1, 9).reshape(3, 3)
LINEAR = nn.Linear(3, 2)


class Agent:
    """A plain object with a network, a tensor and a count of its calls."""

    def __init__(self):
        self.network, self.scale, self.calls = nn.Linear(3, 3), torch.rand(3), 0

    def loss(self, x):
        self.calls += 1
        return torch.tanh(self.network(x) * self.scale)


@rows("function", [lambda x: torch.tanh(x @ WEIGHT), lambda x: LINEAR(x).relu()])
def test_tensors_of_the_module_are_taken_in_single_precision(function):
    derived = hg.derive(function, x=("N", 3))
    x = torch.tensor(X, dtype=torch.float32)
    np.testing.assert_allclose(derived.forward(X)[0], function(x).detach().numpy(), atol=1e-5)


def test_an_object_is_as_it_was():
    agent = Agent()
    derived = hg.derive(agent.loss, x=("N", 3))
    assert agent.calls == 0
    wanted = agent.loss(torch.tensor(X, dtype=torch.float32)).detach().numpy()
    np.testing.assert_allclose(derived.forward(X)[0], wanted, atol=1e-5)


def test_half_precision_is_derived_in_double():
    derived = hg.derive(nn.Linear(3, 2).bfloat16(), input=("N", 3))
    assert derived.cache == ("weight", "input")
    assert_equal(hg.derive(lambda x: x.tanh(), torch.ones(3, 2).bfloat16()), torch.tanh)


def test_random_numbers_go_on_as_if_nothing_was_derived():
    before = torch.get_rng_state()
    with pytest.raises(hg.errors.ArgumentError, match=r"derive: Dropout: dropout draws another"):
        hg.derive(nn.Dropout(0.5), input=N)
    assert torch.equal(torch.get_rng_state(), before)


# A module as it is called.


def hooked():
    module = nn.Linear(3, 2)
    module.register_forward_hook(lambda module, inputs, result: result * 2)
    module.register_forward_pre_hook(lambda module, inputs: (torch.sin(inputs[0]),))
    return module


class Called(nn.Linear):
    def __call__(self, x):
        return super().__call__(x) * 3


class Named(nn.Module):
    """A parameter with the name of an argument, and arguments of any name."""

    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.linspace(1, 2, 3))

    def forward(self, x, weight=2.0, **options):
        return self.weight * x * weight


@rows("made", [hooked, lambda: Called(3, 2), Named, lambda: torch.compile(nn.Linear(3, 2))])
def test_a_module_is_derived_as_it_is_called(made):
    module = made().double()
    derived = hg.derive(module, ("N", 3))
    own = dict(getattr(module, "_orig_mod", module).named_parameters())
    called = getattr(module, "_orig_mod", module)
    y, dy, wanted = autograd(called, X, *own.values())
    names = {"part_weight" if isinstance(module, Named) else name: p for name, p in own.items()}
    found, cache = derived.forward(X, **{name: p.detach().numpy() for name, p in names.items()})
    np.testing.assert_allclose(found, y, rtol=1e-6, atol=1e-6)
    for one, other in zip(derived.backward(dy, cache), wanted, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-6, atol=1e-6)


class Moving(nn.Module):
    """The mean that it subtracts moves with each call."""

    def __init__(self):
        super().__init__()
        self.register_buffer("mean", torch.zeros(3))
        self.count = 0

    def forward(self, x):
        self.count += 1
        self.mean.mul_(0.9).add_(0.1 * x.detach().mean(0))
        return x - self.mean


def test_a_forward_that_changes_what_it_goes_by_is_refused_and_undone():
    module = Moving()
    with pytest.raises(hg.errors.ArgumentError, match="Moving: the forward has another result"):
        hg.derive(module, x=("N", 3))
    assert module.count == 0
    assert torch.equal(module.mean, torch.zeros(3))


def frozen():
    module = nn.Sequential(nn.Linear(3, 3), nn.Linear(3, 2))
    module[0].requires_grad_(False)
    return module


@rows(
    ("made", "wrt", "wanted"),
    [
        (frozen, None, ("input", "part_1_weight", "part_1_bias")),
        (frozen, ["0.weight"], ("part_0_weight",)),
        (lambda: nn.ModuleDict({"u": nn.Linear(3, 2)})["u"], ["weight"], ("weight",)),
    ],
)
def test_frozen_parameters_get_no_gradient_unless_they_are_named(made, wrt, wanted):
    derived = hg.derive(made(), ("N", 3), wrt=wrt)
    assert tuple("_".join(map(str, path)) for path in derived.pair.wanted) == wanted


def test_parameters_have_to_be_given():
    derived = hg.derive(nn.Linear(3, 2), input=("N", 3))
    with pytest.raises(TypeError, match="missing 2 required keyword-only arguments: 'weight'"):
        derived.forward(X)


# Functions around functions.


def logged(function):
    @functools.wraps(function)
    def called(*args, **kwargs):
        return function(*args, **kwargs)

    return called


@logged
def wrapped(x):
    return torch.tanh(x).cumsum(0)


@rows(
    ("function", "meant"),
    [
        (wrapped, wrapped),
        (functools.partial(F.softmax, dim=-1), lambda x: x.softmax(-1)),
        (functools.partial(F.layer_norm, normalized_shape=(3,)), lambda x: F.layer_norm(x, (3,))),
    ],
)
def test_a_function_inside_another_is_found(function, meant):
    assert_equal(hg.derive(function, ("N", 3)), meant)


def test_a_compiled_function_is_derived_from_its_source():
    assert_equal(hg.derive(torch.compile(lambda x: torch.tanh(x)), N), torch.tanh)


@rows(
    ("made", "said"),
    [
        (lambda: torch.tanh, "arguments of tanh cannot be read.*allowed: a function that calls it"),
        (lambda: np.tanh, "arguments of tanh cannot be read"),
        (lambda: torch.jit.script(nn.Linear(3, 2)), "whose source is not Python"),
        (lambda: torch.jit.trace(nn.Linear(3, 2), torch.ones(4, 3)), "whose source is not Python"),
        (lambda: nn.LazyLinear(2), "derive: weight has no shape yet; allowed: a module that has"),
    ],
)
def test_a_target_that_cannot_be_read_is_one_sentence(made, said):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of classes that PyTorch is going to drop
        target = made()
    with pytest.raises(hg.errors.ArgumentError, match=said) as error:
        hg.derive(target, ("N", 3))
    assert "\n" not in str(error.value)


def test_a_wrong_name_tells_the_names_and_no_numbers():
    with pytest.raises(
        hg.errors.ArgumentError, match=r"allowed: .* Linear\(input.*, \*, weight, bias\)"
    ):
        hg.derive(nn.Linear(3, 2), z=("N", 3))


def test_a_line_of_the_users_module_is_named():
    class Decomposed(nn.Module):
        def forward(self, x):
            return torch.linalg.lu_factor(x)[0]

    line = Decomposed.forward.__code__.co_firstlineno + 1
    with pytest.raises(hg.errors.ArgumentError, match=f"line {line}: .*lu_factor of PyTorch"):
        hg.derive(Decomposed(), x=("N", "N"))


def test_a_function_of_numpy_beside_torch_is_numpy_s():
    """Its `mode` is no attribute of a tensor, and NumPy's deviation divides by n."""

    def padded(x):
        return np.pad(x / x.std(1, keepdims=True), ((0, 0), (1, 1)), mode="reflect")

    y, _ = hg.derive(padded, x=N).forward(X)
    np.testing.assert_allclose(y, padded(X), rtol=1e-12)


def test_integers_made_floats_are_of_the_type_of_the_tensors():
    def turned(x: Tensor):
        half = 1.0 / 100 ** (torch.arange(0, x.shape[1]).to(x.dtype) / x.shape[1])
        return x * torch.outer(torch.arange(len(x)).to(x.dtype), half).cos()

    derived = hg.derive(turned, x=N)
    single = X.astype(np.float32)
    y, cache = derived.forward(single)
    assert y.dtype == np.float32
    assert derived.backward(y, cache).dtype == np.float32
