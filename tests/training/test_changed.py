"""What changes between the start and the end of a run comes back when it is resumed, or is named.

Every row trains a small program three times: in one go, up to a crash, and on from there. In the
first table the program changes something as it runs; in the second, its text is another one after
the crash.
"""

from __future__ import annotations

import re
import sys
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from handgrad.errors import HandgradWarning, RunError
from handgrad.io.code import acts

PROGRAM = '''
"""A training whose parts are the user's."""
import functools, random
from collections import deque
import numpy as np
import handgrad as hg
import changed_settings as settings

BASE = 0.05
TABLE = {0: 0.05, 1: 0.04, 2: 0.03}
WEIGHTS = np.array([1.0, 2.0], np.float32)
STATE = {"scale": 1.0}
DRAWS = np.random.default_rng(7)
PRINTED = 1

def damped(rate, step):
    """A helper of a helper."""
    return rate / (1 + 0.1 * step)

def helper(step, power=1):
    return damped(BASE, step) ** power

def schedule(step):
    """Rates."""
    return helper(step) * settings.FACTOR * STATE["scale"]

class Scaled(hg.layers.Layer):
    """y = k x."""
    factor = 2.0
    def __init__(self, k):
        self.k = k
        self.seen = 0
    def forward(self, x, *, training=False):
        return x * np.float32(self.k * self.factor), None
    def backward(self, dy, cache, *, gradients=None, input_gradient=True):
        return (dy * np.float32(self.k * self.factor) if input_gradient else None), {}

def squared(difference):
    return difference * difference

class Loss:
    """Mean squares."""
    margin = 0.0
    def __init__(self):
        self.weight = 1.0
    def forward(self, outputs, targets):
        difference = outputs[:, 0] - targets - np.float32(self.margin)
        value = np.float32(self.weight * squared(difference).mean())
        return value, (difference, outputs)
    def backward(self, cache, *, out=None):
        difference, outputs = cache
        gradient = np.zeros_like(outputs)
        gradient[:, 0] = self.weight * 2 * difference / len(difference)
        return gradient

class Halve(hg.training.Callback):
    """Smaller steps from epoch to epoch."""
    power = 2
    def __init__(self, factor=0.5):
        self.factor = factor
        self.logged = []
    def on_epoch(self, trainer, record):
        trainer.optimizer.hyperparameters["momentum"] *= self.factor ** (1 / self.power)
    def on_end(self, trainer):
        self.logged.append(trainer.step)

class Change(hg.training.Callback):
    """Something after every step or epoch."""
    def __init__(self, on_start=None, on_step=None, on_epoch=None):
        self.at = (on_start, on_step, on_epoch)
        self.count, self.average, self.window = 0, None, deque(maxlen=3)
    def on_start(self, trainer):
        if self.at[0]: self.at[0](self, trainer)
    def on_step(self, trainer):
        if self.at[1]: self.at[1](self, trainer)
    def on_epoch(self, trainer, record):
        if self.at[2]: self.at[2](self, trainer)

class CrashError(Exception):
    pass

class Crash(hg.training.Callback):
    """The end of a process."""
    def __init__(self, at):
        self.at, self.steps = at, 0
    def on_step(self, trainer):
        self.steps += PRINTED
        if trainer.step == self.at:
            raise CrashError(trainer.step)

def parts(crash, change):
    g = np.random.default_rng(1)
    model = hg.Sequential(
        hg.Dense(4, 6, activation="relu", rng=g), Scaled(0.5), hg.Dropout(0.25, rng=g),
        hg.Dense(6, 1, rng=g),
    )
    return dict(
        model=model, loss=Loss(), optimizer=hg.optimizers.Momentum(lr=0.05), schedule=schedule,
        batch_size=8, clip_norm=5.0, callbacks=[Crash(crash), Halve(), change],
    )
'''

SETTINGS = "FACTOR = 1.0\nUNUSED = 1\n"


def namespace(text: str, settings: str = SETTINGS) -> Any:
    """A fresh module of the program, and of the settings that it imports."""
    sys.modules["changed_settings"] = found = types.ModuleType("changed_settings")
    exec(settings, found.__dict__)  # the user's program, as another process would have it
    module = types.ModuleType("changed_program")
    exec(compile(text, "changed_program.py", "exec"), module.__dict__)
    return module


@pytest.fixture(autouse=True)
def settings_of_one_program() -> Iterator[None]:
    yield
    sys.modules.pop("changed_settings", None)


def fit(
    module: Any, out: Path, crash: int, *, resume: bool, change: Any = None, **more: Any
) -> Any:
    import handgrad as hg

    rng = np.random.default_rng(0)
    x = rng.normal(size=(48, 4)).astype(np.float32)
    y = x[:, 0] - x[:, 1]
    parts = module.parts(crash, change or module.Change())
    trainer = hg.Trainer(
        **{**parts, **more}, checkpoint_steps=4, out=out, progress="off", checkpoint_every=1e9
    )
    try:
        trainer.fit(x, y, epochs=4, resume=resume)
    except module.CrashError:
        return None
    return trainer


def bits(trainer: Any) -> bytes:
    return bytes(trainer.parameters.buffer.tobytes())


# -- what a run changes as it goes -----------------------------------------------------------------

#: What is done after every epoch, or as the dictionary says, in a text that sees m, c, t: the
#: program's module, the callback and the trainer.
SAME: dict[str, str | dict[str, str]] = {
    "learning rate": {"schedule": "None", "on_epoch": "t.optimizer.lr *= 0.5"},
    "another hyperparameter": "t.optimizer.hyperparameters['momentum'] = 0.8",
    "clipping": "t.clip_norm = 0.1 * (t.epoch + 1)",
    "no clipping": "t.clip_norm = None",
    "batch size": "t.batch_size += 4",
    "accumulate": "t.accumulate = 2",
    "batches of judging": "t.evaluation_batch = 7",
    "a layer's setting": "t.model.layers['2'].p = 0.1 * t.epoch",
    "a layer's setting by steps": {"on_step": "t.model.layers['2'].p *= 0.97"},
    "a setting of an own layer": "t.model.layers['1'].k *= 1.5",
    "an attribute of an own layer that was not there": "t.model.layers['1'].factor = 1.5",
    "the loss": "t.loss.weight *= 0.5",
    "the loss by NumPy's number": "t.loss.weight = np.float32(t.loss.weight * 0.7)",
    "a class's value over the class": "t.loss.margin = 0.1",
    "a global": "m.BASE *= 0.5",
    "a table in a global": {"on_step": "m.STATE['scale'] *= 0.98"},
    "a value of an own module": "m.settings.FACTOR *= 0.5",
    "a generator in a global": "t.optimizer.lr; m.STATE['scale'] = m.DRAWS.random()",
    "NumPy's own random numbers": "m.STATE['scale'] = float(np.random.random())",
    "Python's own random numbers": "m.STATE['scale'] = random.random()",
    "no schedule": "t.schedule = None",
    "what a callback counts": "c.count += 1; t.loss.weight = 1 / c.count",
    "an average of weights": {
        "on_step": "w = t.parameters.buffer\n"
        "c.average = w.copy() if c.average is None else 0.9 * c.average + 0.1 * w\n"
        "w += 0.01 * c.average",
    },
    "a window of losses": {
        "on_step": "c.window.append(float(t.parameters.buffer[0]))\n"
        "t.loss.weight = 1 + abs(sum(c.window))",
    },
    "weights": {"on_step": "t.parameters.buffer[:] *= np.float32(0.99)"},
    "a rate at the start": {"schedule": "None", "on_start": "t.optimizer.lr *= 0.5"},
    "weights at the start": {"on_start": "t.parameters.buffer[:] = np.float32(0.1)"},
    "an object made at the start": {
        "on_start": "c.inner = m.Loss()",
        "on_step": "c.inner.weight *= 0.97; t.loss.weight = c.inner.weight",
    },
    "a set and a tuple": "c.past = getattr(c, 'past', set()) | {(t.epoch, b'x', 1j)}\n"
    "t.loss.weight = 1 / len(c.past)",
    "a number that is not finite": "c.best = min(getattr(c, 'best', float('inf')), float('inf'))\n"
    "t.loss.weight = 0.5 if c.best == float('inf') else 9.0",
    "nothing": "pass",
}

REFUSED: dict[str, tuple[str | dict[str, str], str]] = {
    "another loss": ("t.loss = m.Loss()", "loss"),
    "a value of an own class": ("m.Scaled.factor = 1.5", r"model\.1\.factor"),
    "another optimizer": ("t.optimizer = m.hg.optimizers.Momentum(lr=1.0)", "optimizer"),
    "another layer": ("t.model.layers['1'] = m.Scaled(3.0)\nt.model.layers['1'].z = m", r"model\."),
    "other batches in an epoch": ({"on_step": "t.batch_size = 8 + t.step"}, "batch_size"),
}


def change_of(module: Any, row: str | dict[str, str]) -> tuple[Any, dict[str, Any]]:
    """The callback of a row, and the arguments of the trainer that it sets."""
    import random

    texts = {"on_epoch": row} if isinstance(row, str) else dict(row)
    more = {"schedule": None} if texts.pop("schedule", "") else {}
    space: dict[str, Any] = {"m": module, "np": np, "random": random, "__name__": module.__name__}
    for name, text in texts.items():
        body = "".join(f"    {line}\n" for line in text.splitlines())
        exec(f"def {name}(c, t):\n{body}", space)
    return module.Change(**{name: space[name] for name in texts}), more


def seed() -> None:
    import random

    random.seed(3)
    np.random.seed(3)  # noqa: NPY002  a program may use these


def go(row: str | dict[str, str], out: Path, crash: int, *, resume: bool = False) -> Any:
    module = namespace(PROGRAM)
    seed()
    change, more = change_of(module, row)
    return fit(module, out, crash, resume=resume, change=change, **more)


@pytest.mark.parametrize("name", SAME)
def test_what_a_run_changed_comes_back_with_the_same_bits(tmp_path: Path, name: str) -> None:
    whole = bits(go(SAME[name], tmp_path / "whole", -1))
    if name != "nothing" and name != "batches of judging":
        assert whole != bits(go("pass", tmp_path / "plain", -1))
    out = tmp_path / "stopped"
    assert go(SAME[name], out, 9) is None
    assert go(SAME[name], out, 13, resume=True) is None
    assert bits(go(SAME[name], out, -1, resume=True)) == whole


@pytest.mark.parametrize("name", REFUSED)
def test_what_has_no_form_in_a_checkpoint_is_named(tmp_path: Path, name: str) -> None:
    row, message = REFUSED[name]
    with pytest.warns(HandgradWarning, match=f"the run has changed .*{message}"):
        go(row, tmp_path / "run", 14)
    with pytest.raises(RunError, match=f"the run had changed {message}"):
        go(row, tmp_path / "run", -1, resume=True)


# -- what is another between stop and start --------------------------------------------------------

#: The text before and after, and what is named.
EDITS: dict[str, tuple[str, str, str]] = {
    "a global of the schedule": ("BASE = 0.05", "BASE = 0.06", r"schedule\.globals\.helper\."),
    "a table of the schedule": ('"scale": 1.0', '"scale": 0.9', r"schedule\.globals\.STATE\.scale"),
    "the code of the schedule": ("return helper(step) *", "return 2 * helper(step) *", "schedule"),
    "a helper": ("** power", "** power * 2", r"schedule\.globals\.helper\.code"),
    "a helper's helper": ("0.1 * step", "0.2 * step", r"helper\.globals\.damped\.code"),
    "a helper's default": ("power=1", "power=2", r"schedule\.globals\.helper\.defaults"),
    "an own module": ("FACTOR = 1.0", "FACTOR = 1.5", r"schedule\.globals\.settings\.FACTOR"),
    "a layer's forward": ("return x * np.float32", "return 2 * x * np.float32", r"model\.1\.code"),
    "a layer's backward": ("(dy * np", "(3 * dy * np", r"model\.1\.code\.backward"),
    "a layer's class": ("factor = 2.0", "factor = 3.0", r"model\.1\.factor"),
    "a layer's setting": ("Scaled(0.5)", "Scaled(0.6)", r"model\.1\.k"),
    "a loss's forward": ("targets - np", "targets + np", r"loss\.code\.forward"),
    "a loss's helper": (
        "difference * difference\n",
        "abs(difference)\n",
        r"globals\.squared\.code",
    ),
    "a loss's class": ("margin = 0.0", "margin = 0.1", r"loss\.margin"),
    "a loss's setting": ("self.weight = 1.0", "self.weight = 2.0", r"loss\."),
    "a callback's code": ("(1 / self", "(2 / self", r"callbacks\[1\]\.code\.on_epoch"),
    "a callback's setting": ("factor=0.5", "factor=0.6", r"callbacks\[1\]\.factor"),
    "a callback's class": ("power = 2", "power = 3", r"callbacks\[1\]\.power"),
    "the order of callbacks": ("Halve(), change", "change, Halve()", r"callbacks\[1\]\.type"),
    "a decorated helper": ("def damped", "@functools.cache\ndef damped", ""),
    "batch size": ("batch_size=8", "batch_size=9", "batch_size"),
    "clipping": ("clip_norm=5.0", "clip_norm=4.0", "clip_norm"),
    "dropout": ("Dropout(0.25", "Dropout(0.5", r"model\.2\.p"),
    "learning rate": ("Momentum(lr=0.05)", "Momentum(lr=0.06)", r"optimizer\.lr"),
    "optimizer": ("Momentum(lr", "SGD(lr", r"optimizer\."),
    # These decide nothing, so that the run goes on to the same numbers.
    "documentation": ('"""Rates."""', '"""The rates."""', ""),
    "comments and lines": ("TABLE =", "# more\n\nTABLE =", ""),
    "an unused global": ("TABLE = {0: 0.05", "TABLE = {0: 0.07", ""),
    "an unused name of a module": ("UNUSED = 1", "UNUSED = 2", ""),
    "what a callback only notes": ("append(trainer.step", "append(trainer.epoch", ""),
    "the end of a process": ("raise CrashError(trainer.step)", "raise CrashError", ""),
    "what that reads": ("PRINTED = 1", "PRINTED = 2", ""),
}


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    return bits(fit(namespace(PROGRAM), tmp_path_factory.mktemp("whole") / "run", -1, resume=False))


@pytest.mark.parametrize("name", EDITS)
def test_a_program_that_is_another_is_refused_where_that_decides(
    tmp_path: Path, whole: bytes, name: str
) -> None:
    before, after, message = EDITS[name]
    assert (PROGRAM + SETTINGS).count(before) == 1
    program, settings = PROGRAM.replace(before, after), SETTINGS.replace(before, after)
    assert fit(namespace(PROGRAM), tmp_path / "run", 9, resume=False) is None
    module = namespace(program, settings)
    if message:
        with pytest.raises(RunError, match=rf"{message}.* is .*; allowed: .*, as in the checkp"):
            fit(module, tmp_path / "run", -1, resume=True)
    else:
        assert bits(fit(module, tmp_path / "run", -1, resume=True)) == whole


def test_many_ways_are_tried() -> None:
    assert len(SAME) + len(REFUSED) + len(EDITS) > 60
    names = [re.sub(r"\W", "", name) for name in (*SAME, *REFUSED)]
    assert len(set(names)) == len(names)


class _Looks:
    """Methods of a callback that leave its trainer alone."""

    def compares(self, trainer: Any) -> None:
        if trainer.step == self.at and trainer.replicas.rank == 1:  # type: ignore[attr-defined]
            raise KeyboardInterrupt

    def notes(self, trainer: Any, record: Any) -> None:
        self.count = trainer.epoch
        self.count += 1
        print(trainer.optimizer.lr, record["loss"], trainer.history.epochs[-1])


class _Acts:
    """Methods of a callback that change their trainer, or may."""

    def sets(self, trainer: Any) -> None:
        trainer.optimizer.lr = 0.1

    def multiplies(self, trainer: Any) -> None:
        trainer.batch_size *= 2

    def stops(self, trainer: Any) -> None:
        trainer.stop = True

    def hands_on(self, trainer: Any) -> None:
        fit(trainer, self.step, 1)  # type: ignore[attr-defined,call-arg]

    def hands_a_part_on(self, trainer: Any) -> None:
        np.multiply(trainer.parameters.buffer, 2, out=trainer.parameters.buffer)

    def names(self, trainer: Any) -> None:
        weights = trainer.parameters.buffer
        weights *= 2

    def calls(self, trainer: Any) -> None:
        trainer.load_model_arrays({})

    def shares(self, trainer: Any) -> None:
        print([trainer for _ in range(3)])

    def sets_a_global(self, trainer: Any) -> None:
        global PROGRAM
        PROGRAM = f"{PROGRAM}{trainer.step}"

    def sets_of_another(self, trainer: Any) -> None:
        self.optimizer.lr = trainer.step  # type: ignore[attr-defined]


def test_a_method_that_may_change_the_trainer_is_told_from_one_that_looks() -> None:
    for kind, expected in ((_Looks, False), (_Acts, True)):
        for name, method in vars(kind).items():
            if isinstance(method, types.FunctionType):
                assert acts(method) is expected, name
