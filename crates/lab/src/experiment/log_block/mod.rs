//! The log-block paper's figures and tables, and the experiments that go beyond them, a file each.
//!
//! Invariant: every scheme gets the same chip and the same requests.

pub mod blocksize;
pub mod chips;
pub mod extra;
pub mod fig2;
pub mod fig3;
pub mod fig5;
pub mod fig5_recorded;
pub mod fig6;
pub mod future;
pub mod memory;
pub mod shipped;
pub mod startup;
pub mod sweep;
pub mod table2;
pub mod traces;
