"""How an instance moves: states, decisions, retries, loops, run strategies; the worker; its ports."""
