"""An evaluation that stops as soon as its gate is decided: the loop over blocks, its command, and the folder that keeps them."""
