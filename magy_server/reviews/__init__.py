"""People review hunks, decide about them, and go back: this package builds that on `Sessions`."""
