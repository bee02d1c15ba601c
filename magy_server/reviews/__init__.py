"""People review hunks, decide about them, and go back: these are features on `Sessions`."""
