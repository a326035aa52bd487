"""A schema registry with Confluent's API: who it is, what is asked of it, and single values read by its schemas.

`registry` names it and `client` asks it. `avro_values` and `protobuf_values` read one value at a time, whatever the
schema is, for what shows single records; columns of many are read by `kohort.spark.formats`.
"""
