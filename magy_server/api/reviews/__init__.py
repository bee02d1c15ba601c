"""Hunks under review and going back, as front doors show and decide them."""
