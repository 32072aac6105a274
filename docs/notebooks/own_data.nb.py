# %% [markdown]
# # Your own data
#
# A table, a folder of pictures, a list of sequences: how each gets into a network, is trained,
# saved, loaded again, and answers on what is new. The data here are made up, so that the notebook
# runs anywhere; put the names of your files in their place.

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
# Arrays, lists or pandas frames: a row is an example, and beside it stands its class, by name.
# Here three kinds of flowers, by two lengths and two widths in millimetres.

# %%
MEANS = {"rose": (50, 34, 15, 3), "tulip": (59, 28, 43, 13), "lily": (66, 30, 55, 20)}
kinds = [kind for kind in MEANS for _ in range(200)]
flowers = np.array([rng.normal(MEANS[kind], (4, 3, 4, 2)).round(1) for kind in kinds], np.float32)

# %% [markdown]
# Three statements. A tenth of the flowers is set aside to judge the training on. The columns are
# of different sizes, so each is taken to mean 0 and deviation 1; the numbers for that come from
# the rest and stay with the model. Sizes of inputs follow from the data, and the loss from the
# classes.

# %%
model = hg.Sequential(hg.Dense(None, 32, activation="relu"), hg.Dense(None, 3), seed=0)
trainer = hg.Trainer(model, lr=0.01, preprocessing="standardize", progress="off")
history = trainer.fit(flowers, kinds, epochs=10, validation_split=0.1)
history

# %% [markdown]
# One file holds weights, preprocessing and names of classes. It names layers and settings and no
# code, so that opening a stranger's is safe.

# %%
trainer.trained.save(folder / "flowers.safetensors")

loaded = hg.load(folder / "flowers.safetensors")
measured = [[60.0, 29.0, 45.0, 14.0], [49.0, 35.0, 16.0, 2.0]]
answers = loaded.predict(measured)
print(answers)
assert list(answers) == ["tulip", "rose"]

# %%
new = np.array([rng.normal(MEANS[kind], (4, 3, 4, 2)) for kind in kinds[::10]], np.float32)
found = loaded.evaluate(new, kinds[::10])
print(found)
assert found["accuracy"] > 0.9

# %% [markdown]
# ## The same from a file
#
# A CSV as a spreadsheet writes it: a line of names, and the class in the column named `label`, or
# in the last. A fifth of each class becomes the test part, which nothing is learned from.

# %%
with (folder / "flowers.csv").open("w", newline="") as file:
    rows = csv.writer(file)
    rows.writerow(["sepal length", "sepal width", "petal length", "petal width", "kind"])
    rows.writerows([*values, kind] for values, kind in zip(flowers, kinds, strict=True))

data = hg.data.load("flowers", folder / "flowers.csv")
print(data.classes, data.x_train.shape, data.x_test.shape)

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
    hg.Conv2d(None, 8, 3, padding=1, activation="relu"),
    hg.MaxPool2d(2),
    hg.Conv2d(None, 16, 3, padding=1, activation="relu"),
    hg.MaxPool2d(2),
    hg.Flatten(),
    hg.Dense(None, 2),
    seed=0,
)
trainer = hg.Trainer(model, lr=3e-3, batch_size=16, progress="off")
history = trainer.fit(data, epochs=15)
found = trainer.trained.evaluate(data.x_test, data.y_test)
print(found)
assert found["accuracy"] > 0.9

# %% [markdown]
# ## Sequences of different lengths
#
# A list of arrays (steps, features), here waves that rise or fall in frequency, 20 to 60 steps
# long. A batch is padded to its longest, and the network stops each one at its own end.


# %%
def wave(kind):
    steps = rng.integers(20, 61)
    time = np.linspace(0, 1, steps) if kind == "rising" else np.linspace(1, 0, steps)
    phase = rng.uniform(0, 2 * np.pi)
    return np.sin(phase + 25 * time**2)[:, None] + rng.normal(0, 0.2, (steps, 1))


heard = [str(kind) for kind in rng.choice(["rising", "falling"], 400)]
waves = [wave(kind).astype(np.float32) for kind in heard]

# %%
model = hg.SequenceClassifier(1, 24, 2, rng=rng, cell="gru", bidirectional=True)
trainer = hg.Trainer(model, lr=5e-3, batch_size=32, progress="off")
history = trainer.fit(waves[:300], heard[:300], epochs=20)
found = trainer.trained.evaluate(waves[300:], heard[300:])
print(found)
assert found["accuracy"] > 0.9

# %%
print(trainer.trained.predict([wave("rising").astype(np.float32)]))
