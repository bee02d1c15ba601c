"""This package has what a skill is, when a request calls for one, and what one may touch."""
