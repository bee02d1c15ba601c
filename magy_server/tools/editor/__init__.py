"""These tools ask the editor: for diagnostics, definitions, references, symbols, evaluation."""
