"""Reviews and undo are values here: their events, what files went through, three-way merges."""
