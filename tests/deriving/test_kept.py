"""What a forward keeps with `save="least"`: a minimal cut, from which the backward is the same."""

import itertools
import math

import numpy as np
import pytest

import handgrad as hg
from handgrad.deriving.kept import frontier
from handgrad.program.node import FIXED, Program


def softmax(x):
    e = np.exp(x - x.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


def attention(q, k, v):
    return softmax(q @ k.T / np.sqrt(q.shape[1])) @ v


def two_layers(x, w):
    return np.tanh(np.tanh(x @ w) @ w.T)


def pooled(x, w):
    """The sum over N is small, and all that is behind it hangs on that."""
    return np.exp(np.sin(x.sum(axis=0)) @ w)


def layer_norm(x, gamma):
    mean = x.mean(axis=-1, keepdims=True)
    scale = 1 / np.sqrt(x.var(axis=-1, keepdims=True) + 1e-5)
    return (x - mean) * scale * gamma


def recurrent(x, w):
    h = np.zeros((x.shape[0], w.shape[0]))
    hs = []
    for t in range(x.shape[1]):
        h = np.tanh(x[:, t] + h @ w)
        hs.append(h)
    return np.stack(hs, axis=1)


CASES = [
    (softmax, {"x": ("N", "D")}, {"y"}, {"y"}),
    (attention, {"q": ("N", "D"), "k": ("M", "D"), "v": ("M", "E")}, None, {"q", "k", "v"}),
    (two_layers, {"x": ("N", "D"), "w": ("D", "H")}, None, {"x", "w"}),
    (pooled, {"x": ("N", "D"), "w": ("D", "K")}, None, None),
    (layer_norm, {"x": ("N", "D"), "gamma": ("D",)}, None, {"x", "gamma"}),
    (recurrent, {"x": ("N", "T", "H"), "w": ("H", "H")}, {"w", "h_all", "h_before"}, {"x", "w"}),
]
EACH = pytest.mark.parametrize(
    ("forward", "shapes", "usual", "least"), CASES, ids=[case[0].__name__ for case in CASES]
)


def size(node, lengths):
    each = {"f": 8, "i": 8, "b": 1}[node.kind]
    return each * math.prod(s.number(lengths) for s in node.shape)


@EACH
def test_gradients_are_the_same(forward, shapes, usual, least):
    lengths = dict(zip("DEHKMNT", (5, 4, 3, 6, 7, 8, 9), strict=True))
    rng = np.random.default_rng(0)
    arrays = [rng.normal(size=[lengths[x] for x in axes]) for axes in shapes.values()]
    dy = rng.normal(size=forward(*arrays).shape)
    found, kept = [], []
    for save, names in ((None, usual), ("least", least)):
        derived = hg.derive(forward, save=save, **shapes)
        assert names is None or names == set(derived.cache)
        gradients = derived.backward(dy, derived.forward(*arrays)[1])
        found.append(gradients if isinstance(gradients, tuple) else (gradients,))
        kept.append(sum(size(node, lengths) for node in derived.pair.kept))
    for one, other in zip(*found, strict=True):
        np.testing.assert_allclose(one, other, 1e-12, 1e-12)
    assert kept[1] <= kept[0]


@EACH
def test_no_other_cut_is_smaller(forward, shapes, usual, least):
    """All sets of nodes that give what the backward reads are gone through."""
    pair = hg.derive(forward, save="least", **shapes).pair
    lengths = pair.traced.world.lengths
    read = frontier(pair.forward, pair.backward.outputs)
    nodes = Program([], read).body
    arrays = [n for n in nodes if n.op not in FIXED and not isinstance(n.value, tuple)]
    choices = sorted(arrays, key=lambda n: size(n, lengths))[:14]

    def gives(chosen):
        known = {id(n) for n in chosen}
        for n in nodes:
            if n.op != "input" and all(id(a) in known for a in n.args):
                known.add(id(n))
        return all(id(n) in known for n in read)

    smallest = min(
        sum(size(n, lengths) for n in chosen)
        for count in range(len(choices) + 1)
        for chosen in itertools.combinations(choices, count)
        if gives(chosen)
    )
    assert sum(size(n, lengths) for n in pair.kept) == smallest


@pytest.mark.parametrize("op", ["layer_norm", "attention", "conv1d", "lstm", "gelu"])
def test_ops_keep_no_more_and_stay_right(op):
    usual, least = hg.derive(op), hg.derive(op, save="least")
    lengths = usual.pair.traced.world.lengths
    sizes = [sum(size(n, lengths) for n in each.pair.kept) for each in (usual, least)]
    assert sizes[1] <= sizes[0]


def test_torch_and_second_derivatives_take_it_too():
    derived = hg.derive(two_layers, x=("N", "D"), w=("D", "H"), save="least")
    again = hg.derive(derived.backward)
    assert again.backward_source
    assert "autograd.Function" in derived.to("torch")


def test_any_other_word_is_refused():
    with pytest.raises(hg.errors.ArgumentError, match="save is 'most'; allowed: 'least'"):
        hg.derive(softmax, x=("N", "D"), save="most")
