//! Recordings of a served card, replayed at the addresses and on the volume that they were recorded with.

use std::io::{self, Write};
use std::sync::{Arc, Mutex};

use card::record::{RecordedDevice, RequestRecorder};
use card::{CardVolume, Disk, Export};
use emulator::Chip;
use ftl::{BlockDevice, Counts, Device, Format, Options, Scheme, TooLarge};
use lab::layers::LayerError;
use lab::layers::replay::{BlocksReplayed, ReplayConfig, ReplayFormat, TracePlacement, replay, size_for};
use lab::trace::block::{self, BlockOp, BlockRequest, BlockTrace};
use torture::ops::Supply;

use super::layers::{LARGE_PAGES, SMALL_PAGES, config, played};

/// Memory that a recording is written to.
#[derive(Clone, Default)]
struct RecordedText(Arc<Mutex<Vec<u8>>>);

impl Write for RecordedText {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn as_recorded(chip: (&str, u64), scheme: Scheme, format: ReplayFormat) -> ReplayConfig {
    ReplayConfig { format, placement: TracePlacement::AsRecorded, ..config(chip, scheme) }
}

/// Asks a disk of so many bytes for ranges of 512 bytes and more, most of them in a hot part.
fn ask(disk: &impl Disk, bytes: u64) {
    let mut dice = Supply::new(11);
    for number in 0..1_200 {
        let within = if dice.below(3) > 0 { bytes / 16 } else { bytes };
        let offset = dice.below(within / 512) * 512;
        let length = ((1 + dice.below(24)) * 512).min(bytes - offset);
        let is_durable = dice.below(8) == 0;
        let done = match dice.below(20) {
            0..=4 => disk.read(offset, &mut vec![0; length as usize]),
            5 => disk.trim(offset, length, is_durable),
            6 => disk.write_zeroes(offset, length, false, is_durable),
            7 => disk.flush(),
            // A long one, of whole blocks, now and then of more than are free.
            8 => disk.write(0, &vec![number as u8; bytes as usize / if number < 100 { 2 } else { 16 }], is_durable),
            _ => disk.write(offset, &vec![number as u8; length as usize], is_durable),
        };
        done.unwrap();
    }
}

/// A card is served as by `flexfs serve`, without background work: its recording, and what it counted.
fn recorded(config: &ReplayConfig) -> (BlockTrace, Counts) {
    let chip = Chip::new(&config.profile, 1).unwrap();
    let usual = Format::usual(&chip, config.scheme, 7).unwrap();
    let ReplayFormat { extra_blocks, logs, map_blocks } = config.format;
    let (extra_blocks, logs) = (extra_blocks.unwrap_or(usual.extra_blocks), logs.unwrap_or(usual.logs));
    let format = Format { extra_blocks, logs, map_blocks: map_blocks.unwrap_or(usual.map_blocks), ..usual };
    let formatted = Device::format(chip, config.scheme, &format, Options::default()).unwrap();
    let device = RecordedDevice {
        sectors: formatted.sectors(),
        sector_bytes: formatted.sector_bytes() as u64,
        scheme: config.scheme.name().into(),
        profile: config.profile.name.clone(),
        chip_bytes: config.profile.capacity_bytes(),
        extra_blocks,
        logs,
        map_blocks: format.map_blocks,
    };
    let text = RecordedText::default();
    let recorder = RequestRecorder::new(Box::new(text.clone()), &device).unwrap();
    let options = Options { too_large: TooLarge::Split, ..Options::default() };
    let volume = CardVolume::open(formatted.into_chip(), options, |_| Ok(())).unwrap();
    let export = Export::new(volume, 0, false, Some(recorder));
    ask(&export, device.sectors * device.sector_bytes);
    export.finish().unwrap();
    let counts = export.between_requests(|volume, _, _| *volume.device().unwrap().counts());
    let trace = block::read(&text.0.lock().unwrap()).unwrap();
    assert_eq!(trace.device, Some(device));
    (trace, counts)
}

fn assert_counted(replayed: &BlocksReplayed, counts: &Counts, what: &str) {
    let BlocksReplayed { work, sectors_read, sectors_written, sectors_trimmed, partial_sectors, .. } = replayed;
    let host = (sectors_read + partial_sectors, *sectors_written, *sectors_trimmed);
    assert_eq!(host, (counts.host_reads, counts.host_writes, counts.host_trims), "{what}");
    let flash = (work.programs, work.reads, work.erases);
    assert_eq!(flash, (counts.all_programs(), counts.all_reads(), counts.all_erases()), "{what}");
    let done = (work.merges, work.partial_merges, work.switches, work.map_writes, work.map_copies, work.map_swaps);
    let Counts { merges, partial_merges, switches, map_writes, map_copies, swaps, .. } = *counts;
    assert_eq!(done, (merges, partial_merges, switches, map_writes, map_copies, swaps), "{what}");
}

#[test]
fn a_recording_replayed_as_recorded_costs_as_on_its_card() {
    for chip in [SMALL_PAGES, LARGE_PAGES] {
        for scheme in Scheme::ALL {
            let config = as_recorded(chip, scheme, ReplayFormat::default());
            let (trace, counts) = recorded(&config);
            let what = format!("{scheme} on {}", chip.0);
            let replayed = played(&config, &trace, "recorded");
            assert!(counts.merges > 10 && counts.host_trims > 100 && counts.host_reads > 100, "{what}: {counts:?}");
            assert!(
                replayed.sectors_before == 0 && (replayed.partial_sectors > 100) == (chip == LARGE_PAGES),
                "{what}"
            );
            assert_counted(&replayed, &counts, &what);
        }
    }
}

#[test]
fn numbers_of_blocks_that_are_asked_for_are_those_of_the_volume() {
    let asked = ReplayFormat { extra_blocks: Some(20), logs: Some(6), map_blocks: Some(2) };
    let config = as_recorded(SMALL_PAGES, Scheme::LogBlock, asked);
    let (trace, counts) = recorded(&config);
    let replayed = played(&config, &trace, "recorded");
    assert_eq!((replayed.extra_blocks, replayed.logs, replayed.map_blocks, replayed.sectors), (20, 6, 2, 108 * 32));
    assert_counted(&replayed, &counts, "asked for");
    let too_many = ReplayFormat { extra_blocks: Some(u32::MAX), ..asked };
    let refused = replay(&as_recorded(SMALL_PAGES, Scheme::LogBlock, too_many), &trace, &mut |_, _| {}).unwrap_err();
    assert!(refused.to_string().starts_with("while formatting"), "{refused}");
}

fn write(disk: u32, offset: u64) -> BlockRequest {
    BlockRequest { at_ns: 0, disk, op: BlockOp::Write, offset, bytes: 1024 }
}

#[test]
fn several_disks_and_addresses_beyond_the_end_are_refused() {
    let config = as_recorded(SMALL_PAGES, Scheme::LogBlock, ReplayFormat::default());
    let refused = |requests| {
        let trace = BlockTrace { requests, device: None };
        replay(&config, &trace, &mut |_, _| {}).unwrap_err()
    };
    let several = refused(vec![write(0, 0), write(1, 0)]);
    assert!(matches!(several, LayerError::SeveralDisks { disks: 2 }), "{several}");
    let holds = 96 * 32 * 512;
    let beyond = refused(vec![write(0, 0), write(0, holds - 512)]);
    let (end, said) = (holds + 512, beyond.to_string());
    assert_eq!(said, format!("the trace asks for addresses up to byte {end}, and the device holds {holds}"));
    let far = BlockTrace { requests: vec![write(0, 40 << 20)], device: None };
    assert_eq!(size_for(&far, &config).unwrap(), 64 << 20);
    assert_eq!(size_for(&far, &ReplayConfig { placement: TracePlacement::Dense, ..config }).unwrap(), 16 << 20);
}

#[test]
fn a_full_device_warmed_up_has_cleaned_before_it_is_counted() {
    let requests = (0..600).map(|number| write(0, number * 37 % 500 * 1024)).collect();
    let trace = BlockTrace { requests, device: None };
    for placement in [TracePlacement::Dense, TracePlacement::AsRecorded] {
        let cold = ReplayConfig { placement, ..config(SMALL_PAGES, Scheme::PageGreedy) };
        let warm = ReplayConfig { full: true, warm_up: true, ..cold.clone() };
        let (cold, warm) = (played(&cold, &trace, "cold"), played(&warm, &trace, "warm"));
        assert_eq!((cold.sectors_before, warm.sectors_before, warm.sectors_verified), (0, warm.sectors, warm.sectors));
        // A device with free blocks cleans none; a full one cleans a block for each that is written.
        assert_eq!((cold.work.merges, warm.work.merges, warm.sectors_written), (0, 37, 1_200));
        assert_eq!(warm.extra_erases, warm.work.erases as f64 - 37.5);
        assert_eq!(warm.extra_writes, warm.work.programs as f64 - 1_200.0);
    }
}
