"""StreamsGroupTopologyDescriptionUpdate: API 93."""

from __future__ import annotations

from kohort.protocol.message import Request, Response
from kohort.protocol.schema import Struct, array, int8, int16, int32, string, struct


class Node(Struct):
    """A node of a topology: a source that reads topics, a processor, or a sink that writes to a topic."""

    name: str = string("Name of the node, such as KSTREAM-SOURCE-0000000000.")
    node_type: int = int8("1 = source, 2 = processor, 3 = sink.")
    source_topics: tuple[str, ...] = array(string, "Topics that a source reads; none if a pattern selects them.")
    sink_topic: str | None = string(
        "Topic that a sink writes to; null if each record says.", nullable=True, default=None
    )
    stores: tuple[str, ...] = array(string, "State stores that a processor uses.")
    successors: tuple[str, ...] = array(string, "Names of the nodes that get what this one puts out.")


class GlobalStore(Struct):
    """A store that every instance has in full."""

    source: Node = struct(Node, "The node that reads the store's topic.")
    processor: Node = struct(Node, "The node that fills the store.")


class TopologyDescription(Struct):
    """The nodes of an application's topology, and how they are connected."""

    class Subtopology(Struct):
        subtopology_id: str = string("Name of the subtopology within the application.")
        nodes: list[Node] = array(Node, "Its nodes.")

    subtopologies: list[Subtopology] = array(Subtopology, "The parts of the topology.")
    global_stores: list[GlobalStore] = array(GlobalStore, "Its global stores.")


class StreamsGroupTopologyDescriptionUpdateRequest(Request, key=93, versions="0", flexible=0):
    """A member describes the topology of its streams group, as the coordinator asked it to (KIP-1331)."""

    group_id: str = string("The streams group, which is the application id.")
    member_id: str = string("Id of the member.")
    topology_epoch: int = int32("Epoch of the topology that is described.")
    topology_description: TopologyDescription = struct(TopologyDescription, "The topology.")


class StreamsGroupTopologyDescriptionUpdateResponse(Response, key=93, versions="0", flexible=0):
    """Says whether the description was taken."""

    throttle_time_ms: int = int32("How long the broker held the request back for a quota, in ms.")
    error_code: int = int16("0, or why the description was refused.")
    error_message: str | None = string("Why it was refused, for people; null without an error.", nullable=True)
