"""Domain values as bytes and back: the wire between dispatcher and agent, bundles between stores, what others read.

Not here: SQL, HTTP, and any rule about what a value means.
"""
