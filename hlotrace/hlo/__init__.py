"""One HLO module: its columns, and every figure that follows from them."""
