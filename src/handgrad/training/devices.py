"""The devices of JAX."""

from __future__ import annotations

import jax

from handgrad.errors import ArgumentError


def platform() -> str:
    """The platform of JAX's devices: cpu, gpu or tpu."""
    return str(jax.default_backend())


def check_devices(count: int) -> None:
    """Raise ArgumentError unless JAX has so many devices."""
    found = len(jax.devices())
    if count > found:
        flag = f"XLA_FLAGS=--xla_force_host_platform_device_count={count}"
        hint = f"; {flag} makes that many of a CPU" if platform() == "cpu" else ""
        raise ArgumentError(
            f"Trainer: devices is {count}; allowed: 1 to {found}, the {platform()} devices that "
            f"JAX has{hint}"
        )
