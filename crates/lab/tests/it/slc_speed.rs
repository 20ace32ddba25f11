//! What a newcomer measures: large files copied to a volume that has room go to SLC cells, though no idle time was seen. Invariant:
//! what was written is read back.

use flexfs_core::{Policy, Wanted};
use lab::play::{HostCost, PlayError, Player, Setting};
use torture::content::{Fill, Texture};

const FILE_BYTES: usize = 4 << 20;
const SECOND_NS: u64 = 1_000_000_000;

/// A volume of 512 MiB, its files, and what they hold.
struct Copied {
    player: Player,
    files: u64,
}

/// Pages of callers that were programmed to SLC cells, and to native ones.
#[derive(Clone, Copy, Debug)]
struct HostPages {
    slc: u64,
    native: u64,
}

fn contents(number: u64) -> Vec<u8> {
    Fill { seed: number, start: 0, texture: Texture::Noise }.bytes(FILE_BYTES)
}

impl Copied {
    fn new() -> Self {
        let (host, policy, life) = (HostCost::NONE, Policy::DEFAULT, Wanted::default());
        let setting = Setting { profile: emulator::Profile::default(), host, policy, life, seed: 1 };
        Self { player: Player::new(&setting).unwrap(), files: 0 }
    }

    fn host_pages(&mut self) -> HostPages {
        let programs = self.player.look().chip().counters().programs;
        HostPages { slc: programs.slc.host, native: programs.native.host }
    }

    /// Copies so many bytes in files, each synced, with so long a pause before each; the share of pages that went to SLC.
    fn copy(&mut self, bytes: u64, pause_ns: u64) -> f64 {
        let before = self.host_pages();
        for _ in 0..bytes / FILE_BYTES as u64 {
            let (name, data) = (format!("file{:04}", self.files), contents(self.files));
            let arrival_ns = self.player.now_ns() + pause_ns;
            let store = |player: &mut Player| -> Result<(), PlayError> {
                let ino = player.create(&name)?.ino;
                let mut offset = 0;
                for piece in data.chunks(128 << 10) {
                    player.write(ino, offset, piece)?;
                    offset += piece.len() as u64;
                }
                player.sync()
            };
            self.player.request(arrival_ns, store).unwrap();
            self.files += 1;
        }
        let after = self.host_pages();
        println!("{:?} to {:?}", before, after);
        let (slc, native) = ((after.slc - before.slc) as f64, (after.native - before.native) as f64);
        slc / (slc + native)
    }

    fn verify(&mut self) {
        let fs = self.player.look();
        let mut read = vec![0; FILE_BYTES + 1];
        for number in 0..self.files {
            let ino = fs.lookup(flexfs_core::ROOT_INO, format!("file{number:04}").as_bytes()).unwrap().ino;
            assert_eq!(fs.read(ino, 0, &mut read).unwrap(), FILE_BYTES);
            assert!(read[..FILE_BYTES] == contents(number), "file {number}");
        }
        assert_eq!(fs.check().unwrap().findings, Vec::<String>::new());
    }
}

/// Without a pause of a second α falls to 0, and 83 of 100 pages went to native cells of a volume nine tenths of which were free.
#[test]
fn files_copied_to_a_fresh_volume_go_to_slc() {
    let mut volume = Copied::new();
    let share = volume.copy(48 << 20, SECOND_NS / 20);
    assert!(share >= 0.95, "{share}");
    volume.verify();
}

/// In a minute migration frees 62 SLC blocks at most; the burst takes a hundred.
#[test]
fn a_burst_after_a_minute_goes_to_slc_on_a_volume_half_full() {
    let mut volume = Copied::new();
    let capacity_bytes = volume.player.look().statfs().unwrap().capacity_bytes;
    volume.copy(capacity_bytes / 2, 0);
    let burst_ns = volume.player.now_ns() + 60 * SECOND_NS;
    volume.player.rest_until(burst_ns).unwrap();
    let share = volume.copy(capacity_bytes / 20, 0);
    assert!(share >= 0.95, "{share}");
    volume.verify();
}
