"""The tools that ask the editor: diagnostics, definitions, references, symbols, evaluation."""
