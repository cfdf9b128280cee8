"""One adapter per peer, each with `prepare(job) -> Arm`, for `rl_peers.py`.

What breaks in a peer on current packages is worked around in its adapter, nowhere else.
"""
