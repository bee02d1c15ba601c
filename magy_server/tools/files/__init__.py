"""These tools read and change files, through open buffers where there are any."""
