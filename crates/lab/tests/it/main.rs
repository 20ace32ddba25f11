//! The tests of the file system on emulated chips as one program, a module for each matter: linked once, they are built
//! in a moment. Those that count all memory of a process have programs of their own beside it.

mod aging;
mod bench_bars;
mod block_traces;
mod damage;
mod directory;
mod dump;
mod failing;
mod flight;
mod forever;
mod full;
mod handles;
mod many_small;
mod media;
mod mend;
mod model;
mod paper;
mod power;
mod refusing;
mod salvage;
mod sectors;
mod soak;
mod space;
mod stale;
mod times;
mod traces;
