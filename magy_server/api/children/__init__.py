"""Child agents, as front doors show and steer them."""
