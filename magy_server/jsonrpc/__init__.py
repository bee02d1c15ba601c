"""JSON-RPC over standard input and output, as the doors share it: who asks whom, what is written
when, and how a process begins and ends with its client."""
