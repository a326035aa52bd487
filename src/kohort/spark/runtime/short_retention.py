"""Records that are older than their topic keeps them: brokers delete them soon, which is said once for each topic."""

from __future__ import annotations

import logging
import shlex
import time
from collections.abc import Callable, Collection, Coroutine
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from kohort.client.admin import ConfigResource, ResourceType
from kohort.client.errors import ClientError
from kohort.protocol.errors import KafkaError
from kohort.spark.program.shown_options import options_to_reach
from kohort.utc_text import utc_text

if TYPE_CHECKING:
    from kohort.client.admin import Admin
    from kohort.client.config import ClientConfig

log = logging.getLogger(__name__)

_ASK_FROM_MS: Final = 3_600_000
"""Younger records ask for no settings: that takes a right (DESCRIBE_CONFIGS) which an application needn't have."""
_KEYS: Final = ("retention.ms", "cleanup.policy", "message.timestamp.type")
_FOR_EVER: Final = 2**63


class ShortRetention:
    """Warns, once for each topic, where records are written that are older than the topic keeps them.

    Settings of a topic are asked for once, beside the epoch that writes its first old record; where they can't be
    had, nothing is said.

    Args:
        admin: asks for settings.
        client: how the cluster is reached, for the command that keeps records.
        beside: has something done that nobody waits for.
        passed_over: topics that the application keeps itself.
        clock: ms since 1970.
    """

    def __init__(
        self,
        application_id: str,
        admin: Admin,
        client: ClientConfig,
        beside: Callable[[Coroutine[Any, Any, None]], object],
        passed_over: Collection[str] = (),
        clock: Callable[[], int] = lambda: time.time_ns() // 1_000_000,
    ) -> None:
        self._name, self._admin, self._client, self._beside, self._clock = application_id, admin, client, beside, clock
        self._kept_ms = dict.fromkeys(passed_over, _FOR_EVER)
        self._oldest: dict[str, int] = {}  # of topics whose settings are being asked for

    def look(self, topic: str, records: pa.Table) -> None:
        """Looks at the times of records (column `timestamp`, ms; none for the time of writing) that go to a topic."""
        kept_ms = self._kept_ms.get(topic, _ASK_FROM_MS)
        if kept_ms == _FOR_EVER or "timestamp" not in records.column_names:
            return
        oldest = pc.min(records["timestamp"]).as_py()
        if oldest is None or self._clock() - oldest <= kept_ms:
            return
        if topic in self._kept_ms:
            self._tell(topic, oldest)
            return
        asked = topic in self._oldest
        self._oldest[topic] = min(oldest, self._oldest.get(topic, oldest))
        if not asked:
            self._beside(self._ask(topic))

    async def _ask(self, topic: str) -> None:
        resource = ConfigResource(ResourceType.TOPIC, topic)
        try:
            found = (await self._admin.configs.describe(resource, keys=_KEYS))[resource]
            values = {name: each.value or "" for name, each in found.items()}
            kept_ms = int(values.get("retention.ms") or -1)
        except (KafkaError, ClientError, LookupError, ValueError) as error:  # what a broker says isn't to stop it all
            log.debug("how long %s keeps records isn't known: %s", topic, error)
            values, kept_ms = {}, -1
        deletes = "delete" in values.get("cleanup.policy", "")
        own_times = values.get("message.timestamp.type") != "LogAppendTime"
        self._kept_ms[topic] = kept_ms if kept_ms >= 0 and deletes and own_times else _FOR_EVER
        oldest = self._oldest.pop(topic)
        if self._clock() - oldest > self._kept_ms[topic]:
            self._tell(topic, oldest)

    def _tell(self, topic: str, oldest: int) -> None:
        kept_ms, self._kept_ms[topic] = self._kept_ms[topic], _FOR_EVER
        length = str(timedelta(milliseconds=min(kept_ms, 10**15))).removesuffix(", 0:00:00")  # more it can't take
        reached = options_to_reach(self._client)
        keeps = shlex.join(["kohort", "configs", "alter", "topic", topic, *reached, "--set", "retention.ms=-1"])
        log.warning(
            "%s: records of %s are written to topic %s, which deletes what is older than its retention.ms=%d (%s): "
            "they may be gone within minutes. To keep them: %s",
            self._name, utc_text(oldest) or f"{oldest} ms since 1970", topic, kept_ms, length, keeps,
        )  # fmt: skip
