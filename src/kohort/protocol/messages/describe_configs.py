"""DescribeConfigs: API 32."""

from __future__ import annotations

from kohort.protocol.message import Request, Response
from kohort.protocol.schema import Struct, array, boolean, int8, int16, int32, string


class DescribeConfigsRequest(Request, key=32, versions="1-4", flexible=4):
    """Reads the settings of topics, brokers, loggers, groups or metrics subscriptions.

    - v1: IncludeSynonyms
    - v2: same layout; brokers answer first and throttle afterwards
    - v3: IncludeDocumentation
    - v4: flexible
    """

    class Resource(Struct):
        resource_type: int = int8("2 topic, 4 broker, 8 broker logger, 16 client metrics, 32 group.")
        resource_name: str = string("Topic, group or metrics subscription name, or broker id in text.")
        configuration_keys: tuple[str, ...] | None = array(
            string, "Settings wanted; null or none = all of them.", nullable=True, default=()
        )

    resources: list[Resource] = array(Resource, "Things whose settings are wanted.")
    include_synonyms: bool = boolean("Whether to list where else each setting could come from.")
    include_documentation: bool = boolean("Whether to send the help text of each setting.", since=3)


class DescribeConfigsResponse(Response, key=32, versions="1-4", flexible=4):
    """The settings in force for each resource, with where they come from.

    - v1: ConfigSource and Synonyms, instead of a mark for defaults
    - v3: ConfigType and Documentation
    - v4: flexible
    """

    class Result(Struct):
        class Config(Struct):
            class Synonym(Struct):
                """One place the setting may come from."""

                name: str = string("Key under which the candidate is set.")
                value: str | None = string(
                    "Value the candidate gives; null if it is secret or unset.", nullable=True, default=""
                )
                source: int = int8("1 topic, 2 broker, 3 all brokers, 4 file, 5 default, 6 logger, 7 metrics, 8 group.")

            name: str = string("Key of the setting, as in retention.ms.")
            value: str | None = string(
                "Value in force, as text; null if it is secret or unset.", nullable=True, default=""
            )
            read_only: bool = boolean("Whether it can not be changed while the broker runs.")
            config_source: int = int8(
                "1 topic, 2 broker, 3 all brokers, 4 file, 5 default, 6 logger, 7 metrics, 8 group.",
                default=-1,
                ignorable=True,
            )
            is_sensitive: bool = boolean("Whether it is a secret, whose value brokers withhold.")
            synonyms: list[Synonym] = array(
                Synonym, "Candidates for the value, the strongest first; empty unless asked for.", ignorable=True
            )
            config_type: int = int8(
                "1 bool, 2 string, 3 int, 4 short, 5 long, 6 double, 7 list, 8 class, 9 password.",
                since=3,
                ignorable=True,
            )
            documentation: str | None = string(
                "Help text of the setting; null unless asked for.", since=3, nullable=True, default="", ignorable=True
            )

        error_code: int = int16("0, or why this resource's settings cannot be read.")
        error_message: str | None = string(
            "Why they cannot be read, for people; null on success.", nullable=True, default=""
        )
        resource_type: int = int8("2 topic, 4 broker, 8 broker logger, 16 client metrics, 32 group.")
        resource_name: str = string("Topic, group or metrics subscription name, or broker id in text.")
        configs: list[Config] = array(Config, "The settings that were asked for.")

    throttle_time_ms: int = int32("How long the broker held the request back for a quota, in ms.")
    results: list[Result] = array(Result, "Answers, one per resource of the request.")
