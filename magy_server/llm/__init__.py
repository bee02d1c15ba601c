"""Providers of models: requests and answers in the wires that they speak."""
