"""The pseudocode in which AMD's manuals define instructions: parsed, and lowered to LLVM IR."""
