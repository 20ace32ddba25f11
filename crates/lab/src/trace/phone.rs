//! Half an hour of a phone: the applications of FlexFS §5.2.1 and Table 5, at fixed times.
//!
//! The paper gives the applications, 18 MB of music and 18 MB of pictures, 43,000 reads and writes, 5.7 MB read and 39 MB
//! written, 89 % of the time idle, and music from 750 s on. All else is chosen here so that it comes to that: 27 short
//! sessions of small reads and writes, a minute apart, each saved at its end; a picture every 200 s. How much flash the
//! small writes take is not in the paper: the lengths of the applications' files are chosen so that δ falls at 1,200 s to
//! about where Fig. 16 has it. Invariant: a seed decides the distances between requests and the places in files, nothing
//! else.

use super::{Op, Request, Trace};
use torture::content::mix;

const SECOND_NS: u64 = 1_000_000_000;
const LASTS_S: u64 = 1800;
const MIB: u64 = 1 << 20;

/// Music and pictures are written in pages, and each file is synced at its end.
const PAGE_BYTES: u64 = 4096;
const SONGS: u64 = 6;
const SONG_BYTES: u64 = 3 * MIB;
const SONG_S: u64 = 15;
/// When music begins to come (Fig. 16).
pub const SONGS_START_S: u64 = 750;
const PICTURE_BYTES: u64 = 2 * MIB;
const PICTURE_S: u64 = 4;
const PICTURES_S: [u64; 9] = [70, 260, 450, 640, 870, 1090, 1280, 1480, 1670];

/// When small applications are used: from here on, so far apart, but not while music comes.
const SESSIONS_START_S: u64 = 20;
const SESSION_EVERY_S: u64 = 64;
const SESSIONS: u64 = 28;
const SESSION_LEFT_OUT: u64 = 12;

/// An application of small reads and writes.
struct App {
    name: &'static str,
    /// How long it is used, s.
    lasts_s: u64,
    /// Requests a second, and their bytes.
    reads: u64,
    read_bytes: u64,
    writes: u64,
    write_bytes: u64,
    /// What it writes is synced after so many.
    save_writes: u64,
    /// What its file holds before, bytes, and whether it grows.
    file_bytes: u64,
    appends: bool,
}

const SMS: App = App {
    name: "messages",
    lasts_s: 2,
    reads: 280,
    read_bytes: 256,
    writes: 200,
    write_bytes: 200,
    save_writes: 400,
    file_bytes: 64 << 10,
    appends: true,
};
const ADDRESS_BOOK: App = App {
    name: "addresses",
    lasts_s: 3,
    reads: 320,
    read_bytes: 256,
    writes: 160,
    write_bytes: 256,
    save_writes: 480,
    file_bytes: 128 << 10,
    appends: false,
};
const MEMO: App = App {
    name: "memos",
    lasts_s: 2,
    reads: 240,
    read_bytes: 256,
    writes: 240,
    write_bytes: 256,
    save_writes: 480,
    file_bytes: 64 << 10,
    appends: true,
};
const GAME: App = App {
    name: "game",
    lasts_s: 6,
    reads: 341,
    read_bytes: 333,
    writes: 96,
    write_bytes: 410,
    save_writes: 576,
    file_bytes: 128 << 10,
    appends: false,
};

/// Which is used in each session, over and over.
const TURNS: [&App; 9] = [&SMS, &ADDRESS_BOOK, &SMS, &MEMO, &SMS, &ADDRESS_BOOK, &SMS, &MEMO, &GAME];

/// The trace of that seed.
pub fn trace(seed: u64) -> Trace {
    let mut requests = Vec::new();
    for song in 0..SONGS {
        let start_s = SONGS_START_S + song * SONG_S;
        requests.extend(file(&format!("song{song}"), start_s, SONG_S, SONG_BYTES));
    }
    for (picture, start_s) in PICTURES_S.into_iter().enumerate() {
        requests.extend(file(&format!("picture{picture}"), start_s, PICTURE_S, PICTURE_BYTES));
    }
    let starts = (0..SESSIONS).filter(|&session| session != SESSION_LEFT_OUT);
    for ((session, app), number) in starts.zip(TURNS.into_iter().cycle()).zip(0..) {
        let start_ns = (SESSIONS_START_S + session * SESSION_EVERY_S) * SECOND_NS;
        requests.extend(app.session(start_ns, number, seed));
    }
    requests.sort_by_key(|request| request.at_ns);
    let before = [&SMS, &ADDRESS_BOOK, &MEMO, &GAME].map(|app| (app.name.to_owned(), app.file_bytes));
    Trace { before: before.into(), requests, lasts_ns: LASTS_S * SECOND_NS }
}

/// A file that is written in pages, and then synced.
fn file(name: &str, start_s: u64, lasts_s: u64, bytes: u64) -> Vec<Request> {
    let (start_ns, lasts_ns) = (start_s * SECOND_NS, lasts_s * SECOND_NS);
    let at = |offset: u64, op| Request { at_ns: start_ns + lasts_ns * offset / bytes, file: name.to_owned(), op };
    let pages = (0..bytes).step_by(PAGE_BYTES as usize);
    let mut requests: Vec<Request> = pages.map(|offset| at(offset, Op::Write { offset, bytes: PAGE_BYTES })).collect();
    requests.push(at(bytes - PAGE_BYTES, Op::Sync));
    requests
}

impl App {
    /// The session of this number among all; reads and writes come by turns, as evenly as may be.
    fn session(&self, start_ns: u64, number: u64, seed: u64) -> Vec<Request> {
        let each_s = self.reads + self.writes;
        let count = self.lasts_s * each_s;
        let before =
            (0..number).filter(|&earlier| TURNS[earlier as usize % TURNS.len()].name == self.name).count() as u64;
        let mut end = self.file_bytes + before * self.lasts_s * self.writes * self.write_bytes;
        let (mut requests, mut writes) = (Vec::new(), 0);
        for index in 0..count {
            let dice = mix(seed ^ mix(number << 32 | index));
            let gap_ns = SECOND_NS / each_s;
            let at_ns = start_ns + index * gap_ns + dice % (gap_ns / 2);
            let mut ask = |op| requests.push(Request { at_ns, file: self.name.to_owned(), op });
            if (index + 1) * self.writes / each_s == index * self.writes / each_s {
                let offset = (dice >> 32) % (self.file_bytes - self.read_bytes);
                ask(Op::Read { offset, bytes: self.read_bytes });
                continue;
            }
            let records = self.file_bytes / self.write_bytes;
            let offset = if self.appends { end } else { (dice >> 32) % records * self.write_bytes };
            end += self.write_bytes;
            ask(Op::Write { offset, bytes: self.write_bytes });
            writes += 1;
            if writes % self.save_writes == 0 {
                ask(Op::Sync);
            }
        }
        requests
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_comes_to_the_papers_figures() {
        let summary = trace(1).summary();
        assert!((42_140..=43_860).contains(&summary.requests), "{summary:?}");
        let near = |bytes: u64, mib: f64| (bytes as f64 / MIB as f64 - mib).abs() <= mib * 0.02;
        assert!(near(summary.read_bytes, 5.7) && near(summary.written_bytes, 39.0), "{summary:?}");
        assert!((summary.idle_share - 0.89).abs() <= 0.89 * 0.02, "{summary:?}");
    }

    #[test]
    fn a_seed_changes_distances_and_places_and_no_figure_but_those() {
        let (one, other) = (trace(1), trace(2));
        assert_eq!(one, trace(1));
        assert_ne!(one, other);
        let bytes = |trace: &Trace| (trace.summary().read_bytes, trace.summary().written_bytes);
        assert_eq!(bytes(&one), bytes(&other));
    }

    #[test]
    fn requests_come_in_order_and_reads_find_what_they_ask_for() {
        let Trace { before, requests, lasts_ns } = trace(1);
        assert!(requests.is_sorted_by_key(|request| request.at_ns) && requests.last().unwrap().at_ns < lasts_ns);
        for Request { file, op, .. } in &requests {
            if let Op::Read { offset, bytes } = op {
                assert!(before.iter().any(|(name, len)| name == file && offset + bytes <= *len), "{file}: {op:?}");
            }
        }
    }
}
