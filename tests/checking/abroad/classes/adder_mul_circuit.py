import numpy as np


class MulLayer:
    def forward(self, x, y):
        self.x, self.y = x, y
        return x * y

    def backward(self, dout):
        dx = dout * self.y
        dy = dout * self.x
        return dx, dy


class AddLayer:
    def forward(self, x, y):
        return x + y

    def backward(self, dout):
        return dout * 1, dout * 1


def price(apple, apple_num, orange, orange_num, tax):
    mul_apple, mul_orange, add, mul_tax = MulLayer(), MulLayer(), AddLayer(), MulLayer()
    a = mul_apple.forward(apple, apple_num)
    o = mul_orange.forward(orange, orange_num)
    total = mul_tax.forward(add.forward(a, o), tax)
    return total, (mul_apple, mul_orange, add, mul_tax)


def price_grad(dprice, layers):
    mul_apple, mul_orange, add, mul_tax = layers
    dall, dtax = mul_tax.backward(dprice)
    da, do = add.backward(dall)
    dapple, dapple_num = mul_apple.backward(da)
    dorange, dorange_num = mul_orange.backward(do)
    return dapple, dapple_num, dorange, dorange_num, dtax


# ---- the case
TARGET = (price, price_grad)
def inputs(rng):
    return 100.0, 2.5, 150.0, 3.5, 1.1
WRONG = [
    Wrong("dx = dout * self.y", "dx = dout * self.x", "name"),
    Wrong("return dapple, dapple_num, dorange, dorange_num, dtax", "return dapple, dapple_num, dorange_num, dorange, dtax", "swapped"),
]
