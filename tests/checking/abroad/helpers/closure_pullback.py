import numpy as np


def compose(*fs):
    def run(x):
        pulls = []
        for f in fs:
            x, pull = f(x)
            pulls.append(pull)

        def pullback(g):
            for pull in reversed(pulls):
                g = pull(g)
            return g
        return x, pullback
    return run


def square(x):
    return x * x, lambda g: 2 * x * g


def sine(x):
    return np.sin(x), lambda g: np.cos(x) * g


def running_sum(x):
    return np.cumsum(x, axis=1), lambda g: np.cumsum(g[:, ::-1], axis=1)[:, ::-1]


chain = compose(square, sine, running_sum)


def chain_grad(g, pullback):
    return pullback(g)


# ---- the case
TARGET = (chain, chain_grad)
inputs = normal((3, 4))
WRONG = [
    Wrong("lambda g: 2 * x * g", "lambda g: x * g", "factor missing"),
    Wrong("lambda g: np.cos(x) * g", "lambda g: -np.cos(x) * g", "sign"),
    Wrong("for pull in reversed(pulls):", "for pull in pulls:", "order"),
]
