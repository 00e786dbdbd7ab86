"""Commands for the catalogue, data sheets and prices."""
