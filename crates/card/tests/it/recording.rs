//! Recordings: a line for each request as it was accepted.

use std::io::{self, Write};
use std::sync::{Arc, Mutex};

use card::host::{FLUSH, NO_HOLE, TRIM, WRITE_ZEROES};
use card::record::{RecordedDevice, RequestRecorder};
use ftl::Scheme;

use crate::harness::TestServer;

/// Memory that a recording is written to.
#[derive(Clone, Default)]
struct Written(Arc<Mutex<Vec<u8>>>);

impl Write for Written {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn each_accepted_request_leaves_a_line_with_its_sectors() {
    let written = Written::default();
    let device = RecordedDevice {
        sectors: 1_728,
        sector_bytes: 512,
        scheme: "log-block".into(),
        profile: "k9f5608u0m".into(),
        chip_bytes: 1 << 20,
        extra_blocks: 40,
        logs: 8,
        map_blocks: 3,
    };
    let recorder = RequestRecorder::new(Box::new(written.clone()), &device).unwrap();
    let server = TestServer::recording(Scheme::LogBlock, recorder);
    let mut host = server.host(false);
    host.write(1024, &[1; 1024], 0).unwrap().unwrap();
    host.read(700, &mut [0; 400]).unwrap().unwrap();
    host.ask(TRIM, 0, (500, 1100)).unwrap().unwrap();
    host.ask(TRIM, 0, (500, 100)).unwrap().unwrap();
    host.ask(WRITE_ZEROES, 0, (5000, 1000)).unwrap().unwrap();
    host.ask(WRITE_ZEROES, NO_HOLE, (0, 40_000)).unwrap().unwrap();
    host.ask(FLUSH, 0, (0, 0)).unwrap().unwrap();
    // Nothing was accepted of this one.
    host.write(1 << 40, &[1; 512], 0).unwrap().unwrap_err();
    drop(host);
    server.end();
    let text = String::from_utf8(written.0.lock().unwrap().clone()).unwrap();
    let mut lines = text.lines().map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap());
    let head = lines.next().unwrap();
    assert_eq!((&head["flexfs_block_trace"], &head["sector_bytes"]), (&1.into(), &512.into()));
    assert_eq!(head["device"]["scheme"], "log-block");
    let mut last = 0;
    let requests: Vec<(String, u64, u64)> = lines
        .map(|line| {
            let at = line["at"].as_u64().unwrap();
            assert!(at >= last);
            last = at;
            let number = |name: &str| line[name].as_u64().unwrap_or(0);
            (line["op"].as_str().unwrap().to_owned(), number("sector"), number("sectors"))
        })
        .collect();
    let expected = [
        ("write", 2, 2),
        ("read", 1, 2),
        ("trim", 1, 2),
        ("write", 9, 1),
        ("write", 11, 1),
        ("trim", 10, 1),
        // As the device was asked: some sectors at a time.
        ("write", 0, 64),
        ("write", 64, 15),
        ("flush", 0, 0),
    ];
    let expected: Vec<_> = expected.iter().map(|&(op, first, count)| (op.to_owned(), first, count)).collect();
    assert_eq!(requests, expected);
}
