"""Runs programs on Blacklight, libuv's event loop rewritten in Rust: ``python -m blacklight``."""
