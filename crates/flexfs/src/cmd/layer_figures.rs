//! What a translation layer did, as rows. Invariant: every row stands for one figure of [`Work`].

use lab::layers::Work;

use crate::output::grouped;

pub fn rows(work: &Work) -> [(&'static str, String); 10] {
    [
        ("programs", grouped(work.programs)),
        ("reads", grouped(work.reads)),
        ("erases", grouped(work.erases)),
        ("write amplification", format!("{:.3}", work.write_amplification)),
        ("merges", grouped(work.merges)),
        ("partial merges", grouped(work.partial_merges)),
        ("switches", grouped(work.switches)),
        ("map pages written", grouped(work.map_writes)),
        ("map pages copied", grouped(work.map_copies)),
        ("map blocks exchanged", grouped(work.map_swaps)),
    ]
}
