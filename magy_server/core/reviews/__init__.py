"""Reviews and undo are values here: their events, the history of files, three-way merges."""
