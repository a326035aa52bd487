"""How ties are broken: which member or process is preferred among those that balance allows and that cost the same.

The smaller key wins. All keys end in the number of a member or process, in the order of names (`Problem`), so equal
groups get equal placements. What isn't here is decided by cost, and then by such a number: the heaps of
`balance_extras`, the exchanges of `state_store_spread`, the flows.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence, Sized


def highest_values(values: Mapping[int, int], wanted: Sequence[int]) -> list[int]:
    """Members that want the same extra task: those first that lose most without it, then those that want fewest."""
    return sorted(values, key=lambda member: (-values[member], wanted[member], member))


def fewest_extra_tasks(extras: Sequence[Sized]) -> Callable[[int], tuple[int, int]]:
    """The key of members for an extra task: it goes to the one with the fewest of them."""
    return lambda member: (len(extras[member]), member)


def cheapest_processes(costs: Mapping[int, int], extras: Sequence[int] | None = None) -> list[tuple[int, int]]:
    """Processes with state of a task, and its cost there: the cheapest first, then those with fewest extra tasks."""
    if extras is None:
        return sorted(costs.items(), key=lambda cost: (cost[1], cost[0]))
    return sorted(costs.items(), key=lambda cost: (cost[1], extras[cost[0]], cost[0]))


def standby_rank(member: int, standbys: int, stateful: int) -> tuple[int, int, int, int]:
    """The key of members for a standby: it goes to the one with the fewest standbys, then the fewest stateful tasks.

    After that the order of members is shuffled, in another way for each number of standbys. So the standbys of one
    member's tasks are on many others, and many can take over when it is gone.
    """
    return standbys, stateful, (member + 7919 * standbys) * 2654435761 % 2**32, member
