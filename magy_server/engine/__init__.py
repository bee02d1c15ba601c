"""The engine runs the loop: sessions, their logs, and the runner that performs their next steps."""
