"""Built-in tools, one topic a file. `kit.make_tools` gives them all."""
