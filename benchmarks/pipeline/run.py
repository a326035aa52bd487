"""A run: one measure after the other. What fails is told, and the others are taken all the same."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.text import Text

from benchmarks import results
from benchmarks.pipeline import figures
from benchmarks.pipeline.cases import Case
from benchmarks.pipeline.contenders import Contender
from benchmarks.pipeline.figures import Found
from benchmarks.pipeline.measures import Bench

SHOWN = 5
"""How many differences from the batch are shown."""


class Run:
    """Measures contenders, and keeps what was found.

    Attributes:
        contenders: who is measured.
        found: so far, by the contender's name.
    """

    def __init__(self, contenders: Sequence[Contender], console: Console) -> None:
        self.found = {contender.name: Found() for contender in contenders}
        self.contenders = contenders
        self._console = console

    def prepare(self, say: Callable[[str], None]) -> None:
        """Fetch what contenders need. One that can't have it isn't measured."""
        for contender in self.contenders:
            say(f"fetching what {contender.title} needs")
            try:
                contender.prepare()
            except Exception as error:
                self._failed(contender, "preparation", error)

    def measure(self, bench: Bench, measures: Sequence[str]) -> None:
        """Take each measure of all that it's for."""
        ready = [contender for contender in self.contenders if not self.found[contender.name].failures]
        for measure in measures:
            for contender in ready:
                if measure in contender.measures:
                    self._take(bench, measure, contender)

    def report(self, case: type[Case[Any]], rate: int, file: Path | None) -> None:
        """Show what was found, and write it to a file, too."""
        try:
            by_row = figures.by_row(self.found, self.contenders)
            results.save(file, {"figures": by_row, "contenders": self.found})
        finally:
            for part in figures.report(self.found, self.contenders, case, rate):
                self._console.print(part)

    @property
    def wrong(self) -> bool:
        """Whether a measure failed, or results weren't the batch's."""
        return any(one.failures or one.differences for one in self.found.values())

    def _take(self, bench: Bench, measure: str, contender: Contender) -> None:
        try:
            taken = getattr(bench, measure)(contender)
            brief = taken.brief
        except Exception as error:
            self._failed(contender, measure, error)
            return
        setattr(self.found[contender.name], measure, taken)
        if not self._console.is_terminal:  # where there is one, it says what goes on, and tables come in the end
            self._tell(f"{contender.title}, {measure}: {brief}")
        for difference in getattr(taken, "differences", [])[:SHOWN]:
            self._tell(f"{contender.title}, {measure}: {difference}", "red")

    def _failed(self, contender: Contender, measure: str, error: Exception) -> None:
        self.found[contender.name].failures.append(f"{measure}: {error!r}")
        self._tell(f"{contender.title}, {measure}: {type(error).__name__}: {error}", "red")

    def _tell(self, text: str, style: str = "") -> None:
        self._console.print(Text(text, style), soft_wrap=True)
