//! `flexfs replay --ftl`: a block trace on a translation layer.
//!
//! Invariant: processor time alone depends on the machine.

use anyhow::{Result, anyhow, bail};
use emulator::Profile;
use ftl::Scheme;
use lab::layers::LayerError;
use lab::layers::replay::{BlocksReplayed, ReplayConfig, ReplayFormat, TracePlacement, replay, size_for};
use lab::trace::block::{self, BlockTrace};

use super::distribution;
use super::source::RecordingSource;
use crate::cmd::{layer_figures, new_layer};
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
    let told = |error: LayerError| anyhow!("{shown}: {error}; take a --profile of larger pages, or fewer --requests");
    let config = config(args, &trace, scheme).map_err(|error| error.context(shown.clone()))?;
    let fitting = || size_for(&trace, &config).map_err(told);
    let recorded_bytes = trace.device.as_ref().filter(|_| args.as_recorded).map(|device| device.chip_bytes);
    let chip_bytes = args.size.or(recorded_bytes).map_or_else(fitting, Ok)?;
    let sized = chips::fitted(&config.profile, chip_bytes, "--size").map_err(anyhow::Error::msg)?;
    new_layer::check_counts(&args.counts, scheme, sized.geometry.blocks)
        .map_err(|error| error.context(shown.clone()))?;
    let config = ReplayConfig { profile: sized, ..config };
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

/// The configuration that was asked for, but for the chip's size: with `--as-recorded` that of the recording, where it tells one.
fn config(args: &cli::Replay, trace: &BlockTrace, scheme: Scheme) -> Result<ReplayConfig> {
    let device = trace.device.as_ref().filter(|_| args.as_recorded);
    let profile = match (&args.profile, device) {
        (Some(profile), _) => profile.clone(),
        (None, Some(device)) => Profile::builtin(&device.profile).map_err(|error| {
            anyhow!("{error}; it was recorded on a chip of another kind: describe that with --profile FILE")
        })?,
        (None, None) => Profile::builtin(chips::OF_LAYERS)?,
    };
    let counts = &args.counts;
    // Log blocks and map blocks of one scheme say nothing of another.
    let of_scheme = device.filter(|device| device.scheme == scheme.name());
    let format = ReplayFormat {
        extra_blocks: counts.extra_blocks.or(device.map(|device| device.extra_blocks)),
        logs: counts.logs.or(of_scheme.map(|device| device.logs)),
        map_blocks: counts.map_blocks.or(of_scheme.map(|device| device.map_blocks)),
    };
    let placement = if args.as_recorded { TracePlacement::AsRecorded } else { TracePlacement::Dense };
    let (full, warm_up) = (args.full, args.warm_up);
    let merges_idle = args.idle_merges;
    Ok(ReplayConfig { format, placement, full, warm_up, merges_idle, ..ReplayConfig::new(profile, scheme) })
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
        ("extra erases", format!("{:.1} beyond a block's for each block of sectors written", replayed.extra_erases)),
        ("extra programs", format!("{:.0} beyond a page's for each sector written", replayed.extra_writes)),
    ]);
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
