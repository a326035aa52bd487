"""`kohort console`: pages that show a cluster's groups and topics, and stay up to date while they are looked at.

What is shown is worked out by pure functions: `history`, `trend`, `group_book`, `group_list`, `group_page`,
`topic_pages`, `record_text`, `record_ranges`, and `live`, which tells an open page only what changed. `cluster` and
`record_reader` ask the brokers, `watcher` does it again and again, and `server` speaks HTTP.

`changes` has what is changed, `change_pages` its forms and confirmations, `audit` what is written down of it. Who asks
is a `visit`: with a login it has a session, and a `desk` by which all is asked of the brokers.
"""
