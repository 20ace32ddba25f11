//! The handshake: each option that is known, those that are not, and clients that make no sense.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::thread;
use std::time::Duration;

use card::ClientLimits;
use card::Export;
use card::host::{NbdHost, option_reply, send_option};
use ftl::Scheme;

use crate::harness::{TestServer, volume};

const UNSUPPORTED: u32 = (1 << 31) | 1;
const POLICY: u32 = (1 << 31) | 2;
const INVALID: u32 = (1 << 31) | 3;
const UNKNOWN: u32 = (1 << 31) | 6;
const TOO_BIG: u32 = (1 << 31) | 9;

/// A connection after the greeting.
fn greeted(server: &TestServer, flags: u32) -> TcpStream {
    let mut stream = server.stream();
    let mut greeting = [0; 18];
    stream.read_exact(&mut greeting).unwrap();
    assert_eq!(&greeting, b"NBDMAGICIHAVEOPT\0\x03");
    stream.write_all(&flags.to_be_bytes()).unwrap();
    stream
}

fn asked(stream: &mut TcpStream, number: u32, data: &[u8]) -> (u32, Vec<u8>) {
    send_option(stream, number, data).unwrap();
    option_reply(stream).unwrap()
}

fn named(name: &str, rest: &[u8]) -> Vec<u8> {
    [&(name.len() as u32).to_be_bytes(), name.as_bytes(), rest].concat()
}

#[test]
fn an_export_is_listed_described_and_entered_by_its_name() {
    let server = TestServer::of(Scheme::LogBlock);
    let mut stream = greeted(&server, 3);
    assert_eq!(asked(&mut stream, 3, &[]), (2, named("test", &[])));
    assert_eq!(option_reply(&mut stream).unwrap().0, 1);
    // INFO asks for name and description beside what is told anyway.
    send_option(&mut stream, 6, &named("test", &[0, 2, 0, 1, 0, 2])).unwrap();
    let told: Vec<(u32, Vec<u8>)> = (0..5).map(|_| option_reply(&mut stream).unwrap()).collect();
    let numbers: Vec<u16> = told[..4].iter().map(|(_, data)| u16::from_be_bytes([data[0], data[1]])).collect();
    assert_eq!((numbers, &told[4]), (vec![0, 1, 2, 3], &(1, vec![])));
    assert_eq!((&told[1].1[2..], &told[2].1[2..]), (b"test".as_slice(), b"a small card".as_slice()));
    let host = NbdHost::connect(server.stream(), "test", true).unwrap();
    assert_eq!(host.export().sizes, Some([1, 4096, 32 << 20]));
    assert_eq!(
        host.export().bytes,
        server.export.between_requests(|volume, _, _| ftl::BlockDevice::sectors(volume)) * 512
    );
}

#[test]
fn unknown_and_senseless_options_are_refused() {
    let server = TestServer::of(Scheme::LogBlock);
    let mut stream = greeted(&server, 3);
    assert_eq!(asked(&mut stream, 5, &[]).0, UNSUPPORTED, "TLS");
    assert_eq!(asked(&mut stream, 99, b"whatever").0, UNSUPPORTED);
    assert_eq!(asked(&mut stream, 3, b"x").0, INVALID, "a list has no data");
    assert_eq!(asked(&mut stream, 7, &[0, 0, 0, 9, 1]).0, INVALID, "a name that is cut");
    assert_eq!(asked(&mut stream, 7, &named("other", &[0, 0])).0, UNKNOWN);
    assert_eq!(asked(&mut stream, 9, &named("", &[0; 4])).0, INVALID, "contexts need structured replies");
    assert_eq!(asked(&mut stream, 8, &[]).0, 1);
    assert_eq!(asked(&mut stream, 9, &named("", &[0; 4])).0, 1, "an empty list");
    assert_eq!(asked(&mut stream, 10, &named("", &[0, 0, 0, 1, 0, 0, 0, 3, b'a', b':', b'b'])).0, 1);
    assert_eq!(asked(&mut stream, 2, &[]).0, 1, "ABORT");
    assert_eq!(stream.read(&mut [0]).unwrap(), 0, "and the connection ends");
    let mut stream = greeted(&server, 3);
    assert_eq!(asked(&mut stream, 3, &[0; 6_000]).0, TOO_BIG);
    let mut stream = greeted(&server, 0x80);
    assert_eq!(stream.read(&mut [0]).unwrap(), 0, "an unknown client flag");
}

#[test]
fn a_client_of_the_old_kind_enters_with_export_name() {
    let server = TestServer::of(Scheme::LogBlock);
    for (flags, zeroes) in [(1, 124), (3, 0)] {
        let mut stream = greeted(&server, flags);
        send_option(&mut stream, 1, b"test").unwrap();
        let mut answer = vec![0; 10 + zeroes];
        stream.read_exact(&mut answer).unwrap();
        stream.write_all(&[0x25, 0x60, 0x95, 0x13, 0, 0, 0, 0]).unwrap();
        stream.write_all(&[[0; 8], [0; 8]].concat()).unwrap();
        stream.write_all(&16_u32.to_be_bytes()).unwrap();
        let mut read = [0xee; 32];
        stream.read_exact(&mut read).unwrap();
        assert_eq!((&read[..4], &read[16..]), ([0x67, 0x44, 0x66, 0x98].as_slice(), [0; 16].as_slice()));
    }
    let mut stream = greeted(&server, 3);
    send_option(&mut stream, 1, b"other").unwrap();
    assert_eq!(stream.read(&mut [0]).unwrap(), 0);
}

#[test]
fn more_clients_than_are_let_in_are_told_so() {
    let limits = ClientLimits { clients: 2, ..ClientLimits::default() };
    let server = TestServer::serve(Export::new(volume(Scheme::Fast), 0, false, None), limits);
    let (first, _second) = (server.host(false), server.host(false));
    let mut third = greeted(&server, 3);
    let (kind, text) = asked(&mut third, 7, &named("", &[0, 0]));
    assert_eq!(kind, POLICY, "{}", String::from_utf8_lossy(&text));
    let mut gone = first.disconnect().unwrap();
    assert_eq!(gone.read(&mut [0]).unwrap(), 0);
    // Its place is free once its thread is at its end, which is soon.
    let comes_in = |_| {
        thread::sleep(Duration::from_millis(10));
        NbdHost::connect(server.stream(), "", false).is_ok()
    };
    assert!((0..6_000).any(comes_in), "the place of a client that went stays taken");
}
