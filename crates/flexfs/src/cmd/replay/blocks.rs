//! `flexfs replay --ftl`: a block trace on a translation layer.
//!
//! Invariant: processor time alone depends on the machine.

use anyhow::{Result, anyhow, bail};
use emulator::Profile;
use ftl::Scheme;
use lab::layers::LayerError;
use lab::layers::replay::{BlocksReplayed, ReplayConfig, replay, size_for};
use lab::trace::block;

use super::distribution;
use super::source::RecordingSource;
use crate::cmd::layer_figures;
use crate::output::{grouped, table};
use crate::{chips, cli, progress, size};

/// The figures of a block trace, played on a new chip.
pub fn on_layer(args: &cli::Replay, source: &RecordingSource, scheme: Scheme) -> Result<String> {
    let RecordingSource { shown, bytes } = source;
    if !block::begins(bytes) && super::is_of_files(bytes) {
        bail!("{shown}: not a block trace, which alone is played on a translation layer; leave --ftl away");
    }
    let read = block::read_with(bytes, &super::read_options(args)).map_err(|error| anyhow!("{shown}: {error}"))?;
    let (mut trace, empty_requests) = (read.trace, read.empty_requests);
    trace.requests.truncate(args.requests.unwrap_or(usize::MAX));
    if args.no_pauses {
        trace.requests.iter_mut().for_each(|request| request.at_ns = 0);
    }
    let profile = match &args.profile {
        Some(profile) => profile.clone(),
        None => Profile::builtin(chips::OF_LAYERS)?,
    };
    let hint = "take a --profile of larger pages, or fewer --requests";
    let fitting = || size_for(&trace, &profile, scheme).map_err(|error| anyhow!("{shown}: {error}; {hint}"));
    let chip_bytes = args.size.map_or_else(fitting, Ok)?;
    let sized = chips::fitted(&profile, chip_bytes, "--size").map_err(anyhow::Error::msg)?;
    let config = ReplayConfig { profile: sized, scheme, merges_idle: args.idle_merges };
    let bar = progress::share("replay");
    let replayed = replay(&config, &trace, &mut |done, all| {
        bar.set_length(all);
        bar.set_position(done);
    });
    bar.finish_and_clear();
    match replayed {
        Ok(replayed) if args.json => {
            let mut object = serde_json::to_value(&replayed)?;
            object["empty_requests"] = empty_requests.into();
            Ok(object.to_string())
        }
        Ok(replayed) => Ok(figures(&replayed, empty_requests)),
        Err(LayerError::NoRoom { touched_bytes, holds_bytes }) => {
            let (touched, holds) = (size::human(touched_bytes), size::human(holds_bytes));
            bail!(
                "{shown}: it touches {touched}, and the device holds {holds}; take --size {}",
                size::typed(fitting()?)
            )
        }
        Err(error) => bail!("{shown}: {error}"),
    }
}

fn figures(replayed: &BlocksReplayed, empty_requests: u64) -> String {
    let sectors = format!("{} of {}", grouped(replayed.sectors), size::human(replayed.sector_bytes));
    let touched = size::human(replayed.touched_bytes);
    let asked = format!(
        "{} sectors read, {} written, {} trimmed",
        grouped(replayed.sectors_read),
        grouped(replayed.sectors_written),
        grouped(replayed.sectors_trimmed)
    );
    let mut rows = vec![
        ("scheme", replayed.scheme.to_owned()),
        ("chip", format!("{}, {}", replayed.chip, size::human(replayed.chip_bytes))),
        ("sectors", sectors),
        ("requests", format!("{}, which touch {touched}", grouped(replayed.requests))),
        ("passed over", format!("{} requests for nothing", grouped(empty_requests))),
        ("written before", format!("{} sectors", grouped(replayed.sectors_before))),
        ("asked", asked),
        ("written in part", format!("{} sectors, which were read first", grouped(replayed.partial_sectors))),
    ];
    rows.extend(layer_figures::rows(&replayed.work));
    rows.extend([
        ("flash time", format!("{:.3} s", replayed.flash_s)),
        ("elapsed time", format!("{:.3} s", replayed.elapsed_s)),
        ("processor time", format!("{:.3} s", replayed.cpu_s)),
        ("reads took", distribution(&replayed.read_responses)),
        ("writes took", distribution(&replayed.write_responses)),
    ]);
    rows.extend(replayed.steps.iter().map(|steps| ("background steps", distribution(steps))));
    rows.extend([
        ("memory", format!("{} for the scheme", size::human(replayed.ram_bytes))),
        ("opening", format!("{} page reads", grouped(replayed.open_reads))),
        ("compared", format!("every read, and {} sectors after the opening", grouped(replayed.sectors_verified))),
    ]);
    table(&rows)
}
