"""Functions of the table that models use less often, against PyTorch's own gradients."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import handgrad as hg
from tests.deriving.of_torch import assert_equal_to_torch
from tests.rows import rows

torch = pytest.importorskip("torch")
F = torch.nn.functional
RNG = np.random.default_rng(8)

#: Of images z (N, 3, H, W) and kernels k (4, 3, 3, 3).
CONVOLUTIONS: dict[str, Any] = {
    "same": lambda z, k: F.conv2d(z, k, padding="same"),
    "valid": lambda z, k: F.conv2d(z, k, padding="valid", stride=2),
    "same, even": lambda z, k: F.conv2d(z, k[:, :, :2, :2], padding="same", dilation=2),
    "one image": lambda z, k: F.conv2d(z[0], k, padding=1),
    "of each channel": lambda z, k: F.conv2d(z, k[:3, :1], padding=1, groups=3),
    "volumes": lambda z, k: F.conv3d(z[:, :, None], k[:, :, None]),
    "transposed": lambda z, k: F.conv_transpose2d(
        z, k.transpose(0, 1), k[:, 0, 0, 0], stride=2, padding=1, output_padding=1
    ),
    "transposed, dilated": lambda z, k: F.conv_transpose2d(
        z, k.transpose(0, 1), stride=(2, 3), padding=(2, 1), dilation=(2, 1)
    ),
    "transposed in groups": lambda z, k: F.conv_transpose2d(z, k[:3, :2], groups=3, stride=2),
    "transposed 1": lambda z, k: F.conv_transpose1d(z[:, :, 0], k[:3, :, 0], stride=2, padding=1),
}
#: Of images z (2, 3, 7, 6).
IMAGES: dict[str, Any] = {
    "fold": lambda z: F.fold(F.unfold(z, 3) ** 2, (7, 6), 3),
    "fold with stride": lambda z: F.fold(
        F.unfold(z, 3, stride=2, padding=1) ** 2, (7, 6), 3, stride=2, padding=1
    ),
    "avg, inner": lambda z: F.avg_pool2d(z, 3, 2, padding=1, count_include_pad=False),
    "avg by 3": lambda z: F.avg_pool2d(z, 2, divisor_override=3),
    "avg, ceil": lambda z: F.avg_pool2d(z, 3, 2, 1, ceil_mode=True),
    "avg, inner, ceil": lambda z: F.avg_pool2d(z, 3, 2, 1, ceil_mode=True, count_include_pad=False),
    "max, ceil": lambda z: F.max_pool2d(z, 3, 2, ceil_mode=True),
    "max, ceil, padded": lambda z: F.max_pool2d(z, 2, 2, 1, ceil_mode=True),
    "max, dilated": lambda z: F.max_pool1d(z[:, :, 0], 2, dilation=2),
    "powers": lambda z: F.lp_pool2d(z.abs() + 0.1, 2, 2),
    "adaptive": lambda z: F.adaptive_avg_pool2d(z, (7, 2)) + F.adaptive_max_pool2d(z, (1, 2)),
    "adaptive, not divided": lambda z: F.adaptive_avg_pool2d(z, (3, 4)),
    "adaptive max": lambda z: F.adaptive_max_pool2d(z, (3, None)),
    "cropped": lambda z: F.pad(z, (-1, 2, -2, -1)) * 2,
    "circular": lambda z: F.pad(z, (1, 2, 2, 1), mode="circular"),
    "response norm": lambda z: F.local_response_norm(z, 2) + F.local_response_norm(z, 3, 0.1),
    "channel shuffle": lambda z: F.channel_shuffle(z[:, :2], 2) * z[:, :2],
    "pixel_unshuffle": lambda z: F.pixel_shuffle(F.pixel_unshuffle(z[:, :, :6], 2) ** 2, 2),
    "inner statistics": lambda z: F.instance_norm(
        z, torch.zeros(3), torch.ones(3), use_input_stats=False
    ),
    "grouped heads": lambda z: F.scaled_dot_product_attention(
        z.repeat(1, 2, 1, 1), z, z, is_causal=True, enable_gqa=True
    ),
    "linear": lambda z: F.interpolate(z[:, :, 0], size=10, mode="linear"),
}


def interpolated(mode, corners, **size):
    def function(z):
        return F.interpolate(z, mode=mode, align_corners=corners, **size)

    return function


IMAGES |= {
    f"{mode} {corners or ''} {size}": interpolated(mode, corners, **size)
    for mode, corners in (
        *(("nearest", None), ("nearest-exact", None), ("area", None)),
        *(("bilinear", True), ("bilinear", False), ("bicubic", True), ("bicubic", False)),
    )
    for size in ({"size": (5, 9)}, {"scale_factor": 1.5}, {"scale_factor": 2})
}
#: Of a positive definite matrix s (3, 3), and x (6, 4).
ALGEBRA: dict[str, Any] = {
    "inv": lambda s, x: torch.linalg.inv(s) + torch.inverse(s) * s.inverse() + x.sum(),
    "cholesky": lambda s, x: (
        torch.linalg.cholesky(s @ s.T) + torch.cholesky(s @ s.T).sum() * x.sum()
    ),
    "solve": lambda s, x: torch.linalg.solve(s, x.T[:3]),
    "solve from the right": lambda s, x: torch.linalg.solve(s, x[:, :3], left=False),
    "triangular": lambda s, x: torch.linalg.solve_triangular(s.tril(), x.T[:3], upper=False),
    "unit triangle": lambda s, x: torch.linalg.solve_triangular(
        s, x[:, :3], upper=True, left=False, unitriangular=True
    ),
    "cholesky_solve": lambda s, x: torch.cholesky_solve(x.T[:3], s.tril()),
    "det": lambda s, x: torch.linalg.det(s) + s.det() * s.logdet() + torch.logdet(s) * x.sum(),
    "slogdet": lambda s, x: torch.linalg.slogdet(s)[1] + s.slogdet().logabsdet * x.sum(),
    "eigh": lambda s, x: torch.linalg.eigh(s + s.T)[0] * torch.linalg.eigvalsh(s + s.T) * x.sum(),
    "svd": lambda s, x: torch.linalg.svd(x, full_matrices=False)[1] + torch.svd(x).S * s.sum(),
    "svdvals": lambda s, x: torch.linalg.svdvals(x) * s.sum() + torch.norm(x, p="nuc"),
    "matrix_norm": lambda s, x: torch.linalg.matrix_norm(x) * torch.linalg.matrix_norm(s, 2),
    "matrix_power": lambda s, x: torch.linalg.matrix_power(s, 3) + s.matrix_power(2) * x.sum(),
    "pinv": lambda s, x: torch.linalg.pinv(x) * s.sum() + torch.pinverse(x),
    "matrix_exp": lambda s, x: torch.matrix_exp(s / 9) + torch.linalg.matrix_exp(-s) * x.sum(),
    "vecdot": lambda s, x: torch.linalg.vecdot(x, x + 1) * torch.linalg.diagonal(s).sum(),
    "rfft": lambda s, x: torch.fft.rfft(x).abs() * s.sum(),
    "fft": lambda s, x: torch.fft.ifft(torch.fft.fft(x, dim=0) * 2, dim=0).real * s.sum(),
    "irfft": lambda s, x: torch.fft.irfft(torch.fft.rfft(x, norm="ortho"), n=4) ** 2 * s.sum(),
    "fft2": lambda s, x: torch.fft.fft2(x).imag * s.sum() + torch.fft.fftshift(x, dim=1),
    "complex": lambda s, x: (
        torch.view_as_real(
            torch.view_as_complex(x.reshape(6, 2, 2))
            * torch.polar(torch.ones(2), torch.arange(2.0))
        ).flatten(1)
        * s.sum()
    ),
}
#: Of x and y (6, 4), and whole numbers i (6,) below 4.
OTHERS: dict[str, Any] = {
    "logaddexp2": lambda x, y, i: torch.logaddexp2(x, y) + torch.addr(x, x[:, 0], y[0], beta=0.5),
    "trapezoid": lambda x, y, i: torch.trapezoid(x, dim=0) + torch.trapz(y * x, dx=0.5, dim=0),
    "trapezoid at x": lambda x, y, i: torch.trapezoid(x, y[0]) * y.sum(),
    "cumulative": lambda x, y, i: torch.cumulative_trapezoid(x * y),
    "renorm": lambda x, y, i: torch.renorm(x * y, 2, 0, 0.7),
    "cov": lambda x, y, i: torch.cov(x) + torch.corrcoef(y),
    "block_diag": lambda x, y, i: torch.block_diag(x, y[:2]) ** 2,
    "products": lambda x, y, i: torch.cartesian_prod(x[0], y[1]) ** 2,
    "combinations": lambda x, y, i: torch.combinations(x[0] * y[0]) ** 2,
    "searchsorted": lambda x, y, i: x * torch.searchsorted(torch.arange(4.0), x) * y,
    "bucketize": lambda x, y, i: x * torch.bucketize(x, torch.arange(4.0)) * y,
    "index_fill": lambda x, y, i: x.index_fill(0, torch.tensor([0, 2]), 1.5) * y,
    "index_copy": lambda x, y, i: x.index_copy(0, torch.tensor([0, 2]), y[:2] ** 2) * x,
    "masked_scatter": lambda x, y, i: x.masked_scatter(x > 0, y) * x,
    "slices": lambda x, y, i: (
        torch.select_scatter(x, y[0] * 2, 0, 1) + torch.slice_scatter(x, y[:2] ** 2, 0, 2, 4)
    ),
    "swapdims": lambda x, y, i: torch.swapdims(x, 0, 1) @ y + torch.swapaxes(x, 0, 1) @ x,
    "tensordot": lambda x, y, i: (
        torch.tensordot(x, y, dims=([0], [0])) + torch.tensordot(x.T, y, 1)
    ),
    "degrees": lambda x, y, i: torch.rad2deg(x) + torch.deg2rad(y) + torch.nan_to_num(x) * x,
    "in place": lambda x, y, i: (x * y).clip_(-1, 1) + F.relu(x - y, inplace=True),
    "changed in place": lambda x, y, i: [z := x * 2, F.relu_(z), z * y][-1],
    "margins": lambda x, y, i: F.multi_margin_loss(x, i) + F.multi_margin_loss(y, i, 2, 0.5),
    "labels": lambda x, y, i: F.multilabel_soft_margin_loss(x, y.sigmoid()),
    "triplets": lambda x, y, i: F.triplet_margin_with_distance_loss(x, y, x * y + 1, swap=True),
    "kthvalue": lambda x, y, i: x.kthvalue(2, dim=0).values + torch.msort(y)[0],
    "pdist": lambda x, y, i: F.pdist(x * y),
    "diag_embed": lambda x, y, i: torch.diag_embed(x * y, 1, 0, 2),
    "isin": lambda x, y, i: x * y * torch.isin(i, torch.tensor([1, 2]))[:, None],
    "softplus": lambda x, y, i: F.softplus(x, threshold=1) + F.softplus(y, 2.0, 0.5),
    "bags": lambda x, y, i: F.embedding_bag(i.view(3, 2), x) * y[0],
    "table": lambda x, y, i: F.embedding(i, x, None, None, 2.0, False, False) * y,
    "training": lambda x, y, i: F.batch_norm(x * y, torch.zeros(4), torch.ones(4), training=True),
    "autoencoder": lambda x, y, i: F.binary_cross_entropy(x.sigmoid(), y.sigmoid().detach()) * y,
    "sums put": lambda x, y, i: x.scatter_reduce(1, i[:, None], y[:, :1] ** 2, "sum"),
    "means put": lambda x, y, i: x.scatter_reduce(1, i[:, None], y[:, :1], "mean"),
    "sums put over": lambda x, y, i: x.scatter_reduce(
        1, i[:, None], y[:, :1], "sum", include_self=False
    ),
    "largest put": lambda x, y, i: x.scatter_reduce(1, i[:, None], y[:, :1], "amax"),
    "places": lambda x, y, i: (x * y)[(i > 1).nonzero()[:, 0]] + x[i > 1],
    "triangle": lambda x, y, i: (x * y)[torch.tril_indices(6, 4)[0], torch.tril_indices(6, 4)[1]],
    "windows": lambda x, y, i: (
        x * torch.hann_window(4) + y * torch.hamming_window(4, periodic=False)
    ),
    "axis": lambda x, y, i: (
        torch.sum(x, axis=-1, keepdims=True) * y.mean(axis=0) + x.amax(axis=1, keepdims=True)
    ),
    "input": lambda x, y, i: (
        torch.add(input=x, other=y) + torch.mul(x, other=y) + torch.softmax(input=x, dim=-1)
    ),
    "dims": lambda x, y, i: torch.flip(x, dims=(0,)) * y + x.permute(dims=(0, 1)).tile(dims=(1, 1)),
    "tensors": lambda x, y, i: (
        torch.cat(tensors=(x, y), axis=1) * torch.stack(tensors=[x, y], dim=0).sum()
    ),
}


@rows("name", CONVOLUTIONS)
def test_a_convolution(name):
    z, k = RNG.standard_normal((2, 3, 6, 5)), RNG.standard_normal((4, 3, 3, 3))
    assert_equal_to_torch(CONVOLUTIONS[name], {"z": z, "k": k}, [z, k])


@rows("name", IMAGES)
def test_a_function_of_an_image(name):
    z = RNG.standard_normal((2, 3, 7, 6))
    assert_equal_to_torch(IMAGES[name], {"z": z}, [z])


@rows("name", ALGEBRA)
def test_a_function_of_matrices(name):
    s, x = RNG.standard_normal((3, 3)), RNG.standard_normal((6, 4))
    s = s @ s.T + 3 * np.eye(3)
    assert_equal_to_torch(ALGEBRA[name], {"s": s, "x": x}, [s, x], 1e-6)


@rows("name", OTHERS)
def test_a_function_of_arrays_and_places(name):
    x, y = RNG.standard_normal((2, 6, 4))
    places = np.array([2, 0, 3, 2, 1, 1])
    assert_equal_to_torch(OTHERS[name], {"x": x, "y": y, "i": places}, [y, x, places])


REFUSED = {
    "embedding with max_norm": lambda x: F.embedding(torch.tensor([0, 1]), x, max_norm=1.0),
    "the length of np.bincount is not known": lambda x: x * torch.bincount((x[0] > 0).long()).sum(),
    "allowed: interpolate": lambda x: F.max_unpool1d(x[None], torch.zeros(1, 6, 4).long(), 2),
    "allowed: mode=.bilinear": lambda x: F.grid_sample(
        x[None, None], x.view(1, 4, 3, 2), mode="bicubic"
    ),
    "allowed: its sum by logsumexp": lambda x: F.ctc_loss(
        x[:, None].log_softmax(-1), torch.tensor([[1, 2]]), torch.tensor([6]), torch.tensor([2])
    ),
    "'prod' is not known": lambda x: x.scatter_reduce(0, (x > 0).long(), x, "prod"),
    "random numbers": lambda x: F.gumbel_softmax(x),
}


@rows("said", REFUSED)
def test_what_is_not_known_says_what_to_write(said):
    REFUSED[said].takes_tensors = True
    with pytest.raises(hg.errors.ArgumentError, match=said):
        hg.derive(REFUSED[said], x=(6, 4))
