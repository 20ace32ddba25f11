//! Random histories: calls as values, a generator that makes them from dice, and the two ends they are made on.

mod call;
mod dice;
mod generate;
mod script;
mod serial;
mod volume;

pub use call::{Call, Name, Reply, Seen};
pub use dice::{Dice, Supply, Words};
pub use generate::{Shape, Step};
pub use script::{Op, Work};
pub use volume::{call_fs, glimpse, observe};
