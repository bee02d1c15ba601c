"""A person has graphs of tasks done, and sees how they are, through this package."""
