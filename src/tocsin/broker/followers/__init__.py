"""Who takes events out by following the log: message boxes, open streams, and who fell behind."""
