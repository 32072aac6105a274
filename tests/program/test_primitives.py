"""The table of element-wise records, walked: each gradient against differences on its domain."""

import numpy as np
import pytest

from handgrad.deriving.reverse import gradient
from handgrad.program.node import PRIMITIVES, Node, Program, World, build, within
from handgrad.program.primitives.elementwise import KNOWN
from handgrad.program.run import run
from handgrad.program.sizes import Size

NAMES = [n for n in dict.fromkeys(KNOWN.values()) if PRIMITIVES[n].vjp and n not in ("where",)]


def operands(record):
    rng = np.random.default_rng(1)
    make = record.domain or (lambda rng: rng.standard_normal((3, 2)))
    with within(World()) as w:
        w.lengths |= {"M": 3, "N": 2}
        for count in (1, 2):
            try:
                record.shape(*(leaf(make(rng)) for _ in range(count)))
                build(record.name, *(leaf(make(rng)) for _ in range(count)))
                return [make(rng) for _ in range(count)]
            except TypeError:
                continue
            except ValueError:
                continue
    raise AssertionError(record.name)


def leaf(value):
    return Node("input", (), {}, (Size.of("M"), Size.of("N")), "f", value)


@pytest.mark.parametrize("name", NAMES)
def test_vjp_meets_differences(name):
    record = PRIMITIVES[name]
    values = operands(record)
    rng = np.random.default_rng(2)
    with within(World()) as w:
        w.lengths |= {"M": 3, "N": 2}
        xs = [leaf(v) for v in values]
        y = build(name, *xs)
        if y.kind != "f":
            return
        dys, grads = gradient(Program(xs, [y]), xs)
        dy = rng.standard_normal((3, 2))
        got = run(Program([*xs, *dys], grads), [*values, dy], w.lengths)
    for k, v in enumerate(values):
        u = rng.standard_normal(v.shape)
        h = 1e-6
        up, down = (
            record.evaluate(*(a + s * h * u if i == k else a for i, a in enumerate(values)))
            for s in (1, -1)
        )
        np.testing.assert_allclose(
            (got[k] * u).sum(), (dy * (up - down)).sum() / (2 * h), rtol=1e-5, atol=1e-6
        )
