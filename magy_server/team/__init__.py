"""Agents below agents: spawned, written to, waited for, limited and started again."""
