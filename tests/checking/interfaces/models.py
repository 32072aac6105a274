"""Objects of several parts, with parameters of their own kind, and whole models."""

from __future__ import annotations

from tests.checking.interfaces.case import Interface

MODELS = (
    Interface(
        "max_pool",
        """
class MaxPool:
    def forward(self, x):
        self.shape = x.shape
        blocks = x.reshape(len(x), -1, 2)
        self.arg = blocks.argmax(axis=2)
        return blocks.max(axis=2)

    def backward(self, dout):
        dx = np.zeros((*dout.shape, 2))
        i, j = np.indices(self.arg.shape)
        dx[i, j, self.arg] = dout
        return dx.reshape(self.shape)


TARGET, INPUTS = MaxPool(), [n(3, 8)]
""",
        right=(("dx[i, j, self.arg] = dout", "dx[i, j, self.arg] += dout"),),
        wrong=(("dx[i, j, self.arg]", "dx[i, j, 1 - self.arg]"), ("self.arg] = dout", "0] = dout")),
    ),
    Interface(
        "dropout",
        """
class Dropout:
    def __init__(self, ratio=0.4):
        self.ratio, self.mask = ratio, None

    def forward(self, x, train_flg=True):
        if train_flg:
            self.mask = np.random.default_rng(1).random(x.shape) > self.ratio
            return x * self.mask
        return x * (1.0 - self.ratio)

    def backward(self, dout):
        return dout * self.mask


TARGET, INPUTS = Dropout(), [n(5, 6)]
""",
        right=(("return dout * self.mask", "return np.where(self.mask, dout, 0.0)"),),
        wrong=(
            ("return dout * self.mask", "return dout"),
            ("dout * self.mask", "dout * self.mask / 0.6"),
        ),
    ),
    Interface(
        "sequential",
        """
class Affine:
    def __init__(self, W, b):
        self.W, self.b = W, b

    def forward(self, x):
        self.x = x
        return x @ self.W + self.b

    def backward(self, dout):
        self.dW, self.db = self.x.T @ dout, dout.sum(axis=0)
        return dout @ self.W.T


class Tanh:
    def forward(self, x):
        self.out = np.tanh(x)
        return self.out

    def backward(self, dout):
        return dout * (1.0 - self.out ** 2)


class Network:
    def __init__(self):
        self.layers = [Affine(n(3, 4), n(4)), Tanh(), Affine(n(4, 2), n(2))]

    def forward(self, x):
        for layer in self.layers:
            x = layer.forward(x)
        return x

    def backward(self, dout):
        for layer in reversed(self.layers):
            dout = layer.backward(dout)
        return dout


TARGET, INPUTS = Network(), [n(5, 3)]
""",
        right=(("reversed(self.layers)", "self.layers[::-1]"),),
        wrong=(
            ("1.0 - self.out ** 2", "1.0 - self.out"),
            ("self.x.T @ dout, ", "self.x.T @ dout / len(dout), "),
        ),
    ),
    Interface(
        "parameter_objects",
        """
class Param:
    def __init__(self, value):
        self.value, self.grad = value, np.zeros_like(value)


class Linear:
    def __init__(self):
        self.W, self.B = Param(n(3, 4)), Param(n(1, 4))

    def forward(self, X):
        self.X = X
        return X @ self.W.value + self.B.value

    def backward(self, d_out):
        self.W.grad += self.X.T @ d_out
        self.B.grad += np.sum(d_out, axis=0, keepdims=True)
        return d_out @ self.W.value.T

    def params(self):
        return {"W": self.W, "B": self.B}


TARGET, INPUTS = Linear(), [n(5, 3)]
""",
        right=(("self.B.grad +=", "self.B.grad = self.B.grad +"),),
        wrong=(
            ("self.W.grad += self", "self.W.grad += 2 * self"),
            ("np.sum(d_out", "np.max(d_out"),
        ),
    ),
    Interface(
        "called_like_a_function",
        """
class Linear:
    def __init__(self, fan_in, fan_out):
        self.weight, self.bias = n(fan_in, fan_out), n(fan_out)

    def __call__(self, x):
        self.x = x
        self.out = x @ self.weight + self.bias
        return self.out

    def backward(self, grad_output):
        self.weight_grad = self.x.T @ grad_output
        self.bias_grad = grad_output.sum(axis=0)
        return grad_output @ self.weight.T


TARGET, INPUTS = Linear(3, 4), [n(5, 3)]
""",
        right=(("grad_output @ self.weight.T", "(self.weight @ grad_output.T).T"),),
        wrong=(
            ("self.x.T @ grad", "2 * self.x.T @ grad"),
            ("return grad_output", "return -grad_output"),
        ),
    ),
    Interface(
        "activation_and_gradient",
        """
class Sigmoid:
    def __call__(self, x):
        return 1 / (1 + np.exp(-x))

    def gradient(self, x):
        return self.__call__(x) * (1 - self.__call__(x))


TARGET, INPUTS = Sigmoid(), [n(4, 3)]
""",
        right=(("self.__call__(x) * (1", "self(x) * (1"),),
        wrong=(
            ("* (1 - self.__call__(x))", "* (1 + self.__call__(x))"),
            ("return self.__call__(x) *", "return"),
        ),
    ),
    Interface(
        "loss_and_gradient_methods",
        """
class SquareLoss:
    def loss(self, y, y_pred):
        return 0.5 * np.power((y - y_pred), 2)

    def gradient(self, y, y_pred):
        return -(y - y_pred)


loss = SquareLoss()
y = n(4, 3)
TARGET = (lambda y_pred: loss.loss(y, y_pred), lambda y_pred: loss.gradient(y, y_pred))
INPUTS = [n(4, 3)]
""",
        right=(("-(y - y_pred)", "y_pred - y"),),
        wrong=(("-(y - y_pred)", "y - y_pred"), ("-(y - y_pred)", "-2 * (y - y_pred)")),
    ),
    Interface(
        "model_with_loss_and_grads",
        """
class TwoLayerNet:
    def __init__(self):
        self.params = {"W1": n(3, 4), "b1": n(4), "W2": n(4, 3), "b2": n(3)}

    def loss(self, X, y=None):
        p = self.params
        h = np.maximum(0, X @ p["W1"] + p["b1"])
        scores = h @ p["W2"] + p["b2"]
        if y is None:
            return scores
        e = np.exp(scores - scores.max(axis=1, keepdims=True))
        probs = e / e.sum(axis=1, keepdims=True)
        loss = -np.log(probs[np.arange(len(y)), y]).mean()
        d = probs.copy()
        d[np.arange(len(y)), y] -= 1
        d /= len(y)
        grads = {"W2": h.T @ d, "b2": d.sum(axis=0)}
        dh = d @ p["W2"].T
        dh[h <= 0] = 0
        grads["W1"], grads["b1"] = X.T @ dh, dh.sum(axis=0)
        return loss, grads


TARGET, INPUTS = TwoLayerNet().loss, [n(5, 3), np.array([0, 2, 1, 1, 0])]
""",
        right=(("dh[h <= 0] = 0", "dh = dh * (h > 0)"),),
        wrong=(("dh[h <= 0] = 0", "pass"), ('"b2": d.sum(axis=0)', '"b2": d.mean(axis=0)')),
    ),
    Interface(
        "loss_and_gradient_of_a_network",
        """
class Net:
    def __init__(self):
        self.params = {"W": n(3, 4), "b": n(4)}

    def predict(self, x):
        return x @ self.params["W"] + self.params["b"]

    def loss(self, x, t):
        return 0.5 * np.sum((self.predict(x) - t) ** 2)

    def gradient(self, x, t):
        d = self.predict(x) - t
        return {"W": x.T @ d, "b": d.sum(axis=0)}


TARGET, INPUTS = Net(), [n(5, 3), n(5, 4)]
""",
        right=(("x.T @ d,", "(d.T @ x).T,"),),
        wrong=(("x.T @ d,", "2 * x.T @ d,"), ("d.sum(axis=0)}", "-d.sum(axis=0)}")),
    ),
    Interface(
        "context_of_its_own",
        """
class Context:
    def save_for_backward(self, *arrays):
        self.saved = arrays


class Mul:
    @staticmethod
    def forward(ctx, x, y):
        ctx.save_for_backward(x, y)
        return x * y

    @staticmethod
    def backward(ctx, grad_output):
        x, y = ctx.saved
        return y * grad_output, x * grad_output


TARGET, INPUTS = Mul, [n(4, 3), n(4, 3)]
""",
        right=(("y * grad_output, x", "grad_output * y, x"),),
        wrong=(
            ("return y * grad", "return x * grad"),
            ("x * grad_output\n", "2 * x * grad_output\n"),
        ),
    ),
    Interface(
        "function_that_saves_itself",
        """
class Function:
    def save_for_backward(self, *x):
        self.saved_tensors = x


class Dot(Function):
    def forward(self, x, w):
        self.save_for_backward(x, w)
        return x.dot(w)

    def backward(self, grad_output):
        x, w = self.saved_tensors
        return grad_output.dot(w.T), x.T.dot(grad_output)


TARGET, INPUTS = Dot, [n(5, 3), n(3, 4)]
""",
        right=(("grad_output.dot(w.T)", "grad_output @ w.T"),),
        wrong=(
            ("x.T.dot(grad_output)", "-x.T.dot(grad_output)"),
            ("return grad_output", "return 2 * grad_output"),
        ),
    ),
    Interface(
        "fwd_and_bwd",
        """
class Scale:
    def __init__(self):
        self.alpha = n(4)

    def fwd(self, x):
        self.x = x
        return x * self.alpha

    def bwd(self, dy):
        self.dalpha = (dy * self.x).sum(0)
        return dy * self.alpha


TARGET, INPUTS = Scale(), [n(5, 4)]
""",
        right=(("(dy * self.x).sum(0)", "np.einsum('ij,ij->j', dy, self.x)"),),
        wrong=(("(dy * self.x).sum(0)", "dy.sum(0)"), ("return dy * self.alpha", "return dy")),
    ),
    Interface(
        "backward_of_input_and_gradient",
        """
class Layer:
    def __init__(self):
        self.weights, self.biases, self.learning_rate = n(3, 4), n(4), 0.1

    def forward(self, input):
        return np.dot(input, self.weights) + self.biases

    def backward(self, input, grad_output):
        grad_input = np.dot(grad_output, self.weights.T)
        grad_weights = np.dot(input.T, grad_output)
        grad_biases = grad_output.sum(axis=0)
        self.weights = self.weights - self.learning_rate * grad_weights
        self.biases = self.biases - self.learning_rate * grad_biases
        return grad_input


TARGET, INPUTS = Layer(), [n(5, 3)]
""",
        right=(("grad_output.sum(axis=0)", "grad_output.mean(axis=0) * input.shape[0]"),),
        wrong=(
            ("grad_output.sum(axis=0)", "grad_output.mean(axis=0)"),
            ("grad_output, self.weights.T", "2 * grad_output, self.weights.T"),
        ),
    ),
    Interface(
        "flatten",
        """
class Flatten:
    def forward(self, x):
        self.shape = x.shape
        return x.reshape(x.shape[0], -1)

    def backward(self, dout):
        return dout.reshape(self.shape)


TARGET, INPUTS = Flatten(), [n(4, 3, 2)]
""",
        right=(("x.reshape(x.shape[0], -1)", "x.reshape((len(x), -1))"),),
        wrong=(
            ("return dout.reshape(self.shape)", "return dout.reshape(self.shape, order='F')"),
            ("return dout", "return 2 * dout"),
        ),
    ),
    Interface(
        "gradients_returned_with_dx",
        """
class Linear:
    def __init__(self):
        self.W, self.b = n(3, 4), n(4)

    def forward(self, x):
        self.cache = x
        return x @ self.W + self.b

    def backward(self, dz):
        x = self.cache
        return dz @ self.W.T, x.T @ dz, dz.sum(axis=0)


TARGET, INPUTS = Linear(), [n(5, 3)]
""",
        right=(("x.T @ dz", "(dz.T @ x).T"),),
        wrong=(("x.T @ dz", "2 * x.T @ dz"), ("dz.sum(axis=0)", "dz.mean(axis=0)")),
    ),
)
