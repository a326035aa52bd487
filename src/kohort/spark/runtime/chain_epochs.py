"""The epochs of a chain: what is read next, who merges, how far tasks are, what is tried again. Pure.

The states that they go through: `epoch_states`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Final

from kohort.client.types import OffsetAndMetadata, TopicPartition
from kohort.spark.epoch import EpochInput, EpochStatistics, Mergers, OffsetRange
from kohort.spark.monitoring.events import STREAM
from kohort.spark.program.committed_metadata import Fingerprint, metadata
from kohort.spark.runtime.chain import Chain
from kohort.spark.runtime.clock_timers import NO_TIMERS, DueTimers
from kohort.spark.runtime.effects import Effect, Epoch, ForEpochs
from kohort.spark.runtime.epoch_limit import EpochLimit, LimitSettings
from kohort.spark.runtime.epoch_planning import EpochPlan, PollRound, lag
from kohort.spark.runtime.epoch_states import TRANSITIONS, EpochEffect, EpochEvent, EpochState
from kohort.spark.runtime.local_task import LocalTask
from kohort.spark.runtime.subtopology_plan import TopicOutput
from kohort.spark.runtime.task_states import TaskEvent, TaskState
from kohort.spark.runtime.window_closing import later
from kohort.streams.tasks import TaskId

ATTEMPTS: Final = 3
"""After so many epochs in a row that failed with a task in them, the application stops."""
_BACK_OFF_S: Final = (0.0, 0.5, 2.0)
_GATHER_S: Final = 0.5
_UNSEEN_S: Final = 0.5
_SHORT_S: Final = 15.0
_LITTLE: Final = 20_000
_HELD_S: Final = 1.0
_RESEND_S: Final = (0.05, 1.0)  # the first pause, and the longest
_GETS_ON: Final = frozenset(
    {EpochEvent.READY, EpochEvent.COMMITTED, EpochEvent.NOTHING, EpochEvent.NO_TASKS, EpochEvent.ABORTED}
)


class ChainEpochs:
    """Runs the epochs of a chain's active tasks.

    Args:
        program: its fingerprint, which is committed beside offsets.
        limits: how large epochs may be.
        move: moves a task.
        effects: takes what is to be done.

    Attributes:
        tasks: those of the chain that the instance has.
        state: see `epoch_states`.
        operation: the number of the effect that is under way, or was last.
        epoch: the one that is under way.
        why, why_since: why it doesn't get on, and the number of the event that said so.
        changes: how often that has changed.
        stopped, stopped_in: why the application stops, if it does here, and in which subtopology.
        ends, ends_at: where the inputs ended when somebody looked last, and when that was (s since 1970).
    """

    def __init__(
        self,
        chain: Chain,
        program: Fingerprint,
        limits: LimitSettings,
        move: Callable[[LocalTask, TaskEvent], None],
        effects: list[Effect],
    ) -> None:
        self.chain = chain
        self.tasks: dict[TaskId, LocalTask] = {}
        self.state = EpochState.IDLE
        self.operation = 0
        self.epoch: Epoch | None = None
        self.why: str | None = None
        self.why_since = 0
        self.changes = 0
        self.stopped: str | None = None
        self.stopped_in = chain.id
        self.ends: Mapping[TopicPartition, int] = {}
        self.ends_at = 0.0
        self._program, self._move, self._effects = program, move, effects
        self._limits = {name: EpochLimit(limits) for name in chain.subtopologies}
        self._round: PollRound | None = None
        self._partitions: Mapping[str, int] = {}
        self._has_read = False  # in this round
        self._numbers = dict.fromkeys(chain.subtopologies, 0)
        self._short_since: float | None = None
        self._seconds = 0.0
        self._look_is_old = False
        self._held_since: float | None = None
        self._looked_at, self._look = 0.0, 0
        self._clock = self._epoch_ms = 0  # when it was looked, and the last epoch's time, in ms since 1970

    # What is known -----------------------------------------------------------------------------------------------

    @property
    def running(self) -> tuple[TaskId, ...]:
        """The tasks that the next epoch takes in."""
        return tuple(sorted(task.id for task in self.tasks.values() if task.state is TaskState.RUNNING))

    def positions(self) -> dict[TopicPartition, int]:
        """Where the tasks that run, or are in an epoch, read on."""
        return {partition: at for task in self.tasks.values() for partition, at in task.positions.items()}

    def lag(self, subtopology: str) -> int:
        """Records that a subtopology's tasks have left to read, as far as that is known."""
        topics = self.chain.inputs[subtopology].topics
        return lag({at: position for at, position in self.positions().items() if at.topic in topics}, self.ends)

    @property
    def unsettled(self) -> set[TopicPartition]:
        """Partitions of which it has to be known how much is written, so that what comes after it can be merged."""
        return {
            TopicPartition(output.topic, task.id.partition)
            for name in self.chain.subtopologies
            for output in self.chain.mergeable(name).values()
            for task in self._mergers(output)
            if task.merges_from is None
        }

    # What happens ------------------------------------------------------------------------------------------------

    def happened(self, event: EpochEvent, why: str | None = None, number: int = 0) -> None:
        """An event of the table. `why` says what went wrong, `number` that of the event."""
        found = TRANSITIONS.get((self.state, event))
        if found is None:
            return
        if event is EpochEvent.FAILED and (stop := self._failed(why)) is not None:
            self.happened(EpochEvent.STOP, stop, number)
            return
        effects, self.state = found
        if why is not None:
            said = f"an epoch of subtopology {self._subtopology} failed: {why}" if event is EpochEvent.FAILED else why
            self.why_since = number if self.why is None else self.why_since
            self._say(said)
        elif event in _GETS_ON:
            self._say(None)
        if event in (EpochEvent.UNSEEN, EpochEvent.NO_TASKS):
            self._short_since = None
        for effect in effects:
            self._emit(effect, event, why)
        self._after(event, why)

    def ends_read(self, ends: Mapping[TopicPartition, int], at: float) -> None:
        """The inputs ended there at that time (s since 1970)."""
        self.ends, self.ends_at = ends, at

    def restored(self, task: LocalTask) -> None:
        """A task is about to run: those that merge its rows first have to read what was made before it came here."""
        task.merges_from = None
        mergers = {output.merged_by for output in self.chain.mergeable(task.id.subtopology).values()}
        for other in self.tasks.values():
            if other.id.subtopology in mergers:
                other.merges_from = None
        self._look_is_old = True

    def looked(
        self,
        ends: Mapping[TopicPartition, int],
        written: Mapping[TopicPartition, int],
        partitions: Mapping[str, int],
        now: float,
        number: int,
        due: DueTimers = NO_TIMERS,
    ) -> None:
        """It is known where the inputs end, and of how many partitions those topics consist where that matters.

        Args:
            written: how much is written of those that were `unsettled`, with what isn't decided yet.
            now: seconds, of a clock that doesn't jump.
            due: the tasks with timers that are due, and the time of the day.
        """
        if self.state is not EpochState.LOOKING:
            return
        if (short := self._short(ends)) is not None:
            self._short_since = now if self._short_since is None else self._short_since
            if now - self._short_since <= _SHORT_S:
                self.happened(EpochEvent.SHORT, short, number)
            else:
                self.happened(
                    EpochEvent.STOP,
                    f"{short}: the topic was deleted and created again, or has lost records. Reset the group's offsets"
                    " and delete its internal topics",
                    number,
                )
            return
        self._short_since = None
        if not self._look_is_old:
            for task in self.tasks.values():
                at = TopicPartition(self.chain.inputs[task.id.subtopology].stream or "", task.id.partition)
                if task.merges_from is None:
                    task.merges_from = written.get(at)
        self._round, self._partitions, self._has_read = PollRound(self.chain.inputs, ends, due.tasks), partitions, False
        self._clock = due.now
        self._looked_at, self._look = now, number
        self._continue_round()

    def _continue_round(self) -> None:
        running = self.running
        if not running:
            self.happened(EpochEvent.NO_TASKS)
            return
        plan = None
        held: str | None = None

        def is_held(plan: EpochPlan) -> bool:
            nonlocal held
            held = self._uneven(plan) or self._held_by(plan)
            return held is not None

        if self._round is not None:
            until = {partition: end for task in running for partition, end in self.tasks[task].until.items()}
            plan = self._round.next(
                self.positions(), running, lambda name: self._limits[name].records, until=until, held=is_held
            )
        if plan is not None:
            self._has_read = True
            self.epoch = self._planned(replace(plan, mergers=self._merging(plan)))
            self.happened(EpochEvent.READY)
        else:
            self.happened(EpochEvent.ROUND_OVER if self._has_read else EpochEvent.NOTHING, held, self._look)

    def _uneven(self, plan: EpochPlan) -> str | None:
        """Why topics that are joined aren't read: in one that has grown, keys lead to other partitions."""
        counts = {each.topic: self._partitions.get(each.topic, 0) for each in plan.ranges}
        if len(set(counts.values())) == 1:
            return None
        listed = " and ".join(f"{topic} has {count}" for topic, count in sorted(counts.items()))
        return f"topics that are joined need equally many partitions, but {listed}"

    def _planned(self, plan: EpochPlan) -> Epoch:
        self._numbers[plan.subtopology] += 1
        times = {task.partition: self.tasks[task].stream_time for task in plan.tasks}
        known = {partition: at for partition, at in times.items() if at is not None}
        topic = plan.ranges[0].topic
        of_topic = self._partitions.get(topic, 0) if topic in self.chain.placed else 0
        table = None if plan.input == STREAM else plan.input
        outputs = self.chain.mergeable(plan.subtopology)
        mergers = {
            number: Mergers(
                self._partitions[outputs[number].topic],
                {task.partition: self.tasks[task].stream_time for task in tasks},
            )
            for number, tasks in plan.mergers.items()
        }
        self._epoch_ms = max(self._clock, self._epoch_ms + 1)
        number = self._numbers[plan.subtopology]
        epoch_input = EpochInput(number, plan.ranges, known, of_topic, mergers, self._epoch_ms)
        return Epoch(plan, epoch_input, table, times, begun=self._begun(plan, times) if table is None else {})

    def _begun(self, plan: EpochPlan, times: Mapping[int, int | None]) -> dict[TopicPartition, OffsetAndMetadata]:
        """What is committed before an epoch whose rows go to functions: where their batches begin, and until where."""
        if not self.chain.subtopologies[plan.subtopology].calls:
            return {}
        return {
            TopicPartition(each.topic, each.partition): OffsetAndMetadata(
                each.start, metadata=self._metadata(plan.task_of(each), each, times[each.partition], each.end)
            )
            for each in plan.ranges
        }

    def _metadata(
        self, task: TaskId, at: OffsetRange | TopicPartition, time: int | None, until: int | None = None
    ) -> str:
        formats = self.tasks[task].formats.get(TopicPartition(at.topic, at.partition))
        return metadata(time, self._program, until, formats)

    # Merging at once ---------------------------------------------------------------------------------------------
    #
    # What a stream's rows become for a task that runs here goes around the repartition topic. Rows of a key must not
    # overtake each other on the two ways. So a task merges at once only when it has read all that was written to its
    # partition (be that decided or not) since somebody made rows that went there and may have come before these: this
    # instance itself, or the one that had the rows' task before.

    def _mergers(self, output: TopicOutput) -> list[LocalTask]:
        """The tasks that run here and may merge such rows."""
        tasks = sorted(self.tasks.values(), key=lambda task: task.id)
        return [task for task in tasks if task.id.subtopology == output.merged_by and task.state is TaskState.RUNNING]

    def _merging(self, plan: EpochPlan) -> dict[int, tuple[TaskId, ...]]:
        """Who merges rows of an epoch at once, by branch. Others' rows go to the topic, and they have to read those."""
        if plan.input != STREAM:
            return {}
        merging: dict[int, tuple[TaskId, ...]] = {}
        for number, output in self.chain.mergeable(plan.subtopology).items():
            known = self._partitions.get(output.topic, 0)
            ready = [
                task
                for task in self._mergers(output)
                if known and self._behind(task, output) == 0 and not self._is_outrun(task, output)
            ]
            if ready:
                merging[number] = tuple(task.id for task in ready)
            for task in self.tasks.values():
                if task.id.subtopology == output.merged_by and task not in ready:
                    task.merges_from = None
        return merging

    def _behind(self, task: LocalTask, output: TopicOutput) -> int | None:
        """How much a task has to read before it may merge at once; None: that isn't known."""
        if task.merges_from is None:
            return None
        return max(0, task.merges_from - task.positions[TopicPartition(output.topic, task.id.partition)])

    def _is_outrun(self, task: LocalTask, output: TopicOutput) -> bool:
        """Whether what waits in the topic would come late after what is merged at once, which moves stream time on."""
        windows = self.chain.merged_into(output).windows
        if windows is None or windows.grace is None:
            return False
        at = TopicPartition(output.topic, task.id.partition)
        return self.ends.get(at, 0) - task.positions[at] > _LITTLE

    def _held_by(self, plan: EpochPlan) -> str | None:
        """Why a stream waits: for tasks that could merge its rows at once, but for a little that they must read first.

        Not for long: what they have to read may be part of a transaction whose instance hangs.
        """
        behind = {
            TopicPartition(output.topic, task.id.partition): self._behind(task, output)
            for output in self.chain.mergeable(plan.subtopology).values()
            for task in self._mergers(output)
        }
        waits = [at for at, left in behind.items() if left is None or 0 < left <= _LITTLE]
        if plan.input != STREAM or not waits:
            self._held_since = None
            return None
        self._held_since = self._looked_at if self._held_since is None else self._held_since
        if self._looked_at - self._held_since >= _HELD_S:
            return None
        return f"subtopology {plan.subtopology} waits until what was written to {waits[0]} is merged"

    def job_done(self, statistics: EpochStatistics) -> None:
        """The epoch's job is done, and its rows can be sent."""
        epoch = self.epoch
        if self.state is not EpochState.IN_JOB or epoch is None:
            return
        epoch.statistics = statistics
        if epoch.table is None:
            epoch.stream_times = {
                partition: later(before, statistics.max_times.get(partition))
                for partition, before in epoch.stream_times.items()
            }
        epoch.offsets = {
            TopicPartition(each.topic, each.partition): OffsetAndMetadata(
                each.end,
                metadata=self._metadata(epoch.plan.task_of(each), each, epoch.stream_times[each.partition]),
            )
            for each in epoch.plan.ranges
        }
        for number, times in statistics.merged_times.items():
            self._merged(epoch, number, times)
        self.happened(EpochEvent.JOB_DONE)

    def _merged(self, epoch: Epoch, number: int, times: Mapping[int, int | None]) -> None:
        """Some tasks have merged a branch's rows: their offsets are committed too, though they have read nothing.

        So an instance that has been fenced can't commit what it merged, and one that takes such a task over waits for
        a transaction in which it has merged (KIP-447).
        """
        output, before = self.chain.mergeable(epoch.plan.subtopology)[number], epoch.epoch_input.mergers[number]
        offsets = dict(epoch.offsets or {})
        after = {partition: later(before.stream_times[partition], time) for partition, time in times.items()}
        for partition, time in after.items():
            at = TopicPartition(output.topic, partition)
            task = self.tasks[TaskId(output.merged_by or "", partition)]
            offsets[at] = OffsetAndMetadata(task.positions[at], metadata=self._metadata(task.id, at, time))
        epoch.offsets, epoch.merger_times[number] = offsets, after

    def stored(self, took_ms: float) -> None:
        """The epoch is committed and in the stores; it took so long."""
        epoch = self.epoch
        if self.state is not EpochState.STORING or epoch is None or epoch.statistics is None:
            return
        for each in epoch.plan.ranges:
            task = self.tasks[epoch.plan.task_of(each)]
            at = TopicPartition(each.topic, each.partition)
            task.positions[at] = each.end
            task.until.pop(at, None)
            task.stream_time, task.failures = epoch.stream_times[each.partition], 0
        for number, tasks in epoch.plan.mergers.items():
            times = epoch.merger_times.get(number, {})
            for task_id in tasks:
                if task_id.partition in times:
                    self.tasks[task_id].stream_time = times[task_id.partition]
        statistics = epoch.statistics
        limit = self._limits[epoch.plan.subtopology]
        limit.took(took_ms, epoch.epoch_input.length, statistics.records, statistics.bytes)
        self.happened(EpochEvent.STORED)

    def _after(self, event: EpochEvent, why: str | None) -> None:
        """What follows from a move, beside its effects."""
        match event:
            case EpochEvent.READY:
                self._seconds = _RESEND_S[0]
                self._move_all(TaskEvent.EPOCH_BEGUN)
            case EpochEvent.JOB_DONE:
                self._move_all(TaskEvent.JOB_DONE)
            case EpochEvent.STORED:
                self._move_all(TaskEvent.COMMITTED)
                self.epoch = None
                self._continue_round()
            case EpochEvent.ABORTED | EpochEvent.CLOSED:
                self._round = None
                self._move_all(TaskEvent.EPOCH_FAILED)
                self.epoch = None
            case EpochEvent.STOP:
                self.stopped = why
                self.stopped_in = self.chain.id if self.epoch is None else self.epoch.plan.subtopology
                self._move_all(TaskEvent.EPOCH_FAILED)
        self.tasks_moved()

    def tasks_moved(self) -> None:
        """Tasks of the chain have moved, or it has come to rest."""
        if self.state is EpochState.IDLE and self.running:
            self.happened(EpochEvent.RUNNABLE)
        elif self.state in (EpochState.IDLE, EpochState.GATHERING) and not any(
            task.is_to_run for task in self.tasks.values()
        ):
            if self.state is EpochState.IDLE:
                self._say(None)  # the tasks that waited for it have gone
            self.happened(EpochEvent.GATHERED)

    def _say(self, why: str | None) -> None:
        if why != self.why:
            self.why = why
            self.changes += 1

    # Decisions ---------------------------------------------------------------------------------------------------

    def _emit(self, effect: EpochEffect, event: EpochEvent, why: str | None) -> None:
        if effect is EpochEffect.LOOK:
            if not self.running:
                self.happened(EpochEvent.NO_TASKS)
                return
            self._look_is_old = False
        if effect not in (EpochEffect.REPORT, EpochEffect.STOP):
            self.operation += 1
        self._effects.append(
            ForEpochs(
                effect, self.chain.id, self.operation, seconds=self._pause(effect, event), epoch=self.epoch,
                why=(why or "") if effect is EpochEffect.STOP else "",
            )
        )  # fmt: skip

    def _pause(self, effect: EpochEffect, event: EpochEvent) -> float:
        match effect:
            case EpochEffect.GATHER:
                return _GATHER_S
            case EpochEffect.PAUSE if event is EpochEvent.UNSEEN:
                return _UNSEEN_S
            case EpochEffect.SEND_LATER:
                pause, self._seconds = self._seconds, min(2 * self._seconds, _RESEND_S[1])
                return pause
            case EpochEffect.BACK_OFF:
                return _BACK_OFF_S[max(task.failures for task in self._readers())]
        return 0.0

    def _failed(self, why: str | None) -> str | None:
        """An epoch failed: counts that; returns why the application stops, if it was once too often."""
        assert self.epoch is not None
        self._limits[self.epoch.plan.subtopology].failed()
        tasks = self._readers()
        for task in tasks:
            task.failures += 1
        if all(task.failures < ATTEMPTS for task in tasks):
            return None
        places = ", ".join(f"{each.topic}-{each.partition}:{each.start}" for each in self.epoch.plan.ranges)
        often = f"failed {ATTEMPTS} times in a row at the same records"
        return f"subtopology {self._subtopology} {often}, from {places}: {why}"

    def _short(self, ends: Mapping[TopicPartition, int]) -> str | None:
        """Which partition doesn't go as far as it was read, if any. A new leader may take a moment to know that."""
        for partition, at in self.positions().items():
            if ends.get(partition, at) < at:
                return f"{partition} ends at offset {ends[partition]}, but the application has read up to {at}"
        begun = {partition: end for task in self.tasks.values() for partition, end in task.until.items()}
        for partition, end in begun.items():
            if ends.get(partition, end) < end:
                return f"{partition} ends at offset {ends[partition]}, but a batch that was begun goes to {end}"
        return None

    def _in_epoch(self) -> list[LocalTask]:
        """The epoch's tasks: none of them goes before the epoch is over."""
        return [] if self.epoch is None else [self.tasks[task] for task in self.epoch.plan.all_tasks]

    def _readers(self) -> list[LocalTask]:
        """Those of the epoch's tasks whose records are read: mergers have nothing to do with its failure."""
        return [] if self.epoch is None else [self.tasks[task] for task in self.epoch.plan.tasks]

    @property
    def _subtopology(self) -> str:
        """Whose epoch is under way."""
        return str(self.chain) if self.epoch is None else self.epoch.plan.subtopology

    def _move_all(self, event: TaskEvent) -> None:
        for task in self._in_epoch():
            self._move(task, event)
