//! Bytes: what is written is read again, whatever the scheme, in whole sectors and in parts.

use card::host::{FLUSH, FUA, NO_HOLE, READ, TRIM, WRITE, WRITE_ZEROES};
use card::{ClientLimits, Export};
use ftl::Scheme;

use crate::harness::{TestServer, volume};

const EINVAL: u32 = 22;

/// Numbers that look like chance, the same everywhere.
struct Draws(u64);

impl Draws {
    fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % end
    }
}

#[test]
fn bytes_of_every_scheme_are_those_of_a_plain_shadow() {
    for (at, scheme) in Scheme::ALL.into_iter().enumerate() {
        let server = TestServer::of(scheme);
        let mut host = server.host(at % 2 == 0);
        let bytes = host.export().bytes;
        let (mut shadow, mut draws) = (vec![0_u8; bytes as usize], Draws(at as u64));
        for turn in 0..600_u64 {
            let length = 1 + draws.below(if turn % 7 == 0 { 20_000 } else { 1_500 });
            let offset = draws.below(bytes - length);
            let range = offset as usize..(offset + length) as usize;
            match draws.below(10) {
                0..5 => {
                    let data: Vec<u8> = (0..length).map(|at| (turn + at * 7) as u8).collect();
                    host.write(offset, &data, if turn % 3 == 0 { FUA } else { 0 }).unwrap().unwrap();
                    shadow[range].copy_from_slice(&data);
                }
                5 => {
                    host.ask(TRIM, 0, (offset, length as u32)).unwrap().unwrap();
                    let (first, end) = (offset.next_multiple_of(512) as usize, (offset + length) as usize / 512 * 512);
                    if first < end {
                        shadow[first..end].fill(0);
                    }
                }
                6 => {
                    let flags = if turn % 2 == 0 { NO_HOLE } else { 0 };
                    host.ask(WRITE_ZEROES, flags, (offset, length as u32)).unwrap().unwrap();
                    shadow[range].fill(0);
                }
                7 => host.ask(FLUSH, 0, (0, 0)).unwrap().unwrap(),
                _ => {
                    let mut found = vec![0xee; length as usize];
                    host.read(offset, &mut found).unwrap().unwrap();
                    assert_eq!(found, shadow[range], "{scheme}: {length} bytes at {offset}, turn {turn}");
                }
            }
        }
        let mut found = vec![0; bytes as usize];
        host.read(0, &mut found).unwrap().unwrap();
        assert!(found == shadow, "{scheme}");
    }
}

#[test]
fn a_refused_request_leaves_the_next_to_be_done() {
    for structured in [false, true] {
        let server = TestServer::of(Scheme::LogBlock);
        let mut host = server.host(structured);
        let end = host.export().bytes;
        let errno = |asked: card::host::RequestOutcome| asked.unwrap().unwrap_err().errno;
        assert_eq!(errno(host.read(end - 10, &mut [0; 11])), EINVAL);
        assert_eq!(errno(host.write(end, &[1], 0)), 28, "ENOSPC");
        assert_eq!(errno(host.ask(TRIM, 0, (u64::MAX, 10))), EINVAL);
        assert_eq!(errno(host.ask(77, 0, (0, 10))), EINVAL);
        assert_eq!(errno(host.ask(TRIM, 64, (0, 512))), EINVAL, "an unknown flag");
        let cookie = host.send(WRITE, 64, (0, 3), b"abc").unwrap();
        assert_eq!(errno(host.receive(cookie, &mut [])), EINVAL, "its data is passed over");
        let cookie = host.send(READ, 0, (0, u32::MAX), &[]).unwrap();
        assert_eq!(errno(host.receive(cookie, &mut [])), EINVAL);
        host.write(7, b"goes on", 0).unwrap().unwrap();
        let mut found = [0; 9];
        host.read(6, &mut found).unwrap().unwrap();
        assert_eq!(&found, b"\0goes on\0");
        let said = host.read(end, &mut [0]).unwrap().unwrap_err().text;
        assert_eq!(said.contains("the disk has"), structured, "{said}");
    }
}

#[test]
fn a_disk_that_is_served_read_only_refuses_each_change() {
    let server = TestServer::serve(Export::new(volume(Scheme::Fast), 0, true, None), ClientLimits::default());
    let mut host = server.host(false);
    assert_eq!(host.export().flags & 2, 2, "READ_ONLY");
    let errnos = [
        host.write(0, &[1; 512], 0).unwrap().unwrap_err().errno,
        host.ask(TRIM, 0, (0, 512)).unwrap().unwrap_err().errno,
        host.ask(WRITE_ZEROES, 0, (0, 512)).unwrap().unwrap_err().errno,
    ];
    assert_eq!(errnos, [1; 3], "EPERM");
    host.ask(FLUSH, 0, (0, 0)).unwrap().unwrap();
    let mut found = [0xee; 512];
    host.read(0, &mut found).unwrap().unwrap();
    assert_eq!(found, [0; 512]);
}

/// All requests are on their way before the first answer is taken, more than the server takes in at once.
#[test]
fn many_requests_on_their_way_are_answered_in_order() {
    let server = TestServer::of(Scheme::PageGreedy);
    let mut host = server.host(true);
    let mut cookies = Vec::new();
    for at in 0..200_u64 {
        cookies.push((host.send(WRITE, 0, (at * 3_000, 3_000), &[at as u8; 3_000]).unwrap(), None));
        cookies.push((host.send(READ, 0, (at * 3_000, 3_000), &[]).unwrap(), Some(at as u8)));
    }
    for (cookie, expected) in cookies {
        let mut found = vec![0; if expected.is_some() { 3_000 } else { 0 }];
        host.receive(cookie, &mut found).unwrap().unwrap();
        assert!(found.iter().all(|&byte| Some(byte) == expected));
    }
}

#[test]
fn the_disk_goes_on_after_a_write_that_failed_half_way() {
    let mut volume = volume(Scheme::PageGreedy);
    volume.device().unwrap().chip_mut().programs_left = Some(20);
    let server = TestServer::serve(Export::new(volume, 0, false, None), ClientLimits::default());
    let mut host = server.host(true);
    let mut failures = Vec::new();
    for at in 0..40_u64 {
        if let Err(error) = host.write(at * 512, &[at as u8 + 1; 512], 0).unwrap() {
            failures.push((at, error.errno));
        }
    }
    let [(failed, 5)] = failures[..] else { panic!("{failures:?}") };
    for at in (0..40).filter(|&at| at != failed) {
        let mut found = [0; 512];
        host.read(at * 512, &mut found).unwrap().unwrap();
        assert_eq!(found, [at as u8 + 1; 512], "{at}, after the failure in {failed}");
    }
}

#[test]
fn with_a_cache_writes_wait_for_a_flush_or_fua() {
    let programs = |server: &TestServer| {
        server.export.between_requests(|volume, _, _| volume.device().unwrap().counts().all_programs())
    };
    let server = TestServer::serve(Export::new(volume(Scheme::LogBlock), 64, false, None), ClientLimits::default());
    let mut host = server.host(false);
    let opened = programs(&server);
    host.write(0, &[7; 4096], 0).unwrap().unwrap();
    assert_eq!(programs(&server), opened);
    host.ask(FLUSH, 0, (0, 0)).unwrap().unwrap();
    let flushed = programs(&server);
    assert!(flushed >= opened + 8);
    host.write(0, &[8; 512], FUA).unwrap().unwrap();
    assert!(programs(&server) > flushed);
    let mut found = [0; 1024];
    host.read(0, &mut found).unwrap().unwrap();
    assert_eq!((found[..512].to_vec(), found[512..].to_vec()), (vec![8; 512], vec![7; 512]));
}

#[test]
fn two_clients_see_each_other_s_bytes() {
    let server = TestServer::of(Scheme::Dftl);
    let (mut one, mut other) = (server.host(false), server.host(true));
    assert_eq!(one.export().flags & 256, 256, "CAN_MULTI_CONN");
    for turn in 0..50_u8 {
        one.write(100, &[turn; 700], 0).unwrap().unwrap();
        let mut found = [0; 700];
        other.read(100, &mut found).unwrap().unwrap();
        assert_eq!(found, [turn; 700]);
    }
}
