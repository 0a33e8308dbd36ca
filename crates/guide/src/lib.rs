//! The guide's code in Rust, compiled and run by `cargo test`; the book itself lies in `docs/guide`.
//!
//! Its programs are the examples of this crate, and the blocks of its chapters are tests of its documentation.

#[cfg(doctest)]
#[doc = include_str!("../../../docs/guide/src/embedding.md")]
struct Embedding;

#[cfg(doctest)]
#[doc = include_str!("../../../docs/guide/src/order.md")]
struct Order;

#[cfg(doctest)]
#[doc = include_str!("../../../docs/guide/src/tokio.md")]
struct Tokio;
