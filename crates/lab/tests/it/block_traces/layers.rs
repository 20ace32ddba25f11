//! Block traces on every translation layer.

use emulator::Profile;
use ftl::Scheme;
use lab::layers::LayerError;
use lab::layers::replay::{BlocksReplayed, ReplayConfig, replay, size_for};
use lab::trace::block::{self, BlockOp, BlockRequest, BlockTrace};
use torture::ops::Supply;

use super::asked;
use super::formats::{EVERY, READS_AND_WRITES};

/// Pages of 512 bytes, and of 2 KiB.
pub const SMALL_PAGES: (&str, u64) = ("k9f5608u0m", 2 << 20);
pub const LARGE_PAGES: (&str, u64) = ("k9k8g08u0m", 16 << 20);

pub fn config((name, bytes): (&str, u64), scheme: Scheme) -> ReplayConfig {
    let profile = Profile::builtin(name).unwrap().with_capacity(bytes).unwrap();
    ReplayConfig::new(profile, scheme)
}

pub fn played(config: &ReplayConfig, trace: &BlockTrace, what: &str) -> BlocksReplayed {
    replay(config, trace, &mut |_, _| {}).unwrap_or_else(|error| panic!("{what}, {}: {error}", config.scheme))
}

#[test]
fn a_trace_of_every_format_reads_as_it_was_written_on_every_scheme() {
    for (all, formats) in [(true, &EVERY[..]), (false, &READS_AND_WRITES[..])] {
        for (name, print) in formats {
            let trace = block::read(print(&asked(all)).as_bytes()).unwrap();
            let count = |op| trace.requests.iter().filter(|request| request.op == op).count() as u64;
            for scheme in Scheme::ALL {
                let small = played(&config(SMALL_PAGES, scheme), &trace, name);
                assert_eq!(small.requests, trace.requests.len() as u64);
                assert_eq!(small.read_responses.count, count(BlockOp::Read));
                assert_eq!(small.write_responses.count, count(BlockOp::Write));
                assert_eq!((small.sectors_written, small.partial_sectors), (8 * (8 + 1 + 6 + 16), 0));
                assert_eq!(small.sectors_read, 8 * (3 + 5 + 9));
                assert_eq!(small.sectors_trimmed, if all { 8 * 7 } else { 0 });
                assert!(small.sectors_before > 0 && small.work.reads > 0 && small.sectors_verified > 100, "{small:?}");
                let large = played(&config(LARGE_PAGES, scheme), &trace, name);
                assert!(large.partial_sectors > 8 && large.sectors_written < small.sectors_written, "{large:?}");
                assert_eq!(large.sectors_trimmed, if all { 8 } else { 0 });
            }
        }
    }
}

/// Random requests of up to 20 sectors, half of them to a hot part, with pauses of a second now and then.
fn busy() -> BlockTrace {
    let mut dice = Supply::new(5);
    let mut at_ns = 0;
    let mut request = |number: u64| {
        at_ns += if number.is_multiple_of(50) { 1_000_000_000 } else { 300_000 };
        let within = if dice.below(2) == 0 { 100 } else { 2_000 };
        let (sector, sectors) = (dice.below(within), 1 + dice.below(20));
        let op = match dice.below(20) {
            0..=7 => BlockOp::Read,
            8 => BlockOp::Trim,
            _ => BlockOp::Write,
        };
        BlockRequest { at_ns, disk: 0, op, offset: sector * 512, bytes: sectors * 512 }
    };
    BlockTrace { requests: (0..2_000).map(&mut request).collect(), device: None }
}

#[test]
fn a_busy_trace_makes_every_scheme_clean_and_idle_merges_shorten_writes() {
    let trace = busy();
    for scheme in Scheme::ALL {
        let config = config(SMALL_PAGES, scheme);
        let busy = played(&config, &trace, "busy");
        assert!(busy.work.merges > 10 && busy.work.erases > 100 && busy.steps.is_none(), "{busy:?}");
        assert!(busy.work.write_amplification > 1.0 && busy.write_responses.p99_us > 500.0, "{busy:?}");
        let idle = played(&ReplayConfig { merges_idle: true, ..config }, &trace, "idle");
        assert!(idle.steps.is_some_and(|steps| steps.count > 10), "{idle:?}");
    }
}

#[test]
fn what_does_not_fit_is_refused_with_how_much_it_is_and_a_size_for_it_holds_it() {
    let request = |chunk: u64| BlockRequest { at_ns: 0, disk: 0, op: BlockOp::Write, offset: chunk << 30, bytes: 512 };
    let trace = BlockTrace { requests: (0..1_010).map(request).collect(), device: None };
    for scheme in Scheme::ALL {
        let config = |bytes| config((SMALL_PAGES.0, bytes), scheme);
        let refused = replay(&config(16 << 20), &trace, &mut |_, _| {}).unwrap_err();
        let LayerError::NoRoom { touched_bytes, holds_bytes } = refused else { panic!("{scheme}: {refused}") };
        assert!(touched_bytes == 1_010 * 32 * 512 && holds_bytes < touched_bytes, "{refused}");
        let bytes = size_for(&trace, &config(16 << 20)).unwrap();
        assert_eq!(bytes, 32 << 20);
        played(&config(bytes), &trace, "far apart");
    }
}
