"""A browser: it opens the address, and follows where it is sent. `python browser.py URL`."""

import sys
import urllib.request

urllib.request.urlopen(sys.argv[1], timeout=60).read()
