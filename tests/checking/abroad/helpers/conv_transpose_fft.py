import numpy as np


def circ_conv(x, k):
    """Circular convolution by the FFT."""
    X, K = np.fft.rfft(x), np.fft.rfft(k, x.shape[-1])
    return np.fft.irfft(X * K, x.shape[-1]), (X, K, x.shape[-1], len(k))


def _corr(A, B, n):
    return np.fft.irfft(A * np.conj(B), n)


def circ_conv_grad(dy, cache):
    X, K, n, m = cache
    D = np.fft.rfft(dy)
    dx = _corr(D, K, n)
    dk = _corr(D, X, n).sum(axis=0)[:m]
    return dx, dk


# ---- the case
TARGET = (circ_conv, circ_conv_grad)
inputs = normal((3, 8), 3)
WRONG = [
    Wrong("A * np.conj(B)", "A * B", "name", (r"conj|revers|flip|shift|transpos|belongs",)),
    Wrong("_corr(D, X, n).sum(axis=0)[:m]", "_corr(D, X, n).sum(axis=0)[-m:]", "index"),
]
