# %% [markdown]
# # A kernel writer's day
#
# In the morning the mathematics in NumPy, at noon the same in C, in the afternoon the bugs that C
# brings. They pass on the sizes and layouts that one thinks of. This notebook needs a C compiler,
# called `cc`.

# %%
import ctypes
import subprocess
import tempfile
from pathlib import Path

import numpy as np

import handgrad as hg

rng = np.random.default_rng(0)

# %% [markdown]
# ## Morning: the reference
#
# RMS normalisation, y = γ x/√(mean(x²) + eps), and its backward, checked before anything is made
# fast.


# %%
def forward(x, gamma):
    inv_rms = 1 / np.sqrt((x * x).mean(axis=-1, keepdims=True) + 1e-5)
    x_hat = x * inv_rms
    return gamma * x_hat, (x_hat, inv_rms, gamma)


def backward(dy, cache):
    x_hat, inv_rms, gamma = cache
    dgamma = (dy * x_hat).sum(axis=0)
    dx_hat = dy * gamma
    dx = (dx_hat - x_hat * (dx_hat * x_hat).mean(axis=-1, keepdims=True)) * inv_rms
    return dx, dgamma


# %%
x, gamma = rng.standard_normal((8, 16)), rng.standard_normal(16)
hg.check((forward, backward), x, gamma).assert_ok()

# %% [markdown]
# ## Noon: the kernel
#
# One pass for the sum, one that writes, and dγ added up on the way. The loops go through four
# values at a time, as a hand that thinks of vectors writes them.

# %%
SOURCE = """
void backward(const float *dy, const float *x_hat, const float *inv_rms, const float *gamma,
              float *dx, float *dgamma, long rows, long width) {
  for (long n = 0; n < rows; n++) {
    const float *d = dy + n * width, *h = x_hat + n * width;
    float sum = 0;
    for (long i = 0; i + 4 <= width; i += 4)
      for (long j = i; j < i + 4; j++) sum += d[j] * gamma[j] * h[j];
    float mean = sum / width;
    for (long i = 0; i < width; i++) {
      dx[n * width + i] = (d[i] * gamma[i] - h[i] * mean) * inv_rms[n];
      dgamma[i] += d[i] * h[i];
    }
  }
}
"""


def compiled(source):
    """The library of a C file."""
    folder = Path(tempfile.mkdtemp())
    (folder / "kernel.c").write_text(source)
    command = ["cc", "-O2", "-shared", "-fPIC", "-o", folder / "kernel.so", folder / "kernel.c"]
    subprocess.run(command, check=True)
    return ctypes.CDLL(str(folder / "kernel.so"))


library = compiled(SOURCE)


# %%
def pointer(array):
    return array.ctypes.data_as(ctypes.c_void_p)


def kernel(dy, cache):
    x_hat, inv_rms, gamma = (np.ascontiguousarray(each, np.float32) for each in cache)
    dx, dgamma = np.empty_like(x_hat), np.zeros_like(gamma)
    rows, width = x_hat.shape
    arrays = (dy, x_hat, inv_rms, gamma, dx, dgamma)
    library.backward(*map(pointer, arrays), ctypes.c_long(rows), ctypes.c_long(width))
    return dx, dgamma


def forward_32(x, gamma):
    y, cache = forward(np.asarray(x, np.float32), np.asarray(gamma, np.float32))
    return y.astype(np.float32), cache


# %% [markdown]
# The test that everybody writes: eight rows of sixteen, beside the reference.

# %%
x32, gamma32, dy32 = (
    rng.standard_normal(shape).astype(np.float32) for shape in ((8, 16), 16, (8, 16))
)
_, cache = forward_32(x32, gamma32)
pairs = zip(kernel(dy32, cache), backward(dy32, cache), strict=True)
print(max(np.abs(ours - theirs).max() for ours, theirs in pairs))

# %% [markdown]
# Six digits agree. Ship it?
#
# ## Afternoon: the checker
#
# `hg.check` compares with a derivative and not with another program, and brings what hides bugs:
# odd layouts, read-only arrays, a second call. Give it a size that no vector divides.

# %%
odd = rng.standard_normal((5, 7)), rng.standard_normal(7)
report = hg.check((forward_32, kernel), *odd)
print(report)
assert {fault.gradient for fault in report.faults} == {"x"}

# %% [markdown]
# dγ is right and dx is not, so it is the sum. The loop over vectors has no tail: of seven values
# the last three are left out, and with sixteen there is none to lose.

# %%
SCALAR = """    for (long i = 0; i < width; i++) sum += d[i] * gamma[i] * h[i];
"""
start, end = SOURCE.index("    for (long i = 0; i + 4"), SOURCE.index("    float mean")
library = compiled(SOURCE[:start] + SCALAR + SOURCE[end:])

report = hg.check((forward_32, kernel), *odd)
print(report)
assert {fault.kind for fault in report.faults} == {"strided cotangent"}

# %% [markdown]
# The next one: x̂ was made contiguous before its address went to C, dy was not. In a network dy is
# often a view, of a transpose or of a slice.


# %%
def repaired(dy, cache):
    return kernel(np.ascontiguousarray(dy, np.float32), cache)


report = hg.check((forward_32, repaired), *odd)
print(report)
report.assert_ok()

# %% [markdown]
# ## Evening: the same for PyTorch and JAX
#
# A `torch.autograd.Function` and a `jax.custom_vjp` are targets too. handgrad's own kernels are
# made in this way, each beside its reference, and every one can be checked on the machine that it
# runs on.

# %%
hg.check("rms_norm").assert_ok()
