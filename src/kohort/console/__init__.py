"""`kohort console`: pages that show a cluster's groups and topics, and stay up to date while they are looked at.

What is shown is worked out by pure functions: `history`, `trend`, `group_book`, `group_list`, `group_page`, `growth`,
`topic_pages`, `record_text`, `record_ranges`, `record_paging`, `record_filter`, `wire_page`, and `live`, which tells an
open page only what changed. `record_decoding` knows what bytes mean. `cluster_reader` and `record_reader` ask the
brokers, `watcher` and `topic_watcher` do it again and again, and `server` speaks HTTP; records, topics and the wire
have modules of routes.

`changes` has what is changed, `change_pages` its forms and confirmations, `forms` reads what browsers send, and `audit`
is what is written down of it. Who asks is a `visit`: with a login it has a session, and a `desk` by which all is asked
of the brokers.
"""
