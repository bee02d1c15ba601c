"""This package finds the skills of people and projects, and installs those of others."""
