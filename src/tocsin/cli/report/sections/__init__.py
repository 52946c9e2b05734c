"""Sections: each reads the tables it needs and makes its part of the page."""
