"""Where what somebody types as a command is, if it is another command's."""

from __future__ import annotations

from typing import Any, Final

from typer.core import TyperGroup

from kohort.cli.terminal import fail

__all__ = ["ELSEWHERE", "Commands"]

ELSEWHERE: Final = {
    "lag": "kohort groups offsets GROUP shows it; kohort groups describe GROUP, with the group's members",
    "offsets": "kohort groups offsets GROUP shows a group's; kohort topics describe TOPIC, where a topic ends",
    "members": "kohort groups members GROUP shows them",
    "reset-offsets": "it is kohort groups reset-offsets GROUP",
    "brokers": "kohort cluster shows them",
    "partitions": "kohort topics describe TOPIC shows them",
}
"""Commands that are looked for and aren't there, with a sentence of which it is."""


class Commands(TyperGroup):
    """All commands; of one that isn't there it says which it is, where `ELSEWHERE` has it."""

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        name = args[0]
        if name in ELSEWHERE and not ctx.resilient_parsing:
            fail(f"there is no command {name!r}; {ELSEWHERE[name]}")
        return super().resolve_command(ctx, args)
