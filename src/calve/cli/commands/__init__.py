"""The commands of ``calve``, a module for each topic.

Only ``calve.cli.entry`` imports them, each when its command is called.
"""
