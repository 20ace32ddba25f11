//! The table of schemes, and a device of any of them.
//!
//! A scheme is a row: its variant, its mapping, and what its folder says of it. Invariant: a volume is opened by the
//! scheme that its anchor names.

use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;
use core::str::FromStr;

use nand::Nand;

use crate::block_use::BlockUse;
use crate::device::Span;
use crate::dftl::{self, Dftl};
use crate::fast::{self, Fast};
use crate::flash::anchor::{Anchors, Record};
use crate::flash::{ChipSize, Flash, SectorPlace};
use crate::log_block::{self, LogBlock};
use crate::page_map::{self, PageMap};
use crate::replacement::{self, Replacement};
use crate::sector_map::{Demand, SchemeRow, SectorMap};
use crate::settings::{Format, Options};
use crate::translation::Translation;
use crate::{Error, Result};

/// Makes of the table the schemes, and the mapping of any of them.
macro_rules! schemes {
    ($($(#[$doc:meta])* $scheme:ident: $mapping:ty = $row:expr;)*) => {
        /// A way to make a block device of a chip.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Scheme {
            $($(#[$doc])* $scheme,)*
        }

        impl Scheme {
            /// Every scheme.
            pub const ALL: [Scheme; AnySectorMap::ROWS.len()] = [$(Scheme::$scheme),*];

            /// Its row of the table.
            pub(crate) fn row(self) -> &'static SchemeRow {
                match self {
                    $(Scheme::$scheme => &$row,)*
                }
            }
        }

        /// The mapping of a volume of any scheme.
        #[derive(Clone, Debug)]
        pub enum AnySectorMap {
            $($scheme($mapping),)*
        }

        impl SectorMap for AnySectorMap {
            const ROWS: &'static [SchemeRow] = &[$($row),*];

            fn demand(record: &Record, flash: &Flash<impl Nand>, format: &Format) -> Result<Demand> {
                match Scheme::of(record)? {
                    $(Scheme::$scheme => <$mapping>::demand(record, flash, format),)*
                }
            }

            fn empty(flash: &Flash<impl Nand>, record: &Record, options: Options) -> Result<Self> {
                match Scheme::of(record)? {
                    $(Scheme::$scheme => <$mapping>::empty(flash, record, options).map(Self::$scheme),)*
                }
            }

            fn create(&mut self, flash: &mut Flash<impl Nand>, record: Record, format: &Format) -> Result<()> {
                match self {
                    $(Self::$scheme(map) => map.create(flash, record, format),)*
                }
            }

            fn recover(&mut self, flash: &mut Flash<impl Nand>, anchors: Anchors, record: Record) -> Result<()> {
                match self {
                    $(Self::$scheme(map) => map.recover(flash, anchors, record),)*
                }
            }

            fn sectors(&self) -> u64 {
                match self {
                    $(Self::$scheme(map) => map.sectors(),)*
                }
            }

            fn find(&mut self, flash: &mut Flash<impl Nand>, sector: u32) -> Result<SectorPlace> {
                match self {
                    $(Self::$scheme(map) => map.find(flash, sector),)*
                }
            }

            fn write(&mut self, flash: &mut Flash<impl Nand>, span: Span, data: &[u8]) -> Result<()> {
                match self {
                    $(Self::$scheme(map) => map.write(flash, span, data),)*
                }
            }

            fn trim(&mut self, flash: &mut Flash<impl Nand>, span: Span) -> Result<()> {
                match self {
                    $(Self::$scheme(map) => map.trim(flash, span),)*
                }
            }

            fn step(&mut self, flash: &mut Flash<impl Nand>) -> Result<bool> {
                match self {
                    $(Self::$scheme(map) => map.step(flash),)*
                }
            }

            fn differences(&mut self, flash: &mut Flash<impl Nand>) -> Result<Vec<String>> {
                match self {
                    $(Self::$scheme(map) => map.differences(flash),)*
                }
            }

            fn visit_uses(
                &mut self,
                flash: &mut Flash<impl Nand>,
                visit: &mut dyn FnMut(u32, BlockUse),
            ) -> Result<()> {
                match self {
                    $(Self::$scheme(map) => map.visit_uses(flash, visit),)*
                }
            }

            fn ram_bytes(&self) -> usize {
                match self {
                    $(Self::$scheme(map) => map.ram_bytes(),)*
                }
            }
        }
    };
}

schemes! {
    /// Log blocks, the block map in map blocks (L).
    LogBlock: LogBlock = log_block::MAPPED;
    /// Log blocks, the block map in memory (L-M).
    LogBlockScanned: LogBlock = log_block::SCANNED;
    /// Replacement blocks (R).
    Replacement: Replacement = replacement::ROW;
    /// Log blocks that any sector may go to, and one for a stream (FAST).
    Fast: Fast = fast::ROW;
    /// Every page mapped, the map on flash, and a part of it in memory (DFTL).
    Dftl: Dftl = dftl::ROW;
    /// Every page mapped, the block with the fewest pages that count cleaned (P/G).
    PageGreedy: PageMap = page_map::GREEDY;
    /// Every page mapped, blocks cleaned by cost and benefit (P/C).
    PageCostBenefit: PageMap = page_map::COST_BENEFIT;
}

impl Scheme {
    /// Its name on a command line.
    pub fn name(self) -> &'static str {
        self.row().name
    }

    /// Its name in the paper's figures.
    pub fn letters(self) -> &'static str {
        self.row().letters
    }

    /// Its number in an anchor.
    pub fn code(self) -> u8 {
        self.row().code
    }

    /// Whether a request of several sectors is there as a whole or not at all after a power cut.
    pub fn is_atomic(self) -> bool {
        self.row().is_atomic
    }

    /// The scheme that an anchor names.
    pub(crate) fn of(record: &Record) -> Result<Self> {
        let named = Self::ALL.into_iter().find(|scheme| scheme.code() == record.scheme);
        named.ok_or(Error::NoVolume("its scheme is not known"))
    }
}

impl fmt::Display for Scheme {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.name())
    }
}

impl FromStr for Scheme {
    type Err = &'static str;

    fn from_str(name: &str) -> core::result::Result<Self, Self::Err> {
        Self::ALL.into_iter().find(|scheme| scheme.name() == name).ok_or("no such scheme")
    }
}

impl Format {
    /// A volume with as many blocks of each kind as suit the chip.
    pub fn usual<N: Nand>(chip: &N, scheme: Scheme, volume: u32) -> Result<Self> {
        let size = ChipSize::of(chip);
        Ok((scheme.row().usual)(size, Format::for_blocks(size.blocks, volume)))
    }
}

/// A block device of any scheme.
pub type Device<N> = Translation<N, AnySectorMap>;

impl<N: Nand> Device<N> {
    /// Makes a volume of a scheme, in which every sector reads as zeros.
    pub fn format(chip: N, scheme: Scheme, format: &Format, options: Options) -> Result<Self> {
        Self::create(chip, scheme.row(), format, options)
    }

    /// Opens the volume on a chip, of whatever scheme it is.
    pub fn open(mut chip: N, options: Options) -> Result<Self> {
        Scheme::of(&Anchors::find(&mut Flash::new(&mut chip, 0, options.payload)?)?.1)?;
        Self::recover(chip, options)
    }
}

#[cfg(test)]
mod tests {
    use emulator::{Chip, Profile};

    use super::*;

    #[test]
    fn the_usual_format_fits_small_and_large_chips_of_every_scheme() {
        let sizes =
            [("k9f5608u0m", 2 << 20), ("k9f5608u0m", 16 << 20), ("k9f5608u0m", 1 << 30), ("k9k8g08u0m", 1 << 30)];
        for (profile, bytes) in sizes {
            let profile = Profile::builtin(profile).unwrap().with_capacity(bytes).unwrap();
            for scheme in Scheme::ALL {
                let chip = Chip::without_data(&profile, 1).unwrap();
                let format = Format::usual(&chip, scheme, 1).unwrap();
                let made = Device::format(chip, scheme, &format, Options::default());
                assert!(made.is_ok(), "{scheme} on {bytes} bytes: {format:?}: {:?}", made.err());
            }
        }
    }
}
