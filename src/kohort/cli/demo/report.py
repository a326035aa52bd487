"""The report at the end: the verdict, numbers, charts, and what to try next."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from rich.padding import Padding
from rich.text import Text

from kohort.cli.client.tables import table
from kohort.cli.demo.charts.delays import draw_delays
from kohort.cli.demo.charts.instances import draw_instances
from kohort.cli.demo.compare import Groups
from kohort.cli.demo.console import LagChart, TaskLine
from kohort.cli.demo.instances import Instance
from kohort.cli.demo.page import write_page
from kohort.cli.demo.plan import SETTINGS, Plan, program
from kohort.cli.demo.timeline import Timeline
from kohort.cli.terminal import out
from kohort.spark.monitoring.journal_analysis import read_journals

_SHOWN: Final = 10
"""Differences that are printed."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """The result of a run.

    Attributes:
        killed: when the first instance was killed, in seconds since 1970.
        stream: the groups in the application's topics.
        differences: from the batch job's.
        took: seconds since the start.
        lag: the lag over time, as the console has drawn it; None without it.
        console: where the group's page is, if the console goes on.
        tasks: the tasks over time, as the console has drawn them; None without it.
    """

    plan: Plan
    servers: str
    instances: Sequence[Instance]
    killed: float | None
    stream: Mapping[str, Groups]
    differences: Sequence[str]
    took: float
    lag: LagChart | None = None
    console: str | None = None
    tasks: TaskLine | None = None

    @property
    def verdict(self) -> str:
        groups = sum(map(len, self.stream.values()))
        if self.differences:
            return f"stream and batch differ: {len(self.differences):,} times in {groups:,} groups"
        return f"stream and batch are equal: {groups:,} groups compared"


def print_report(outcome: Outcome) -> int:
    """Prints the report, draws the charts, writes the page, and returns the exit code."""
    good = not outcome.differences
    out.print(Text(f"   {outcome.verdict}", style="bold green" if good else "bold red"))
    for each in outcome.differences[:_SHOWN]:
        out.print(Text(f"   {each}"))
    if len(outcome.differences) > _SHOWN:
        out.print(f"   and {len(outcome.differences) - _SHOWN:,} more")
    killed = {} if outcome.killed is None else {outcome.instances[0].name: outcome.killed}
    timeline = Timeline(read_journals(*(each.journal for each in outcome.instances)), killed)
    facts = _facts(timeline, outcome)
    out.print(Padding(table(("What", ">How much"), facts), (0, 0, 0, 3), expand=False))
    directory = outcome.plan.directory
    delays = draw_delays(outcome.stream["delays-by-hour"], outcome.stream["delays-by-sky"], directory / "delays.png")
    instances = draw_instances(timeline, directory / "instances.png")
    page = write_page(
        directory / "demo.html",
        verdict=outcome.verdict[0].upper() + outcome.verdict[1:] + ".",
        good=good,
        facts=facts,
        charts=[
            (delays, "Mean delay by day and hour, by hour and airport, and by weather"),
            (
                instances,
                "Flights a second by instance, and which instance had which task, with the kill and the takeover",
            ),
        ],
        program=program(),
        lag=outcome.lag,
        console=outcome.console,
        tasks=outcome.tasks,
    )
    for name, file in (("Delays", delays), ("Instances", instances), ("Both, and the program", page)):
        out.print(Text(f"   {name}: {file}"), soft_wrap=True)
    out.print(f"   all in {outcome.took:.0f} s")
    return 0 if good else 1


def print_next_steps(outcome: Outcome) -> None:
    """Prints commands to try while broker and instance go on."""
    host, port = outcome.instances[1].endpoint
    page = f"http://{host}:{port}"
    third = outcome.plan.run / "instance-3"
    installed = Path(sys.executable).with_name("kohort")
    kohort = installed if installed.exists() else "kohort"
    window = max((key[0] for key in outcome.stream["delays-by-hour"] if key[1] == "JFK"), default="")[:-5] + "Z"
    out.print("\n[bold magenta]Broker and instance-2 go on, until Ctrl-C. In another terminal:[/]")
    for what, command in (
        ("one more instance: it gets its share of the tasks when it has restored their state",
         f"{sys.executable} {program()} {outcome.servers} --master 'local[1]' --state-dir {third}"
         f" --endpoint {host}:0"),
        *([] if outcome.console is None else [("the group in a browser", f"xdg-open '{outcome.console}'")]),
        ("the group", f"{kohort} groups describe flight-delays -b {outcome.servers} --watch"),
        ("a group's delays, from the store of the instance that has it", f"curl {page}/stores/delays/JFK@{window}"),
        ("all stores, and metrics", f"curl {page}/stores {page}/metrics"),
        ("the result as it is written", f"{kohort} consume delays-by-sky -b {outcome.servers} --from-beginning"),
    ):  # fmt: skip
        out.print(Text.assemble(f"   # {what}\n   ", (command, "bold")), soft_wrap=True)


def _facts(timeline: Timeline, outcome: Outcome) -> list[tuple[str, str]]:
    spent = timeline.ended - timeline.began
    facts = [
        ("Records of flights", f"{timeline.flights:,}"),
        ("Left out, by each branch of the program", _counts(timeline.left_out)),
        ("Throughput, mean", f"{timeline.flights / spent:,.0f} flights/s"),
        ("Throughput, best second", f"{max(timeline.throughput.total):,.0f} flights/s"),
    ]
    pauses = timeline.takeovers()
    if pauses:
        session = float(str(SETTINGS["group.streams.session.timeout.ms"])) / 1000
        worst = max(pauses.values())
        facts.append((f"Pause that the kill caused (session timeout: {session:g} s)", f"{worst:.1f} s"))
        promotions = timeline.journals.promotions(since=min(timeline.kills.values()))
        if promoted := [seconds for task, seconds in promotions.items() if task in pauses]:
            facts.append(("Of that, until a standby ran as the task", f"{max(promoted):.2f} s"))
    wait = timeline.longest_wait()
    if wait is not None:
        facts.append(("Longest wait of a task that stayed", f"{wait:.1f} s"))
    return facts


def _counts(left_out: Mapping[str, int]) -> str:
    return ", ".join(f"{count:,} {reason}" for reason, count in sorted(left_out.items())) or "nothing"
