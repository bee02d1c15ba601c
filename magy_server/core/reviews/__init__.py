"""Reviews and undo as values: their events, what files went through, three-way merges."""
