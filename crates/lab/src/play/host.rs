//! What the host's processor takes of a request, as the paper's board did: the slides measure a page write at the file
//! system and at the driver, and the difference is the host's. Invariant: nothing else runs in that time.

/// Time the host takes for each page that a call programs for its caller, by the cells it goes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HostCost {
    pub name: &'static str,
    pub slc_ns: u64,
    pub native_ns: u64,
}

impl HostCost {
    /// The chip's time alone.
    pub const NONE: Self = Self { name: "none", slc_ns: 0, native_ns: 0 };
    /// The slides' board: 1,809 µs at the file system less 431 µs at the driver, and 2,283 µs less 994 µs.
    pub const OMAP2420: Self = Self { name: "omap2420", slc_ns: 1_378_000, native_ns: 1_289_000 };
    /// What Table 6 comes to: 3.02 MB/s are 1,361 µs a page, 431 µs of them the chip's.
    pub const PAPER_TABLE6: Self = Self { name: "paper-table6", slc_ns: 930_000, native_ns: 930_000 };
    /// All that have a name.
    pub const PRESETS: [Self; 3] = [Self::NONE, Self::OMAP2420, Self::PAPER_TABLE6];

    /// The preset of that name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::PRESETS.into_iter().find(|preset| preset.name == name)
    }

    /// What it takes for so many pages.
    pub fn of_ns(self, slc_pages: u64, native_pages: u64) -> u64 {
        slc_pages * self.slc_ns + native_pages * self.native_ns
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_board_of_the_slides_takes_what_lies_between_driver_and_file_system() {
        let host = HostCost::from_name("omap2420").unwrap();
        assert_eq!((431_000 + host.of_ns(1, 0), 994_000 + host.of_ns(0, 1)), (1_809_000, 2_283_000));
        assert_eq!(HostCost::from_name("pentium"), None);
    }
}
