"""Front doors show child agents and steer them through this package."""
