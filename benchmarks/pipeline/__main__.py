"""Kohort beside Structured Streaming, Kafka Streams and quixstreams: the same flights, the same broker, in one run.

    make bench-pipeline
    python -m benchmarks.pipeline --replays 1 --seconds 10 --only throughput --contenders kohort structured

Each counts delays by origin and hour (count, mean, worst, and the 90th percentile where it can), one after the other,
in processes of its own; an independent consumer reads what is committed. All have the defaults of their makers but for
what a program here says; results are compared with a batch over the same flights.
"""

from __future__ import annotations

import argparse
import json
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from importlib.util import find_spec
from pathlib import Path

from rich.console import Console

from benchmarks.pipeline import figures
from benchmarks.pipeline import flights as data
from benchmarks.pipeline.contenders import CONTENDERS, Contender, connector, environment
from benchmarks.pipeline.figures import Found
from benchmarks.pipeline.measures import BROKER_SETTINGS, Bench
from kohort.spark.serving.journals import read_journals
from kohort.testing import BrokerProcess

MEASURES = ("throughput", "latency", "pause", "epochs", "reading")
ROUNDS = 3


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.pipeline", description=__doc__.partition("\n")[0])
    names = [contender.name for contender in CONTENDERS]
    parser.add_argument("--replays", type=float, default=10, help="how often the year's flights are there")
    parser.add_argument("--records", type=int, help="instead of replays")
    parser.add_argument("--rate", type=int, default=5_000, help="the steady rate, records a second")
    parser.add_argument("--seconds", type=int, default=30, help="how long the steady rate is measured")
    parser.add_argument("--only", nargs="+", choices=MEASURES, default=MEASURES, metavar="MEASURE")
    parser.add_argument("--contenders", nargs="+", choices=names, default=names, metavar="NAME")
    parser.add_argument("--json", type=Path, help="write the figures to this file, too")
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # as with Ctrl+C, nothing is left behind
    console = Console(width=None if Console().is_terminal else 160)
    contenders = []
    for contender in CONTENDERS:
        if contender.name in options.contenders:
            if missing := contender.missing():
                console.print(f"without {contender.title}: {missing}")
            else:
                contenders.append(contender)
    with (
        console.status("") as status,
        tempfile.TemporaryDirectory(prefix="kohort-bench-", ignore_cleanup_errors=True) as directory,
    ):
        for contender in contenders:
            status.update(f"fetching what {contender.title} needs")
            contender.prepare()
        status.update("reading the flights")
        flights = data.load()
        records = options.records or int(options.replays * flights.num_rows)
        with BrokerProcess(BROKER_SETTINGS) as broker:
            bench = Bench(broker, flights, Path(directory), options.rate, status.update)
            found = {contender.name: Found() for contender in contenders}
            for measure in options.only:
                if measure in ("epochs", "reading"):
                    continue
                for contender in contenders:
                    _measure(bench, measure, contender, records, options.seconds, found[contender.name], console)
            ours = [one for one in contenders if one.name == "kohort" and "epochs" in options.only]
            costs = [bench.epochs(one) for one in ours]
            read = reading(bench, contenders, records, status.update) if "reading" in options.only else {}
        logs = sorted(Path(directory).glob("kohort-*/kohort-*.jsonl"), key=lambda path: path.stat().st_ctime)
        if set(options.only) - {"epochs", "reading"}:
            console.print(figures.table(found, contenders, options.rate))
            for contender in contenders:
                for remark in contender.remarks:
                    console.print(f"  {remark}")
        if "throughput" in options.only and logs:
            console.print(figures.epochs(read_journals(logs[0])))
        for cost in costs:
            console.print(figures.costs(cost))
        if read:
            console.print(figures.reading(read))
    if options.json:
        options.json.write_text(
            json.dumps({"contenders": found, "epochs": costs, "reading": read}, default=vars, indent=2)
        )
    if any(one.failures for one in found.values()):
        sys.exit(1)


def _measure(
    bench: Bench, measure: str, contender: Contender, records: int, seconds: int, found: Found, console: Console
) -> None:
    """Measure one thing of one contender; one that fails doesn't keep the others from being measured."""
    try:
        if measure == "throughput":
            found.throughput = bench.throughput(contender, int(records * contender.share))
        elif measure == "latency":
            found.latency = bench.latency(contender, seconds)
        else:
            found.pause = bench.pause(contender, seconds)
    except (RuntimeError, TimeoutError) as error:
        found.failures.append(str(error))
        console.print(f"[red]{contender.title}, {measure}:[/] {error}", markup=True)
        return
    taken = getattr(found, measure)
    for difference in taken.differences[:5]:
        console.print(f"[red]{contender.title}, {measure}:[/] {difference}")


def reading(
    bench: Bench, contenders: Sequence[Contender], records: int, say: Callable[[str], None]
) -> dict[str, dict[str, object]]:
    """The read path alone, by data source."""
    sources = {}
    wanted = {contender.name for contender in contenders}
    if "kohort" in wanted and find_spec("pyspark_kohort"):
        sources["kohort"] = ""
    if "structured" in wanted:
        sources["kafka"] = connector()
    found = {}
    topic = bench.filled(records)
    for source, jars in sources.items():
        say(f"reading {records:,} records: {source}")
        command = [sys.executable, "-m", "benchmarks.pipeline.reading", source, bench.broker.bootstrap_servers, topic]
        done = subprocess.run([*command, str(ROUNDS), jars], capture_output=True, text=True, env=environment())
        if done.returncode:
            raise RuntimeError(f"reading with {source}:\n{done.stderr[-4000:]}")
        found[source] = json.loads(done.stdout.splitlines()[-1])
    return found


if __name__ == "__main__":
    main()
