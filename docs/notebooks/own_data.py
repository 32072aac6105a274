# %% [markdown]
# # Your own data
#
# A table, a folder of pictures, a list of sequences: how each gets into a network, is trained, and
# answers on what is new. The data here are made up, so that the notebook runs anywhere; put the
# names of your files in their place.

# %%
import csv
import tempfile
from pathlib import Path

import numpy as np
from PIL import Image

import handgrad as hg

rng = np.random.default_rng(0)
folder = Path(tempfile.mkdtemp())

# %% [markdown]
# ## A table
#
# A CSV file as a spreadsheet writes it: a line of names, numbers, and in the last column the
# class. Here three kinds of flowers, by two lengths and two widths in millimetres.

# %%
MEANS = {"rose": (50, 34, 15, 3), "tulip": (59, 28, 43, 13), "lily": (66, 30, 55, 20)}
with (folder / "flowers.csv").open("w", newline="") as file:
    rows = csv.writer(file)
    rows.writerow(["sepal length", "sepal width", "petal length", "petal width", "kind"])
    for _ in range(200):
        for kind, means in MEANS.items():
            rows.writerow([*(rng.normal(means, (4, 3, 4, 2)).round(1)), kind])

data = hg.data.load("flowers", folder / "flowers.csv")
print(data.classes, data.x_train.shape, data.x_test.shape)

# %% [markdown]
# A fifth of each kind is kept aside as the test part, which nothing is learned from.
#
# The columns are of different sizes. Batch normalisation as the first layer learns their means and
# deviations from the training part and takes them along with the model, so that they cannot be
# forgotten where it is used.

# %%
model = hg.Sequential(
    hg.BatchNorm(4), hg.Dense(4, 32, activation="relu", rng=rng), hg.Dense(32, 3, rng=rng)
)
trainer = hg.Trainer(
    model, hg.losses.CrossEntropy(), hg.optimizers.Adam(lr=0.01), batch_size=32, progress="off"
)
history = trainer.fit(data, epochs=20)

# %%
scores, _ = model.forward(data.x_test[:])
right = np.mean(scores.argmax(axis=1) == data.y_test)
print(f"{right:.1%} of flowers that it has not seen")
assert right > 0.9

# %% [markdown]
# One flower, as somebody measures it:

# %%
flower = np.array([[60.0, 29.0, 45.0, 14.0]], np.float32)
scores, _ = model.forward(flower)
probabilities, _ = hg.ops.softmax.forward(scores)
for name, probability in zip(data.classes, probabilities[0], strict=True):
    print(f"{name:<6} {probability:.1%}")

# %% [markdown]
# ## Pictures
#
# A folder with a folder for each class, as a file manager shows it. All pictures have one size;
# what is read goes from 0 to 1, as (count, channels, height, width). Reading pictures takes
# Pillow: `pip install 'handgrad[images]'`.

# %%
for kind in ("bars", "rings"):
    (folder / "shapes" / kind).mkdir(parents=True)
    for number in range(120):
        picture = rng.normal(60, 20, (16, 16))
        up, left = rng.integers(3, 13, 2)
        if kind == "bars":
            picture[:, left - 1 : left + 1] += 120
        else:
            distance = np.hypot(*np.ogrid[-up : 16 - up, -left : 16 - left])
            picture[abs(distance - 3) < 0.8] += 120
        pixels = picture.clip(0, 255).astype(np.uint8)
        Image.fromarray(pixels).save(folder / "shapes" / kind / f"{number}.png")

data = hg.data.load("shapes", folder / "shapes")
print(data.classes, data.x_train.shape)

# %%
model = hg.Sequential(
    hg.Conv2d(1, 8, 3, padding=1, activation="relu", rng=rng),
    hg.MaxPool2d(2),
    hg.Conv2d(8, 16, 3, padding=1, activation="relu", rng=rng),
    hg.MaxPool2d(2),
    hg.Flatten(),
    hg.Dense(16 * 4 * 4, 2, rng=rng),
)
trainer = hg.Trainer(
    model, hg.losses.CrossEntropy(), hg.optimizers.Adam(lr=3e-3), batch_size=16, progress="off"
)
history = trainer.fit(data, epochs=15)
scores, _ = model.forward(data.x_test[:])
right = np.mean(scores.argmax(axis=1) == data.y_test)
print(f"{right:.1%} of pictures that it has not seen")
assert right > 0.9

# %% [markdown]
# ## Sequences of different lengths
#
# A list of arrays (steps, features), here waves that rise or fall in frequency, 20 to 60 steps
# long. `Sequences` keeps them one after the other; a batch is padded to its longest, and the
# network stops each one at its own end.


# %%
def wave(rises):
    steps = rng.integers(20, 61)
    time = np.linspace(0, 1, steps) if rises else np.linspace(1, 0, steps)
    phase = rng.uniform(0, 2 * np.pi)
    return np.sin(phase + 25 * time**2)[:, None] + rng.normal(0, 0.2, (steps, 1))


y = rng.integers(0, 2, 400)
waves = [wave(rises) for rises in y]
lengths = [len(each) for each in waves]
x = hg.data.Sequences(np.concatenate(waves).astype(np.float32), np.array(lengths))

# %%
model = hg.SequenceClassifier(1, 24, 2, rng=rng, cell="gru", bidirectional=True)
trainer = hg.Trainer(
    model, hg.losses.CrossEntropy(), hg.optimizers.Adam(lr=5e-3), batch_size=32, progress="off"
)
train, test = np.arange(300), np.arange(300, 400)
values = np.concatenate([waves[i] for i in train]).astype(np.float32)
history = trainer.fit(
    hg.data.Labelled(hg.data.Sequences(values, x.lengths[train]), y[train]), epochs=20
)

# %%
scores, _ = model.forward(*x[test])
right = np.mean(scores.argmax(axis=1) == y[test])
print(f"{right:.1%} of waves that it has not heard")
assert right > 0.9
