"""What of Spark's own protection is off: its connections carry the records, and the functions that run on them."""

from __future__ import annotations

import logging
from collections.abc import Mapping

log = logging.getLogger(__name__)


def is_on_a_cluster(conf: Mapping[str, str]) -> bool:
    """Whether executors are processes of their own, which may be on other machines."""
    master = conf.get("spark.master", "local")
    return master.startswith("local-cluster") or not master.startswith("local")


def unprotected(conf: Mapping[str, str]) -> list[str]:
    """A sentence for each protection that is off on a cluster, with the settings that turn it on."""

    def is_on(*names: str) -> bool:
        return any(conf.get(name, "false").lower() == "true" for name in names)

    if not is_on_a_cluster(conf):
        return []
    found = []
    if not is_on("spark.authenticate"):
        found.append(
            "whoever reaches the ports of Spark's driver and executors can be one of them, and read and run anything: "
            "set spark.authenticate=true, and on a standalone cluster spark.authenticate.secret"
        )
    if not is_on("spark.network.crypto.enabled", "spark.ssl.rpc.enabled"):
        found.append(
            "what Spark's driver and executors send each other isn't encrypted: set spark.network.crypto.enabled=true "
            "with spark.authenticate, or spark.ssl.rpc.enabled=true with its keys"
        )
    return found


def warn_of_unprotected(conf: Mapping[str, str]) -> None:
    """Logs what `unprotected` finds. Spark takes these settings at its start alone, so they can't be set here."""
    for sentence in unprotected(conf):
        log.warning("%s", sentence)
