"""Kills at random: a tree of agents at work, whose server dies by SIGKILL again and again.

    python -m tests.chaos --kills 1000 --seed 1 --workers 2

A trial is one run of the tree in `cast.py` on the real server, over real stdio, with the model
played by an HTTP server that outlives the kills (`model.py`). A person (`person.py`) drives it, and
starts it again after each kill (`trial.py`). What came of it is judged from outside only
(`verdict.py`): by what the model was asked, by files that commands and edits left, and by the
process table; Magy's own log is not looked at.
"""
