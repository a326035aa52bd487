"""What all mechanisms have in common."""

from __future__ import annotations

from typing import Protocol


class AuthenticationFailedError(Exception):
    """The client isn't who it says, or doesn't speak the mechanism; the message is for the client.

    It never says which part of the credentials is wrong.
    """


class Exchange(Protocol):
    """An exchange of tokens with one client.

    Attributes:
        name: of the client, once it has proved who it is; None until then.
        by_token: whether it has proved it by a delegation token.
        expires_at: when its proof expires, in ms since 1970; None if it doesn't.
        refused: why it isn't let in, if the answer says so and the client has yet to acknowledge that; for the log.
    """

    name: str | None
    by_token: bool
    expires_at: int | None
    refused: str

    def evaluate(self, token: bytes) -> bytes:
        """Takes the client's token, and returns the answer; it may be empty.

        Raises:
            AuthenticationFailedError: the exchange is over.
        """
        ...
