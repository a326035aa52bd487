"""Group coordination in virtual time: one seed drives members, network and coordinator, faults included."""
