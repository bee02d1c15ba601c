"""This package finds project instructions, and what the words of a prompt mention."""
