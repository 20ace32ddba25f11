//! Making room: emptying blocks for migration, collection and wear levelling, a page at a time.

pub mod collector;
pub mod ongoing;
