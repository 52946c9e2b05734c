"""`tocsin convert`: messages read from any form and written in any other."""
