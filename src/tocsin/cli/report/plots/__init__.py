"""Plots: numbers as SVG, coloured by the page's style sheet."""
