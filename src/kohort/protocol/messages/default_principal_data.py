"""A principal, as one broker forwards it to another inside an Envelope."""

from __future__ import annotations

from kohort.protocol.message import Data
from kohort.protocol.schema import boolean, string


class DefaultPrincipalData(Data, versions="0", flexible=0):
    """The principal a broker puts into an Envelope when it forwards a request to the controller."""

    type: str = string("Kind of principal, nearly always User.")
    name: str = string("Who it is, e.g. the user name.")
    token_authenticated: bool = boolean("True if a delegation token was used to log in at the broker that forwards.")
