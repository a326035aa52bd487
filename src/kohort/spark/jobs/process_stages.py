"""From a processor as it was compiled to the stage that runs it."""

from __future__ import annotations

import pyarrow as pa
from pyspark.sql import types as T  # noqa: N812

from kohort.spark.internals import arrow_schema
from kohort.spark.jobs.processors.as_of_join import AsOfJoinProcessor
from kohort.spark.jobs.processors.dedupe import DedupeProcessor, DedupeWithinProcessor
from kohort.spark.jobs.processors.foreign_key_join import AnswersProcessor, ResultsProcessor, SubscriptionsProcessor
from kohort.spark.jobs.processors.interface import Processor
from kohort.spark.jobs.processors.latest import LatestProcessor
from kohort.spark.jobs.processors.sessions import SessionsProcessor
from kohort.spark.jobs.processors.sliding import SlidingProcessor
from kohort.spark.jobs.processors.stream_join import StreamJoinProcessor
from kohort.spark.jobs.processors.stream_table_join import StreamTableJoinProcessor
from kohort.spark.jobs.processors.table_changes import TableChangesProcessor
from kohort.spark.jobs.processors.table_join import TableJoinProcessor
from kohort.spark.jobs.processors.top import TopProcessor
from kohort.spark.jobs.processors.user_function import UserFunctionProcessor
from kohort.spark.jobs.stages.process import ProcessStage, StageState
from kohort.spark.program.operations import Dedupe, Latest, Sessions, StreamJoin, TableChanges, Top, UserFunction
from kohort.spark.program.processor_specs import Operation, Process, StateSpec
from kohort.spark.program.sliding_windows import Slide
from kohort.spark.program.table_operations import (
    AsOfJoin,
    ForeignKeyAnswers,
    ForeignKeyResults,
    ForeignKeySubscriptions,
    StreamTableJoin,
    TableJoin,
)


def process_stage_of(step: Process, *, shared: bool = False) -> ProcessStage:
    """The stage of a step. `shared`: several branches go on from it."""
    return ProcessStage(
        step.name,
        _processor(step.operation, step),
        step.group_names,
        arrow_schema(step.rows),
        arrow_schema(step.output),
        tuple(map(_state, step.states)),
        shared,
        step.in_place,
    )


def _processor(operation: Operation, step: Process) -> Processor:
    match operation:
        case UserFunction():
            seen = [state for state in step.states if not state.own]
            kinds = {state.name: state.kind.value for state in seen}
            ttls = {state.name: (state.ttl_ms, state.ttl_by_clock) for state in seen if state.ttl_ms}
            group = arrow_schema(T.StructType([T.StructField(name, kind) for name, kind in step.group]))
            output = arrow_schema(step.output)
            outputs = tuple((name, arrow_schema(schema)) for name, schema in operation.outputs)
            return UserFunctionProcessor(step.name, operation.function, kinds, group, output, ttls, outputs)
        case StreamJoin():
            return StreamJoinProcessor(operation, arrow_schema(step.output))
        case Slide():
            return SlidingProcessor(operation, step.group_names)
        case Sessions():
            return SessionsProcessor(operation, step.group_names, arrow_schema(step.output))
        case TableChanges(pairs):
            return TableChangesProcessor(step.group_names, pairs)
        case TableJoin():
            return TableJoinProcessor(operation, arrow_schema(step.output))
        case StreamTableJoin():
            return StreamTableJoinProcessor(operation, arrow_schema(step.output))
        case AsOfJoin():
            return AsOfJoinProcessor(operation, arrow_schema(step.output))
        case ForeignKeySubscriptions():
            return SubscriptionsProcessor(operation, arrow_schema(step.output))
        case ForeignKeyAnswers():
            return AnswersProcessor(operation, arrow_schema(step.output))
        case ForeignKeyResults():
            return ResultsProcessor(operation, arrow_schema(step.output))
        case Dedupe(within_ms):
            return DedupeProcessor() if within_ms is None else DedupeWithinProcessor(within_ms)
        case Latest(by, earliest):
            return LatestProcessor(by, earliest)
        case Top(n, by, descending, window, tied):
            return TopProcessor(n, by, descending, step.group_names, window, tied)
    raise TypeError(f"no processor does {operation!r}")


def _state(state: StateSpec) -> StageState:
    empty = pa.schema([])
    return StageState(
        state.name,
        state.store,
        arrow_schema(state.columns),
        empty if state.map_key is None else arrow_schema(state.map_key),
        state.bucket_ms,
    )
