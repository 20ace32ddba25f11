//! The bytes on flash: tags, nodes, summaries, index pages, the block table and anchors.
//!
//! Pure encoding and decoding, no I/O. Invariant: every decoder takes any bytes and either gives a value that is
//! within its stated ranges or refuses; `docs/FORMAT.md` describes the same bytes field by field.

pub mod anchor;
pub mod cells;
pub mod crc;
pub mod inode;
pub mod key;
pub mod manager;
pub mod node;
pub mod page;
pub mod place;
pub mod summary;
pub mod table;
pub mod tag;
