//! An input of the `layer` fuzzer: a volume of a translation layer, changes to the pages of its chip, and how it is used
//! afterwards.
//!
//! Tags get right checksums again, so that what is behind them is reached. Invariant: any bytes are an input; an edit that
//! finds nothing to change changes nothing.

use std::fmt;
use std::sync::LazyLock;

use arbitrary::{Arbitrary, Result, Unstructured};
use emulator::{Chip, Profile};
use ftl::{BlockDevice, Device, Format, Options, Scheme, TooLarge, Victim, Volume};
use nand::Nand;

use crate::chip_pages::{ChipPages, PageEdit};
use crate::metered::MeteredChip;
use crate::record::{Record, split};

const EDITS_MAX: usize = 24;

/// A tag, at the beginning of a page's spare bytes: kind, logical, stamp, extra, checksum.
const TAG_BYTES: usize = 16;
const TAG_FIELDS: [(usize, usize); 4] = [(0, 1), (1, 4), (5, 5), (10, 2)];
const TAG_BODY_BYTES: usize = 12;
/// The kind of anchors, and the number that their checksums begin with.
const ANCHOR_KIND: u8 = 8;
const ANCHOR_NUMBER: u32 = 0x464c_4558;
/// The number of every volume here.
const VOLUME_NUMBER: u32 = 7;
/// Sectors written at once, at most.
const REQUEST_SECTORS: u64 = 20;

/// The changes to a volume, and its use.
pub struct LayerInput {
    volume: u8,
    usage: LayerUse,
    edits: Vec<LayerEdit>,
}

/// How a volume is used.
#[derive(Clone, Copy, Debug)]
struct LayerUse {
    options: Options,
    seed: u8,
    steps: u8,
}

#[derive(Clone, Copy, Debug)]
enum LayerEdit {
    /// A field of a page's tag; the checksum is put right.
    Tag { page: u16, field: u8, value: u64 },
    /// Bytes of a page; the checksum of its tag is put right.
    Data { page: u16, offset: u16, bytes: [u8; 8], count: u8 },
    /// No checksum is put right.
    Page(PageEdit),
}

impl LayerEdit {
    fn decode(record: &Record) -> Self {
        let (first, second, form) = (record.u16(2), record.u16(4), record.u8(1));
        let value = record.field_value(form);
        match record.u8(0) % 16 {
            0..4 => Self::Tag { page: first, field: form >> 2, value },
            4..8 => Self::Data { page: first, offset: second, bytes: record.tail(), count: form % 8 + 1 },
            _ => Self::Page(PageEdit::decode(record)),
        }
    }
}

impl<'a> Arbitrary<'a> for LayerInput {
    fn arbitrary(bytes: &mut Unstructured<'a>) -> Result<Self> {
        let ([volume, how, seed, steps], records) = split::<4>(bytes.bytes(bytes.len())?);
        let options = Options {
            victim: if how & 1 == 0 { Victim::LeastRecent } else { Victim::RecencyAndUse },
            too_large: if how & 2 == 0 { TooLarge::Split } else { TooLarge::Refuse },
            merges_partially: how & 4 == 0,
            swap_every: u32::from(how >> 3),
            ..Options::default()
        };
        let edits = records.take(EDITS_MAX).map(|record| LayerEdit::decode(&record)).collect();
        Ok(Self { volume, usage: LayerUse { options, seed, steps: steps % 64 }, edits })
    }
}

impl fmt::Debug for LayerInput {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}, {:?}", Scheme::ALL[usize::from(self.volume) % Scheme::ALL.len()], self.usage)?;
        self.edits.iter().try_for_each(|edit| writeln!(f, "  {edit:x?}"))
    }
}

/// A small chip with a volume of each scheme that was written for a while.
static CHIPS: LazyLock<Vec<Chip>> = LazyLock::new(|| Scheme::ALL.map(used_chip).into());

fn used_chip(scheme: Scheme) -> Chip {
    let mut profile = Profile::builtin("k9f5608u0m").expect("it is built in");
    (profile.geometry.blocks, profile.geometry.pages_per_block) = (64, 8);
    let chip = Chip::new(&profile, 1).expect("the profile is sound");
    let usual = Format::usual(&chip, scheme, VOLUME_NUMBER).expect("the chip is sound");
    let format = Format { extra_blocks: 24, logs: usual.logs.min(6), ..usual };
    let made = Device::format(chip, scheme, &format, Options::default());
    let mut device = made.expect("the format fits");
    let mut steps = LayerSteps { state: 1, sectors: device.sectors() };
    for _ in 0..250 {
        steps.step(&mut device).expect("a sound chip takes each step");
    }
    device.into_chip()
}

/// Steps of use, drawn from a seed.
struct LayerSteps {
    state: u64,
    sectors: u64,
}

impl LayerSteps {
    fn below(&mut self, end: u64) -> u64 {
        self.state = self.state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.state >> 33) % end.max(1)
    }

    /// A write, a trim, a read, or a step in the background.
    fn step<N: Nand>(&mut self, device: &mut Device<N>) -> ftl::Result<()> {
        let count = 1 + self.below(REQUEST_SECTORS.min(self.sectors.max(1)));
        let sector = self.below(self.sectors.saturating_sub(count) + 1);
        let mut data = vec![self.state as u8; count as usize * device.sector_bytes()];
        match self.below(10) {
            0..6 => device.write(sector, &data),
            6 => device.trim(sector, count),
            7 | 8 => device.read(sector, &mut data),
            _ => device.background().map(|_| ()),
        }
    }
}

impl LayerInput {
    /// Damages the chip, then uses the volume on it.
    pub fn run(&self) {
        let mut pages = ChipPages::of(CHIPS[usize::from(self.volume) % CHIPS.len()].snapshot());
        self.edits.iter().for_each(|edit| change(&mut pages, edit));
        use_volume(MeteredChip::new(pages.into_chip()), &self.usage);
    }
}

fn change(pages: &mut ChipPages, edit: &LayerEdit) {
    let page = match edit {
        LayerEdit::Page(edit) => return pages.edit(edit),
        LayerEdit::Tag { page, .. } | LayerEdit::Data { page, .. } => *page,
    };
    let place = ChipPages::numbered(pages.programmed(), page);
    let Some(Some((data, spare))) = place.and_then(|place| pages.page_mut(place)) else { return };
    let tag = &mut spare[..TAG_BYTES];
    match *edit {
        LayerEdit::Tag { field, value, .. } => {
            let (at, bytes) = TAG_FIELDS[usize::from(field) % TAG_FIELDS.len()];
            tag[at..at + bytes].copy_from_slice(&value.to_le_bytes()[..bytes]);
        }
        LayerEdit::Data { offset, bytes, count, .. } => {
            let offset = usize::from(offset) % data.len();
            data[offset..].iter_mut().take(count.into()).zip(bytes).for_each(|(to, from)| *to = from);
        }
        LayerEdit::Page(_) => {}
    }
    let number = if tag[0] & 0x7f == ANCHOR_KIND { ANCHOR_NUMBER } else { VOLUME_NUMBER };
    let sum = crc32c::crc32c_append(crc32c::crc32c_append(number, data), &tag[..TAG_BODY_BYTES]);
    tag[TAG_BODY_BYTES..].copy_from_slice(&sum.to_le_bytes());
}

/// Shows, opens, reads, checks and changes a volume, and opens it once more. Nothing panics, and no call runs in circles.
fn use_volume(mut chip: MeteredChip, usage: &LayerUse) {
    if let Ok(volume) = Volume::find(&mut chip) {
        for block in 0..chip.geometry().blocks {
            chip.refill();
            let _ = volume.pages(&mut chip, block, &mut |_, _| true);
        }
    }
    for round in 0..2 {
        chip.refill();
        let mut device = match Device::open(chip, usage.options) {
            Ok(device) => device,
            Err(error) => return assert!(!error.to_string().is_empty()),
        };
        look(&mut device);
        let mut steps = LayerSteps { state: u64::from(usage.seed) + round, sectors: device.sectors() };
        for _ in 0..usage.steps {
            device.chip_mut().refill();
            if let Err(error) = steps.step(&mut device) {
                assert!(!error.to_string().is_empty());
            }
        }
        look(&mut device);
        chip = device.into_chip();
    }
}

fn look(device: &mut Device<MeteredChip>) {
    let mut data = vec![0; device.sector_bytes()];
    for sector in 0..device.sectors() {
        device.chip_mut().refill();
        let _ = device.read(sector, &mut data);
    }
    device.chip_mut().refill();
    let _ = device.check();
    device.chip_mut().refill();
    let _ = device.uses();
}

#[cfg(test)]
mod tests {
    use super::*;

    fn opened(edits: &[LayerEdit]) -> ftl::Result<Device<Chip>> {
        let mut pages = ChipPages::of(CHIPS[0].snapshot());
        edits.iter().for_each(|edit| change(&mut pages, edit));
        Device::open(pages.into_chip(), Options::default())
    }

    #[test]
    fn a_tag_that_is_changed_has_a_right_checksum() {
        let mut device = opened(&[]).unwrap();
        let sectors = device.sectors();
        assert!(device.check().unwrap().is_empty() && sectors > 100);
        // A change that leaves everything as it is keeps the volume sound only if each checksum is right.
        let pages = ChipPages::of(CHIPS[0].snapshot()).programmed().len() as u16;
        let same: Vec<LayerEdit> =
            (0..pages).map(|page| LayerEdit::Data { page, offset: 0, bytes: [0; 8], count: 0 }).collect();
        assert!(opened(&same).unwrap().check().unwrap().is_empty());
        // All anchors name another scheme's kind of page.
        let kinds: Vec<LayerEdit> = (0..pages).map(|page| LayerEdit::Tag { page, field: 0, value: 9 }).collect();
        assert!(opened(&kinds).is_err());
    }

    #[test]
    fn volumes_with_many_kinds_of_damage_are_used_without_a_panic() {
        for seed in 0..300_u64 {
            let mut steps = LayerSteps { state: seed, sectors: 0 };
            let bytes: Vec<u8> = (0..4 + 16 * (seed % 24)).map(|_| steps.below(256) as u8).collect();
            LayerInput::arbitrary(&mut Unstructured::new(&bytes)).unwrap().run();
        }
    }
}
