"""Agents get these built-in tools, one topic a package. `kit.make_tools` gives them all."""
