"""Records of type 23 in `__consumer_offsets`: streams group topology."""

from __future__ import annotations

from kohort.protocol.message import Data
from kohort.protocol.schema import Struct, array, int16, int32, string


class TopicConfig(Struct):
    """One setting of an internal topic."""

    key: str = string("Name of the topic setting, e.g. cleanup.policy.")
    value: str = string("What to set it to, as text.")


class TopicInfo(Struct):
    """An internal topic that the application needs."""

    name: str = string("Name of the internal topic.")
    partitions: int = int32("How many partitions it must have; 0 = derived, as ever for changelogs.")
    replication_factor: int = int16("Replicas of each partition; 0 = the broker's default.")
    topic_configs: list[TopicConfig] = array(TopicConfig, "Settings to create the topic with.")


class StreamsGroupTopologyKey(Data, key=23, versions="0"):
    """Key: the topology that a streams group runs."""

    group_id: str = string("Id of the streams group.")


class StreamsGroupTopologyValue(Data, key=23, versions="0", flexible=0):
    """Value: a streams application's subtopologies, with the topics they read, write and keep state in."""

    class Subtopology(Struct):
        """One part of the application, which runs as one task per partition."""

        class CopartitionGroup(Struct):
            """Sources that must be partitioned alike, given by their positions."""

            source_topics: tuple[int, ...] = array(int16, "Positions in the subtopology's SourceTopics, from 0.")
            source_topic_regex: tuple[int, ...] = array(
                int16, "Positions in the subtopology's SourceTopicRegex, from 0."
            )
            repartition_source_topics: tuple[int, ...] = array(
                int16, "Positions in the subtopology's RepartitionSourceTopics, from 0."
            )

        subtopology_id: str = string("Name of the subtopology, unique in this topology.")
        source_topics: tuple[str, ...] = array(string, "Names of the users' topics that it reads.")
        source_topic_regex: tuple[str, ...] = array(string, "Patterns for names of users' topics that it reads.")
        state_changelog_topics: list[TopicInfo] = array(TopicInfo, "Internal topics that back up its state stores.")
        repartition_sink_topics: tuple[str, ...] = array(
            string, "Names of internal topics it writes to for other subtopologies to read."
        )
        repartition_source_topics: list[TopicInfo] = array(
            TopicInfo, "Internal topics it reads, written by other subtopologies."
        )
        copartition_groups: list[CopartitionGroup] = array(
            CopartitionGroup, "Sets of sources that must have equally many partitions."
        )

    epoch: int = int32("Topology epoch, raised when the application's topology changes.")
    subtopologies: list[Subtopology] = array(
        Subtopology, "Parts of the application that share no task with each other."
    )
