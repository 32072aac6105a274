# %% [markdown]
# # From XOR to a small GPT
#
# Four networks, each a little larger than the one before, and the same three lines in every
# training step: forward, backward, update. First with two operations by hand, at the end with a
# transformer that writes.

# %%
import numpy as np

import handgrad as hg

rng = np.random.default_rng(0)

# %% [markdown]
# ## XOR, by hand
#
# Four examples that no straight line separates. An operation is a pair of functions: `forward`
# gives the result and a cache, `backward` takes the gradient of the result and that cache.

# %%
x = np.array([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]])
target = np.array([0, 1, 1, 0])

w1, b1 = rng.standard_normal((8, 2)), np.zeros(8)
w2, b2 = rng.standard_normal((2, 8)), np.zeros(2)

# %%
for step in range(201):
    a, cache_1 = hg.ops.linear.forward(x, w1, b1)
    h, cache_h = hg.ops.tanh.forward(a)
    scores, cache_2 = hg.ops.linear.forward(h, w2, b2)
    loss, cache_loss = hg.ops.cross_entropy.forward(scores, target)

    dscores = hg.ops.cross_entropy.backward(np.float64(1), cache_loss)
    dh, dw2, db2 = hg.ops.linear.backward(dscores, cache_2)
    da = hg.ops.tanh.backward(dh, cache_h)
    _, dw1, db1 = hg.ops.linear.backward(da, cache_1)

    for parameter, gradient in ((w1, dw1), (b1, db1), (w2, dw2), (b2, db2)):
        parameter -= 0.5 * gradient
    if step % 50 == 0:
        print(f"step {step:3}  loss {loss:.4f}  answers {scores.argmax(axis=1)}")

# %%
assert (scores.argmax(axis=1) == target).all()

# %% [markdown]
# The derivation of each line is one call away, printed from the code that ran.

# %%
hg.notes("tanh")

# %% [markdown]
# ## Digits, with layers
#
# A layer is an operation with its parameters, and `Sequential` runs layers one after the other:
# forwards, and in the backward pass in reverse. What is left of the loop is the same.

# %%
digits, loss_of = hg.data.load("digits"), hg.losses.CrossEntropy()
hidden = hg.Dense(64, 128, activation="relu", rng=rng)
model = hg.Sequential(hg.Flatten(), hidden, hg.Dense(128, 10, rng=rng))
optimizer = hg.optimizers.Adam(lr=0.01)

for step in range(101):
    scores, cache = model.forward(digits.x_train[:])
    loss, loss_cache = loss_of.forward(scores, digits.y_train)
    _, gradients = model.backward(loss_of.backward(loss_cache), cache)
    optimizer.step(model.parameters, gradients)
    if step % 25 == 0:
        print(f"step {step:3}  loss {loss:.4f}")

# %%
right = np.mean(model(digits.x_test[:]).argmax(axis=1) == digits.y_test)
print(f"{right:.1%} of digits that it has not seen")
assert right > 0.95

# %% [markdown]
# ## Counting, with a recurrent network
#
# A network that reads a row of bits, one per step, and says whether it has seen an odd number of
# ones so far. It is XOR again, of everything up to here, and needs a memory.

# %%
bits = rng.integers(0, 2, (512, 12))
x, target = bits[..., None].astype(np.float32), bits.cumsum(axis=1) % 2
model = hg.Sequential(hg.GRU(1, 16, rng=rng), hg.Dense(16, 2, rng=rng))
loss_of, optimizer = hg.losses.CrossEntropy(class_axis=-1), hg.optimizers.Adam(lr=0.02)

for step in range(401):
    scores, cache = model.forward(x)
    loss, loss_cache = loss_of.forward(scores, target)
    _, gradients = model.backward(loss_of.backward(loss_cache), cache)
    optimizer.step(model.parameters, gradients)
    if step % 100 == 0:
        print(f"step {step:3}  loss {loss:.4f}")

# %%
longer = rng.integers(0, 2, (256, 40))
scores = model(longer[..., None].astype(np.float32))
right = np.mean(scores.argmax(axis=-1) == longer.cumsum(axis=1) % 2)
print(f"{right:.1%} right on rows that are more than three times as long")
assert right > 0.9

# %% [markdown]
# ## A small GPT
#
# A transformer that learns which character comes next. Its text is the one that Python carries
# about itself; `hg.data.load_text("book.txt")` takes yours. `Trainer` is the loop from above, with
# shuffled batches, a validation part, and a progress display.

# %%
text = hg.data.load_text()
print(f"{len(text.train):,} characters to learn from, {text.tokenizer.size} different ones")
model = hg.GPT(text.tokenizer.size, context=48, width=64, heads=4, blocks=2, rng=rng)
print(f"{sum(each.size for each in model.parameters.values()):,} parameters")

# %%
trainer = hg.Trainer(
    model,
    hg.losses.CrossEntropy(class_axis=-1),
    hg.optimizers.AdamW(lr=3e-3, weight_decay=0.1),
    batch_size=16,
    clip_norm=1.0,
    progress="lines",
)
history = trainer.fit(hg.data.Blocks(text.train, 48, count=8000), epochs=1)

# %% [markdown]
# Guessing among all characters alike would cost the logarithm of their number; the loss on text
# that it has not seen says how much of that is learned. Then it writes.

# %%
judged = hg.data.Blocks(text.validation, 48)
(tokens,), target = judged.gather(judged.every()[:200])
loss, _ = hg.losses.CrossEntropy(class_axis=-1).forward(model(tokens), target)
print(f"loss {loss:.2f}, guessing {np.log(text.tokenizer.size):.2f}")
assert loss < 2.7

# %%
start = np.array([text.tokenizer.encode("The ")])
written = model.generate(start, length=200, rng=np.random.default_rng(1), temperature=0.8)
print(text.tokenizer.decode(written[0]))
