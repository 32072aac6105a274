"""Files that PyTorch writes: `python -m tests.onnx.files.make`, with torch, onnx and onnxscript.

Each model is written by both of PyTorch's exporters, the one that traces (`-traced`) and the one on
torch.export. Weights are small random numbers, so that the files are small too.
"""

from __future__ import annotations

import warnings
from pathlib import Path

import onnx
import torch
from torch import nn

FOLDER = Path(__file__).parent


class Last(nn.Module):
    """A recurrent layer, its last step, and a linear one."""

    def __init__(self, kind: type[nn.RNNBase], **settings: object) -> None:
        super().__init__()
        self.recurrent = kind(3, 4, batch_first=True, **settings)
        self.head = nn.Linear(4 * (1 + self.recurrent.bidirectional), 2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y, _ = self.recurrent(x)
        return self.head(y[:, -1])


class Steps(Last):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y, _ = self.recurrent(x)
        return self.head(y)


class State(Last):
    """A recurrent layer and its last state, taken as `how` says, with a linear layer behind."""

    def __init__(self, kind: type[nn.RNNBase], how: str, **settings: object) -> None:
        super().__init__(kind, **settings)
        self.how = how

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        _, h = self.recurrent(x)
        h = h[0] if isinstance(h, tuple) else h
        taken = {
            "last": lambda: h[-1],
            "squeezed": lambda: h.squeeze(0),
            "both": lambda: torch.cat((h[-2], h[-1]), -1),
            "flat": lambda: h.transpose(0, 1).flatten(1),
        }
        return self.head(taken[self.how]())


#: Ways to take the last state, and the settings of the layer.
STATES = {
    "last": ("last", {}),
    "last-of-2": ("last", {"num_layers": 2}),
    "squeezed": ("squeezed", {}),
    "both": ("both", {"bidirectional": True}),
    "both-of-2": ("both", {"bidirectional": True, "num_layers": 2}),
    "flat": ("flat", {"bidirectional": True}),
}


class Pooled(Last):
    """A recurrent layer and the mean, the maximum or the last of its steps, time anywhere."""

    def __init__(self, kind: type[nn.RNNBase], how: str, *, time_first: bool, **settings: object):
        super().__init__(kind, **settings)
        self.recurrent.batch_first = not time_first
        self.how = how

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y, _ = self.recurrent(x)
        time = int(self.recurrent.batch_first)
        taken = {
            "mean": lambda: y.mean(time),
            "max": lambda: y.max(time).values,
            "last": lambda: y.select(time, -1),
            "all": lambda: y,
        }
        return self.head(taken[self.how]())


#: What is taken of the steps, whether time stands first, and the settings of the layer.
POOLED = {
    "lstm-mean": (nn.LSTM, "mean", False, {}),
    "gru-max": (nn.GRU, "max", False, {"bidirectional": True}),
    "rnn-mean": (nn.RNN, "mean", False, {}),
    "lstm-last-time-first": (nn.LSTM, "last", True, {}),
    "gru-all-time-first": (nn.GRU, "all", True, {"bidirectional": True, "num_layers": 2}),
    "rnn-max-time-first": (nn.RNN, "max", True, {"bidirectional": True}),
}
#: Versions of the standard's operators for each exporter, in turn; the newer one begins at 18.
TRACED, EXPORTED = (15, 16, 17, 18, 19, 20), (18, 19, 20, 21)


def states() -> dict[str, tuple[nn.Module, int, int]]:
    """Models of last states, with the versions that both exporters write."""
    kinds = {"lstm": nn.LSTM, "gru": nn.GRU, "rnn": nn.RNN}
    return {
        f"{kind}-state-{name}": (
            State(kinds[kind], how, **settings),
            TRACED[i % len(TRACED)],
            EXPORTED[i % len(EXPORTED)],
        )
        for kind in kinds
        for i, (name, (how, settings)) in enumerate(STATES.items())
    }


def sized() -> dict[str, nn.Module]:
    """Models whose files take batches of one size, as both exporters write without a word."""
    return {
        "lstm-sized": Last(nn.LSTM),
        "gru-sized": Steps(nn.GRU, bidirectional=True, num_layers=2),
        "rnn-sized": Steps(nn.RNN, bidirectional=True, num_layers=2),
    }


def models() -> dict[str, tuple[nn.Module, torch.Tensor]]:
    image, row, sequence = torch.randn(2, 2, 8, 9), torch.randn(2, 5), torch.randn(2, 7, 3)
    return {
        "mlp": (
            nn.Sequential(
                nn.Linear(5, 6), nn.GELU(), nn.Linear(6, 4, bias=False), nn.SiLU(), nn.Linear(4, 3)
            ),
            row,
        ),
        "cnn": (
            nn.Sequential(
                nn.Conv2d(2, 3, 3, padding=1),
                nn.BatchNorm2d(3),
                nn.ReLU(),
                nn.MaxPool2d(2),
                nn.Conv2d(3, 4, (3, 2), stride=2, padding=(1, 0)),
                nn.LeakyReLU(0.2),
                nn.Dropout(0.5),
                nn.Flatten(),
                nn.Linear(16, 3),
                nn.Softmax(dim=1),
            ),
            image,
        ),
        "pooled": (
            nn.Sequential(
                nn.ConvTranspose2d(2, 3, 3, stride=2, padding=1, output_padding=1),
                nn.Tanh(),
                nn.AvgPool2d(2),
                nn.Conv2d(3, 4, 3, groups=1, dilation=2),
                nn.AdaptiveAvgPool2d(1),
                nn.Flatten(),
                nn.Linear(4, 2),
                nn.Sigmoid(),
            ),
            image,
        ),
        "lstm": (Last(nn.LSTM), sequence),
        "lstm-steps": (Steps(nn.LSTM, bidirectional=True, num_layers=2), sequence),
        "gru": (Steps(nn.GRU, bidirectional=True), sequence),
        "rnn": (Last(nn.RNN, nonlinearity="relu", bias=False), sequence),
        "rows": (nn.Sequential(nn.LayerNorm(5), nn.Linear(5, 2)), row),
        "tokens": (
            nn.Sequential(nn.Embedding(7, 4), nn.Linear(4, 2)),
            torch.randint(0, 7, (2, 5)),
        ),
    }


def main() -> None:
    torch.manual_seed(0)
    for name, (model, x) in models().items():
        write(name, model, x)
    sequence = torch.randn(2, 7, 3)
    for name, (model, traced, exported) in states().items():
        write(name, model, sequence, traced, exported)
    for name, model in sized().items():
        write(name, model, sequence, any_batch=False)
    for name, (kind, how, time_first, settings) in POOLED.items():
        model = Pooled(kind, how, time_first=time_first, **settings)
        x = sequence.swapaxes(0, 1) if time_first else sequence
        write(name, model, x, batch_axis=int(time_first))
    for path in FOLDER.glob("*.onnx"):
        strip(path)


def write(
    name: str,
    model: nn.Module,
    x: torch.Tensor,
    traced: int | None = None,
    exported: int | None = None,
    *,
    any_batch: bool = True,
    batch_axis: int = 0,
) -> None:
    """The files of both exporters, in these versions; any_batch: for batches of any size."""
    model.eval()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.onnx.export(
            model,
            (x,),
            FOLDER / f"{name}-traced.onnx",
            dynamo=False,
            input_names=["x"],
            dynamic_axes={"x": {batch_axis: "batch"}} if any_batch else None,
            opset_version=traced,
        )
        torch.onnx.export(
            model,
            (x,),
            FOLDER / f"{name}.onnx",
            dynamo=True,
            external_data=False,
            input_names=["x"],
            dynamic_shapes=({batch_axis: torch.export.Dim("batch")},) if any_batch else None,
            opset_version=exported,
            verbose=False,
        )


def strip(path: Path) -> None:
    """Leave out what says where the program was that wrote the file."""
    proto = onnx.load(path)
    for each in (
        *proto.graph.node,
        *proto.graph.value_info,
        *proto.graph.input,
        *proto.graph.output,
    ):
        each.ClearField("metadata_props")
        each.ClearField("doc_string")
    for each in (proto, proto.graph):
        each.ClearField("metadata_props")
    onnx.save(proto, path)


if __name__ == "__main__":
    main()
