"""Graphs of tasks for agents: what may begin, and what their results come to. Pure."""
