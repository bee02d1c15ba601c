"""Agents have agents below them: spawned, written to, waited for, limited and started again."""
