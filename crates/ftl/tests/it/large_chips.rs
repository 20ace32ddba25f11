//! Log blocks on chips of many blocks: their number changes how much there is, not how it works.

use emulator::{Chip, FaultConfig, Profile};
use ftl::{BlockDevice, BlockUse, Device, Error, Format, Options, Payload, Scheme, Volume};
use nand::{Nand, NandError};

/// Nothing is asked of a host's bytes: the chip keeps the map, and which sector a page holds.
const OPTIONS: Options = options();

const fn options() -> Options {
    let (victim, too_large) = (ftl::Victim::LeastRecent, ftl::TooLarge::Split);
    Options { victim, too_large, merges_partially: true, swap_every: 2, payload: Payload::Absent }
}

fn chip(mib: u64) -> Chip {
    Chip::without_data(&Profile::builtin("k9f5608u0m").unwrap().with_capacity(mib << 20).unwrap(), 1).unwrap()
}

fn format(mib: u64) -> Device<Chip> {
    let chip = chip(mib);
    let format = Format::usual(&chip, Scheme::LogBlock, 7).unwrap();
    Device::format(chip, Scheme::LogBlock, &format, OPTIONS).unwrap()
}

/// Writes single sectors and whole blocks all over the device.
fn write_everywhere(device: &mut Device<Chip>, requests: u64) -> Result<(), Error> {
    let sectors = device.sectors();
    for nth in 0..requests {
        let sector = nth * 1_000_003 % (sectors - 100);
        let count = if nth % 8 == 0 { 70 } else { 1 };
        device.write(sector, &vec![0; count * 512])?;
    }
    Ok(())
}

/// Every sector that was written has a page with its number: an opening reads what it needs, and a check the map.
fn is_in_order(device: &mut Device<Chip>, sectors: &[u64]) {
    let mut data = [0; 512];
    sectors.iter().for_each(|&sector| device.read(sector, &mut data).unwrap());
    let uses = device.uses().unwrap();
    assert!(!uses.contains(&BlockUse::Unknown), "a block is on no list");
}

fn is_made_written_cut_and_opened(mib: u64) {
    let mut device = format(mib);
    write_everywhere(&mut device, 3_000).unwrap();
    let sectors: Vec<u64> = (0..3_000).map(|nth| nth * 1_000_003 % (device.sectors() - 100)).collect();
    assert!(device.counts().swaps > 2 && device.counts().map_writes > 2_000, "{:?}", device.counts());
    let mut chip = device.into_chip();
    let volume = Volume::find(&mut chip).unwrap();
    assert_eq!(volume.map_blocks.len() > 64, mib > 1_024, "{} map blocks", volume.map_blocks.len());
    for cut in [0, 1, 5, 13, 40, 177, 400] {
        let mut device = Device::open(chip, OPTIONS).unwrap();
        device.chip_mut().faults_mut().set(FaultConfig::power_cuts(cut));
        device.chip_mut().faults_mut().cut_power_at(cut);
        let error = write_everywhere(&mut device, 400).unwrap_err();
        assert!(matches!(error, Error::Nand(NandError::PowerOff)), "{error}");
        chip = device.into_chip();
        chip.power_on();
    }
    let mut device = Device::open(chip, OPTIONS).unwrap();
    is_in_order(&mut device, &sectors);
}

#[test]
fn a_chip_of_1_gib_is_made_written_cut_and_opened() {
    is_made_written_cut_and_opened(1_024);
}

#[test]
fn a_chip_of_8_gib_is_made_written_cut_and_opened() {
    is_made_written_cut_and_opened(8 * 1_024);
}

#[test]
fn a_chip_of_640_mib_takes_no_more_than_4_kb_of_memory() {
    let mut device = format(640);
    write_everywhere(&mut device, 2_000).unwrap();
    let mut device = Device::open(device.into_chip(), OPTIONS).unwrap();
    write_everywhere(&mut device, 2_000).unwrap();
    assert!(device.ram_bytes() <= 4 << 10, "{} bytes", device.ram_bytes());
}

/// A volume of which more blocks are in reserve than the pool's fragment lists, and what its sectors hold.
struct Reserved {
    device: Device<Chip>,
    shadow: Vec<u8>,
}

impl Reserved {
    fn new() -> Self {
        let profile = Profile::builtin("k9f5608u0m").unwrap().with_capacity(8 << 20).unwrap();
        let chip = Chip::new(&profile, 1).unwrap();
        let format = Format { volume: 7, extra_blocks: 300, logs: 4, map_blocks: 3 };
        let device = Device::format(chip, Scheme::LogBlock, &format, Options::default()).unwrap();
        Self { shadow: vec![0; device.sectors() as usize], device }
    }

    fn write(&mut self, sector: u64, value: u8) -> Result<(), Error> {
        self.device.write(sector, &[value; 512])?;
        self.shadow[sector as usize] = value;
        Ok(())
    }

    fn bad_blocks(&self) -> usize {
        let chip = self.device.chip();
        (0..chip.geometry().blocks).filter(|&block| chip.is_bad(block)).count()
    }

    /// Opens the volume anew; it holds what was written, and every block is on one list.
    fn reopen(mut self) -> Self {
        let mut chip = self.device.into_chip();
        chip.power_on();
        self.device = Device::open(chip, Options::default()).unwrap();
        let mut data = [0; 512];
        for (sector, &value) in (0..).zip(&self.shadow) {
            self.device.read(sector, &mut data).unwrap();
            assert_eq!(data, [value; 512], "sector {sector}");
        }
        assert_eq!(self.device.check().unwrap(), Vec::<String>::new());
        assert!(!self.device.uses().unwrap().contains(&BlockUse::Unknown), "a block is on no list");
        self
    }
}

#[test]
fn more_blocks_go_bad_than_the_pool_s_fragment_lists_and_nothing_is_lost() {
    let mut volume = Reserved::new();
    for nth in 0..5_000 {
        if nth % 20 == 0 {
            volume.device.chip_mut().faults_mut().fail_program_at(nth % 37);
        }
        volume.write(nth * 997 % volume.shadow.len() as u64, nth as u8).unwrap();
        if nth % 1_000 == 999 {
            volume = volume.reopen();
        }
    }
    assert!(volume.bad_blocks() > 150, "{} blocks have gone bad", volume.bad_blocks());
    volume.reopen();
}

#[test]
fn a_cut_while_blocks_come_from_the_reserve_loses_no_block() {
    for cut in 0..80 {
        let mut volume = Reserved::new();
        (0..40).for_each(|nth| volume.write(nth * 97, 1 + nth as u8).unwrap());
        // The next program fails: the requests after that bring a block from the reserve.
        volume.device.chip_mut().faults_mut().fail_program_at(0);
        volume.device.chip_mut().faults_mut().set(FaultConfig::power_cuts(cut));
        volume.device.chip_mut().faults_mut().cut_power_at(cut);
        let error = (0..100).find_map(|nth| volume.write(nth * 97, 100 + nth as u8).err().map(|error| (nth, error)));
        let (nth, error) = error.unwrap();
        assert!(matches!(error, Error::Nand(NandError::PowerOff)), "{error}");
        // What was under way is there or not.
        let mut chip = volume.device.into_chip();
        chip.power_on();
        volume.device = Device::open(chip, Options::default()).unwrap();
        let mut data = [0; 512];
        volume.device.read(nth * 97, &mut data).unwrap();
        assert!([100 + nth as u8, volume.shadow[nth as usize * 97]].contains(&data[0]), "cut {cut}");
        volume.shadow[nth as usize * 97] = data[0];
        volume = volume.reopen();
        (0..40).for_each(|nth| volume.write(nth * 31, nth as u8).unwrap());
        volume.reopen();
    }
}
