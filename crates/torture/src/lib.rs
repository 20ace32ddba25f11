//! Proof by torture: a model that says how FlexFS must answer, calls as values, power cuts at every flash operation, and
//! the judges of the volumes that come back. The translation layers are tortured beside the file system.
//!
//! From the ground up: `content` (bytes named by a seed), `ops` (calls), `model`, `crash` (power cuts), `record` (the
//! decisions of a mount), then the two campaigns: `files` (the file system) and `sectors` (translation layers). Invariant:
//! a seed and a list of cuts give the same outcome wherever and whenever they are run.

pub mod content;
pub mod crash;
pub mod files;
pub mod model;
pub mod ops;
pub mod parallel;
pub mod record;
pub mod sectors;
