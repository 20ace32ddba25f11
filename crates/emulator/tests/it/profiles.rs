//! Profiles: the built-in ones, their pairing tables, and texts that describe no chip.

use emulator::{Chip, Profile, ProfileError};
use nand::CellMode::{Native, Slc};
use nand::{CellMode, Nand};

fn pairs(chip: &Chip) -> Vec<(u32, u32)> {
    let layout = chip.layout(Native);
    (0..layout.units()).filter_map(|unit| layout.endangers(unit).first().map(|&low| (low, unit))).collect()
}

fn with_pages(pages: u32, stride: u32) -> Chip {
    let mut profile = Profile::default();
    profile.geometry.pages_per_block = pages;
    profile.geometry.blocks = 4;
    profile.programming.pairing_stride = stride;
    Chip::new(&profile, 0).unwrap()
}

#[test]
fn every_built_in_profile_makes_a_chip_and_survives_a_round_trip() {
    for name in Profile::names() {
        let profile = Profile::builtin(name).unwrap();
        assert_eq!(&profile.name, name);
        assert_eq!(Profile::from_toml(&profile.to_toml().unwrap()).unwrap(), profile);
        let chip = Chip::new(&profile.with_capacity(4 * profile.block_bytes()).unwrap(), 0).unwrap();
        let bits = u32::from(chip.geometry().bits_per_cell);
        assert_eq!(chip.layout(Native).pages(), chip.layout(Slc).pages() * bits);
    }
    assert_eq!(Profile::default().name, "flexfs-mlc");
    assert_eq!(Profile::default().capacity_bytes(), 512 << 20);
}

#[test]
fn pages_of_the_flexfs_chip_pair_at_a_distance_of_six() {
    let chip = with_pages(128, 2);
    let pairs = pairs(&chip);
    assert_eq!(pairs[..8], [(0, 4), (1, 5), (2, 8), (3, 9), (6, 12), (7, 13), (10, 16), (11, 17)]);
    assert_eq!(pairs[60..], [(118, 124), (119, 125), (122, 126), (123, 127)]);
    assert_eq!(pairs.len(), 64);
    assert_eq!(chip.layout(Native).pair_distance(), 6);
}

#[test]
fn pages_of_a_256_page_block_pair_up_to_251_with_255() {
    let pairs = pairs(&with_pages(256, 2));
    assert_eq!(pairs[..6], [(0, 4), (1, 5), (2, 8), (3, 9), (6, 12), (7, 13)]);
    assert_eq!(pairs[124..], [(246, 252), (247, 253), (250, 254), (251, 255)]);
}

#[test]
fn a_stride_of_one_is_the_dist3_scheme_of_linux() {
    let pairs = pairs(&with_pages(128, 1));
    assert_eq!(pairs[..4], [(0, 2), (1, 4), (3, 6), (5, 8)]);
    assert_eq!(pairs[62..], [(123, 126), (125, 127)]);
}

#[test]
fn every_page_stands_on_one_word_line() {
    for (pages, stride) in [(128, 2), (256, 2), (64, 1), (128, 4), (4, 1)] {
        let chip = with_pages(pages, stride);
        let mut seen: Vec<u32> = pairs(&chip).iter().flat_map(|&(low, high)| [low, high]).collect();
        seen.sort_unstable();
        assert_eq!(seen, (0..pages).collect::<Vec<_>>());
        let lsb: Vec<u32> = (0..pages / 2).filter_map(|unit| chip.layout(Slc).page(unit)).collect();
        let mut low: Vec<u32> = pairs(&chip).iter().map(|&(low, _)| low).collect();
        low.sort_unstable();
        assert_eq!(lsb, low);
    }
}

#[test]
fn the_figures_of_the_papers_and_the_data_sheet_are_kept() {
    let k9 = Profile::builtin("k9f5608u0m").unwrap();
    assert_eq!(k9.timing.native.read_ns, [35_900]);
    assert_eq!((k9.timing.native.program_ns[0], k9.timing.native.erase_ns), (226_000, 2_000_000));
    assert_eq!((k9.geometry.page_bytes, k9.geometry.pages_per_block, k9.geometry.spare_bytes), (512, 32, 16));
    let k9k8 = Profile::builtin("k9k8g08u0m").unwrap();
    assert_eq!((k9k8.capacity_bytes(), k9k8.geometry.page_bytes, k9k8.geometry.pages_per_block), (1 << 30, 2048, 64));
    assert_eq!((k9k8.timing.native.read_ns[0], k9k8.timing.native.program_ns[0]), (25_000, 200_000));
    assert_eq!((k9k8.timing.native.erase_ns, k9k8.timing.bus_ps_per_byte), (1_500_000, 25_000));
    let [mlc, slc] = ["flexfs-mlc", "flexfs-slc"].map(|name| Profile::builtin(name).unwrap());
    assert_eq!((&slc.timing.native.program_ns, &slc.timing.slc), (&mlc.timing.slc.program_ns, &mlc.timing.slc));
    assert_eq!((slc.geometry.bits_per_cell, slc.capacity_bytes()), (1, mlc.capacity_bytes()));
    let slc = Chip::new(&slc, 0).unwrap();
    assert!((0..128).all(|unit| slc.layout(Native).endangers(unit).is_empty()));
    let codesign = Profile::builtin("codesign-mlc8").unwrap();
    assert_eq!((codesign.geometry.channels, codesign.geometry.pages_per_block), (8, 256));
    let tlc = Chip::new(&Profile::builtin("tlc-3d").unwrap(), 0).unwrap();
    assert_eq!((tlc.endurance(Native), tlc.endurance(Slc)), (3_000, 60_000));
    assert_eq!(tlc.layout(Native).pages_per_unit(), 3);
    assert!(CellMode::ALL.iter().all(|&mode| tlc.layout(mode).pair_distance() == 1));
}

#[test]
fn a_capacity_that_does_not_divide_into_blocks_is_refused_with_the_multiple() {
    let error = Profile::default().with_capacity(1_000_000).unwrap_err();
    assert!(error.to_string().contains("multiple of 524288 bytes"), "{error}");
    assert!(matches!(Profile::default().with_capacity(0), Err(ProfileError::Capacity { .. })));
    assert!(matches!(Profile::default().with_capacity(u64::MAX), Err(ProfileError::Capacity { .. })));
    assert_eq!(Profile::default().with_capacity(64 << 20).unwrap().geometry.blocks, 128);
}

#[test]
fn texts_that_describe_no_chip_are_refused_with_the_reason() {
    let good = Profile::default().to_toml().unwrap();
    for (from, to, word) in [
        ("pages_per_block = 128", "pages_per_block = 0", "pages_per_block"),
        ("pages_per_block = 128", "pages_per_block = 5", "pairing_stride"),
        // Twice this stride is past what 32 bits hold: it was computed before it was looked at.
        ("pairing_stride = 2", "pairing_stride = 2147483648", "pairing_stride"),
        ("bits_per_cell = 2", "bits_per_cell = 3", "dist3"),
        ("read_ns = [409000]", "read_ns = []", "read_ns"),
        ("wear = 100.0", "wear = nan", "errors"),
        ("blocks = 1024", "blocks = 1024\ncolour = 3", "colour"),
        ("blocks = 1024", "blocks = 0", "blocks"),
        ("blocks = 1024", "blocks = 4000000000", "blocks"),
    ] {
        let bad = good.replace(from, to);
        assert_ne!(bad, good, "{from}");
        let error = Profile::from_toml(&bad).unwrap_err();
        assert!(error.to_string().contains(word), "{to}: {error}");
    }
    let error = Profile::builtin("nosuch").unwrap_err().to_string();
    assert!(error.contains("nosuch") && error.contains("tlc-3d"), "{error}");
}
