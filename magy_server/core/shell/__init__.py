"""This package reads bash command lines without running them: which programs they run, on what."""
