"""This package has the JSON-RPC over standard input and output that the doors share: who asks whom,
what is written when, and how a process begins and ends with its client."""
