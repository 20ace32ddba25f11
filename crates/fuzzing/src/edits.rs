//! An input of the `image` fuzzer: a volume, changes to what stands on its chip, and how it is used afterwards.
//!
//! Fields are changed by what they mean, and checksums are put right, so that what is behind them is reached.
//! Invariant: any bytes are an input; an edit that finds nothing to change changes nothing.

use std::fmt;
use std::sync::LazyLock;

use arbitrary::{Arbitrary, Result, Unstructured};
use emulator::{Chip, Corruption};
use nand::Nand;
use torture::crash::VolumeOver;

use crate::exercise::Use;
use crate::fields::{self, Field};
use crate::record::{Record, split};
use crate::slots::{Directory, Slot, SlotKind, Slots, Spot, TAG_BYTES};
use crate::volumes::{Volume, volumes};

/// More edits than this only make an input slow.
const EDITS_MAX: usize = 24;
/// Numbers of a target from this on mean every slot of the kind.
const EVERY: u16 = 0xff00;
/// An edit of every slot changes at most so many.
const EVERY_MAX: usize = 64;

/// What to do to which volume.
pub struct Input {
    volume: u8,
    usage: Use,
    edits: Vec<Edit>,
}

/// A slot: the so-manieth from the newest of its kind.
#[derive(Clone, Copy, Debug)]
struct Target {
    kind: Option<SlotKind>,
    number: u16,
}

/// What a field becomes.
#[derive(Clone, Copy, Debug)]
enum Value {
    Set(u64),
    Add(i64),
    Flip(u64),
    /// The address of a slot.
    AddressOf(Target),
    /// The block of a slot.
    BlockOf(Target),
    /// What the same field is in another slot.
    As(Target),
}

#[derive(Clone, Copy, Debug)]
enum Edit {
    Field {
        at: Target,
        field: u16,
        value: Value,
    },
    TagField {
        at: Target,
        field: u16,
        value: Value,
    },
    Bytes {
        at: Target,
        offset: u16,
        bytes: [u8; 8],
        count: u8,
    },
    Copy {
        from: Target,
        to: Target,
    },
    /// Its tag stays.
    CopyData {
        from: Target,
        to: Target,
    },
    /// A node is put behind those of another slot.
    CopyNode {
        from: Target,
        node: u16,
        to: Target,
    },
    /// A copy goes to the first blank slot of another one's block, as the newest of the log.
    Append {
        from: Target,
        to: Target,
        ends: bool,
    },
    /// What the block's summary says of the slot is what its tag says.
    Summarise {
        at: Target,
    },
    Blank {
        at: Target,
    },
    EraseBlock {
        at: Target,
    },
    /// Bits flip; the checksum is not put right.
    Rot {
        at: Target,
        offset: u16,
        bits: u8,
    },
    Unreadable {
        at: Target,
        once_more: bool,
    },
    BadBlock {
        at: Target,
    },
}

/// Values that stand at the edge of something.
const EDGES: [u64; 16] = [
    0,
    1,
    2,
    16,
    255,
    4095,
    4096,
    65_535,
    u32::MAX as u64,
    (1 << 40) - 1,
    (1 << 40) - 2,
    (1 << 47) - 1,
    (1 << 51) - 1,
    1 << 51,
    i64::MAX as u64,
    u64::MAX,
];

impl<'a> Arbitrary<'a> for Input {
    fn arbitrary(bytes: &mut Unstructured<'a>) -> Result<Self> {
        let all = bytes.bytes(bytes.len())?;
        let ([volume, how, seed, cut], records) = split::<4>(all);
        let edits = records.take(EDITS_MAX).map(|record| Edit::decode(&record)).collect();
        Ok(Self { volume, usage: Use::decode(how, seed, cut), edits })
    }
}

impl fmt::Debug for Input {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "volume {}, {:?}", self.volume().name, self.usage)?;
        self.edits.iter().try_for_each(|edit| writeln!(f, "  {edit:x?}"))
    }
}

impl Input {
    fn volume(&self) -> &'static Volume {
        let volumes = volumes();
        &volumes[usize::from(self.volume) % volumes.len()]
    }

    /// Damages the volume, then uses it.
    pub fn run(&self) {
        crate::exercise::exercise(self.damaged(), VolumeOver::Chip, &self.usage);
    }

    fn damaged(&self) -> Chip {
        static DIRECTORIES: LazyLock<Vec<Directory>> =
            LazyLock::new(|| volumes().iter().map(|volume| Directory::of(&volume.chip)).collect());
        let directory = &DIRECTORIES[usize::from(self.volume) % volumes().len()];
        let slots = Slots::new(self.volume().chip.snapshot(), directory);
        let mut surgery = Surgery { directory, slots, newest_seq: directory.newest_seq };
        self.edits.iter().for_each(|edit| surgery.edit(edit));
        let late: Vec<_> = self.edits.iter().filter_map(|edit| surgery.late(edit)).collect();
        let mut chip = surgery.slots.into_chip();
        for damage in late {
            let result = match damage {
                Damage::Page { block, page, corruption } => chip.faults_mut().corrupt_page(block, page, corruption),
                Damage::Block(block) => chip.mark_bad(block),
            };
            result.unwrap_or_else(|error| panic!("damaging a page of the chip: {error}"));
        }
        chip
    }
}

impl Target {
    fn decode(kind: u8, number: u16) -> Self {
        Self { kind: SlotKind::ALL.get(usize::from(kind % 8)).copied(), number }
    }

    /// The target that the last 8 bytes of a record name.
    fn second(record: &Record) -> Self {
        Self::decode(record.u8(8), record.u16(9))
    }
}

impl Value {
    fn decode(form: u8, record: &Record) -> Self {
        let number = record.tail_u64();
        match form % 8 {
            0 => Value::Set(number),
            1 => Value::Set(number & 0xff),
            2 => Value::Set(EDGES[number as usize % EDGES.len()]),
            3 => Value::Add(i64::from(number as i8)),
            4 => Value::Flip(number),
            5 => Value::AddressOf(Target::second(record)),
            6 => Value::BlockOf(Target::second(record)),
            _ => Value::As(Target::second(record)),
        }
    }
}

impl Edit {
    fn decode(record: &Record) -> Self {
        let at = Target::decode(record.u8(1), record.u16(2));
        let (place, form) = (record.u16(4), record.u8(6));
        let second = Target::second(record);
        match record.u8(0) % 16 {
            0..3 => Edit::Field { at, field: place, value: Value::decode(form, record) },
            3 | 4 => Edit::TagField { at, field: place, value: Value::decode(form, record) },
            5 => Edit::Bytes { at, offset: place, bytes: record.tail(), count: form % 8 + 1 },
            6 => Edit::Copy { from: second, to: at },
            7 => Edit::CopyData { from: second, to: at },
            8 => Edit::CopyNode { from: second, node: place, to: at },
            9 => Edit::Append { from: second, to: at, ends: form % 2 == 0 },
            10 => Edit::Summarise { at },
            11 => Edit::Blank { at },
            12 => Edit::EraseBlock { at },
            13 => Edit::Rot { at, offset: place, bits: form | 1 },
            14 => Edit::Unreadable { at, once_more: form % 2 == 1 },
            _ => Edit::BadBlock { at },
        }
    }
}

/// Damage that is done to the chip itself, after everything else.
enum Damage {
    Page { block: u32, page: u32, corruption: Corruption },
    Block(u32),
}

/// A volume being changed.
struct Surgery<'a> {
    directory: &'a Directory,
    slots: Slots,
    newest_seq: u64,
}

impl Surgery<'_> {
    fn edit(&mut self, edit: &Edit) {
        match *edit {
            Edit::Field { at, field, value } => self.change_field(at, field, value, false),
            Edit::TagField { at, field, value } => self.change_field(at, field, value, true),
            Edit::Bytes { at, offset, bytes, count } => self.each(at, |slot| {
                let offset = usize::from(offset) % slot.data.len();
                let room = slot.data[offset..].iter_mut().zip(bytes).take(usize::from(count));
                room.for_each(|(to, from)| *to = from);
            }),
            Edit::Copy { from, to } => {
                let Some(copied) = self.read(from) else { return };
                self.each(to, |slot| slot.clone_from(&copied));
            }
            Edit::CopyData { from, to } => {
                let Some(copied) = self.read(from) else { return };
                self.each(to, |slot| slot.data.clone_from(&copied.data));
            }
            Edit::CopyNode { from, node, to } => self.copy_node(from, node, to),
            Edit::Append { from, to, ends } => self.append(from, to, ends),
            Edit::Summarise { at } => self.summarise(at),
            Edit::Blank { at } => {
                for spot in self.spots(at) {
                    self.slots.block_mut(spot.block).slots[spot.index] = None;
                }
            }
            Edit::EraseBlock { at } => {
                for spot in self.spots(at) {
                    self.slots.block_mut(spot.block).slots.fill(None);
                }
            }
            Edit::Rot { at, offset, bits } => self.each(at, |slot| {
                let offset = usize::from(offset) % (slot.data.len() + TAG_BYTES);
                slot.tag.iter_mut().chain(&mut slot.data).skip(offset).take(1).for_each(|byte| *byte ^= bits);
                slot.unsealed = true;
            }),
            Edit::Unreadable { .. } | Edit::BadBlock { .. } => {}
        }
    }

    fn late(&self, edit: &Edit) -> Option<Damage> {
        match *edit {
            Edit::Unreadable { at, once_more } => {
                let spot = self.spot(at)?;
                let corruption = if once_more { Corruption::Unstable } else { Corruption::Uncorrectable };
                Some(Damage::Page { block: spot.block, page: self.slots.page(spot)?, corruption })
            }
            Edit::BadBlock { at } => Some(Damage::Block(self.spot(at)?.block)),
            _ => None,
        }
    }

    fn spot(&self, at: Target) -> Option<Spot> {
        let spots = self.directory.spots(at.kind);
        spots.get(usize::from(at.number) % spots.len().max(1)).copied()
    }

    fn spots(&self, at: Target) -> Vec<Spot> {
        match at.number {
            EVERY.. => self.directory.spots(at.kind).iter().copied().take(EVERY_MAX).collect(),
            _ => self.spot(at).into_iter().collect(),
        }
    }

    fn each(&mut self, at: Target, mut change: impl FnMut(&mut Slot)) {
        for spot in self.spots(at) {
            if let Some(slot) = self.slots.slot_mut(spot) {
                change(slot);
            }
        }
    }

    fn read(&mut self, at: Target) -> Option<Slot> {
        let spot = self.spot(at)?;
        self.slots.slot_mut(spot).cloned()
    }

    fn change_field(&mut self, at: Target, number: u16, value: Value, of_tag: bool) {
        let value = match value {
            Value::AddressOf(other) => Value::Set(self.spot(other).map_or(0, |spot| self.slots.address(spot))),
            Value::BlockOf(other) => Value::Set(self.spot(other).map_or(0, |spot| u64::from(spot.block))),
            Value::As(other) => {
                let Some(slot) = self.read(other) else { return };
                let Some(field) = field(&slot, number, of_tag) else { return };
                Value::Set(field.get(if of_tag { &slot.tag } else { &slot.data }))
            }
            value => value,
        };
        self.each(at, |slot| {
            let Some(field) = field(slot, number, of_tag) else { return };
            let bytes = if of_tag { &mut slot.tag[..] } else { &mut slot.data[..] };
            let before = field.get(bytes);
            let after = match value {
                Value::Set(value) => value,
                Value::Add(more) => before.wrapping_add_signed(more),
                Value::Flip(bits) => before ^ bits,
                Value::AddressOf(_) | Value::BlockOf(_) | Value::As(_) => before,
            };
            field.set(bytes, after & field.max());
        });
    }

    fn copy_node(&mut self, from: Target, number: u16, to: Target) {
        let Some(source) = self.read(from) else { return };
        let nodes = fields::nodes(&source.data);
        let Some(&(at, len)) = nodes.get(usize::from(number) % nodes.len().max(1)) else { return };
        let node = &source.data[at..at + len];
        self.each(to, |slot| {
            let end = fields::nodes(&slot.data).last().map_or(0, |&(at, len)| at + len);
            if let Some(room) = slot.data.get_mut(end..end + len) {
                room.copy_from_slice(node);
                // `len` of the tag: 12 bits from bit 51 of the number at 16, less one.
                Field::set(fields::of_tag()[8], &mut slot.tag, (end + len - 1) as u64);
            }
        });
    }

    fn append(&mut self, from: Target, to: Target, ends: bool) {
        let Some(mut slot) = self.read(from) else { return };
        let Some(spot) = self.spot(to) else { return };
        const END: u8 = 1 << 4;
        const UNLOGGED: u8 = 1 << 6;
        slot.set_seq(self.newest_seq + 1);
        slot.tag[15] = slot.tag[15] & !(END | UNLOGGED) | if ends { END } else { 0 };
        let slots = &mut self.slots.block_mut(spot.block).slots;
        let used = slots.iter().rposition(Option::is_some).map_or(0, |last| last + 1);
        if let Some(blank) = slots.get_mut(used) {
            *blank = Some(slot);
            self.newest_seq += 1;
        }
    }

    fn summarise(&mut self, at: Target) {
        const SUMMARY_HEAD_BYTES: usize = 32;
        for spot in self.spots(at) {
            let Some(tag) = self.slots.slot_mut(spot).map(|slot| slot.tag) else { continue };
            let parts = self.slots.block_mut(spot.block).slots.iter_mut().flatten();
            let mut offset = SUMMARY_HEAD_BYTES + spot.index * TAG_BYTES;
            for part in parts.filter(|slot| slot.kind() == Some(SlotKind::Summary)) {
                if let Some(room) = part.data.get_mut(offset..offset + TAG_BYTES) {
                    room.copy_from_slice(&tag);
                    break;
                }
                offset -= part.data.len();
            }
        }
    }
}

fn field(slot: &Slot, number: u16, of_tag: bool) -> Option<Field> {
    let fields = if of_tag { fields::of_tag() } else { fields::of_data(slot.kind(), &slot.data) };
    fields.get(usize::from(number) % fields.len().max(1)).copied()
}

/// The chip in an input, for tests.
#[cfg(test)]
pub(crate) fn undamaged() -> impl Iterator<Item = Chip> {
    (0..volumes().len() as u8).map(|volume| {
        let input = Input { volume, usage: Use::decode(0, 0, 0), edits: Vec::new() };
        input.damaged()
    })
}
