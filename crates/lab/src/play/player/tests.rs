//! The player's clock, beside requests whose times are known.

use super::super::{HostCost, Ledger};
use super::*;
use emulator::Profile;
use flexfs_core::{Policy, Wanted};

const PAGE_BYTES: u64 = 4096;

fn setting(host: HostCost) -> Setting {
    let profile = Profile::default().with_capacity(16 << 20).unwrap();
    Setting { profile, host, policy: Policy::default(), life: Wanted::default(), seed: 3 }
}

/// Appends a synced page at that time.
fn append(player: &mut Player, ledger: &mut Ledger, ino: Ino, number: u64, arrival_ns: u64) -> Response {
    let data = ledger.append("pages", 1, PAGE_BYTES);
    let answer = |player: &mut Player| {
        player.write(ino, number * PAGE_BYTES, &data)?;
        player.sync()
    };
    player.request(arrival_ns, answer).unwrap().1
}

/// Pages, each 50 ms after the end of the one before it.
fn responses(host: HostCost) -> (Vec<Response>, Tally) {
    let mut player = Player::new(&setting(host)).unwrap();
    let mut ledger = Ledger::default();
    let ino = player.create("pages").unwrap().ino;
    player.sync().unwrap();
    let each = |number| {
        let arrival_ns = player.now_ns() + 50_000_000;
        append(&mut player, &mut ledger, ino, number, arrival_ns)
    };
    let all = (0..300).map(each).collect();
    let tally = player.tally();
    ledger.verify(&player.unmount().unwrap()).unwrap();
    (all, tally)
}

#[test]
fn a_request_that_arrives_while_a_step_is_under_way_waits_exactly_until_its_end() {
    let mut player = Player::new(&setting(HostCost::NONE)).unwrap();
    let mut ledger = Ledger::default();
    let ino = player.create("pages").unwrap().ino;
    player.sync().unwrap();
    let now_ns = player.now_ns();
    let alone_ns = append(&mut player, &mut ledger, ino, 0, now_ns).time_ns();
    assert_eq!(alone_ns, 431_000);
    // A change that nobody syncs is committed in idle time.
    player.create("late").unwrap();
    ledger.append("late", 2, 0);
    let before = player.tally();
    while player.tally().steps == before.steps {
        let at_ns = player.next_step_ns.unwrap();
        let (_, response) = player.request(at_ns + 1_000, |_| Ok(())).unwrap();
        let step_ns = player.tally().longest_step_ns;
        assert_eq!(response.waited_ns, step_ns.saturating_sub(1_000));
        assert_eq!(response.time_ns(), response.waited_ns);
    }
    assert_eq!((player.tally().delayed, player.tally().longest_step_ns), (before.delayed + 1, 431_000));
    let arrival_ns = player.now_ns() - 400;
    let response = append(&mut player, &mut ledger, ino, 1, arrival_ns);
    assert_eq!((response.waited_ns, response.time_ns()), (0, alone_ns + 400), "it queued behind a request");
    ledger.verify(&player.unmount().unwrap()).unwrap();
}

#[test]
fn the_hosts_time_is_that_of_the_pages_programmed_and_nothing_else_happens_in_it() {
    let ((none, _), (host, _)) = (responses(HostCost::NONE), responses(HostCost::OMAP2420));
    // Where a block ends, a request may take two pages.
    let pages = |(none, host): (&Response, &Response)| (host.time_ns() - none.time_ns()) as f64 / 1_378_000.0;
    let all: Vec<f64> = none.iter().zip(&host).map(pages).collect();
    assert!(all.iter().all(|pages| [1.0, 2.0].contains(pages)), "{all:?}");
    assert!(all.iter().filter(|&&pages| pages > 1.0).count() < all.len() / 50);
}

#[test]
fn what_is_played_again_takes_the_same_times() {
    assert_eq!(responses(HostCost::PAPER_TABLE6), responses(HostCost::PAPER_TABLE6));
}

/// Pages on eight channels, with transfers of their own.
#[test]
fn a_chip_of_several_dies_and_a_bus_answers_in_its_own_time() {
    let profile = Profile::builtin("codesign-mlc8").unwrap().with_capacity(128 << 20).unwrap();
    // Of the spare bytes only the tag is transferred.
    let transfer_ns = (4096 + 32) * profile.timing.bus_ps_per_byte / 1000;
    let setting = Setting { profile, policy: Policy::SLC_ONLY, ..setting(HostCost::NONE) };
    let mut player = Player::new(&setting).unwrap();
    let mut ledger = Ledger::default();
    let ino = player.create("pages").unwrap().ino;
    player.sync().unwrap();
    // The first page of each lane opens a block.
    for number in 0..2 {
        let arrival_ns = player.now_ns() + 50_000_000;
        append(&mut player, &mut ledger, ino, number, arrival_ns);
    }
    for number in 2..20 {
        let arrival_ns = player.now_ns() + 50_000_000;
        let response = append(&mut player, &mut ledger, ino, number, arrival_ns);
        assert_eq!(response.time_ns(), 800_000 + transfer_ns, "page {number}");
    }
    ledger.verify(&player.unmount().unwrap()).unwrap();
}
