"""Names of PyTorch, Keras and scikit-learn, and what to write in handgrad where one uses them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

#: Names of modules, classes and functions, without case and underscores.
NAMES: Final = {
    **dict.fromkeys(("nn", "keras"), "hg.layers, whose classes are hg.Dense, hg.Conv2d, ..."),
    **dict.fromkeys(("optim", "optimiser", "optimisers"), "hg.optimizers"),
    **dict.fromkeys(("datasets", "dataset"), "hg.data.load(name)"),
    "functional": "hg.ops",
    **dict.fromkeys(("linear", "lazylinear", "fullyconnected"), "hg.Dense"),
    **dict.fromkeys(("module", "model"), "hg.layers.Layer"),
    **dict.fromkeys(("batchnorm1d", "batchnorm2d", "batchnormalization"), "hg.BatchNorm"),
    "layernormalization": "hg.LayerNorm",
    "groupnormalization": "hg.GroupNorm",
    "simplernn": "hg.RNN",
    **dict.fromkeys(("maxpooling2d", "maxpool"), "hg.MaxPool2d"),
    "maxpooling1d": "hg.MaxPool1d",
    **dict.fromkeys(("averagepooling2d", "avgpool"), "hg.AvgPool2d"),
    "averagepooling1d": "hg.AvgPool1d",
    **dict.fromkeys(("globalaveragepooling2d", "adaptiveavgpool2d"), 'hg.AvgPool2d("global")'),
    **dict.fromkeys(("globalaveragepooling1d", "adaptiveavgpool1d"), 'hg.AvgPool1d("global")'),
    **dict.fromkeys(("dropout1d", "dropout2d"), "hg.Dropout"),
    "multiheadattention": "hg.MultiHeadAttention",
    **{
        name: f'hg.Activation("{name}")'
        for name in ("relu", "tanh", "sigmoid", "gelu", "silu", "erf", "sin")
    },
    "leakyrelu": 'hg.Activation("leaky_relu")',
    "softmax": "hg.ops.softmax, or hg.losses.CrossEntropy, which has it inside",
    "identity": "hg.Sequential()",
    "input": "nothing: the first layer has the size of the input",
    **dict.fromkeys(
        ("crossentropyloss", "categoricalcrossentropy", "sparsecategoricalcrossentropy", "nllloss"),
        "hg.losses.CrossEntropy",
    ),
    **dict.fromkeys(("mseloss", "meansquarederror", "mse"), "hg.losses.SquaredError"),
    **dict.fromkeys(("bceloss", "bcewithlogitsloss"), "hg.losses.BinaryCrossEntropy"),
    **dict.fromkeys(("tensor", "array", "parameter"), "an array of NumPy, in np.float32"),
    **dict.fromkeys(("manualseed", "seed"), "rng=np.random.default_rng(0) of the layers"),
    **dict.fromkeys(("nograd", "inferencemode"), "y = model(x), which keeps nothing for backward"),
    **dict.fromkeys(("dataloader", "tensordataset", "fit"), "hg.Trainer, which makes the batches"),
    **dict.fromkeys(("traintestsplit", "randomsplit"), "hg.data.split_dataset"),
    **dict.fromkeys(("gradcheck", "checkgrad"), "hg.check"),
    **dict.fromkeys(("lrscheduler", "schedules", "schedulers"), "hg.optimizers.Cosine and others"),
    **{
        f"{name}{end}": f"hg.initializers.{own}_{end}"
        for name, own in (("glorot", "xavier"), ("kaiming", "he"))
        for end in ("uniform", "normal")
    },
    **dict.fromkeys(("grad", "autograd", "variable"), "dx, gradients = model.backward(dy, cache)"),
    "savemodel": "hg.save(model, path), and hg.load(path) to read it",
    **dict.fromkeys(("loadmodel", "fromfile"), "hg.load(path)"),
    **dict.fromkeys(("predict", "predictproba"), "hg.load(path).predict(x)"),
    "clipgradnorm": "hg.optimizers.clip_by_global_norm",
}

#: Arguments of constructors, with those of the same meaning here.
ARGUMENTS: Final[Mapping[str, tuple[str, ...]]] = {
    "learning_rate": ("lr",),
    "beta_1": ("betas",),
    "decay": ("weight_decay", "schedule"),
    "units": ("out_features", "hidden_size"),
    "filters": ("out_channels",),
    "input_dim": ("in_features", "input_size", "tokens"),
    "output_dim": ("out_features", "features"),
    "input_shape": ("in_features", "in_channels", "input_size"),
    "hidden_dim": ("hidden_size", "hidden"),
    "num_embeddings": ("tokens",),
    "embedding_dim": ("features",),
    "num_features": ("features", "channels"),
    "normalized_shape": ("features",),
    "pool_size": ("kernel_size",),
    "strides": ("stride",),
    "use_bias": ("bias",),
    "rate": ("p",),
    "epsilon": ("eps",),
    "kernel_initializer": ("initializer",),
    **dict.fromkeys(("seed", "random_state", "generator"), ("rng", "seed")),
    **dict.fromkeys(("criterion", "loss_fn", "loss_function"), ("loss",)),
    "num_epochs": ("epochs",),
}

#: Arguments that belong to another call, by the call and the argument.
CALLS: Final[Mapping[tuple[str, str], str]] = {
    **{
        ("Trainer", name): f"trainer.fit(x, y, {name}=...)"
        for name in ("epochs", "validation_split", "validation_data")
    },
    **{
        ("Trainer.fit", name): f"hg.Trainer(model, {name}=...)"
        for name in ("batch_size", "callbacks", "loss", "optimizer", "lr", "seed", "out")
    },
    ("Trainer.fit", "verbose"): 'hg.Trainer(model, progress="off")',
}

_NO_MODE = "model.forward(x, training=True) to train, model(x) to use it"
_NO_DEVICE = "nothing: handgrad computes on the CPU"
_WEIGHTS = "model.parameters and model.buffers, dictionaries of arrays"

#: Methods and attributes of models.
OF_LAYERS: Final[Mapping[str, str]] = {
    **dict.fromkeys(
        ("fit", "train_on_batch", "compile", "partial_fit"),
        "hg.Trainer(model).fit(x, y, epochs=5)",
    ),
    **dict.fromkeys(("predict", "predict_proba", "apply", "call"), "y = model(x)"),
    "load": "hg.load(path) for all of it, model.load_weights(path) for the weights",
    "init": "model.build(input_shape, seed=0)",
    **dict.fromkeys(("train", "eval", "training"), _NO_MODE),
    **dict.fromkeys(("to", "cuda", "cpu"), _NO_DEVICE),
    **dict.fromkeys(("float", "double", "half"), "dtype=np.float32 where the layers are made"),
    "zero_grad": "nothing: backward returns new gradients and adds to none",
    **dict.fromkeys(("grad", "grads"), "dx, gradients = model.backward(dy, cache)"),
    **dict.fromkeys(
        ("state_dict", "get_weights", "weights", "trainable_variables", "trainable_weights"),
        _WEIGHTS,
    ),
    "named_parameters": "model.parameters.items()",
    **dict.fromkeys(("load_state_dict", "set_weights"), "model.update_parameters(weights)"),
    **dict.fromkeys(("modules", "children", "named_children"), "model.layers, a dictionary"),
    **dict.fromkeys(("add", "append", "add_module"), "hg.Sequential(*layers) with all of them"),
    **dict.fromkeys(("count_params", "num_parameters"), "model.summary()"),
}

#: Methods and attributes of trainers.
OF_TRAINERS: Final[Mapping[str, str]] = {
    "train": "trainer.fit(x, y, epochs=5)",
    **dict.fromkeys(("predict", "predict_proba"), "trainer.trained.predict(x)"),
    **dict.fromkeys(("evaluate", "score"), "trainer.trained.evaluate(x, y)"),
    **dict.fromkeys(("save", "save_model"), "trainer.trained.save(path)"),
    **dict.fromkeys(("parameters", "gradients"), "trainer.fit(...) first, which builds the model"),
}

_STEP = "optimizer.step(model.parameters, gradients)"

#: Methods and attributes of optimizers.
OF_OPTIMIZERS: Final[Mapping[str, str]] = {
    "zero_grad": "nothing: backward returns new gradients and adds to none",
    **dict.fromkeys(("apply_gradients", "minimize", "update_parameters"), _STEP),
    **dict.fromkeys(("learning_rate", "param_groups"), "optimizer.lr"),
    **dict.fromkeys(("state_dict", "get_config"), "optimizer.state"),
    "load_state_dict": "optimizer.load_state(state)",
}

#: Attributes of data sets.
OF_DATASETS: Final[Mapping[str, str]] = {
    **dict.fromkeys(
        ("x", "data", "images", "features", "train", "train_data"),
        "data.x_train and data.x_test, of which [:] is an array",
    ),
    **dict.fromkeys(("y", "target", "targets", "labels"), "data.y_train and data.y_test"),
    **dict.fromkeys(("target_names", "class_names"), "data.classes"),
    "shape": "data.x_train.shape",
}
