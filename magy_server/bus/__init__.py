"""How the processes of one person reach each other."""
