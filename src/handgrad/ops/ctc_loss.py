"""CTC loss: scores of every step against labels, over every way to align the two."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np
from array_api_compat import array_namespace, device

from handgrad.arrays import Array
from handgrad.dispatch import operation
from handgrad.errors import ArgumentError, ShapeError
from handgrad.geometry.steps import active_steps, in_running_order
from handgrad.ops.arguments import (
    check_choice,
    check_integer,
    check_length_values,
    check_size,
    check_vector,
)

if TYPE_CHECKING:
    from jaxtyping import Float, Int

REDUCTIONS: Final = ("mean", "sum", "none")


class Cache(NamedTuple):
    """log p (N, T, C), log α before the first step and after each (N, T + 1, S), the labels l′ of
    the S = 2L + 1 states, log β after the last step (N, S), and log p(l) (N,).

    log p of the labels is looked up again, and β is computed backward only. `share` is what each
    loss is multiplied by, `active` the steps that are no padding.
    """

    log_p: Array
    log_alpha: Array
    labels: Array
    log_beta: Array
    log_p_target: Array
    share: Array | float
    active: Array | None
    blank: int
    zero_infinity: bool


def validate(
    x: Array,
    targets: Array,
    input_lengths: Array | None = None,
    target_lengths: Array | None = None,
    *,
    blank: int = 0,
    reduction: str = "mean",
    zero_infinity: bool = False,
) -> None:
    if len(x.shape) != 3 or 0 in x.shape[1:]:
        raise ShapeError(
            f"ctc_loss: x has shape {tuple(x.shape)}; allowed: (N, T, C) with T and C at least 1"
        )
    batch, steps, classes = x.shape
    if len(targets.shape) != 2 or targets.shape[0] != batch:
        raise ShapeError(
            f"ctc_loss: targets has shape {tuple(targets.shape)}; allowed: ({batch}, L)"
        )
    for name, lengths in (("input_lengths", input_lengths), ("target_lengths", target_lengths)):
        if lengths is not None:
            check_vector("ctc_loss", name, lengths, batch)
    check_integer("ctc_loss", "blank", blank, 0, classes - 1)
    check_choice("ctc_loss", "reduction", reduction, REDUCTIONS)
    states = 2 * targets.shape[1] + 1
    check_size("ctc_loss", "what is kept of the steps", (batch, steps + 1, states))


def validate_values(
    x: Array,
    targets: Array,
    input_lengths: Array | None = None,
    target_lengths: Array | None = None,
    *,
    blank: int = 0,
    reduction: str = "mean",
    zero_infinity: bool = False,
) -> None:
    check_length_values("ctc_loss", input_lengths, x.shape[1], "input_lengths")
    check_length_values("ctc_loss", target_lengths, targets.shape[1], "target_lengths")
    if not isinstance(targets, np.ndarray):
        return
    is_label = np.ones(targets.shape, dtype=bool)
    if isinstance(target_lengths, np.ndarray):
        is_label = np.arange(targets.shape[1]) < target_lengths[:, None]
    wrong = targets[is_label & ((targets < 0) | (targets >= x.shape[2]) | (targets == blank))]
    if wrong.size > 0:
        raise ArgumentError(
            f"ctc_loss: targets holds {wrong[0]}; allowed: 0 to {x.shape[2] - 1} without "
            f"blank = {blank}"
        )


def extended_labels(
    targets: Int[Array, "N L"], target_lengths: Int[Array, "N"] | None, blank: int
) -> Int[Array, "N S"]:
    """l′, the labels of the states: a blank, then each label with a blank behind it."""
    xp = array_namespace(targets)
    batch, most = targets.shape
    blanks = xp.full_like(targets, blank)
    if target_lengths is not None:
        position = xp.arange(most, dtype=target_lengths.dtype, device=device(targets))
        is_label = position < xp.expand_dims(target_lengths, axis=1)
        targets = xp.where(is_label, targets, blanks)
    pairs = xp.reshape(xp.stack((targets, blanks), axis=2), (batch, 2 * most))
    first = xp.full((batch, 1), blank, dtype=targets.dtype, device=device(targets))
    return xp.concat((first, pairs), axis=1)


def at_labels(log_p: Float[Array, "N T C"], labels: Int[Array, "N S"]) -> Float[Array, "N T S"]:
    """log p of the label of every state, at every step."""
    xp = array_namespace(log_p)
    batch, steps, classes = log_p.shape
    rows = xp.reshape(xp.permute_dims(log_p, (0, 2, 1)), (batch * classes, steps))
    first = xp.arange(batch, dtype=labels.dtype, device=device(labels)) * classes
    index = xp.reshape(labels + xp.expand_dims(first, axis=1), (math.prod(labels.shape),))
    found = xp.reshape(xp.take(rows, index, axis=0), (*labels.shape, steps))
    return xp.permute_dims(found, (0, 2, 1))


def reaching(
    log_alpha: Float[Array, "N S"], labels: Int[Array, "N S"], blank: int
) -> Float[Array, "N S"]:
    """log Σ α over the states that lead to s: s, s − 1, and s − 2 if these are unlike labels."""
    xp = array_namespace(log_alpha)
    batch = labels.shape[0]
    nothing = xp.full((batch, 2), -math.inf, dtype=log_alpha.dtype, device=device(log_alpha))
    blanks = xp.full((batch, 2), blank, dtype=labels.dtype, device=device(labels))
    padded = xp.concat((nothing, log_alpha), axis=1)
    one_before, two_before = padded[:, 1:-1], padded[:, :-2]
    label_before = xp.concat((blanks, labels), axis=1)[:, :-2]
    may_skip = (labels != blank) & (labels != label_before)
    skipped = xp.where(may_skip, two_before, xp.full_like(two_before, -math.inf))
    return xp.logaddexp(xp.logaddexp(log_alpha, one_before), skipped)


def at_state(log_alpha: Float[Array, "N S"], chosen: Int[Array, "N 1"]) -> Float[Array, "N"]:
    """log α at one state of each example, −∞ where there is no such state."""
    xp = array_namespace(log_alpha)
    state = xp.arange(log_alpha.shape[1], dtype=chosen.dtype, device=device(chosen))
    nowhere = xp.full_like(log_alpha, -math.inf)
    return xp.max(xp.where(state == chosen, log_alpha, nowhere), axis=1)


@operation
def forward(
    x: Float[Array, "N T C"],
    targets: Int[Array, "N L"],
    input_lengths: Int[Array, "N"] | None = None,
    target_lengths: Int[Array, "N"] | None = None,
    *,
    blank: int = 0,
    reduction: str = "mean",
    zero_infinity: bool = False,
) -> tuple[Float[Array, ""] | Float[Array, "N"], Cache]:
    """Connectionist temporal classification: −log of the probability, under softmax(x), of all
    paths that spell the target once repeated labels are merged and blanks are removed.

    Forward:  log p = x − max x − log Σ exp(x − max x),  l′ = (blank, l_1, blank, ..., l_L, blank),
              α_t(s) = p_t(l′_s) (α_{t−1}(s) + α_{t−1}(s−1) + α_{t−1}(s−2)), the last only where
              l′_s is neither blank nor l′_{s−2}; α_0 is 1 at the first blank and 0 elsewhere;
              p(l) = α_T(2L) + α_T(2L+1),  loss = −log p(l)
    Backward: β_{t−1}(s) = Σ β_t(s′) p_t(l′_{s′}) over the s′ that s leads to, β_T 1 at the last two
              states of the target and 0 elsewhere;  γ_t(s) = α_t(s) β_t(s)/p(l),
              dx_t(c) = dloss (p_t(c) − Σ_s γ_t(s) over s with l′_s = c)
    Reduced:  "sum"; "none"; "mean": each loss divided by the length of its target, at least 1, then
              the mean over the batch

    α, β and γ are computed as logarithms. The softmax is fused: log p of log probabilities is these
    themselves, so what PyTorch's ctc_loss takes as log_probs can be x; then loss and gradient are
    its own.

    Of example n, the first input_lengths[n] steps and target_lengths[n] labels count, without these
    all; dx of the other steps is 0 and their x does not matter, even where it is NaN. A target that
    no path spells, as one longer than its steps, counting one more between two equal labels, has
    loss ∞ and at its steps gradient NaN; with zero_infinity, loss and gradient 0. An empty target
    is spelt by blanks alone. An example without steps has loss 0 for an empty target, ∞ for
    another. An empty batch has loss 0 (PyTorch: NaN). Targets and lengths have no gradient.

    Shapes: x (N, T, C) with T and C at least 1, where PyTorch has (T, N, C); targets (N, L),
    input_lengths, target_lengths (N,); loss (), or (N,) with "none".
    Raises ShapeError where these do not fit, ArgumentError for labels that are no class or blank,
    for lengths outside of 0 to T or L (looked at only if they are NumPy arrays), for a blank that
    is no class, or for another reduction.
    Source: Graves et al., Connectionist temporal classification: labelling unsegmented sequence
    data with recurrent neural networks (2006), section 4, with β_t without p_t.
    """
    xp = array_namespace(x)
    batch, steps = x.shape[:2]
    active = active_steps(input_lengths, steps, False)
    x_run = in_running_order(x, active, False)
    shifted = x_run - xp.max(x_run, axis=-1, keepdims=True)
    log_p = shifted - xp.log(xp.sum(xp.exp(shifted), axis=-1, keepdims=True))
    labels = extended_labels(targets, target_lengths, blank)
    log_y = at_labels(log_p, labels)
    state = xp.arange(labels.shape[1], dtype=targets.dtype, device=device(targets))
    nowhere = xp.full((batch, labels.shape[1]), -math.inf, dtype=x.dtype, device=device(x))
    log_alpha = xp.where(state == 0, xp.zeros_like(nowhere), nowhere)
    log_alphas: tuple[Array, ...] = (log_alpha,)
    for t in range(steps):
        log_new = log_y[:, t, :] + reaching(log_alpha, labels, blank)
        log_alpha = log_new if active is None else xp.where(active[:, t, :], log_new, log_alpha)
        log_alphas = (*log_alphas, log_alpha)
    log_alpha_run = xp.stack(log_alphas, axis=1)
    if target_lengths is None:
        length = xp.full((batch,), targets.shape[1], dtype=targets.dtype, device=device(targets))
    else:
        length = target_lengths
    last = 2 * xp.expand_dims(length, axis=1)
    log_p_target = xp.logaddexp(at_state(log_alpha, last), at_state(log_alpha, last - 1))
    is_end = (state == last) | (state == last - 1)
    log_beta = xp.where(is_end, xp.zeros_like(nowhere), nowhere)
    losses = -log_p_target
    if zero_infinity:
        losses = xp.where(xp.isinf(losses), xp.zeros_like(losses), losses)
    share: Array | float = 1.0
    if reduction == "mean":
        labels_of_each = xp.astype(xp.where(length < 1, xp.ones_like(length), length), x.dtype)
        share = 1.0 / (labels_of_each * max(batch, 1))
    loss = losses if reduction == "none" else xp.sum(share * losses)
    cache = Cache(
        log_p,
        log_alpha_run,
        labels,
        log_beta,
        log_p_target,
        share,
        active,
        blank,
        zero_infinity,
    )
    return loss, cache


@operation
def backward(dloss: Float[Array, ""] | Float[Array, "N"], cache: Cache) -> Float[Array, "N T C"]:
    """γ_t(s) = α_t(s) β_t(s)/p(l),  dx_t(c) = dloss (p_t(c) − Σ_s γ_t(s) over s with l′_s = c)."""
    log_p, log_alpha, labels, log_beta, log_p_target, share, active, blank, zero_infinity = cache
    xp = array_namespace(log_p)
    steps, classes = log_p.shape[1:]
    log_y = at_labels(log_p, labels)
    labels_back = xp.flip(labels, axis=1)
    log_betas: tuple[Array, ...] = ()
    for t in reversed(range(steps)):
        log_betas = (log_beta, *log_betas)
        log_left = xp.flip(log_y[:, t, :] + log_beta, axis=1)
        log_new = xp.flip(reaching(log_left, labels_back, blank), axis=1)
        log_beta = log_new if active is None else xp.where(active[:, t, :], log_new, log_beta)
    log_beta_run = xp.stack(log_betas, axis=1)
    is_impossible = xp.isinf(log_p_target)
    log_total = xp.where(is_impossible, xp.zeros_like(log_p_target), log_p_target)
    log_gamma = log_alpha[:, 1:, :] + log_beta_run - xp.reshape(log_total, (-1, 1, 1))
    class_index = xp.arange(classes, dtype=labels.dtype, device=device(labels))
    one_hot = xp.astype(xp.expand_dims(labels, axis=2) == class_index, log_p.dtype)
    dlosses = xp.reshape(dloss * share * xp.ones_like(log_p_target), (-1, 1, 1))
    dx_possible = dlosses * (xp.exp(log_p) - xp.exp(log_gamma) @ one_hot)
    other = 0.0 if zero_infinity else math.nan
    dx_run = xp.where(
        xp.reshape(is_impossible, (-1, 1, 1)), xp.full_like(dx_possible, other), dx_possible
    )
    dx = dx_run if active is None else xp.where(active, dx_run, xp.zeros_like(dx_run))
    return dx
