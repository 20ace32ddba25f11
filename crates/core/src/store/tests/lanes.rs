//! Lanes: one volume over the dies of a chip.

use alloc::vec;
use alloc::vec::Vec;

use emulator::{Chip, Profile};

use super::{file, flash, formatted_as, slots_of};
use crate::format::anchor::HeadAt;
use crate::policy::channel::ChannelRule;
use crate::{Fs, Ino, MountOptions, Policy, SetAttr};

/// A chip of eight dies.
fn eight_dies(bits_per_cell: u8) -> Chip {
    let mut profile = Profile::builtin("codesign-mlc8").unwrap();
    (profile.geometry.blocks, profile.geometry.pages_per_block) = (192, 16);
    profile.geometry.bits_per_cell = bits_per_cell;
    formatted_as(&profile)
}

fn mounted(chip: Chip, policy: Policy, lanes: u8) -> Fs<Chip> {
    let options = MountOptions { policy, lanes: Some(lanes), ..MountOptions::default() };
    Fs::mount(chip, options).map_err(|(_, error)| error).unwrap()
}

/// Chunks of a file by the channel of their block.
fn by_channel(fs: &mut Fs<Chip>, ino: Ino) -> [u32; 8] {
    let mut counts = [0; 8];
    for slot in slots_of(fs, ino) {
        counts[(flash(fs).shape().block_of(slot) % 8) as usize] += 1;
    }
    counts
}

fn dice(state: &mut u64) -> u64 {
    *state = state.wrapping_mul(0x5851_F42D_4C95_7F2D).wrapping_add(0x1405_7B7E_F767_814F);
    *state >> 33
}

fn contents(chunk: u64) -> Vec<u8> {
    vec![chunk as u8 ^ 0x5a; 4096]
}

#[test]
fn callers_pages_go_to_the_lanes_in_turn() {
    for policy in [Policy::SLC_ONLY, Policy::NATIVE_ONLY, Policy::DEFAULT] {
        let mut fs = mounted(eight_dies(2), policy, 8);
        let ino = file(&mut fs, b"file");
        for chunk in 0..400 {
            fs.write(ino, chunk * 4096, &contents(chunk), 1).unwrap();
        }
        fs.sync().unwrap();
        assert_eq!(by_channel(&mut fs, ino), [50; 8], "{policy}");
    }
}

/// Where all channels are idle the first page of each file goes to the channel whose turn it is, which round-robin alone moves.
#[test]
fn the_turn_stays_under_a_rule_that_goes_by_the_file() {
    for (rule, first_pages) in [(ChannelRule::FairPlus, [4, 0, 0, 0, 0, 0, 0, 0]), (ChannelRule::RoundRobin, [1; 8])] {
        let mut fs = mounted(eight_dies(2), Policy::SLC_ONLY.with_channel(rule), 8);
        let files = first_pages.iter().sum::<u32>();
        let mut found = [0; 8];
        for number in 0..files {
            let ino = file(&mut fs, &[b'a' + number as u8]);
            fs.write(ino, 0, &contents(1), 1).and_then(|_| fs.sync()).unwrap();
            by_channel(&mut fs, ino).iter().zip(&mut found).for_each(|(pages, found)| *found += pages);
        }
        assert_eq!(found, first_pages, "{rule:?}");
    }
}

#[test]
fn the_first_blocks_of_a_head_are_named_in_one_anchor() {
    let anchors = |lanes| {
        let mut fs = mounted(eight_dies(2), Policy::SLC_ONLY, lanes);
        let ino = file(&mut fs, b"file");
        let before = fs.anchor().unwrap().serial;
        fs.write(ino, 0, &[1; 8 * 4096], 1).and_then(|_| fs.sync()).unwrap();
        let open = fs.blocks().filter(|block| block.head == Some("slc")).count();
        (open, fs.anchor().unwrap().serial - before)
    };
    let (one, eight) = (anchors(1), anchors(8));
    assert_eq!((one.0, eight.0), (1, 8));
    assert_eq!(one.1, eight.1);
}

/// Blocks that more lanes had opened are read by the next recovery, though fewer lanes go on in them.
#[test]
fn a_mount_with_another_number_of_lanes_goes_on() {
    for [before, then] in [[8, 1], [1, 8], [4, 2], [2, 4]] {
        for is_cut in [false, true] {
            let mut fs = mounted(eight_dies(2), Policy::DEFAULT, before);
            let ino = file(&mut fs, b"file");
            for round in 0..3 {
                for chunk in 0..40 {
                    fs.write(ino, chunk * 4096, &contents(chunk + round), 1).unwrap();
                }
                fs.sync().unwrap();
                let chip = match is_cut {
                    true => fs.into_chip(),
                    false => {
                        let (chip, done) = fs.unmount(1);
                        done.unwrap();
                        chip
                    }
                };
                fs = mounted(chip, Policy::DEFAULT, if round % 2 == 0 { then } else { before });
                let mut found = [0; 4096];
                for chunk in 0..40 {
                    fs.read(ino, chunk * 4096, &mut found).unwrap();
                    assert_eq!(found[..], contents(chunk + round), "{before} {then} {is_cut} {round}");
                }
            }
            assert!(fs.check().unwrap().findings.is_empty(), "{before} {then} {is_cut}");
        }
    }
}

/// Each lane that found its block half full names its next one: all of these would have counted as ends.
#[test]
fn a_lane_that_went_on_leaves_no_doubtful_end() {
    let mut fs = mounted(eight_dies(2), Policy::SLC_ONLY, 4);
    let ino = file(&mut fs, b"file");
    fs.write(ino, 0, &[1; 20 * 4096], 1).unwrap();
    let (chip, done) = fs.unmount(1);
    done.unwrap();
    let mut fs = mounted(chip, Policy::SLC_ONLY, 4);
    fs.write(ino, 0, &[2; 60 * 4096], 1).and_then(|_| fs.sync()).unwrap();
    let names = &flash(&fs).anchors().last().unwrap().names;
    let heads: Vec<HeadAt> = flash(&fs).anchors().last().unwrap().heads.clone();
    assert!(names.iter().filter(|named| named.chain_end().is_some()).count() >= 3, "{names:?} {heads:?}");
    let chip = fs.into_chip();
    let options = MountOptions { read_only: true, lanes: Some(4), ..MountOptions::default() };
    let fs = Fs::mount(chip, options).map_err(|(_, error)| error).unwrap();
    // One page of one bit a cell in each of the four lanes.
    assert_eq!(flash(&fs).slots().stash().len(), 4);
}

/// What is counted of a file once is what a count would find after everything that moves its pages.
#[test]
fn pages_by_channel_are_kept_as_counted() {
    let policy = Policy::DEFAULT.with_channel(ChannelRule::FairPlus);
    let mut fs = mounted(eight_dies(2), policy, 8);
    let files = [file(&mut fs, b"a"), file(&mut fs, b"b"), file(&mut fs, b"c")];
    let (mut state, mut compared) = (1, 0);
    for step in 0..3_000 {
        let ino = files[dice(&mut state) as usize % 3];
        match dice(&mut state) % 20 {
            0 => {
                let size = Some(dice(&mut state) % 200 * 4096);
                fs.setattr(ino, SetAttr { size, ..SetAttr::default() }, 1).map(drop).unwrap();
            }
            1 => fs.sync().unwrap(),
            2 => drop(fs.background(step << 30, 1).unwrap()),
            _ => {
                let pages = 1 + dice(&mut state) % 12;
                fs.write(ino, dice(&mut state) % 200 * 4096, &vec![3; pages as usize * 4096], 1).unwrap();
            }
        }
        if step % 10 == 0 {
            let counted = fs.store_mut().records_mut().spreads.pages(ino).map(<[u32]>::to_vec);
            if let Some(counted) = counted {
                assert_eq!(counted, by_channel(&mut fs, ino), "step {step}");
                compared += 1;
            }
        }
    }
    assert!(compared > 50, "{compared}");
    assert!(fs.info().unwrap().collections > 0 || fs.info().unwrap().migrated_blocks > 0);
}

/// Round-robin left a file that was written in pieces beside others on some channels more often than on others.
#[test]
fn rules_that_know_the_file_spread_it_evenly() {
    let spread = |channel| {
        let mut fs = mounted(eight_dies(1), Policy::SLC_ONLY.with_channel(channel), 8);
        let files: Vec<Ino> = (0..20u8).map(|number| file(&mut fs, &[b'a' + number])).collect();
        let mut state = 7;
        let mut ends = vec![0; files.len()];
        for _ in 0..300 {
            let which = dice(&mut state) as usize % files.len();
            let pages = 1 + dice(&mut state) % 4;
            fs.write(files[which], ends[which] * 4096, &vec![1; pages as usize * 4096], 1).unwrap();
            ends[which] += pages;
        }
        fs.sync().unwrap();
        let uneven = |counts: [u32; 8]| counts.iter().max().unwrap() - counts.iter().min().unwrap();
        files.iter().map(|&ino| uneven(by_channel(&mut fs, ino))).max().unwrap()
    };
    assert!(spread(ChannelRule::RoundRobin) > 3);
    assert!(spread(ChannelRule::FairPlus) <= 2);
    assert!(spread(ChannelRule::FileFairness) <= 2);
    assert!(spread(ChannelRule::WindowPlus) <= 3);
    assert!(spread(ChannelRule::ReadBusyPlus) > 3, "it does not know the file");
}
