//! Requests of any length that the device has sectors for, at odd places, in every scheme.

use emulator::{Chip, Profile};
use ftl::{BlockDevice, Device, Error, Format, Options, Scheme, TooLarge};

/// A device, and what its sectors hold: a number each, 0 for zeros.
struct Rig {
    device: Device<Chip>,
    shadow: Vec<u32>,
    sector_bytes: usize,
    requests: u32,
}

impl Rig {
    /// A new volume that splits requests which need too many free blocks.
    fn new(scheme: Scheme, profile: &str, bytes: u64) -> Self {
        Self::with(scheme, profile, bytes, TooLarge::Split)
    }

    fn with(scheme: Scheme, profile: &str, bytes: u64, too_large: TooLarge) -> Self {
        let profile = Profile::builtin(profile).unwrap().with_capacity(bytes).unwrap();
        let chip = Chip::new(&profile, 1).unwrap();
        let format = Format::usual(&chip, scheme, 7).unwrap();
        let options = Options { too_large, ..Options::default() };
        let device = Device::format(chip, scheme, &format, options).unwrap();
        let (sectors, sector_bytes) = (device.sectors() as usize, device.sector_bytes());
        Self { device, shadow: vec![0; sectors], sector_bytes, requests: 0 }
    }

    fn write(&mut self, sector: usize, count: usize) {
        self.requests += 1;
        let mut data = vec![self.requests as u8; count * self.sector_bytes];
        for (at, page) in data.chunks_exact_mut(self.sector_bytes).enumerate() {
            let number = self.requests << 24 ^ (sector + at) as u32;
            page[..4].copy_from_slice(&number.to_le_bytes());
            self.shadow[sector + at] = number;
        }
        self.device.write(sector as u64, &data).unwrap();
    }

    fn trim(&mut self, sector: usize, count: usize) {
        self.device.trim(sector as u64, count as u64).unwrap();
        self.shadow[sector..sector + count].fill(0);
    }

    /// One read of so many sectors finds what they were given last.
    fn read(&mut self, sector: usize, count: usize) {
        let mut data = vec![0xa5; count * self.sector_bytes];
        self.device.read(sector as u64, &mut data).unwrap();
        for (page, &number) in data.chunks_exact(self.sector_bytes).zip(&self.shadow[sector..]) {
            assert_eq!(page[..4], number.to_le_bytes());
            assert!(page[4..].iter().all(|&byte| byte == (number >> 24) as u8));
        }
    }

    fn programs(&self) -> u64 {
        self.device.counts().all_programs()
    }
}

/// On a new volume of every scheme, requests of these lengths at an odd place are done, cost hardly more than their sectors,
/// and leave what they should; the longest goes to the end of the device.
fn are_done(profile: &str, mib: u64) {
    for scheme in Scheme::ALL {
        for count in [1, 33, 928, 1_025, 65_536, usize::MAX] {
            let mut rig = Rig::new(scheme, profile, mib << 20);
            let sectors = rig.shadow.len();
            let count = if count == usize::MAX { 33_000.min(sectors) } else { count.min(sectors - 77) };
            let at = 77.min(sectors - count);
            let what = format!("{count} sectors at {at}, {scheme}, {mib} MiB");
            let before = rig.programs();
            rig.write(at, count);
            let programs = rig.programs() - before;
            assert!(20 * programs <= 21 * count as u64, "{what}: {programs} programs");
            rig.read(at - at.min(30), count + at.min(30));
            rig.trim(at + count / 3, count / 2);
            rig.write(at + count / 5, count / 5);
            rig.read(at - at.min(30), count + at.min(30));
        }
    }
}

#[test]
fn requests_of_any_length_are_done_on_16_mib() {
    are_done("k9f5608u0m", 16);
}

#[test]
fn requests_of_any_length_are_done_on_64_mib() {
    are_done("k9f5608u0m", 64);
}

#[test]
fn requests_of_any_length_are_done_on_256_mib() {
    are_done("k9f5608u0m", 256);
}

#[test]
fn requests_of_any_length_are_done_on_1_gib() {
    are_done("k9f5608u0m", 1_024);
}

#[test]
fn requests_of_any_length_are_done_on_256_mib_of_large_pages() {
    are_done("k9k8g08u0m", 256);
}

/// A page of the map was asked for for each block of a request, where one for each fragment is enough: more than a map block
/// has, so that the round of map blocks was turned for ever.
#[test]
fn requests_of_any_length_are_done_while_all_log_blocks_are_in_use() {
    for (scheme, mib) in Scheme::ALL.map(|scheme| (scheme, 16)).into_iter().chain([(Scheme::LogBlock, 64)]) {
        let mut rig = Rig::new(scheme, "k9f5608u0m", mib << 20);
        let sectors = rig.shadow.len();
        for count in [29 * 32, 1_024, 2_048, 5_001, sectors] {
            // Log blocks inside what is written, and far from it.
            for nth in 0..17 {
                rig.write(nth * (sectors / 17) / 32 * 32 + 5, 1);
            }
            let at = 11.min(sectors - count);
            rig.write(at, count);
            rig.read(0, sectors);
            (0..17).for_each(|nth| rig.write(nth * 64 + 3, 1));
            rig.trim(at + 40, count - 45);
            rig.read(0, sectors);
        }
    }
}

/// Where a request is not to be split, it is refused before anything of it is written, or written as a whole.
#[test]
fn a_request_that_is_not_to_be_split_is_whole_or_refused() {
    for scheme in [Scheme::LogBlock, Scheme::LogBlockScanned] {
        let mut rig = Rig::with(scheme, "k9f5608u0m", 64 << 20, TooLarge::Refuse);
        let most = (1..100).rev().find(|blocks| {
            let data = vec![7; blocks * 32 * 512];
            match rig.device.write(64, &data) {
                Ok(()) => true,
                Err(Error::TooLarge { .. }) => {
                    rig.read(0, rig.shadow.len());
                    false
                }
                Err(error) => panic!("{scheme}, {blocks} blocks: {error}"),
            }
        });
        assert!(most.is_some_and(|blocks| blocks > 40), "{scheme}: {most:?} blocks at once");
    }
}
