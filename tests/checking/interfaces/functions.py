"""Functions without an object: pairs in many forms, losses with their gradients, opaque ones."""

from __future__ import annotations

from tests.checking.interfaces.case import Interface

FUNCTIONS = (
    Interface(
        "pair_by_name",
        """
def affine_forward(x, w, b):
    out = x.reshape(x.shape[0], -1) @ w + b
    return out, (x, w, b)


def affine_backward(dout, cache):
    x, w, b = cache
    dx = (dout @ w.T).reshape(x.shape)
    return dx, x.reshape(x.shape[0], -1).T @ dout, dout.sum(axis=0)


TARGET, INPUTS = affine_forward, [n(4, 2, 3), n(6, 5), n(5)]
""",
        right=(("dout.sum(axis=0)", "np.sum(dout, 0)"),),
        wrong=(("dout.sum(axis=0)", "dout.mean(axis=0)"), ("dx = (dout", "dx = (2 * dout")),
    ),
    Interface(
        "module_of_one_pair",
        """
import sys


def relu_forward(x):
    return np.maximum(0, x), x


def relu_backward(dout, cache):
    return dout * (cache > 0)


TARGET, INPUTS = sys.modules[__name__], [n(4, 5)]
""",
        right=(("dout * (cache > 0)", "np.where(cache > 0, dout, 0)"),),
        wrong=(("(cache > 0)", "(cache < 0)"), ("return dout *", "return 2 * dout *")),
    ),
    Interface(
        "inputs_given_again",
        """
def linear(x, w):
    return x @ w


def linear_backward(dy, x, w):
    return dy @ w.T, x.T @ dy


TARGET, INPUTS = (linear, linear_backward), [n(5, 3), n(3, 4)]
""",
        right=(("dy @ w.T", "(w @ dy.T).T"),),
        wrong=(("dy @ w.T", "-dy @ w.T"), ("x.T @ dy", "2 * x.T @ dy")),
    ),
    Interface(
        "inputs_before_the_cotangent",
        """
def multiply(a, b):
    return a * b


def multiply_grad(a, b, grad):
    return grad * b, grad * a


TARGET, INPUTS = (multiply, multiply_grad), [n(5, 3), n(5, 3)]
""",
        right=(("grad * b, ", "b * grad, "),),
        wrong=(("grad * b, ", "grad * a, "), ("grad * a\n", "2 * grad * a\n")),
    ),
    Interface(
        "output_given_again",
        """
def softmax(z):
    e = np.exp(z - z.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)


def softmax_backward(da, y):
    return y * (da - (da * y).sum(axis=1, keepdims=True))


TARGET, INPUTS = (softmax, softmax_backward), [n(5, 3)]
""",
        right=(("y * (da -", "y * da - y * ("),),
        wrong=(
            ("y * (da -", "y * (da +"),
            ("return y * (da - (da * y)", "return y * (da - (da * y * y)"),
        ),
    ),
    Interface(
        "activation_caches",
        """
def linear_activation_forward(A_prev, W, b):
    Z = W @ A_prev + b
    A = 1 / (1 + np.exp(-Z))
    return A, ((A_prev, W, b), Z)


def linear_activation_backward(dA, cache):
    (A_prev, W, b), Z = cache
    s = 1 / (1 + np.exp(-Z))
    dZ = dA * s * (1 - s)
    return W.T @ dZ, dZ @ A_prev.T, dZ.sum(axis=1, keepdims=True)


TARGET = (linear_activation_forward, linear_activation_backward)
INPUTS = [n(3, 5), n(4, 3), n(4, 1)]
""",
        right=(("s * (1 - s)", "(s - s * s)"),),
        wrong=(
            ("s * (1 - s)", "s * (1 + s)"),
            ("dZ.sum(axis=1, keepdims=True)", "dZ.mean(axis=1, keepdims=True)"),
        ),
    ),
    Interface(
        "lstm_step",
        """
def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def lstm_step_forward(x, prev_h, prev_c, Wx, Wh, b):
    a = x @ Wx + prev_h @ Wh + b
    i, f, o, g = np.split(a, 4, axis=1)
    i, f, o, g = sigmoid(i), sigmoid(f), sigmoid(o), np.tanh(g)
    c = f * prev_c + i * g
    t = np.tanh(c)
    return o * t, c, (x, prev_h, prev_c, Wx, Wh, i, f, o, g, t)


def lstm_step_backward(dnext_h, dnext_c, cache):
    x, prev_h, prev_c, Wx, Wh, i, f, o, g, t = cache
    dc = dnext_c + dnext_h * o * (1 - t ** 2)
    di, df = dc * g * i * (1 - i), dc * prev_c * f * (1 - f)
    do, dg = dnext_h * t * o * (1 - o), dc * i * (1 - g ** 2)
    da = np.hstack([di, df, do, dg])
    return da @ Wx.T, da @ Wh.T, dc * f, x.T @ da, prev_h.T @ da, da.sum(axis=0)


TARGET = (lstm_step_forward, lstm_step_backward)
INPUTS = [n(3, 2), n(3, 4), n(3, 4), n(2, 16), n(4, 16), n(16)]
""",
        right=(("np.hstack([di, df, do, dg])", "np.hstack((di, df, do, dg))"),),
        wrong=(("dc = dnext_c + dnext_h", "dc = dnext_h"), ("(1 - g ** 2)", "(1 - g)")),
    ),
    Interface(
        "several_caches",
        """
def forward(x, w):
    h = x @ w
    y = np.tanh(h)
    return y, (x, w), y


def backward(dy, linear_cache, activation_cache):
    x, w = linear_cache
    dh = dy * (1 - activation_cache ** 2)
    return dh @ w.T, x.T @ dh


TARGET, INPUTS = (forward, backward), [n(5, 3), n(3, 4)]
""",
        right=(("dh @ w.T", "(w @ dh.T).T"),),
        wrong=(("1 - activation_cache ** 2", "1 - activation_cache"), ("x.T @ dh", "2 * x.T @ dh")),
    ),
    Interface(
        "dictionary_of_outputs",
        """
def forward(x, w):
    h = x @ w
    return {"h": h, "out": np.tanh(h), "x": x, "w": w}


def backward(dout, saved):
    dh = dout * (1 - saved["out"] ** 2)
    return {"dx": dh @ saved["w"].T, "dw": saved["x"].T @ dh}


TARGET, INPUTS = (forward, backward), [n(5, 3), n(3, 4)]
""",
        right=(('saved["w"].T, "dw"', '(saved["w"]).T, "dw"'),),
        wrong=(('saved["out"] ** 2', 'saved["out"]'), ('"dx": dh', '"dx": 2 * dh')),
    ),
    Interface(
        "gradients_in_a_dictionary",
        """
def forward(x, w, b):
    return x @ w + b, (x, w)


def backward(dy, cache):
    x, w = cache
    return {"db": dy.sum(axis=0), "dx": dy @ w.T, "dw": x.T @ dy}


TARGET, INPUTS = (forward, backward), [n(5, 3), n(3, 4), n(4)]
""",
        right=(("dy.sum(axis=0)", "np.sum(dy, 0)"),),
        wrong=(("dy.sum(axis=0)", "dy.max(axis=0)"), ('"dw": x.T', '"dw": 2 * x.T')),
    ),
    Interface(
        "cell_with_a_dictionary_of_parameters",
        """
def rnn_cell_forward(xt, a_prev, parameters):
    Wax, Waa, ba = parameters["Wax"], parameters["Waa"], parameters["ba"]
    a_next = np.tanh(Wax @ xt + Waa @ a_prev + ba)
    return a_next, (a_next, a_prev, xt, parameters)


def rnn_cell_backward(da_next, cache):
    a_next, a_prev, xt, parameters = cache
    dtanh = (1 - a_next ** 2) * da_next
    return {
        "dxt": parameters["Wax"].T @ dtanh,
        "da_prev": parameters["Waa"].T @ dtanh,
        "dWax": dtanh @ xt.T,
        "dWaa": dtanh @ a_prev.T,
        "dba": dtanh.sum(axis=1, keepdims=True),
    }


TARGET = (rnn_cell_forward, rnn_cell_backward)
INPUTS = [n(3, 5), n(4, 5), {"Wax": n(4, 3), "Waa": n(4, 4), "ba": n(4, 1)}]
""",
        right=(("(1 - a_next ** 2) * da_next", "da_next * (1 - np.square(a_next))"),),
        wrong=(
            ("dtanh @ a_prev.T", "dtanh @ a_next.T"),
            ("keepdims=True),", "keepdims=True) / 5,"),
        ),
    ),
    Interface(
        "defaulted_arguments",
        """
def leaky(x, slope=0.2):
    return np.where(x > 0, x, slope * x), x


def leaky_backward(dy, x, slope=0.2, inplace=False):
    return dy * np.where(x > 0, 1.0, slope)


TARGET, INPUTS = (leaky, leaky_backward), [n(5, 3)]
""",
        right=(("dy * np.where(x > 0, 1.0, slope)", "np.where(x > 0, dy, slope * dy)"),),
        wrong=(("1.0, slope)", "slope, 1.0)"), ("x, slope=0.2, inplace", "x, slope=0.3, inplace")),
    ),
    Interface(
        "cache_before_the_cotangent",
        """
def square_forward(x):
    return x ** 2, x


def square_backward(cache, dout):
    return 2 * cache * dout


TARGET, INPUTS = (square_forward, square_backward), [n(5, 3)]
""",
        right=(("2 * cache * dout", "dout * cache * 2"),),
        wrong=(("2 * cache", "cache"), ("2 * cache * dout", "2 * dout")),
    ),
    Interface(
        "loss_and_grads",
        """
def loss_and_grads(params, x, y):
    h = np.tanh(x @ params["w1"] + params["b1"])
    d = h @ params["w2"] - y
    loss = 0.5 * np.sum(d ** 2) / len(x)
    d = d / len(x)
    dh = d @ params["w2"].T * (1 - h ** 2)
    grads = {"w1": x.T @ dh, "b1": dh.sum(axis=0), "w2": h.T @ d}
    return loss, grads


TARGET = loss_and_grads
INPUTS = [{"w1": n(3, 4), "b1": n(4), "w2": n(4, 2)}, n(5, 3), n(5, 2)]
""",
        right=(("(1 - h ** 2)", "(1 - h * h)"),),
        wrong=(
            ("d = d / len(x)\n", "d = d / x.size\n"),
            ('"b1": dh.sum(axis=0)', '"b1": dh.mean(axis=0)'),
        ),
    ),
    Interface(
        "loss_with_regularisation",
        """
def svm_loss_vectorized(W, X, y, reg):
    scores = X @ W
    correct = scores[np.arange(len(y)), y][:, None]
    margins = np.maximum(0, scores - correct + 1)
    margins[np.arange(len(y)), y] = 0
    loss = margins.sum() / len(y) + reg * np.sum(W * W)
    mask = (margins > 0).astype(float)
    mask[np.arange(len(y)), y] = -mask.sum(axis=1)
    dW = X.T @ mask / len(y) + 2 * reg * W
    return loss, dW


TARGET, INPUTS = svm_loss_vectorized, [n(3, 4), n(6, 3), np.array([0, 1, 3, 2, 2, 0]), 0.1]
""",
        right=(("2 * reg * W", "reg * (W + W)"),),
        wrong=(("2 * reg * W", "reg * W"), ("-mask.sum(axis=1)", "-1")),
    ),
    Interface(
        "loss_of_scores",
        """
def softmax_loss(x, y):
    shifted = x - x.max(axis=1, keepdims=True)
    probs = np.exp(shifted) / np.exp(shifted).sum(axis=1, keepdims=True)
    loss = -np.log(probs[np.arange(len(y)), y]).mean()
    dx = probs.copy()
    dx[np.arange(len(y)), y] -= 1
    dx /= len(y)
    return loss, dx


TARGET, INPUTS = softmax_loss, [n(4, 5), np.array([1, 0, 4, 2])]
""",
        right=(("dx /= len(y)", "dx = dx / x.shape[0]"),),
        wrong=(("dx /= len(y)", "pass"), ("-= 1", "+= 1")),
    ),
    Interface(
        "cost_function",
        """
def costFunction(theta, X, y):
    m = len(y)
    h = 1 / (1 + np.exp(-(X @ theta)))
    J = -(y @ np.log(h) + (1 - y) @ np.log(1 - h)) / m
    grad = X.T @ (h - y) / m
    return J, grad


TARGET, INPUTS = costFunction, [n(3), n(6, 3), np.array([0.0, 1, 1, 0, 1, 0])]
""",
        right=(("X.T @ (h - y)", "(h - y) @ X"),),
        wrong=(("(h - y) / m", "(h - y)"), ("(h - y)", "(y - h)")),
    ),
    Interface(
        "losses_of_lists",
        """
def value_and_gradients(weights, x, t):
    a = [x]
    for w in weights:
        a.append(np.tanh(a[-1] @ w))
    d = a[-1] - t
    gradients = []
    for w, below, above in reversed(list(zip(weights, a[:-1], a[1:]))):
        d_sum = d * (1 - above ** 2)
        gradients.insert(0, below.T @ d_sum)
        d = d_sum @ w.T
    return 0.5 * ((a[-1] - t) ** 2).sum(), gradients


TARGET, INPUTS = value_and_gradients, [[n(3, 4), n(4, 4), n(4, 2)], n(5, 3), n(5, 2)]
""",
        right=(("d_sum @ w.T", "(w @ d_sum.T).T"),),
        wrong=(("d = d_sum @ w.T", "d = d @ w.T"), ("below.T @ d_sum", "below.T @ d_sum * 2")),
    ),
    Interface(
        "function_and_prime",
        """
def tanh(x):
    return np.tanh(x)


def tanh_prime(x):
    return 1 - np.tanh(x) ** 2


TARGET, INPUTS = (tanh, tanh_prime), [n(4, 3)]
""",
        right=(("1 - np.tanh(x) ** 2", "1 / np.cosh(x) ** 2"),),
        wrong=(("np.tanh(x) ** 2", "np.tanh(x)"), ("1 - np.tanh(x) ** 2", "2 - np.tanh(x) ** 2")),
    ),
    Interface(
        "loss_and_prime",
        """
def mse(y_true, y_pred):
    return np.mean(np.power(y_true - y_pred, 2))


def mse_prime(y_true, y_pred):
    return 2 * (y_pred - y_true) / np.size(y_true)


TARGET, INPUTS = (mse, mse_prime), [n(4, 3), n(4, 3)]
""",
        right=(("2 * (y_pred - y_true)", "-2 * (y_true - y_pred)"),),
        wrong=(("/ np.size(y_true)", "/ len(y_true)"), ("(y_pred - y_true)", "(y_true + y_pred)")),
    ),
)
