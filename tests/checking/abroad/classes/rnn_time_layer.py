import numpy as np


class RNN:
    def __init__(self, Wx, Wh, b):
        self.params = [Wx, Wh, b]
        self.grads = [np.zeros_like(Wx), np.zeros_like(Wh), np.zeros_like(b)]
        self.cache = None

    def forward(self, x, h_prev):
        Wx, Wh, b = self.params
        t = np.dot(h_prev, Wh) + np.dot(x, Wx) + b
        h_next = np.tanh(t)
        self.cache = (x, h_prev, h_next)
        return h_next

    def backward(self, dh_next):
        Wx, Wh, b = self.params
        x, h_prev, h_next = self.cache
        dt = dh_next * (1 - h_next**2)
        db = np.sum(dt, axis=0)
        dWh = np.dot(h_prev.T, dt)
        dh_prev = np.dot(dt, Wh.T)
        dWx = np.dot(x.T, dt)
        dx = np.dot(dt, Wx.T)
        self.grads[0][...] = dWx
        self.grads[1][...] = dWh
        self.grads[2][...] = db
        return dx, dh_prev


class TimeRNN:
    def __init__(self, Wx, Wh, b):
        self.params = [Wx, Wh, b]
        self.grads = [np.zeros_like(Wx), np.zeros_like(Wh), np.zeros_like(b)]

    def forward(self, xs):
        N, T, D = xs.shape
        H = self.params[1].shape[0]
        self.layers = []
        hs = np.empty((N, T, H))
        h = np.zeros((N, H))
        for t in range(T):
            layer = RNN(*self.params)
            h = layer.forward(xs[:, t, :], h)
            hs[:, t, :] = h
            self.layers.append(layer)
        return hs

    def backward(self, dhs):
        N, T, H = dhs.shape
        dxs = np.empty((N, T, self.params[0].shape[0]))
        dh = 0
        grads = [0, 0, 0]
        for t in reversed(range(T)):
            layer = self.layers[t]
            dx, dh = layer.backward(dhs[:, t, :] + dh)
            dxs[:, t, :] = dx
            for i, grad in enumerate(layer.grads):
                grads[i] += grad
        for i, grad in enumerate(grads):
            self.grads[i][...] = grad
        return dxs


def time_rnn(xs, Wx, Wh, b):
    layer = TimeRNN(Wx, Wh, b)
    return layer.forward(xs), layer


def time_rnn_back(dhs, layer):
    dxs = layer.backward(dhs)
    return (dxs, *layer.grads)


# ---- the case
TARGET = (time_rnn, time_rnn_back)
inputs = normal((2, 3, 2), (2, 3), (3, 3), 3)
WRONG = [
    Wrong("layer.backward(dhs[:, t, :] + dh)", "layer.backward(dhs[:, t, :])", "carry"),
    Wrong("dWh = np.dot(h_prev.T, dt)", "dWh = np.dot(h_next.T, dt)", "name"),
    Wrong("dt = dh_next * (1 - h_next**2)", "dt = dh_next * (1 - h_next)", "local derivative"),
    Wrong("                grads[i] += grad\n", "                grads[i] = grad\n", "accumulate"),
    Wrong("db = np.sum(dt, axis=0)", "db = np.mean(dt, axis=0)", "sum for mean"),
]
