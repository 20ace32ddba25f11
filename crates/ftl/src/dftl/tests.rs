//! What a lost translation page costs, and what an opening reads.

use emulator::{Chip, Corruption, Profile};

use super::*;
use crate::device::BlockDevice;
use crate::flash::Place;
use crate::flash::tag::{Kind, Tag};
use crate::translation::Translation;

type Device = Translation<Chip, Dftl>;

/// Blocks of the chip, and sectors of the volume on it, which 13 translation pages map.
const BLOCKS: u32 = 128;
const SECTORS: u64 = (128 - 32) * 32;

fn made() -> Device {
    let profile = Profile::builtin("k9f5608u0m").unwrap().with_capacity(2 << 20).unwrap();
    let format = Format { volume: 1, extra_blocks: 32, logs: 0, map_blocks: 0 };
    Device::create(Chip::new(&profile, 1).unwrap(), &ROW, &format, Options::default()).unwrap()
}

fn page(sector: u64, version: u8) -> [u8; 512] {
    let mut page = [version; 512];
    page[..8].copy_from_slice(&sector.to_le_bytes());
    page
}

/// A volume of which every sector was written in order, and every seventh once more.
fn in_use() -> Device {
    let mut device = made();
    for sector in (0..SECTORS).chain((0..SECTORS).step_by(7)) {
        let version = 1 + u8::from(device.counts_written() >= SECTORS);
        device.write(sector, &page(sector, version)).unwrap();
    }
    device
}

fn read_all(device: &mut Device, what: &str) {
    let mut found = [0; 512];
    for sector in 0..SECTORS {
        device.read(sector, &mut found).unwrap_or_else(|error| panic!("{what}: {error}"));
        assert!(found == page(sector, if sector % 7 == 0 { 2 } else { 1 }), "{what}: sector {sector}");
    }
}

impl Device {
    fn counts_written(&self) -> u64 {
        self.flash.counts().host_writes
    }

    /// Makes the translation page of a fragment unreadable.
    fn lose(&mut self, fragment: usize) {
        let Place { block, page } = self.map.pages.place(self.map.directory[fragment]);
        self.flash.chip_mut().faults_mut().corrupt_page(block, page, Corruption::Uncorrectable).unwrap();
    }
}

#[test]
fn a_translation_page_that_is_lost_in_use_is_made_anew_from_tags() {
    let mut device = in_use();
    for fragment in 0..device.map.directory.len() {
        device.lose(fragment);
    }
    read_all(&mut device, "every translation page lost");
    for sector in (0..SECTORS).step_by(7) {
        device.write(sector, &page(sector, 2)).unwrap();
    }
    read_all(&mut device, "written after the loss");
    assert_eq!(device.check().unwrap(), [""; 0]);
}

#[test]
fn an_opening_finds_every_sector_whichever_translation_page_is_lost_and_meets_the_loss_once() {
    let clean = in_use();
    let usual = Device::recover(clean.clone().into_chip(), Options::default()).unwrap().flash.counts().all_reads();
    for fragment in 0..clean.map.directory.len() {
        let mut device = clean.clone();
        device.lose(fragment);
        let what = format!("fragment {fragment} lost");
        let mut device = Device::recover(device.into_chip(), Options::default()).unwrap();
        read_all(&mut device, &what);
        assert_eq!(device.check().unwrap(), [""; 0], "{what}");
        let mut device = Device::recover(device.into_chip(), Options::default()).unwrap();
        let again = device.flash.counts().all_reads();
        assert!(again < usual + 4 * 32, "{what}: {again} reads, and {usual} usually");
        read_all(&mut device, &what);
    }
}

/// An entry that stays dirty while others come and go would have an opening read all data blocks written since.
#[test]
fn an_opening_reads_few_data_blocks_though_one_sector_is_used_all_the_time_and_never_written_again() {
    let mut device = in_use();
    // No other sector of its translation page is written.
    let still = 1_000;
    let its = device.map.shape.sectors_of(still as u32 / device.map.shape.entries);
    device.write(still, &page(still, 1)).unwrap();
    let mut found = [0; 512];
    for sector in (0..SECTORS).filter(|&sector| !its.contains(&(sector as u32))) {
        device.read(still, &mut found).unwrap();
        device.write(sector, &page(sector, if sector % 7 == 0 { 2 } else { 1 })).unwrap();
    }
    let mut device = Device::recover(device.into_chip(), Options::default()).unwrap();
    // Each block's first page, map blocks and anchors as a whole, each translation page once more; then as much as is let wait.
    let known = u64::from(BLOCKS) + 32 * (u64::from(device.map.map_limit) + 3) + device.map.directory.len() as u64;
    let waiting = 2 * device.map.cache.capacity() as u64 + 8 * 32;
    let reads = device.flash.counts().all_reads();
    assert!(reads < known + waiting + 2 * 32, "{reads} reads, of which {known} are for what is known of blocks");
    read_all(&mut device, "opened");
}

#[test]
fn an_opening_knows_which_change_is_the_oldest() {
    let mut device = made();
    for sector in [30, 20, 10] {
        device.write(sector, &page(sector, 1)).unwrap();
    }
    let device = Device::recover(device.into_chip(), Options::default()).unwrap();
    let (_, sector) = device.map.cache.oldest_dirty(&(0..0)).unwrap();
    assert_eq!(sector, 30, "it was written first, though other sectors come before it");
}

/// A fuzzer found it: the tag of a page in use was changed to sector 4,294,967,295, which cleaning added to the map.
#[test]
fn a_page_whose_tag_names_no_sector_is_cleaned_as_lost() {
    let mut device = in_use();
    let Translation { flash, map } = &mut device;
    let program =
        |flash: &mut Flash<Chip>, at| flash.program(at, Tag::new(Kind::Data, u32::MAX), &page(5, 9), nand::Cause::Host);
    let packed = map.pages.append(flash, &mut map.data_head, program).unwrap();
    let was = map.look_up(flash, 5, 6).unwrap();
    map.pages.counts_no_more(was);
    map.cache.change(5, packed, flash.next_stamp() - 1, true);
    map.move_page(flash, packed).unwrap();
    for sector in (0..SECTORS).filter(|&sector| sector != 5) {
        device.write(sector, &page(sector, if sector % 7 == 0 { 2 } else { 1 })).unwrap();
    }
    assert_eq!(device.check().unwrap(), ["sector 5 cannot be read"]);
    assert_eq!(device.read(5, &mut [0; 512]), Err(crate::Error::Unreadable { sector: 5 }));
    device.write(5, &page(5, 1)).unwrap();
    read_all(&mut device, "written after the loss");
}
