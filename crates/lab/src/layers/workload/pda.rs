//! A PDA: its records are synchronized, MP3 files downloaded and played, files copied. Invariant: the parameters are those of
//! docs/FTL.md.

use super::fat::{Fat, FatUpdates, File, Manner};
use super::{Requests, Timed};
use torture::ops::Supply;

const SECOND_NS: u64 = 1_000_000_000;

/// Files with records, and their sectors.
const RECORD_FILES: u64 = 24;
const RECORD_SECTORS: u64 = 64;
/// Records written in all synchronizations, and in one.
const SYNCS: u64 = 60;
const RECORDS_PER_SYNC: u64 = 13;
/// Sectors of a record that is written.
const RECORD_WRITE_SECTORS: u64 = 12;
const RECORDS: Manner = Manner { request_sectors: 4, updates: FatUpdates::Back { table_every: u64::MAX } };

/// MP3 files of 3.5 MB, two at a time on the card.
const DOWNLOADS: u64 = 4;
const MP3_SECTORS: u64 = 7168;
const ON_CARD: usize = 2;
const DOWNLOAD: Manner = Manner { request_sectors: 32, updates: FatUpdates::Back { table_every: 8 } };

/// Files that are copied.
const COPIES: u64 = 40;
const COPY_SECTORS: u64 = 256;
const COPY: Manner = Manner { request_sectors: 16, updates: FatUpdates::Back { table_every: 8 } };
/// Copies that stay.
const COPIES_KEPT: usize = 10;

pub fn requests(seed: u64) -> Vec<Timed> {
    let (mut dice, mut out, mut fat) = (Supply::new(seed), Requests::default(), Fat::new());
    let records: Vec<File> = (0..RECORD_FILES).filter_map(|_| fat.write(RECORD_SECTORS, RECORDS, &mut out)).collect();
    let (mut songs, mut copies): (Vec<File>, Vec<File>) = (Vec::new(), Vec::new());
    for sync in 0..SYNCS {
        out.pause(30 * SECOND_NS);
        for _ in 0..RECORDS_PER_SYNC {
            out.pause(SECOND_NS / 10);
            let file = records.get(dice.below(RECORD_FILES) as usize);
            file.into_iter().for_each(|file| fat.overwrite(file, RECORD_WRITE_SECTORS, RECORDS, &mut out));
        }
        if sync % (SYNCS / DOWNLOADS) == 0 {
            download(&mut fat, &mut songs, &mut out);
        }
        if sync < COPIES {
            out.pause(5 * SECOND_NS);
            if copies.len() == COPIES_KEPT {
                fat.remove(copies.remove(dice.below(COPIES_KEPT as u64) as usize), &mut out);
            }
            copies.extend(fat.write(COPY_SECTORS, COPY, &mut out));
        }
    }
    out.all
}

/// A song comes, after the oldest is removed where there are two, and is played.
fn download(fat: &mut Fat, songs: &mut Vec<File>, out: &mut Requests) {
    out.pause(10 * SECOND_NS);
    if songs.len() == ON_CARD {
        fat.remove(songs.remove(0), out);
    }
    let song = fat.write(MP3_SECTORS, DOWNLOAD, out);
    song.iter().for_each(|song| fat.read(song, 64, out));
    songs.extend(song);
}
