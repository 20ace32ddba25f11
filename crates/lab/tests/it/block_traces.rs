//! Block traces: broken lines, the same requests in every format, in files as they are distributed, and their replay on
//! every translation layer.

mod distributed;
mod formats;
mod layers;
mod recorded;
mod wrong;

use card::record::RecordedDevice;
use lab::trace::block::{self, BlockOp, BlockRequest, BlockTrace};

use formats::{Ask, EVERY, READS_AND_WRITES};

/// Requests of two disks: overwrites, ranges that are no whole pages, reads of what was never written, and with `all`
/// trims and flushes.
fn asked(all: bool) -> Vec<BlockRequest> {
    use BlockOp::{Flush, Read, Trim, Write};
    let mut asked = Vec::new();
    for round in 0..8 {
        let (base, at_us) = (round % 3 * 100, round * 40_000);
        let requests = [
            (0, Write, base, 8),
            (7, Read, base + 2, 3),
            (11, Write, base + 3, 1),
            (900, Read, base + 1000, 5),
            (901, Write, base + 1001, 6),
            (902, Flush, 0, 0),
            (950, Trim, base + 1, 7),
            (1000, Read, base, 9),
            (1001, Write, 5000 + 16 * round, 16),
        ];
        let disks = [3, 3, 3, 1, 1, 1, 3, 3, 1];
        asked.extend(requests.into_iter().zip(disks).map(|((us, op, sector, sectors), disk)| Ask {
            at_ns: (at_us + us) * 1_000,
            disk,
            op,
            sector,
            sectors,
        }));
    }
    formats::numbered(asked.into_iter().filter(|ask| all || matches!(ask.op, Read | Write)).collect())
}

#[test]
fn the_same_requests_are_read_from_every_format() {
    for (what, all, formats) in [("all", true, &EVERY[..]), ("reads and writes", false, &READS_AND_WRITES[..])] {
        let requests = asked(all);
        for (name, print) in formats {
            let text = print(&requests);
            let read = block::read(text.as_bytes()).unwrap_or_else(|error| panic!("{name}: {error}\n{text}"));
            assert_eq!(read.requests, requests, "{what}: {name}\n{text}");
            assert!(block::begins(text.as_bytes()));
        }
    }
}

#[test]
fn a_trace_with_its_device_reads_back_as_it_was_written() {
    let device = RecordedDevice {
        sectors: 30_976,
        sector_bytes: 512,
        scheme: "log-block".into(),
        profile: "k9f5608u0m".into(),
        chip_bytes: 16 << 20,
        extra_blocks: 56,
        logs: 8,
        map_blocks: 3,
    };
    for device in [None, Some(device)] {
        let (trace, mut text) = (BlockTrace { requests: asked(true), device }, Vec::new());
        block::write(&trace, &mut text).unwrap();
        assert_eq!(block::read(&text).unwrap(), trace);
    }
}
