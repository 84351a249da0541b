"""Who asks and what they may: tokens, sign-in, audit log."""
