//! A volume as it stands on the chip: its parameters, and the tag of every page.
//!
//! Invariant: nothing is changed, and what cannot be read is shown as such.

use alloc::vec::Vec;

use nand::{Cause, Nand};

use crate::Result;
use crate::flash::anchor::{ANCHOR_BLOCKS, Anchors};
use crate::flash::tag::Tag;
use crate::flash::{Flash, Found, Place};
use crate::scheme::Scheme;
use crate::settings::Payload;

/// What the newest anchor says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Volume {
    pub number: u32,
    pub scheme: Scheme,
    /// Logical blocks of the device.
    pub data_blocks: u32,
    /// Log blocks at most.
    pub logs: u32,
    /// The map blocks in their round; empty where a scheme has no round.
    pub map_blocks: Vec<u32>,
    /// Map blocks at most.
    pub map_blocks_max: u32,
    /// The block of that anchor.
    pub anchor_block: u32,
}

/// What stands in a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PageState {
    /// It reads as erased.
    Erased,
    /// No checksum vouches for it: torn, lost, or another volume's.
    Unreadable,
    Holds(PageTag),
}

/// What a page's tag says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PageTag {
    /// data, log, merged, trim, hole, lost, map, anchor or filler.
    pub kind: &'static str,
    /// The sector, or a number of the kind's own.
    pub logical: u32,
    /// Place in the order of all programs of the volume.
    pub stamp: u64,
    /// It ends a request, or a change of the map.
    pub ends: bool,
}

impl Volume {
    /// Finds the volume on a chip.
    pub fn find<N: Nand>(chip: &mut N) -> Result<Self> {
        let (anchors, record) = Anchors::find(&mut Flash::new(chip, 0, Payload::Kept)?)?;
        let scheme = Scheme::of(&record)?;
        let (logs, map_blocks_max) = match scheme.row().limits_map_blocks {
            true => (0, record.logs),
            false => (record.logs, record.ring.len() as u32),
        };
        Ok(Self {
            number: record.volume,
            scheme,
            data_blocks: record.data_blocks,
            logs,
            map_blocks: record.ring,
            map_blocks_max,
            anchor_block: anchors.block(),
        })
    }

    /// Reads a block's pages in the order in which they are programmed, until `visit` has seen enough.
    pub fn pages<N: Nand>(
        &self,
        chip: &mut N,
        block: u32,
        visit: &mut dyn FnMut(u32, PageState) -> bool,
    ) -> Result<()> {
        let mut flash = Flash::new(chip, self.number, Payload::Kept)?;
        for page in 0..flash.pages_per_block() {
            let at = Place { block, page };
            flash.set_volume(self.number);
            let mut found = flash.read(at, &mut [], Cause::Metadata)?;
            if found == Found::Unreadable && block < ANCHOR_BLOCKS {
                flash.set_volume(Anchors::VOLUME);
                found = flash.read(at, &mut [], Cause::Metadata)?;
            }
            let state = match found {
                Found::Erased => PageState::Erased,
                Found::Unreadable => PageState::Unreadable,
                Found::Page(tag) => {
                    let Tag { kind, logical, stamp, ends, .. } = tag;
                    PageState::Holds(PageTag { kind: kind.name(), logical, stamp, ends })
                }
            };
            if !visit(page, state) {
                break;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use emulator::{Chip, Profile};

    use super::*;
    use crate::{BlockDevice, BlockUse, Device, Format, Options};

    #[test]
    fn a_volume_of_each_scheme_shows_its_anchor_its_blocks_and_where_a_sector_stands() {
        for scheme in Scheme::ALL {
            let mut profile = Profile::builtin("k9f5608u0m").unwrap();
            profile.geometry.blocks = 64;
            let format = Format { volume: 7, extra_blocks: 20, logs: 4, map_blocks: 2 };
            let chip = Chip::new(&profile, 1).unwrap();
            let mut device = Device::format(chip, scheme, &format, Options::default()).unwrap();
            device.write(33, &[0x5a; 512]).unwrap();
            let uses = device.uses().unwrap();
            assert_eq!(uses[..2], [BlockUse::Anchor; 2]);
            let mut chip = device.into_chip();
            let volume = Volume::find(&mut chip).unwrap();
            let (mapped, known) = (volume.map_blocks.len(), [7, volume.data_blocks]);
            assert_eq!((volume.scheme, volume.anchor_block, known), (scheme, 0, [volume.number, 44]));
            assert_eq!(mapped, if scheme == Scheme::LogBlock { 2 } else { 0 });
            let most = [(Scheme::LogBlock, 2), (Scheme::Dftl, 5)].into_iter().find(|(its, _)| *its == scheme);
            assert_eq!(volume.map_blocks_max, most.map_or(0, |(_, most)| most));
            let mut holders = Vec::new();
            for block in 0..64 {
                volume
                    .pages(&mut chip, block, &mut |page, state| {
                        let holds = matches!(state, PageState::Holds(tag) if tag.logical == 33 && tag.kind != "anchor");
                        holders.extend(holds.then_some((uses[block as usize], page)));
                        true
                    })
                    .unwrap();
            }
            let expected = match scheme {
                Scheme::LogBlock | Scheme::LogBlockScanned => (BlockUse::Log(1), 0),
                Scheme::Replacement => (BlockUse::Data(1), 1),
                Scheme::Fast => (BlockUse::Pages(1), 0),
                Scheme::Dftl | Scheme::PageGreedy | Scheme::PageCostBenefit => (BlockUse::Open(1), 0),
            };
            assert_eq!(holders, [expected], "{scheme}");
        }
    }
}
