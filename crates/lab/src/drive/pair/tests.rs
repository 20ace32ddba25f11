use super::*;
use crate::drive::load::{FileSizes, RequestSource, TRACES};
use crate::drive::{DieOverlap, DriveShape, DriveSwitches, DriveTimes, PlayPlan, RequestArrivals, ShadowedStore, play};

/// 8 channels of 64 blocks of 32 pages: a second's work.
const SHAPE: LogShape = LogShape { channels: 8, dies_per_channel: 2, blocks_per_channel: 64, pages_per_block: 32 };

fn idle() -> PendingTimes {
    PendingTimes::none(DriveShape::eight_channels(2, 1), DriveTimes::TABLE_I)
}

fn rules() -> impl Iterator<Item = CollectionRule> {
    let scopes = [CollectionScope::EachChannel, CollectionScope::WholeDrive];
    let ends = [CollectionEnd::Free, CollectionEnd::GivenBack];
    let paces = [CollectionPace::WhereIdle, CollectionPace::AtOnce];
    let of_scope =
        move |scope| ends.into_iter().flat_map(move |end| paces.map(move |pace| CollectionRule { scope, end, pace }));
    scopes.into_iter().flat_map(of_scope)
}

/// A pair that was written until it collects, and what is asked of it.
fn conditioned(
    pair: fn(LogShape, u32, CollectionRule) -> StoragePair,
    rule: CollectionRule,
) -> (ShadowedStore<StoragePair>, FileSizes) {
    let pages = SHAPE.pages() * 7 / 10;
    let files = FileSizes::filling(&TRACES[1], 3, pages).unwrap();
    let mut pair = ShadowedStore::new(pair(SHAPE, pages, rule), pages);
    condition(&mut pair, &files, &mut RequestSource::before(&TRACES[1], &files, 3).unwrap()).unwrap();
    (pair, files)
}

fn plan() -> PlayPlan {
    PlayPlan {
        shape: DriveShape::eight_channels(2, 1),
        times: DriveTimes::TABLE_I,
        switches: DriveSwitches { overlap: DieOverlap::Always, ..DriveSwitches::default() },
        arrivals: RequestArrivals::Poisson { mean_gap_ns: 4e6 },
        dropped: 100,
        seed: 3,
    }
}

#[test]
fn each_page_reads_as_last_written_under_every_rule() {
    for rule in rules() {
        for make in [StoragePair::page_mapped, StoragePair::codesign] {
            let (mut pair, files) = conditioned(make, rule);
            let erases = pair.store.counts().erases;
            let requests = RequestSource::new(&TRACES[1], &files, 3).unwrap();
            let played = play(&plan(), &mut pair, requests, |_, requests| requests == 4_000).unwrap();
            assert!(played.pages_compared > 4_000 && pair.store.counts().erases > erases, "{rule:?}");
            let mut planned = PlannedRequest::default();
            (0..files.files())
                .for_each(|file| pair.read(&files.span(file, 0, files.size(file)), &mut planned).unwrap());
        }
    }
}

#[test]
fn collection_begins_below_five_percent_and_ends_at_ten() {
    for rule in rules().filter(|rule| rule.end == CollectionEnd::Free) {
        let (mut pair, files) = conditioned(StoragePair::codesign, rule);
        let mut overwrites = RequestSource::before(&TRACES[1], &files, 4).unwrap();
        let mut planned = PlannedRequest::default();
        let (mut was_on, mut changes) = (pair.store.collection.is_on(0), 0);
        let mut steps = (0..8).cycle();
        while changes < 4 {
            pair.write(&overwrites.write(), &idle(), &mut planned).unwrap();
            for channel in steps.by_ref().take(40) {
                pair.background(channel, &|_| true).unwrap();
                let (free, blocks) = match rule.scope {
                    CollectionScope::EachChannel => (pair.store.log.free_blocks(0), 64),
                    CollectionScope::WholeDrive => (pair.store.log.all_free_blocks() as usize, 512),
                };
                let is_on = pair.store.collection.is_on(0);
                if rule.pace == CollectionPace::AtOnce {
                    assert!(!is_on && free >= blocks / 20 - 1, "{rule:?}: {free} free, as far as the write went");
                    changes += usize::from(pair.store.begins().all(|begins| begins > 10));
                } else if was_on != is_on {
                    changes += 1;
                    match is_on {
                        true => assert!(free < blocks / 20, "{rule:?}: begins with {free} free"),
                        false => assert!(free >= blocks / 10, "{rule:?}: ends with {free} free"),
                    }
                    was_on = is_on;
                }
            }
        }
    }
}

#[test]
fn writes_collect_at_once_where_a_channel_has_few_free_blocks() {
    let rule = CollectionRule {
        scope: CollectionScope::WholeDrive,
        end: CollectionEnd::Free,
        pace: CollectionPace::WhereIdle,
    };
    let (mut pair, files) = conditioned(StoragePair::codesign, rule);
    let mut overwrites = RequestSource::before(&TRACES[1], &files, 4).unwrap();
    let mut planned = PlannedRequest::default();
    for _ in 0..5_000 {
        pair.write(&overwrites.write(), &idle(), &mut planned).unwrap();
        assert!((0..8).all(|channel| pair.store.log.free_blocks(channel) > 0));
    }
    assert!(pair.store.counts().hurried_steps > 1_000, "{:?}", pair.store.counts());
}

#[test]
fn a_step_waits_until_the_die_of_its_victim_is_idle() {
    let rule = CollectionRule {
        scope: CollectionScope::WholeDrive,
        end: CollectionEnd::Free,
        pace: CollectionPace::WhereIdle,
    };
    let (mut pair, _) = conditioned(StoragePair::codesign, rule);
    assert!(pair.is_collecting(0));
    assert_eq!(pair.background(0, &|_| false).unwrap(), None);
    let step = pair.background(0, &|_| true).unwrap().unwrap();
    assert_eq!(pair.background(0, &|die| die != step.die).unwrap(), None, "the same block goes on");
    assert_eq!(step.duration_ns, 1_064_800, "a page is read, goes over the bus twice, and is programmed");
}

#[test]
fn the_map_of_a_co_design_has_an_entry_a_block() {
    let rule = rules().next().unwrap();
    assert_eq!(StoragePair::codesign(SHAPE, 10_000, rule).map_entries(), 512);
    assert_eq!(StoragePair::page_mapped(SHAPE, 10_000, rule).map_entries(), 10_000);
}
