//! What stands on flash beside files: heads, times of copies, the manager record, and what is refused.

use alloc::vec;
use alloc::vec::Vec;

use emulator::{Chip, Corruption, FaultConfig, Profile, TornKind};
use nand::{Cause, CellMode, Nand};

use super::{file, flash, formatted, formatted_as, mounted, options};
use crate::dump::SlotState;
use crate::flash::Purpose;
use crate::flash::append::Draft;
use crate::flash::head::HeadId;
use crate::format::anchor::{Anchor, HeadAt};
use crate::format::crc::crc32c;
use crate::format::key::{KeyKind, key};
use crate::format::place::Place;
use crate::format::tag::TAG_BYTES;
use crate::index::delta::Change;
use crate::policy::budget::Call;
use crate::policy::wear::Goal;
use crate::store::collector::Why;
use crate::{CellRecord, Error, FormatOptions, Fs, Ino, MountOptions, Policy, ROOT_INO};

/// Writes a chunk through the head of hot data, as nothing does by itself yet.
fn write_hot(fs: &mut Fs<Chip>, ino: Ino, chunk: u64, byte: u8) {
    fs.store_mut().begin(Call::CHANGE).unwrap();
    let records = fs.store_mut().records_mut();
    let bytes = [byte; 4096];
    let draft = Draft::data(ino, chunk, 4096, 1, true);
    let flash = records.log.flash_mut();
    let slot = flash.append(HeadId::SlcHot.into(), draft, &bytes, Purpose::of(Cause::Host)).unwrap();
    flash.end_group();
    records.set(key(ino, KeyKind::Data, chunk), Change::Put(Place::Run { slot, count: 1 })).unwrap();
}

/// The first chunks of a file.
fn read(fs: &mut Fs<Chip>, ino: Ino, chunks: usize) -> Vec<u8> {
    let mut data = vec![0; chunks * 4096];
    assert_eq!(fs.read(ino, 0, &mut data).unwrap(), data.len());
    data
}

fn hot_blocks(fs: &Fs<Chip>) -> Vec<u32> {
    flash(fs).blocks().iter().filter(|(_, block)| block.entry.hot).map(|(number, _)| number).collect()
}

#[test]
fn the_hot_head_takes_a_block_at_its_first_use_and_is_found_again() {
    let mut fs = mounted(formatted(), Policy::BASELINE);
    let ino = file(&mut fs, b"file");
    fs.write(ino, 0, &[1; 9 * 4096], 1).unwrap();
    fs.sync().unwrap();
    assert_eq!(flash(&fs).slots().head(HeadId::SlcHot).block(), None);
    write_hot(&mut fs, ino, 0, 7);
    let block = flash(&fs).slots().head(HeadId::SlcHot).block().unwrap();
    assert_eq!(hot_blocks(&fs), [block]);
    // After a cut replay finds it by its name; after an unmount the anchor says where it stands.
    fs = mounted(fs.into_chip(), Policy::BASELINE);
    write_hot(&mut fs, ino, 1, 8);
    for _ in 0..2 {
        let (chip, done) = fs.unmount(1);
        done.unwrap();
        fs = mounted(chip, Policy::BASELINE);
        assert_eq!(flash(&fs).slots().head(HeadId::SlcHot).block(), Some(block));
        let found = read(&mut fs, ino, 3);
        assert!(found[..4096] == [7; 4096] && found[4096..8192] == [8; 4096] && found[8192..] == [1; 4096]);
        write_hot(&mut fs, ino, 1, 8);
    }
    assert_eq!(hot_blocks(&fs), [block]);
    // It goes on in other blocks; those that are emptied are hot no more once they hold something else.
    (0..9).cycle().take(60).for_each(|chunk| write_hot(&mut fs, ino, chunk, 9));
    fs.sync().unwrap();
    fs = mounted(fs.into_chip(), Policy::BASELINE);
    assert!(hot_blocks(&fs).len() > 3, "{:?}", hot_blocks(&fs));
    assert!(read(&mut fs, ino, 9) == [9; 9 * 4096]);
    for round in 0..40 {
        fs.write(ino, 9 * 4096, &[round; 40 * 4096], 1).unwrap();
    }
    assert!(read(&mut fs, ino, 9) == [9; 9 * 4096]);
    let entry = |number: u32| flash(&fs).blocks().get(number).entry;
    assert!(hot_blocks(&fs).into_iter().map(entry).all(|entry| !entry.native));
    assert_eq!(fs.check().unwrap().findings, Vec::<alloc::string::String>::new());
}

/// The source's address took the place of the time.
#[test]
fn copies_of_data_tell_when_it_was_written() {
    const WRITTEN_NS: i64 = 1_700_000_000_000_000_000;
    let mut fs = mounted(formatted(), Policy::BASELINE);
    let ino = file(&mut fs, b"file");
    fs.write(ino, 0, &[1; 10 * 4096], WRITTEN_NS).unwrap();
    fs.sync().unwrap();
    let place = fs.store_mut().records_mut().get(key(ino, KeyKind::Data, 3)).unwrap().unwrap();
    let Place::Run { slot, .. } = place else { panic!("{place:?}") };
    let block = (slot / flash(&fs).shape().stride) as u32;
    fs.store_mut().empty_block(block, Why::Room).unwrap();
    fs.sync().unwrap();
    let mut told = Vec::new();
    for block in 0..64 {
        fs.slots(block, &mut |slot, state| {
            if let SlotState::Holds(tag) = state
                && tag.copy_of.is_some()
            {
                told.push((slot % flash_stride(), tag.erases, tag.time_ns));
            }
            true
        })
        .unwrap();
    }
    assert!(told.len() > 3 && told.iter().any(|&(index, ..)| index == 0), "{told:?}");
    for (index, erases, time_ns) in told {
        // The first slot of a block tells how often it was erased instead.
        let before = time_ns.map(|time_ns| WRITTEN_NS - time_ns);
        let right = if index == 0 {
            erases.is_some() && before.is_none()
        } else {
            erases.is_none() && before.is_some_and(|ns| (0..135_000_000_000).contains(&ns))
        };
        assert!(right, "slot {index}: {erases:?} {before:?}");
    }
}

/// Slots of a block of the chips here.
fn flash_stride() -> u64 {
    16
}

#[test]
fn the_life_to_be_guaranteed_stays_over_unmounts_cuts_and_salvage() {
    let goal = Goal { life_ns: 5_000_000_000, window_ns: 640_000 };
    let mut chip = formatted();
    Fs::format(&mut chip, &FormatOptions { goal: Some(goal), ..options(false) }).unwrap();
    let of = |fs: &Fs<Chip>| fs.anchor().unwrap().manager;
    let mut fs = mounted(chip, Policy::BASELINE);
    assert_eq!((of(&fs).life_ns, of(&fs).window_ns, of(&fs).elapsed_ns), (goal.life_ns, goal.window_ns, 0));
    fs.request(0);
    file(&mut fs, b"one");
    fs.request(1_000_000_000);
    let (chip, done) = fs.unmount(1);
    done.unwrap();
    fs = mounted(chip, Policy::BASELINE);
    let record = of(&fs);
    assert!(record.elapsed_ns == 1_000_000_000 && record.budget_bytes > 0 && record.total_bytes > 0, "{record:?}");
    file(&mut fs, b"two");
    fs.sync().unwrap();
    fs = mounted(fs.into_chip(), Policy::BASELINE);
    assert_eq!((of(&fs).life_ns, of(&fs).elapsed_ns), (goal.life_ns, record.elapsed_ns));
    let salvaged = Fs::salvage(fs.into_chip(), [1; 16], MountOptions::default(), &mut |_, _| {});
    let (fs, _) = salvaged.map_err(|(_, error)| error).unwrap();
    assert_eq!((of(&fs).life_ns, of(&fs).elapsed_ns), (goal.life_ns, record.elapsed_ns));
}

/// Writes an anchor behind the newest one: that one's bytes, changed.
fn forge_anchor(fs: Fs<Chip>, change: impl FnOnce(&mut [u8])) -> Chip {
    let (block, next) = flash(&fs).anchors().newest();
    let mut chip = fs.into_chip();
    let (mut data, mut spare) = ([0; 4096], vec![0xff; chip.geometry().spare_bytes as usize]);
    let unit_page = |chip: &Chip, unit| chip.layout(CellMode::Slc).unit_pages(unit)[0];
    let page = unit_page(&chip, next - 1);
    chip.read(block, page, 0, &mut data, &mut spare, Cause::Metadata).unwrap();
    change(&mut data);
    spare[..4].fill(0);
    let crc = crc32c(&spare[..TAG_BYTES], &data);
    spare[..4].copy_from_slice(&crc.to_le_bytes());
    chip.program(block, next, CellMode::Slc, &data, &spare, Cause::Metadata).unwrap();
    chip
}

/// The unit of the newest anchor and the one behind it hold nothing of another version.
#[test]
fn a_volume_of_another_format_version_is_refused_and_stays_as_it_is() {
    for version in [1u32, 2, 4] {
        let fs = mounted(formatted(), Policy::BASELINE);
        let chip = forge_anchor(fs, |data| data[8..12].copy_from_slice(&version.to_le_bytes()));
        let operations = chip.operations();
        let refused = Fs::mount(chip, MountOptions::default());
        let Err((chip, error)) = refused else { panic!("mounted") };
        assert_eq!(error, Error::Version { found: version, supported: 3 });
        assert_eq!(chip.operations(), operations);
    }
}

/// A program with several open blocks a head lists each of them.
#[test]
fn several_places_of_one_head_are_followed_each_by_itself() {
    let mut fs = mounted(formatted(), Policy::BASELINE);
    let ino = file(&mut fs, b"file");
    fs.write(ino, 0, &[1; 40 * 4096], 1).unwrap();
    fs.sync().unwrap();
    let newest = flash(&fs).anchors().last().unwrap().clone();
    assert!(!newest.names.is_empty() && newest.heads.iter().any(|at| at.head == HeadId::Slc as u8), "{newest:?}");
    let serial = newest.serial + 1;
    let chip = forge_anchor(fs, |data| {
        // Every name becomes a place of the head, at its first unit, and one more block follows that was never opened.
        let mut heads = newest.heads.clone();
        heads.extend(newest.names.iter().map(|named| HeadAt { head: named.head, block: named.block, unit: 0 }));
        let spare = (0..64).rev().find(|block| heads.iter().all(|at| at.block != *block)).unwrap();
        heads.push(HeadAt { head: HeadId::Slc as u8, block: spare, unit: 0 });
        let anchor = Anchor { heads, names: Vec::new(), serial, ..newest.clone() };
        data.copy_from_slice(&anchor.encode(4096));
    });
    let mut fs = mounted(chip, Policy::BASELINE);
    assert!(read(&mut fs, ino, 40) == [1; 40 * 4096]);
    fs.write(ino, 0, &[2; 40 * 4096], 1).unwrap();
    let (chip, done) = fs.unmount(1);
    done.unwrap();
    let mut fs = mounted(chip, Policy::BASELINE);
    assert!(read(&mut fs, ino, 40) == [2; 40 * 4096]);
    assert_eq!(fs.check().unwrap().findings, Vec::<alloc::string::String>::new());
}

#[test]
fn only_a_chip_that_is_known_to_be_new_is_formatted_without_erasing_it() {
    let erased = |blank| {
        let profile = Profile::builtin("flexfs-mlc").unwrap().with_capacity(32 << 20).unwrap();
        let mut chip = Chip::new(&profile, 1).unwrap();
        Fs::format(&mut chip, &options(blank)).unwrap();
        let erases: u32 = chip.erase_counts().sum();
        let mut fs = mounted(chip, Policy::BASELINE);
        let ino = file(&mut fs, b"file");
        fs.write(ino, 0, &[3; 99 * 4096], 1).unwrap();
        fs.sync().unwrap();
        let mut fs = mounted(fs.into_chip(), Policy::BASELINE);
        let found = fs.lookup(ROOT_INO, b"file").unwrap().ino;
        assert!(read(&mut fs, found, 99) == [3; 99 * 4096]);
        (erases, flash(&fs).blocks().len())
    };
    assert_eq!(erased(true).0, 0);
    let (erases, blocks) = erased(false);
    assert_eq!(erases, blocks);
}

/// A chip of two bits a cell was driven as a chip of one where the first page of the volume could not be read.
#[test]
fn cells_are_found_behind_a_damaged_page_and_others_are_refused() {
    let made = |cells| {
        let mut profile = Profile::builtin("flexfs-mlc").unwrap();
        (profile.geometry.blocks, profile.geometry.pages_per_block) = (64, 16);
        let mut chip = Chip::new(&profile, 1).unwrap();
        Fs::format(&mut chip, &FormatOptions { cells, ..options(false) }).unwrap();
        chip
    };
    assert_eq!(crate::recorded_cells(&mut made(CellRecord::default())), Ok(None));
    let cells = CellRecord { bits_per_cell: 2, pairing: 1, pairing_stride: 2, endurance: [9000, 3000] };
    let (mut chip, done) = mounted(made(cells), Policy::BASELINE).unmount(1);
    done.unwrap();
    for block in 0..2 {
        chip.faults_mut().corrupt_page(block, 0, Corruption::Uncorrectable).unwrap();
    }
    assert_eq!(crate::recorded_cells(&mut chip), Ok(Some(cells)));
    let mut fs = mounted(chip, Policy::BASELINE);
    fs.sync().unwrap();
    assert_eq!(crate::recorded_cells(&mut fs.into_chip()), Ok(Some(cells)), "kept by each checkpoint");
    let other = made(CellRecord { bits_per_cell: 3, ..cells });
    assert!(matches!(Fs::mount(other, MountOptions::default()), Err((_, Error::NotFlexfs(_)))));
}

/// Blocks were erased from the first on. Where that one held the newest anchor and another block older ones, a cut left
/// the volume as it had been some checkpoints before.
#[test]
fn a_format_that_is_cut_leaves_the_old_volume_whole_or_none() {
    let options = FormatOptions { volume_id: [9; 16], label: "new".into(), ..options(false) };
    let mut profile = Profile::builtin("flexfs-mlc").unwrap();
    (profile.geometry.blocks, profile.geometry.pages_per_block) = (64, 64);
    let mut chip = formatted_as(&profile);
    let pages = |chip: &Chip, of: u32| chip.written_pages().iter().filter(|&&(block, _)| block == of).count();
    let (mut newest_first, mut whole) = (0, 0);
    for round in 1..=40 {
        let mut fs = mounted(chip, Policy::BASELINE);
        file(&mut fs, &[round]);
        let (unmounted, done) = fs.unmount(1);
        done.unwrap();
        chip = unmounted;
        let newest = flash(&mounted(chip.snapshot(), Policy::BASELINE)).anchors().newest().0;
        assert!(newest < 2);
        if pages(&chip, 1 - newest) == 0 {
            // Ready for the next anchors: no older ones could be found.
            continue;
        }
        newest_first += u32::from(newest == 0);
        for cut in 0..4 {
            let mut torn = chip.snapshot();
            torn.faults_mut().cut_power_at(cut);
            Fs::format(&mut torn, &options).unwrap_err();
            torn.power_on();
            assert!(cut > 0 || pages(&torn, newest) == pages(&chip, newest), "the newest anchor went first");
            match Fs::mount(torn, MountOptions { read_only: true, ..MountOptions::default() }) {
                Ok(mut fs) => {
                    fs.lookup(ROOT_INO, &[round]).unwrap();
                    assert!(fs.check().unwrap().findings.is_empty());
                    whole += 1;
                }
                Err((_, error)) => assert!(cut > 0 && matches!(error, Error::NotFlexfs(_)), "{error}"),
            }
        }
    }
    assert!(newest_first > 3 && whole >= 12, "{newest_first} {whole}");
}

/// An anchor that is read well once more, in the block that was being erased, was believed: later nothing was left of it,
/// and the volume was what an older one said.
#[test]
fn what_a_cut_erase_leaves_readable_once_is_not_the_newest_anchor() {
    let read_only = || MountOptions { read_only: true, ..MountOptions::default() };
    let mut profile = Profile::builtin("flexfs-mlc").unwrap();
    (profile.geometry.blocks, profile.geometry.pages_per_block) = (64, 64);
    let mut chip = formatted_as(&profile);
    chip.faults_mut().set(FaultConfig { torn: TornKind::Unstable, ..FaultConfig::power_cuts(1) });
    let mut found = 0;
    for round in 1..=20 {
        let mut fs = mounted(chip, Policy::BASELINE);
        file(&mut fs, &[round]);
        let (unmounted, done) = fs.unmount(1);
        done.unwrap();
        chip = unmounted;
        let mut torn = chip.snapshot();
        torn.faults_mut().cut_power_at(0);
        Fs::format(&mut torn, &options(false)).unwrap_err();
        torn.power_on();
        let names = |fs: &mut Fs<Chip>| (1..=20).filter(|&name| fs.lookup(ROOT_INO, &[name]).is_ok()).count();
        let Ok(mut fs) = Fs::mount(torn, read_only()) else { continue };
        let first = names(&mut fs);
        // Each mount would believe one of the anchors behind it.
        for _ in 0..6 {
            fs = Fs::mount(fs.into_chip(), read_only()).map_err(|(_, error)| error).unwrap();
            assert_eq!(names(&mut fs), first, "round {round}");
        }
        found += 1;
    }
    assert!(found > 3, "{found}");
}
