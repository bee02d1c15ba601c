"""A person's own commands run at named moments: they may refuse a call, and hear what happened."""
