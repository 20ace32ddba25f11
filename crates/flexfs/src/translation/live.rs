//! The figures of a translation layer while it is served: its clients, their requests, and the work that they made.
//!
//! Invariant: all of them are of one moment, between two requests.

use std::time::Duration;

use card::HostCounts;
use emulator::Counters;
use ftl::{BlockUse, Counts};
use lab::layers::Work;
use serde_json::{Value, json};

use super::uses;
use crate::output::grouped;
use crate::{size, time_span};

/// A layer that is served.
pub struct LiveCard {
    /// Where clients find it.
    pub uri: String,
    pub clients: u64,
    pub elapsed: Duration,
    pub host: HostCounts,
    /// Since the layer was opened.
    pub counts: Counts,
    pub counters: Counters,
}

impl LiveCard {
    fn work(&self) -> Work {
        Work::between(&Counts::default(), &self.counts, self.counts.host_writes)
    }

    /// For programs.
    pub fn json(&self, sector_bytes: u64, blocks: &[BlockUse]) -> Value {
        let HostCounts { reads, read_bytes, writes, written_bytes, trims, trimmed_bytes, flushes, failures } =
            self.host;
        let work = self.work();
        json!({
            "uri": self.uri,
            "clients": self.clients,
            "elapsed_ns": u64::try_from(self.elapsed.as_nanos()).unwrap_or(u64::MAX),
            "host": {
                "reads": reads, "read_bytes": read_bytes, "writes": writes, "written_bytes": written_bytes,
                "trims": trims, "trimmed_bytes": trimmed_bytes, "flushes": flushes, "failures": failures,
            },
            "sectors": {
                "read": self.counts.host_reads, "written": self.counts.host_writes, "trimmed": self.counts.host_trims,
            },
            "flash": { "read_bytes": work.reads * sector_bytes, "programmed_bytes": work.programs * sector_bytes },
            "flash_ns": self.counters.flash_ns,
            "work": work,
            "block_map": blocks.iter().map(uses::letter).collect::<String>(),
        })
    }

    /// For people.
    pub fn rows(&self) -> Vec<(&'static str, String)> {
        let (host, work) = (&self.host, self.work());
        let requests = |count: u64, bytes: u64| format!("{} requests, {}", grouped(count), size::human(bytes));
        vec![
            ("served", format!("at {}, for {}", self.uri, time_span::short(self.elapsed.as_secs()))),
            ("clients", grouped(self.clients)),
            ("read", requests(host.reads, host.read_bytes)),
            ("written", requests(host.writes, host.written_bytes)),
            ("trimmed", requests(host.trims, host.trimmed_bytes)),
            ("flushes", grouped(host.flushes)),
            ("failures", grouped(host.failures)),
            ("programs", format!("{}, {:.3} for a sector", grouped(work.programs), work.write_amplification)),
            ("block erases", grouped(work.erases)),
            (
                "merges",
                format!(
                    "{} whole, {} partial, {} switches",
                    grouped(work.merges),
                    grouped(work.partial_merges),
                    grouped(work.switches)
                ),
            ),
            ("map pages", format!("{} written, {} copied", grouped(work.map_writes), grouped(work.map_copies))),
        ]
    }
}
