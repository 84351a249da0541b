"""`knowngood gate` and the Action: one question, asked of a server, a snapshot or the local store."""
