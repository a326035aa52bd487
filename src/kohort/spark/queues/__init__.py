"""Work queues: records of a share group, each epoch a Spark job over what was acquired.

Pure, no Spark, no socket and no clock: `settlement` (what becomes of each record), `epoch` (the same, again with each
thing that turns out), `halving` (which records make a job fail), `counts` (what the worker has done).

`compiling` checks a program; `acquired_rows` decodes records; `jobs` runs them in Spark; `records_out` makes records of
results and dead letters; `consumer` acquires and acknowledges; `worker` goes from epoch to epoch; `metrics`
and `http_server` show what it does; `running` puts them together in this process.
"""
