"""The static site: pages that need no network and no server."""
