"""The tool `bash`: commands judged, run, read and ended."""
