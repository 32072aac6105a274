"""A model as a table: its layers, their outputs and their parameters."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from handgrad.calls import constructor_of
from handgrad.layers.construction import Shape
from handgrad.printing import call_text, html, terminal_text

if TYPE_CHECKING:
    from rich.table import Table


class Row(NamedTuple):
    """One line of a summary: sizes are per example, a multiply-add is 2 FLOPs.

    Without the shape of an example there is no `output_shape`, and `flops` are 0.
    """

    name: str
    layer: str
    output_shape: Shape | None
    parameters: int
    flops: int


@dataclass(frozen=True, repr=False)
class Summary:
    """What `Layer.summary` returns; printed, or at the end of a notebook's cell, it is a table.

    `parameter_bytes` is the memory that all parameters take, `trained` how many numbers of them are
    not frozen.
    """

    model: str
    input_shape: Shape | None
    rows: tuple[Row, ...]
    parameter_bytes: int
    trained: int

    @property
    def parameters(self) -> int:
        """The numbers of all parameters."""
        return sum(row.parameters for row in self.rows)

    @property
    def flops(self) -> int:
        """Floating-point operations of forward for one example; 0 without its shape."""
        return sum(row.flops for row in self.rows)

    def __repr__(self) -> str:
        return terminal_text(self)

    def _repr_html_(self) -> str:
        return html(self)

    def __rich__(self) -> Table:
        from rich.table import Table

        table = Table(title=self.model, title_justify="left", title_style="bold", show_footer=True)
        known = self.input_shape is not None
        table.add_column("name", footer="total")
        table.add_column("layer", footer=f"input {self.input_shape}" if known else "")
        if known:
            table.add_column("output shape")
        table.add_column("parameters", justify="right", footer=f"{self.parameters:,}")
        if known:
            table.add_column("FLOPs", justify="right", footer=f"{self.flops:,}")
        for row in self.rows:
            shape, flops = ([str(row.output_shape)], [f"{row.flops:,}"]) if known else ([], [])
            table.add_row(row.name, row.layer, *shape, f"{row.parameters:,}", *flops)
        frozen = f"; {self.trained:,} are trained" if self.trained < self.parameters else ""
        table.caption = f"{self.parameter_bytes:,} bytes of parameters{frozen}"
        return table


def layer_text(kind: type, settings: dict[str, Any]) -> str:
    """The call of the constructor that makes a layer, without generators."""
    positional: list[Any] = []
    for name, parameter in constructor_of(kind).parameters.items():
        if parameter.kind is parameter.VAR_POSITIONAL:
            positional += settings.pop(f"*{name}", ())
        elif parameter.kind is parameter.KEYWORD_ONLY or name not in settings:
            break
        elif parameter.default is parameter.empty:
            positional.append(settings.pop(name))
    children = [each for each in (*positional, *settings.values()) if hasattr(each, "backward")]
    return call_text(kind.__name__, positional, settings, in_lines=len(children) > 1)
