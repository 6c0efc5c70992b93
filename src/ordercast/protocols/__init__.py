"""The ordering protocols, one page each. `registry` lists them."""
