"""How much clients may do: which quota is whose, rates as Kafka samples them, and how long who exceeds one waits."""
