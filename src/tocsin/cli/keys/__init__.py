"""The small authority of a site, as `tocsin keys` keeps it in a directory."""
