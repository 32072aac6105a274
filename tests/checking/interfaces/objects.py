"""Objects with a forward and a backward, in the forms of layers that people write."""

from __future__ import annotations

from tests.checking.interfaces.case import Interface

OBJECTS = (
    Interface(
        "dense_uppercase",
        """
class Dense:
    def __init__(self):
        self.W, self.b, self.dW, self.db = n(3, 4), n(4), None, None

    def forward(self, x):
        self.x = x
        return np.dot(x, self.W) + self.b

    def backward(self, dout):
        self.dW = np.dot(self.x.T, dout)
        self.db = np.sum(dout, axis=0)
        return np.dot(dout, self.W.T)


TARGET, INPUTS = Dense(), [n(5, 3)]
""",
        right=(("np.sum(dout, axis=0)", "dout.T @ np.ones(len(dout))"),),
        wrong=(("self.dW = np", "self.dW = 2 * np"), ("return np.dot(dout", "return -np.dot(dout")),
    ),
    Interface(
        "step_with_a_rate_given",
        """
class Dense:
    def __init__(self, inputs, outputs):
        self.weights, self.bias = n(inputs, outputs), n(1, outputs)

    def forward(self, input):
        self.input = input
        return self.input @ self.weights + self.bias

    def backward(self, output_gradient, learning_rate):
        weights_gradient = self.input.T @ output_gradient
        input_gradient = output_gradient @ self.weights.T
        self.weights -= learning_rate * weights_gradient
        self.bias -= learning_rate * output_gradient.sum(axis=0, keepdims=True)
        return input_gradient


TARGET, INPUTS = Dense(3, 4), [n(5, 3)]
""",
        right=(
            (
                "self.weights -= learning_rate * weights_gradient",
                "self.weights = self.weights - learning_rate * weights_gradient",
            ),
        ),
        wrong=(
            ("sum(axis=0, keepdims=True)", "mean(axis=0, keepdims=True)"),
            ("input_gradient = output_gradient", "input_gradient = 2 * output_gradient"),
        ),
    ),
    Interface(
        "step_with_its_own_rate",
        """
class Dense:
    def __init__(self):
        self.w, self.b, self.lr = n(3, 4), n(4), 0.01

    def forward(self, x):
        self.x = x
        return x @ self.w + self.b

    def backward(self, grad):
        dx = grad @ self.w.T
        dw, db = self.x.T @ grad, grad.sum(0)
        self.w = self.w - self.lr * dw
        self.b = self.b - self.lr * db
        return dx


TARGET, INPUTS = Dense(), [n(5, 3)]
""",
        right=(("self.b = self.b - self.lr * db", "self.b -= db * self.lr"),),
        wrong=(("dw, db = self.x.T", "dw, db = 3 * self.x.T"), ("grad.sum(0)", "grad.max(0)")),
    ),
    Interface(
        "step_before_the_gradient_of_x",
        """
class Dense:
    def __init__(self):
        self.w, self.learning_rate = n(3, 4), 0.5

    def forward(self, x):
        self.x = x
        return x @ self.w

    def backward(self, delta):
        before = self.w.copy()
        self.w -= self.learning_rate * self.x.T @ delta
        return delta @ before.T


TARGET, INPUTS = Dense(), [n(5, 3)]
""",
        right=(("self.w.copy()", "np.array(self.w)"),),
        wrong=(("delta @ before.T", "delta @ self.w.T"), ("* self.x.T", "* 2 * self.x.T")),
    ),
    Interface(
        "forward_pass",
        """
class SGD:
    def __init__(self, learning_rate=0.01):
        self.learning_rate = learning_rate

    def update(self, w, grad):
        return w - self.learning_rate * grad


class Dense:
    def __init__(self):
        self.trainable = True
        self.W, self.w0 = n(3, 4), n(1, 4)
        self.W_opt, self.w0_opt = SGD(), SGD()

    def forward_pass(self, X, training=True):
        self.layer_input = X
        return X.dot(self.W) + self.w0

    def backward_pass(self, accum_grad):
        W = self.W
        if self.trainable:
            grad_w = self.layer_input.T.dot(accum_grad)
            grad_w0 = np.sum(accum_grad, axis=0, keepdims=True)
            self.W = self.W_opt.update(self.W, grad_w)
            self.w0 = self.w0_opt.update(self.w0, grad_w0)
        return accum_grad.dot(W.T)


TARGET, INPUTS = Dense(), [n(5, 3)]
""",
        right=(("self.layer_input.T.dot(accum_grad)", "(accum_grad.T @ self.layer_input).T"),),
        wrong=(
            ("grad_w = self", "grad_w = 0.5 * self"),
            ("return accum_grad", "return -accum_grad"),
        ),
    ),
    Interface(
        "lists_of_parameters_and_gradients",
        """
class MatMul:
    def __init__(self, W):
        self.params, self.grads, self.x = [W], [np.zeros_like(W)], None

    def forward(self, x):
        W, = self.params
        self.x = x
        return np.dot(x, W)

    def backward(self, dout):
        W, = self.params
        dx = np.dot(dout, W.T)
        dW = np.dot(self.x.T, dout)
        self.grads[0][...] = dW
        return dx


TARGET, INPUTS = MatMul(n(3, 4)), [n(5, 3)]
""",
        right=(("self.grads[0][...] = dW", "self.grads[0] = dW"),),
        wrong=(("dW = np", "dW = -np"), ("dout, W.T)", "dout, 2 * W.T)")),
    ),
    Interface(
        "everything_in_attributes",
        """
class Layer_Dense:
    def __init__(self, n_inputs, n_neurons):
        self.weights = 0.5 * n(n_inputs, n_neurons)
        self.biases = np.zeros((1, n_neurons))

    def forward(self, inputs):
        self.inputs = inputs
        self.output = np.dot(inputs, self.weights) + self.biases

    def backward(self, dvalues):
        self.dweights = np.dot(self.inputs.T, dvalues)
        self.dbiases = np.sum(dvalues, axis=0, keepdims=True)
        self.dinputs = np.dot(dvalues, self.weights.T)


TARGET, INPUTS = Layer_Dense(3, 4), [n(5, 3)]
""",
        right=(("np.sum(dvalues, axis=0, keepdims=True)", "dvalues.sum(0)[None]"),),
        wrong=(
            ("self.dinputs = np", "self.dinputs = 2 * np"),
            ("self.dbiases = np", "self.dbiases = -np"),
        ),
    ),
    Interface(
        "activation_in_attributes",
        """
class Activation_ReLU:
    def forward(self, inputs):
        self.inputs = inputs
        self.output = np.maximum(0, inputs)

    def backward(self, dvalues):
        self.dinputs = dvalues.copy()
        self.dinputs[self.inputs <= 0] = 0


TARGET, INPUTS = Activation_ReLU(), [n(5, 3)]
""",
        right=(("self.inputs <= 0", "self.output == 0"),),
        wrong=(("self.inputs <= 0", "self.inputs >= 0"), ("dvalues.copy()", "2 * dvalues")),
    ),
    Interface(
        "loss_with_default",
        """
class SoftmaxWithLoss:
    def forward(self, x, t):
        e = np.exp(x - x.max(axis=1, keepdims=True))
        self.y, self.t = e / e.sum(axis=1, keepdims=True), t
        return -np.log(self.y[np.arange(len(t)), t]).mean()

    def backward(self, dout=1):
        dx = self.y.copy()
        dx[np.arange(len(self.t)), self.t] -= 1
        return dout * dx / len(self.t)


TARGET, INPUTS = SoftmaxWithLoss(), [n(4, 5), np.array([0, 1, 4, 2])]
""",
        right=(("return dout * dx / len(self.t)", "return dx * (dout / self.y.shape[0])"),),
        wrong=(("dx / len(self.t)", "dx"), ("-= 1", "-= 2")),
    ),
    Interface(
        "loss_without_cotangent",
        """
class MSE:
    def forward(self, pred, target):
        self.diff = pred - target
        return np.mean(self.diff ** 2)

    def backward(self):
        return 2 * self.diff / self.diff.size


TARGET, INPUTS = MSE(), [n(4, 5), n(4, 5)]
""",
        right=(("2 * self.diff / self.diff.size", "(self.diff + self.diff) / self.diff.size"),),
        wrong=(("2 * self.diff", "self.diff"), ("self.diff.size\n", "len(self.diff)\n")),
    ),
    Interface(
        "loss_of_its_inputs",
        """
class CategoricalCrossentropy:
    def forward(self, y_pred, y_true):
        return -np.sum(y_true * np.log(y_pred)) / len(y_pred)

    def backward(self, y_pred, y_true):
        return -y_true / y_pred / len(y_pred)


p = rng.uniform(0.1, 0.9, (4, 3))
TARGET, INPUTS = CategoricalCrossentropy(), [p, np.eye(3)[[0, 2, 1, 1]]]
""",
        right=(("-y_true / y_pred / len(y_pred)", "-(y_true / (len(y_pred) * y_pred))"),),
        wrong=(
            ("return -y_true / y_pred", "return y_true / y_pred"),
            (" / len(y_pred)\n\n\np", "\n\n\np"),
        ),
    ),
    Interface(
        "batch_norm",
        """
class BatchNormalization:
    def __init__(self, gamma, beta, momentum=0.9):
        self.gamma, self.beta, self.momentum = gamma, beta, momentum
        self.running_mean, self.running_var = np.zeros_like(gamma), np.ones_like(gamma)

    def forward(self, x, train_flg=True):
        if train_flg:
            mu = x.mean(axis=0)
            xc = x - mu
            var = np.mean(xc ** 2, axis=0)
            std = np.sqrt(var + 1e-5)
            xn = xc / std
            self.xc, self.xn, self.std = xc, xn, std
            self.running_mean = self.momentum * self.running_mean + (1 - self.momentum) * mu
            self.running_var = self.momentum * self.running_var + (1 - self.momentum) * var
        else:
            xn = (x - self.running_mean) / np.sqrt(self.running_var + 1e-5)
        return self.gamma * xn + self.beta

    def backward(self, dout):
        m = len(dout)
        self.dbeta = dout.sum(axis=0)
        self.dgamma = np.sum(self.xn * dout, axis=0)
        dxn = self.gamma * dout
        dxc = dxn / self.std
        dstd = -np.sum((dxn * self.xc) / (self.std * self.std), axis=0)
        dvar = 0.5 * dstd / self.std
        dxc += (2.0 / m) * self.xc * dvar
        dmu = np.sum(dxc, axis=0)
        return dxc - dmu / m


TARGET, INPUTS = BatchNormalization(1 + 0.1 * n(4), n(4)), [n(6, 4)]
""",
        right=(("dmu / m", "dxc.mean(axis=0)"),),
        wrong=(("dxc - dmu / m", "dxc"), ("self.xn * dout", "self.xc * dout")),
    ),
    Interface(
        "embedding",
        """
class Embedding:
    def __init__(self, W):
        self.W = W
        self.dW = np.zeros_like(W)

    def forward(self, idx):
        self.idx = idx
        return self.W[idx]

    def backward(self, dout):
        self.dW[...] = 0
        np.add.at(self.dW, self.idx, dout)


TARGET, INPUTS = Embedding(n(6, 3)), [np.array([0, 2, 5, 1])]
""",
        right=(("self.W[idx]", "np.take(self.W, idx, axis=0)"),),
        wrong=(
            ("np.add.at(self.dW, self.idx, dout)", "self.dW[self.idx] = dout"),
            (", dout)\n", ", 2 * dout)\n"),
        ),
    ),
    Interface(
        "rnn_cell",
        """
class RNN:
    def __init__(self, Wx, Wh, b):
        self.params = [Wx, Wh, b]
        self.grads = [np.zeros_like(Wx), np.zeros_like(Wh), np.zeros_like(b)]
        self.cache = None

    def forward(self, x, h_prev):
        Wx, Wh, b = self.params
        h_next = np.tanh(np.dot(h_prev, Wh) + np.dot(x, Wx) + b)
        self.cache = (x, h_prev, h_next)
        return h_next

    def backward(self, dh_next):
        Wx, Wh, b = self.params
        x, h_prev, h_next = self.cache
        dt = dh_next * (1 - h_next ** 2)
        self.grads[0][...] = np.dot(x.T, dt)
        self.grads[1][...] = np.dot(h_prev.T, dt)
        self.grads[2][...] = np.sum(dt, axis=0)
        return np.dot(dt, Wx.T), np.dot(dt, Wh.T)


TARGET, INPUTS = RNN(n(3, 4), n(4, 4), n(4)), [n(2, 3), n(2, 4)]
""",
        right=(("np.sum(dt, axis=0)", "dt.sum(0)"),),
        wrong=(("1 - h_next ** 2", "1 - h_next"), ("np.dot(h_prev.T, dt)", "np.dot(h_next.T, dt)")),
    ),
)
