"""What `export` writes: the boards, their shapes and the folder."""
