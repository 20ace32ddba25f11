//! Clients that are slow, silent or gone: nobody else waits for them.

use std::io::{Read, Write};
use std::time::Duration;

use card::{ClientLimits, Export};
use ftl::Scheme;

use crate::harness::{TestServer, volume};

/// Half of them never say a word; eight send a byte now and then.
#[test]
fn a_reader_finishes_beside_half_open_and_slow_clients() {
    let limits = ClientLimits { handshake: Duration::from_secs(2), ..ClientLimits::default() };
    let server = TestServer::serve(Export::new(volume(Scheme::LogBlock), 0, false, None), limits);
    let mut half_open: Vec<_> = (0..64).map(|_| server.stream()).collect();
    let slow: Vec<_> = (0..8).map(|_| server.stream()).collect();
    let dripping = std::thread::spawn(move || {
        // The flags, then options that are known, a byte at a time, until the server has had enough.
        let bytes = [0, 0, 0, 3].into_iter().chain(b"IHAVEOPT\0\0\0\x03\0\0\0\0".iter().copied().cycle());
        for byte in bytes.take(600) {
            let sent = slow.iter().filter(|stream| (&**stream).write_all(&[byte]).is_ok()).count();
            if sent == 0 {
                return true;
            }
            std::thread::sleep(Duration::from_millis(100));
        }
        false
    });
    let mut host = server.host(true);
    for turn in 0..2_000_u64 {
        let mut found = [0xee; 4096];
        host.read(turn * 4096 % (host.export().bytes - 4096), &mut found).unwrap().unwrap();
        assert_eq!(found, [0; 4096]);
    }
    assert!(dripping.join().unwrap(), "a byte now and then keeps no handshake up for ever");
    for stream in &mut half_open {
        let mut rest = Vec::new();
        stream.read_to_end(&mut rest).unwrap();
        assert_eq!(rest.len(), 18, "the greeting, then the end");
    }
    host.read(0, &mut [0; 512]).unwrap().unwrap();
}

#[test]
fn requests_that_came_before_the_end_are_done_and_answered() {
    let server = TestServer::of(Scheme::LogBlock);
    let mut host = server.host(false);
    let cookies: Vec<u64> =
        (0..50_u64).map(|at| host.send(1, 0, (at * 512, 512), &[at as u8 + 1; 512]).unwrap()).collect();
    let export = server.end();
    for cookie in cookies {
        host.receive(cookie, &mut []).unwrap().unwrap();
    }
    let mut found = [0; 512];
    card::Disk::read(&*export, 49 * 512, &mut found).unwrap();
    assert_eq!(found, [50; 512]);
}

/// The answer waited for more requests to come, and was lost with the goodbye behind it.
#[test]
fn a_request_right_before_the_goodbye_is_answered() {
    let server = TestServer::of(Scheme::LogBlock);
    let mut host = server.host(false);
    let bytes = [card::host::request(1, 0, 1, (0, 512), &[7; 512]), card::host::request(2, 0, 2, (0, 0), &[])].concat();
    host.stream_mut().write_all(&bytes).unwrap();
    host.receive(1, &mut []).unwrap().unwrap();
    assert_eq!(host.stream_mut().read(&mut [0]).unwrap(), 0);
}
