//! The tests of the file system on emulated chips as one program, a module for each matter: linked once, they are built
//! in a moment.

mod aging;
mod damage;
mod drive;
mod dump;
mod failing;
mod flight;
mod full;
mod handles;
mod life;
mod media;
mod mend;
mod model;
mod power;
mod refusing;
mod salvage;
mod sectors;
mod soak;
mod space;
mod stale;
mod times;
