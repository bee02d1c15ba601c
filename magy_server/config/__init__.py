"""What the person, the project and the environment ask for: settings, agents, where files are."""
