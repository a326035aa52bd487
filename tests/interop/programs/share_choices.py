"""What members of a share group do with records, so that each way to end occurs; Java's ShareMember does the same."""

from __future__ import annotations

ACCEPTED, RELEASED, REJECTED = "accepted", "released", "rejected"


def choice(offset: int, count: int) -> str:
    """What becomes of a record with its delivery of that count."""
    if offset % 13 == 6:
        return RELEASED  # until its deliveries are used up
    if offset % 11 == 5:
        return REJECTED
    return RELEASED if offset % 7 == 3 and count == 1 else ACCEPTED
