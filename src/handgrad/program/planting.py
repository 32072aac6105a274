"""A function with one edit made in it: a wrong backward out of a right one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from handgrad.program.edits import Edit, same_edit
from handgrad.program.recorder import Recorder
from handgrad.program.running import Execution


class Planted:
    """The function, which makes the edit in every run of it.

    Where a run has no such edit, as another branch was taken, it gives the function's own results.
    """

    def __init__(self, function: Callable[..., Any], edit: Edit) -> None:
        self.function = function
        self.edit = edit

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        program = Recorder().run(self.function, *args, **kwargs)
        run = Execution(program)
        edit = same_edit(program, self.edit)
        if edit is None:
            return run.value(program.result)
        results = edit.results(run)
        return results if isinstance(program.result, tuple) else results[0]
