"""Project instructions, and what the words of a prompt mention."""
