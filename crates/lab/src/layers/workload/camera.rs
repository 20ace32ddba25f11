//! Digital cameras: pictures are taken, browsed and erased. Invariant: the parameters are those of docs/FTL.md.

use super::fat::{Fat, FatUpdates, File, Manner};
use super::{Requests, Timed};
use torture::ops::Supply;

const SECOND_NS: u64 = 1_000_000_000;
/// Time between two pictures.
const PICTURE_NS: u64 = 8 * SECOND_NS;
/// Of so many pictures one is looked at.
const BROWSED_SHARE: u64 = 4;
/// The size of a picture differs from the mean by so much at most, in percent.
const SPREAD_PERCENT: u64 = 20;
/// Sectors of a read.
const READ_SECTORS: u64 = 64;

/// A camera, and what was done with it.
pub struct Camera {
    pictures: u64,
    /// Sectors of a picture, in the mean.
    picture_sectors: u64,
    manner: Manner,
}

const fn written_back(pictures: u64, picture_sectors: u64, request_sectors: u64, table_every: u64) -> Camera {
    let updates = FatUpdates::Back { table_every };
    Camera { pictures, picture_sectors, manner: Manner { request_sectors, updates } }
}

pub const CANON_G1: Camera = written_back(134, 1024, 64, 5);
pub const CANON_S100: Camera = written_back(190, 640, 64, 4);
pub const SANYO: Camera = written_back(181, 512, 64, 64);
pub const KODAK: Camera =
    Camera { pictures: 77, picture_sectors: 960, manner: Manner { request_sectors: 32, updates: FatUpdates::Through } };
/// As many commands and pages as the Kodak camera's, all data in requests of a cluster.
pub const KODAK_WRITTEN_BACK: Camera = written_back(143, 720, 8, 40);

/// Takes pictures, looks at some, and erases them one by one from the oldest on when the card is full.
pub fn requests(camera: &Camera, seed: u64) -> Vec<Timed> {
    let (mut dice, mut out, mut fat) = (Supply::new(seed), Requests::default(), Fat::new());
    let mut card: std::collections::VecDeque<File> = Default::default();
    let spread = camera.picture_sectors * SPREAD_PERCENT / 100;
    for picture in 0..camera.pictures {
        let sectors = camera.picture_sectors - spread + dice.below(2 * spread + 1);
        out.pause(PICTURE_NS);
        loop {
            if let Some(file) = fat.write(sectors, camera.manner, &mut out) {
                card.push_back(file);
                break;
            }
            // Half of the card at a time, by hand.
            for _ in 0..card.len().div_ceil(2) {
                out.pause(SECOND_NS);
                card.pop_front().into_iter().for_each(|file| fat.remove(file, &mut out));
            }
        }
        if picture % BROWSED_SHARE == 0 {
            out.pause(SECOND_NS);
            card.get(dice.below(card.len() as u64) as usize)
                .into_iter()
                .for_each(|file| fat.read(file, READ_SECTORS, &mut out));
        }
    }
    out.all
}
