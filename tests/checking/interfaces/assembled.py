"""Layers and losses that their network prepares, calls and reads in a way of its own."""

from __future__ import annotations

from tests.checking.interfaces.case import Interface

ASSEMBLED = (
    Interface(
        "loss_of_each_example",
        """
class Quartic:
    def forward(self, y_pred, y_true):
        return np.mean((y_pred - y_true) ** 4, axis=-1)

    def backward(self, dvalues, y_true):
        examples, outputs = dvalues.shape
        self.dinputs = 4 * (dvalues - y_true) ** 3 / outputs
        self.dinputs = self.dinputs / examples


TARGET, INPUTS = Quartic(), [n(5, 3), n(5, 3)]
""",
        right=(("self.dinputs / examples", "1.0 / examples * self.dinputs"),),
        wrong=(("** 3 / outputs", "** 3"), ("4 * (dvalues", "2 * (dvalues")),
    ),
    Interface(
        "loss_of_each_example_called_with_its_inputs",
        """
class Absolute:
    def forward(self, y_pred, y_true):
        return np.sum(np.abs(y_pred - y_true), axis=-1)

    def backward(self, y_pred, y_true):
        self.dinputs = np.sign(y_pred - y_true) / len(y_pred)


TARGET, INPUTS = Absolute(), [n(5, 3), n(5, 3)]
""",
        right=(("/ len(y_pred)", "* (1 / len(y_true))"),),
        wrong=(("np.sign(y_pred - y_true)", "np.sign(y_true - y_pred)"),),
    ),
    Interface(
        "loss_that_is_given_the_output_it_keeps",
        """
class Logistic:
    def forward(self, inputs, targets):
        self.output = 1 / (1 + np.exp(-inputs))
        return np.mean(-targets * np.log(self.output) - (1 - targets) * np.log(1 - self.output))

    def backward(self, dvalues, targets):
        self.dinputs = (dvalues - targets) / dvalues.size


TARGET, INPUTS = Logistic(), [n(5, 3), rng.uniform(0.1, 0.9, (5, 3))]
""",
        right=(("(dvalues - targets)", "(-targets + dvalues)"),),
        wrong=(("/ dvalues.size", "/ len(dvalues)"), ("dvalues - targets", "targets - dvalues")),
    ),
    Interface(
        "told_its_input_shape",
        """
class Dense:
    def __init__(self, units):
        self.units, self.w = units, None

    def setup(self, input_shape):
        self.w, self.b = n(input_shape[1], self.units), n(self.units)

    def forward_pass(self, x):
        self.x = x
        return x @ self.w + self.b

    def backward_pass(self, delta):
        self.dw = self.x.T @ delta
        self.db = delta.sum(axis=0)
        return delta @ self.w.T


TARGET, INPUTS = Dense(4), [n(5, 3)]
""",
        right=(("delta.sum(axis=0)", "np.ones(len(delta)) @ delta"),),
        wrong=(("delta.sum(axis=0)", "delta.mean(axis=0)"), ("self.x.T @", "2 * self.x.T @")),
    ),
    Interface(
        "initialized_when_its_shape_is_known",
        """
class Layer:
    def set_input_shape(self, shape):
        self.input_shape = shape


class Scale(Layer):
    def initialize(self, optimizer):
        self.gain = n(*self.input_shape)

    def forward(self, x):
        self.x = x
        return self.gain * x

    def backward(self, grad):
        self.dgain = np.sum(grad * self.x, axis=0)
        return grad * self.gain


TARGET, INPUTS = Scale(), [n(5, 3)]
""",
        right=(("grad * self.gain", "self.gain * grad"),),
        wrong=(("grad * self.x", "grad"), ("return grad * self.gain", "return grad")),
    ),
    Interface(
        "weights_of_its_first_call",
        """
class Cell:
    def __init__(self, units):
        self.units, self.parameters, self.gradients, self.inputs = units, {}, {}, []

    def forward(self, xt):
        if not self.parameters:
            made = np.random.RandomState(0).randn(xt.shape[1], self.units)
            self.parameters = {"Wax": made, "ba": np.ones(self.units)}
            self.gradients = {key: np.zeros_like(each) for key, each in self.parameters.items()}
        self.inputs.append((xt, np.tanh(xt @ self.parameters["Wax"] + self.parameters["ba"])))
        return self.inputs[-1][1]

    def backward(self, da):
        xt, a = self.inputs.pop()
        dz = da * (1 - a * a)
        self.gradients["Wax"] += xt.T @ dz
        self.gradients["ba"] += dz.sum(axis=0)
        return dz @ self.parameters["Wax"].T


TARGET, INPUTS = Cell(4), [n(5, 3)]
""",
        right=(("da * (1 - a * a)", "da - da * a**2"),),
        wrong=(("+= xt.T @ dz", "+= xt.T @ da"), ("+= dz.sum", "+= da.sum")),
    ),
    Interface(
        "gradients_under_other_names",
        """
def forward(x, w, b):
    return np.tanh(x @ w + b), {"x": x, "w": w, "b": b}


def backward(dout, cache):
    y, _ = forward(**cache)
    delta = dout * (1 - y * y)
    return {"nabla_w": cache["x"].T @ delta, "delta": delta @ cache["w"].T, "dL_db": delta.sum(0)}


TARGET, INPUTS = (forward, backward), [n(5, 3), n(3, 4), n(4)]
""",
        right=(("1 - y * y", "1 - y**2"),),
        wrong=(("delta.sum(0)", "delta.mean(0)"), ("1 - y * y", "1 - y")),
    ),
)
