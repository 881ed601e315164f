//! Checks the rules of `docs/architecture.md` against the source.
