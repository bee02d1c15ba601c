"""The person, the project and the environment configure Magy: settings, agents, where files are."""
