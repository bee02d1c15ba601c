"""The wire of `magy/*`: shapes of parameters and results, and the table of methods."""
