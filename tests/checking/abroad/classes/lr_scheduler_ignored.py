import numpy as np


class Neuron:
    """One unit with a Gaussian activation, floats as attributes."""

    def __init__(self, mu=0.3, sigma=0.8):
        self.mu, self.sigma = np.array(mu), np.array(sigma)
        self.calls = 0

    def forward(self, x):
        self.calls += 1
        self.u = (x - self.mu) / self.sigma
        self.y = np.exp(-0.5 * self.u**2)
        return self.y

    def backward(self, dy):
        du = -dy * self.y * self.u
        self.dmu = -(du / self.sigma).sum()
        self.dsigma = -(du * self.u / self.sigma).sum()
        return du / self.sigma


# ---- the case
TARGET = Neuron()
GRADS = {"self.mu": "self.dmu", "self.sigma": "self.dsigma"}
inputs = normal((6,))
WRONG = [
    Wrong("-(du * self.u / self.sigma).sum()", "-(du * self.u).sum()", "factor missing"),
    Wrong("du = -dy * self.y * self.u", "du = dy * self.y * self.u", "sign"),
]
