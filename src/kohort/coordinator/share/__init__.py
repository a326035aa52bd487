"""Share groups (KIP-932): members, targets, and which share partitions have a state at the share coordinator.

Several members may have the same partition, so none waits for another: a member has its part of the target with its
next heartbeat. A partition is assigned once its state is initialized:

    not there ──a member subscribes──▶ initializing ──the share coordinator wrote it──▶ initialized ──▶ assigned
                                        │  ▲ tried again after a while                    │
                                        └──┘                 offsets or group deleted ──▶ deleting ──▶ not there
"""
