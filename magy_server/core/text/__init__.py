"""Text made safe to show and to store, and sessions written as text."""
