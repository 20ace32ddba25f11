//! The tests of traces, benches and the bars that the file system is measured against, as one program. The tests that count
//! all memory of a process have a program of their own beside it.

mod bench_bars;
mod block_traces;
mod directory;
mod forever;
mod many_small;
mod paper;
mod readme;
mod slc_speed;
mod traces;
