from __future__ import annotations

from collections.abc import Iterator

import pytest


@pytest.fixture(autouse=True)
def quick_to_compile() -> Iterator[None]:
    """JAX with float64, and with little time spent on optimising code that runs few times."""
    jax = pytest.importorskip("jax")
    settings = {"jax_enable_x64": True, "jax_disable_most_optimizations": True}
    before = {name: jax.config.values[name] for name in settings}
    for name, value in settings.items():
        jax.config.update(name, value)
    yield
    for name, value in before.items():
        jax.config.update(name, value)
