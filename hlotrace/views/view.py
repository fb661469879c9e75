"""What a view is: a name, the question it answers, its parameters, and a function from tables to blocks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, Protocol

from hlotrace.errors import HlotraceError, unknown_name

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

    from hlotrace.bundle import Manifest
    from hlotrace.views.blocks import Block


class Tables(Protocol):
    """What a view reads: the declared tables by name, where they came from, and the manifest where there is one."""

    @property
    def path(self) -> str:
        """What was opened, as the user wrote it: it stands in the commands that views suggest."""

    @property
    def manifest(self) -> Manifest | None:
        """What the capture says of itself; None for a raw dump."""

    @property
    def traces(self) -> tuple[str, ...]:
        """The profiler's traces that are there; known without reading them."""

    def __getitem__(self, name: str, /) -> pd.DataFrame:
        """A declared table; an empty frame with its columns where there is nothing."""

    def arrow(self, name: str, columns: Sequence[str] | None = None) -> pa.Table:
        """A declared table as pyarrow has it, or some of its columns."""

    def select(self, module: str) -> Tables:
        """The same tables with the rows of one module only."""


@dataclass(frozen=True)
class Parameter:
    """One parameter of a view, the same in the command line, in the app's URL and from Python.

    Attributes:
        default: None means that the view chooses (the largest module, the peak).
        choices: the values it may have; empty when they depend on the data or are free.
    """

    name: str
    dtype: Literal["string", "int"]
    help: str
    default: str | int | None = None
    choices: tuple[str, ...] = ()

    def convert(self, value: object) -> str | int | None:
        """The value in the parameter's type.

        Raises:
            HlotraceError: it is no number, or not among the choices.
        """
        if value is None or value == "":
            return self.default
        if self.choices and str(value) not in self.choices:
            raise unknown_name(f"value of --{self.option}", str(value), self.choices)
        if self.dtype == "string":
            return str(value)
        try:
            return int(str(value))
        except ValueError:
            raise HlotraceError(f"expected a whole number, found {value!r}", place=f"--{self.option}") from None

    @property
    def option(self) -> str:
        """Its name as a command-line option, without the dashes in front."""
        return self.name.replace("_", "-")


@dataclass(frozen=True)
class View:
    """One question and how it is answered."""

    name: str
    title: str
    question: str
    parameters: tuple[Parameter, ...]
    draw: Callable[..., list[Block]]

    def build(self, tables: Tables, **values: Any) -> list[Block]:
        """The blocks that answer the question; parameters not given take their defaults.

        Raises:
            HlotraceError: a parameter that this view does not have, or a value it cannot take.
        """
        known = {parameter.name: parameter for parameter in self.parameters}
        for name in values:
            if name not in known:
                raise unknown_name(f"parameter of the view {self.name}", name, known)
        arguments = {name: parameter.convert(values.get(name)) for name, parameter in known.items()}
        return self.draw(tables, **arguments)


MODULE = Parameter("module", "string", "the module to look at; the largest when not given")
TOP = Parameter("top", "int", "how many rows to show; 0 shows all", default=20)
