//! The figures of a volume and its chip, as a table and as JSON: what is stored, how worn the blocks are, and of a
//! mounted one what its server does.
//!
//! Invariant: nothing here reads or writes flash, so that watching a volume changes nothing of it.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use emulator::{Counters, OpCounts};
use flexfs_core::{Error, Fs, Info, Outlook, WorkKind, dump::BlockInfo};
use ftl::DriveReport;
use jiff::Timestamp;
use nand::{Cause, Nand};
use serde_json::{Value, json};

use crate::any_chip::AnyChip;
use crate::block_kind::Kind;
use crate::chip_figures::ChipFigures;
use crate::health::Health;
use crate::monitor::Form;
use crate::output::{grouped, listed, table};
use crate::{drive_figures, size, spread_figures, time_span};

/// A volume's identity as people write one.
pub fn volume_id(id: &[u8; 16]) -> String {
    let mut text = String::with_capacity(36);
    for (index, byte) in id.iter().enumerate() {
        if matches!(index, 4 | 6 | 8 | 10) {
            text.push('-');
        }
        text.push_str(&format!("{byte:02x}"));
    }
    text
}

/// What only the server of a mounted volume knows.
pub struct Live {
    pub mountpoint: String,
    /// Since it was mounted.
    pub elapsed: Duration,
    /// What its chip has done since.
    pub counters: Counters,
}

/// All there is to tell of a volume.
pub struct Figures {
    image: String,
    chip: ChipFigures,
    /// The drive between the volume and the chip, if there is one.
    drive: Option<DriveReport>,
    /// What each block is, by the block's number.
    kinds: Vec<Kind>,
    info: Info,
    /// What is wrong with the root directory.
    damage: Option<String>,
    /// `None` where it is not mounted.
    live: Option<Live>,
}

/// Operations by the name of their cause.
fn by_cause(counts: &OpCounts) -> impl Iterator<Item = (&'static str, u64)> {
    Cause::ALL.into_iter().map(|cause| (cause.name(), counts.cause(cause)))
}

/// How a life stands that is to be guaranteed.
fn life_json(life: &Outlook) -> Value {
    json!({
        "goal_ns": life.goal.life_ns,
        "window_ns": life.goal.window_ns,
        "start_ns": life.start_ns,
        "elapsed_ns": life.elapsed_ns,
        "delta": f64::from(life.wear_index) / 1e6,
        "budget_bytes": life.budget_bytes,
        "left_bytes": life.left_bytes,
        "ends_ns": life.ends_ns,
    })
}

/// The same in a line.
fn said_of_life(life: &Outlook) -> String {
    let time = |ns: u64| time_span::human(ns / 1_000_000_000);
    let spent = life.budget_bytes.saturating_sub(life.left_bytes);
    let end = match life.ends_ns {
        None => String::new(),
        Some(ends_ns) => {
            format!("; IT CANNOT BE MET: at this rate the chip is worn out on {}", date(life.start_ns, ends_ns))
        }
    };
    format!(
        "{} of {} are over, {} of {} of writing budget spent, δ {:.2}{end}",
        time(life.elapsed_ns),
        time(life.goal.life_ns),
        size::human(spent),
        size::human(life.budget_bytes),
        f64::from(life.wear_index) / 1e6,
    )
}

/// When so much of a life will be over, by the wall clock.
pub fn date(start_ns: i64, elapsed_ns: u64) -> String {
    let ns = u64::try_from(start_ns).unwrap_or(0).saturating_add(elapsed_ns);
    // Every count of nanoseconds that fits lies within the years that can be written.
    Timestamp::from_nanosecond(ns.into()).map_or_else(|_| ns.to_string(), |time| time.strftime("%F").to_string())
}

impl Figures {
    /// The figures of the volume in an image.
    pub fn of(fs: &mut Fs<AnyChip>, image: &Path) -> Result<Self, Error> {
        let name = fs.chip().name().to_owned();
        let figures = Self::of_chip(fs, &name, image)?;
        let Some(drive) = fs.chip().drive() else { return Ok(figures) };
        // The erases that the core counts are those of logical blocks.
        let chip = ChipFigures::of(drive.chip(), &name, drive.erases_of_good_blocks().collect());
        Ok(Self { chip, drive: Some(drive.report()), ..figures })
    }

    /// The figures of the volume on a chip of this name.
    pub fn of_chip<N: Nand>(fs: &mut Fs<N>, name: &str, image: &Path) -> Result<Self, Error> {
        let info = fs.info()?;
        let erases = fs.blocks().filter(|block: &BlockInfo| block.used_as != "bad").map(|block| block.erases).collect();
        let kinds = fs.blocks().map(|block| Kind::of(&block)).collect();
        Ok(Self {
            image: image.display().to_string(),
            chip: ChipFigures::of(fs.chip(), name, erases),
            drive: None,
            kinds,
            info,
            damage: None,
            live: None,
        })
    }

    /// The same, with what is wrong with the root directory.
    pub fn with_damage(self, damage: Option<String>) -> Self {
        Self { damage, ..self }
    }

    /// The same, with what the volume's server knows.
    pub fn with_live(self, live: Live) -> Self {
        Self { live: Some(live), ..self }
    }

    /// The text to show.
    pub fn shown(&self, form: Form) -> String {
        match form {
            Form::Table => self.table(),
            Form::Json => self.json().to_string(),
        }
    }

    fn health(&self) -> Health {
        let erases_max = if self.drive.is_some() { self.chip.erases_max() } else { self.info.erases_max };
        Health::of(&self.info, erases_max, self.chip.endurance[1])
    }

    /// In a word: what is wrong with what it holds comes before what is wrong with the chip.
    fn word(&self) -> &'static str {
        if self.damage.is_some() { "damaged" } else { self.health().word }
    }

    /// In a word and why.
    fn said_of_health(&self) -> String {
        let info = &self.info;
        format!(
            "{}; {:.1} % of the endurance used at most, {} bad blocks, {} failing, {} fading, {} to spare",
            self.word(),
            100.0 * self.health().life_used,
            grouped(info.blocks.bad.into()),
            grouped(info.failing_blocks.into()),
            grouped(info.fading_blocks.into()),
            grouped(info.spare_blocks.into()),
        )
    }

    /// How the volume was left.
    fn state(&self) -> String {
        match &self.damage {
            Some(why) => {
                format!("damaged, in the root directory: {why} (`flexfs fsck {}` tells more)", self.image)
            }
            None if self.live.is_some() => "mounted".to_owned(),
            None if self.info.clean => "clean".to_owned(),
            None => "not unmounted cleanly: the next mount recovers it".to_owned(),
        }
    }

    fn json(&self) -> Value {
        let info = &self.info;
        let mut wear = self.chip.wear_json();
        wear["cycles"] = info.cycles.into();
        json!({
            "image": self.image,
            "profile": self.chip.profile,
            "chip": self.chip.json(),
            "drive": self.drive.as_ref().map(drive_figures::json),
            "lanes": spread_figures::lanes_json(info),
            "dies": spread_figures::dies_json(info),
            "volume_id": volume_id(&info.volume_id),
            "label": info.label,
            "version": info.version,
            "epoch": info.epoch,
            "clean": info.clean && self.damage.is_none(),
            "damage": self.damage,
            "checkpoints": info.checkpoints,
            "chunk_bytes": info.chunk_bytes,
            "capacity_bytes": info.capacity_bytes,
            "used_bytes": info.used_bytes,
            "files": info.files,
            "blocks": {
                "free": info.blocks.free,
                "slc": info.blocks.slc,
                "slc_hot": info.blocks.hot,
                "native": info.blocks.native,
                "metadata": info.blocks.metadata,
                "bad": info.blocks.bad,
            },
            "reserved_bytes": info.reserved_bytes,
            "health": {
                "state": self.word(),
                "life_used": self.health().life_used,
                "failing_blocks": info.failing_blocks,
                "fading_blocks": info.fading_blocks,
                "spare_blocks": info.spare_blocks,
            },
            "programmed_bytes": Cause::ALL.iter().zip(info.written_bytes).map(|(cause, bytes)| (cause.name(), bytes)).collect::<BTreeMap<_, _>>(),
            "wear": wear,
            "life": info.life.as_ref().map(life_json),
            "mounted": self.live.as_ref().map(|live| self.live_json(live)),
        })
    }

    fn live_json(&self, live: &Live) -> Value {
        let Info { policy, headroom_blocks, under_way, migrated_blocks, .. } = &self.info;
        let Counters { reads, programs, erases, read_bytes, flash_ns, .. } = &live.counters;
        json!({
            "mountpoint": live.mountpoint,
            "seconds": live.elapsed.as_secs(),
            "elapsed_ns": u64::try_from(live.elapsed.as_nanos()).unwrap_or(u64::MAX),
            "policy": policy.to_string(),
            "headroom_blocks": headroom_blocks,
            "alpha": self.info.alpha(),
            "to_slc": self.info.admitted.map(|to_slc| json!({ "share": to_slc.share(), "rule": to_slc.rule.name() })),
            "under_way": under_way.map(WorkKind::name),
            "idle_steps": self.idle_steps().collect::<BTreeMap<_, _>>(),
            "migrated_blocks": migrated_blocks,
            "collections": self.info.collections,
            "corrupt_reads": self.info.corrupt_reads,
            "wrong_checksums": self.info.wrong_checksums,
            "operations": {
                "reads": by_cause(reads).collect::<BTreeMap<_, _>>(),
                "programs": by_cause(programs).collect::<BTreeMap<_, _>>(),
                "erases": by_cause(erases).collect::<BTreeMap<_, _>>(),
            },
            "read_bytes": read_bytes,
            "host_programs": { "slc": programs.slc.host, "native": programs.native.host },
            "flash_ns": flash_ns,
            "block_map": self.kinds.iter().map(|kind| kind.letter()).collect::<String>(),
        })
    }

    /// Steps done in idle time, by the name of their work.
    fn idle_steps(&self) -> impl Iterator<Item = (&'static str, u64)> {
        WorkKind::ALL.iter().map(|work| work.name()).zip(self.info.idle_steps)
    }

    /// The rows that only a mounted volume has.
    fn live_rows(&self, live: &Live) -> Vec<(&'static str, String)> {
        let Info { policy, headroom_blocks, under_way, migrated_blocks, .. } = &self.info;
        let Counters { reads, programs, erases, .. } = &live.counters;
        let idle = listed(self.idle_steps());
        let alpha = self.info.alpha().map_or_else(String::new, |alpha| format!(", α {alpha:.2}"));
        let to_slc = self.info.admitted.map(|to_slc| {
            ("to SLC next", format!("{:.2} of callers' pages, rule: {}", to_slc.share(), to_slc.rule.name()))
        });
        let mounted = (
            "mounted",
            format!("on {} for {} s, policy {policy}{alpha}", live.mountpoint, grouped(live.elapsed.as_secs())),
        );
        let rest = [
            (
                "room",
                format!(
                    "{headroom_blocks} blocks of headroom; under way: {}",
                    under_way.map_or("nothing", WorkKind::name)
                ),
            ),
            ("idle steps", format!("{idle}; {} SLC blocks emptied", grouped(*migrated_blocks))),
            ("reads", listed(by_cause(reads))),
            ("programs", listed(by_cause(programs))),
            ("block erases", listed(by_cause(erases))),
        ];
        let lost = (self.info.corrupt_reads > 0).then(|| ("lost reads", self.said_of_lost_reads()));
        [mounted].into_iter().chain(to_slc).chain(rest).chain(lost).collect()
    }

    fn said_of_lost_reads(&self) -> String {
        format!(
            "{} could not be used; of these the chip read {} well: a wrong bit that its ECC does not cover, as in spare bytes",
            grouped(self.info.corrupt_reads),
            grouped(self.info.wrong_checksums),
        )
    }

    fn table(&self) -> String {
        let info = &self.info;
        let blocks = &info.blocks;
        let percent = 100.0 * info.used_bytes as f64 / (info.capacity_bytes.max(1)) as f64;
        let reserved = match info.reserved_bytes {
            0 => String::new(),
            bytes => format!(", {} of it reserved", size::human(bytes)),
        };
        let written = Cause::ALL.iter().zip(info.written_bytes).filter(|(_, bytes)| *bytes > 0);
        let written: Vec<String> = written
            .map(|(cause, bytes)| format!("{} {}", size::human(bytes), cause.name().replace('_', " ")))
            .collect();
        let mut rows = vec![
            ("image", self.image.clone()),
            ("label", if info.label.is_empty() { "(none)".into() } else { info.label.clone() }),
            ("volume", volume_id(&info.volume_id)),
            ("chip", self.chip.line()),
        ];
        rows.extend(self.drive.iter().flat_map(drive_figures::rows));
        rows.extend([
            (
                "state",
                format!(
                    "{}; format {}, epoch {}, checkpoint {}",
                    self.state(),
                    info.version,
                    info.epoch,
                    grouped(info.checkpoints),
                ),
            ),
            (
                "space",
                format!(
                    "{} of {} used ({percent:.1} %){reserved}, {} inodes",
                    size::human(info.used_bytes),
                    size::human(info.capacity_bytes),
                    grouped(info.files),
                ),
            ),
            (
                "blocks",
                format!(
                    "{} free, {} SLC ({} hot), {} native, {} metadata, {} bad",
                    grouped(blocks.free.into()),
                    grouped(blocks.slc.into()),
                    grouped(blocks.hot.into()),
                    grouped(blocks.native.into()),
                    grouped(blocks.metadata.into()),
                    grouped(blocks.bad.into()),
                ),
            ),
        ]);
        rows.extend(spread_figures::rows(info));
        rows.extend([
            ("erases", self.chip.wear_line()),
            ("programmed", written.join(", ")),
            ("health", self.said_of_health()),
        ]);
        rows.extend(info.life.iter().map(|life| ("life", said_of_life(life))));
        rows.extend(self.live.iter().flat_map(|live| self.live_rows(live)));
        let mut text = table(&rows);
        text.push_str(&self.chip.bars());
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_volume_id_is_written_like_a_uuid() {
        let id: [u8; 16] = std::array::from_fn(|index| index as u8 * 16);
        assert_eq!(volume_id(&id), "00102030-4050-6070-8090-a0b0c0d0e0f0");
    }

    #[test]
    fn the_end_of_a_life_is_written_as_a_date() {
        const YEAR_NS: u64 = 31_557_600_000_000_000;
        let dates = [
            (0, 0, "1970-01-01"),
            (-5, 86_399_999_999_999, "1970-01-01"),
            (1_709_164_800_000_000_000, 0, "2024-02-29"),
            (1_709_164_800_000_000_000, 3 * YEAR_NS, "2027-02-28"),
            (i64::MAX, 10 * YEAR_NS, "2272-04-11"),
            (i64::MAX, u64::MAX, "2554-07-21"),
        ];
        for (start_ns, elapsed_ns, text) in dates {
            assert_eq!(date(start_ns, elapsed_ns), text);
        }
    }
}
