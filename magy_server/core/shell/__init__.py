"""Bash command lines, read without running them: which programs they run, and with what."""
