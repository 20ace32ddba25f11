//! The workload of §5.1.2: much data at once, which then is to be migrated, and page writes that meet the migration.
//! Invariant: every scheme plays the same rounds, of the same data and the same idle times.

use emulator::{Chip, Profile};
use flexfs_core::{Ino, Policy, ROOT_INO, Wanted};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use serde::{Deserialize, Serialize};

use crate::experiment::schemes;
use crate::play::{HostCost, Ledger, PlayError, Player, Response, Setting};
use torture::content::mix;

const CHIP_BYTES: u64 = 128 << 20;

/// What is to be migrated.
const BULK_BYTES: u64 = 30 << 20;
const WRITE_BYTES: u64 = 128 << 10;

pub const REQUESTS: u64 = 10;
const PAGE_BYTES: u64 = 4096;

/// Idle time before a request: longer than `t_wait`, and short enough that all of U100's requests meet the migration.
const IDLE_NS: std::ops::Range<u64> = 1_000_001_000..2_000_000_000;

/// Pages written before a round, so that its requests stand anywhere in a block.
const LEAD_PAGES: std::ops::RangeInclusive<u64> = 1..=64;

const BULK: &str = "bulk";
const PAGES: &str = "pages";

/// Rounds that are played one after the other.
#[derive(Clone, Copy, Debug)]
pub struct Rounds {
    pub host: HostCost,
    pub rounds: u64,
    pub seed: u64,
}

/// How the requests of a scheme went, in order; times in ns.
#[derive(Default, Serialize, Deserialize)]
pub struct Answers {
    pub response_ns: Vec<u64>,
    /// Of that, for a background step that was under way.
    pub waited_ns: Vec<u64>,
    /// Pages migrated in the idle time before.
    pub migrated_pages: Vec<u64>,
    pub longest_step_ns: u64,
}

impl Rounds {
    pub fn setting(&self, policy: Policy) -> Result<Setting, PlayError> {
        let profile = Profile::default().with_capacity(CHIP_BYTES)?;
        Ok(Setting { profile, host: self.host, policy, life: Wanted::default(), seed: self.seed })
    }

    pub fn workload(&self) -> String {
        let mib = BULK_BYTES >> 20;
        format!("{mib} MiB at once, then 10 synced appends of one page, 1 to 2 s of idle time before each")
    }

    /// Plays the rounds with each scheme.
    pub fn run(&self) -> Result<Vec<Answers>, PlayError> {
        let (chip, ledger) = self.prepare()?;
        schemes::idle_shares().into_iter().map(|(_, policy)| self.play(policy, &chip, &ledger)).collect()
    }

    /// A volume with the bulk data, all in SLC blocks still, as no time has passed.
    fn prepare(&self) -> Result<(Chip, Ledger), PlayError> {
        let mut player = Player::new(&self.setting(schemes::BASELINE)?)?;
        let mut ledger = Ledger::default();
        player.create(PAGES)?;
        ledger.append(PAGES, 1, 0);
        let ino = player.create(BULK)?.ino;
        for offset in (0..BULK_BYTES).step_by(WRITE_BYTES as usize) {
            player.write(ino, offset, &ledger.append(BULK, mix(self.seed), WRITE_BYTES))?;
        }
        player.sync()?;
        Ok((player.unmount()?, ledger))
    }

    fn play(&self, policy: Policy, chip: &Chip, ledger: &Ledger) -> Result<Answers, PlayError> {
        let mut answers = Answers::default();
        for round in 0..self.rounds {
            let mut ledger = ledger.clone();
            let mut player = Player::mount(chip.snapshot(), &self.setting(policy)?)?;
            // The first change of a mount also says on the chip that the volume is in use: no request waits for that.
            let doing = "looking up a file";
            let found = player.look().lookup(ROOT_INO, PAGES.as_bytes());
            let ino = found.map_err(|source| PlayError::Fs { doing, source })?.ino;
            let mut dice = ChaCha8Rng::seed_from_u64(mix(self.seed) ^ round);
            let lead_pages = dice.random_range(LEAD_PAGES);
            for number in 0..lead_pages {
                let now_ns = player.now_ns();
                append(&mut player, &mut ledger, ino, number, now_ns)?;
            }
            for number in lead_pages..lead_pages + REQUESTS {
                let arrival_ns = player.now_ns() + dice.random_range(IDLE_NS);
                let response = append(&mut player, &mut ledger, ino, number, arrival_ns)?;
                answers.response_ns.push(response.time_ns());
                answers.waited_ns.push(response.waited_ns);
                answers.migrated_pages.push(response.migrated_pages);
            }
            answers.longest_step_ns = answers.longest_step_ns.max(player.tally().longest_step_ns);
            // The bulk data of every round would be much to read.
            if round + 1 == self.rounds {
                ledger.verify(&player.unmount()?)?;
            }
        }
        Ok(answers)
    }
}

fn append(
    player: &mut Player,
    ledger: &mut Ledger,
    ino: Ino,
    number: u64,
    arrival_ns: u64,
) -> Result<Response, PlayError> {
    let data = ledger.append(PAGES, 1, PAGE_BYTES);
    let answer = |player: &mut Player| {
        player.write(ino, number * PAGE_BYTES, &data)?;
        player.sync()
    };
    player.request(arrival_ns, answer).map(|((), response)| response)
}
