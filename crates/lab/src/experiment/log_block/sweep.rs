//! Schemes compared along one parameter: the six traces of the log-block paper together, at each value of it. Invariant: what is
//! compared are pages, so that blocks of different sizes can be.

use ftl::Scheme;

use super::traces::{Costs, SEEDS, Setup, Spread, summed};
use crate::experiment::{Axis, ExperimentError, Job, Outcome, Parameters, Plot, Results, Row, Series, Table};
use crate::layers::LayerError;
use crate::layers::workload::Workload;

/// Schemes that differ along it: L-M is L, and P/C is P/G, but for figures that Fig. 5 has.
const SCHEMES: [Scheme; 5] = [Scheme::LogBlock, Scheme::Replacement, Scheme::Fast, Scheme::Dftl, Scheme::PageGreedy];

/// A parameter, and the values it is given.
pub struct Sweep {
    /// The experiment's id.
    pub id: &'static str,
    pub values: &'static [u32],
    /// What the values are, as in "extra blocks".
    pub unit: &'static str,
    pub setup: fn(Workload, Scheme, u32) -> Setup,
    /// A value's other parameters, in words.
    pub parameters: fn(u32) -> Parameters,
}

impl Sweep {
    fn job_name(&self, scheme: Scheme, value: u32) -> String {
        format!("{}.{scheme}.{value}", self.id)
    }

    pub fn jobs(&self) -> Vec<Job> {
        let all = self.values.iter().flat_map(|&value| SCHEMES.map(|scheme| (scheme, value)));
        let job = |(scheme, value)| {
            let setup = self.setup;
            Job::new(self.job_name(scheme, value), move || Ok(measure(setup, scheme, value)?))
        };
        all.map(job).collect()
    }

    pub fn finish(&self, results: &Results) -> Result<Outcome, ExperimentError> {
        let mut outcome = Outcome::default();
        let (mut table, mut series) = (Vec::new(), Vec::new());
        for scheme in SCHEMES {
            let mut points = Vec::new();
            for &value in self.values {
                let Some(costs) = results.get::<Costs>(&self.job_name(scheme, value))? else { continue };
                let [workload, ..] = Workload::ALL;
                let spread = Spread::of(&(self.setup)(workload, scheme, value).pages_erased(&costs));
                points.push((f64::from(value), spread.mean));
                let name = format!("{}, {value} {}", scheme.letters(), self.unit);
                let parameters = (self.parameters)(value).with("seeds", SEEDS.to_string());
                outcome.rows.push(Row::shown(name, spread.mean, "", &parameters));
                let cells = [Spread::of(&costs.erases), Spread::of(&costs.writes)].map(|spread| spread.cells(0));
                let numbers = spread.cells(3).into_iter().chain(cells.into_iter().flatten());
                table.push([scheme.letters().to_owned(), value.to_string()].into_iter().chain(numbers).collect());
            }
            series.push(Series { name: scheme.letters().into(), points, marked: true });
        }
        series.retain(|series| !series.points.is_empty());
        if table.is_empty() {
            return Ok(outcome);
        }
        let header = vec![
            "scheme",
            "value",
            "pages_erased",
            "least",
            "most",
            "extra_erases",
            "least_erases",
            "most_erases",
            "extra_writes",
            "least_writes",
            "most_writes",
        ];
        outcome.tables.push(Table { name: "costs".into(), header, rows: table });
        let most = series.iter().flat_map(|series| &series.points).map(|(_, pages)| *pages).fold(0.0, f64::max);
        let to = self.values.iter().copied().max().unwrap_or(0);
        outcome.plots.push(Plot {
            name: "costs".into(),
            title: "All six traces".into(),
            x: Axis { label: self.unit, from: 0.0, to: f64::from(to) * 1.05 },
            y: Axis { label: "pages erased in vain for each page written", from: 0.0, to: most * 1.05 },
            series,
        });
        Ok(outcome)
    }
}

/// All traces, summed by seed.
fn measure(setup: fn(Workload, Scheme, u32) -> Setup, scheme: Scheme, value: u32) -> Result<Costs, LayerError> {
    let all = Workload::ALL.iter().map(|workload| setup(*workload, scheme, value).measure());
    let all = all.collect::<Result<Vec<_>, _>>()?;
    Ok(Costs {
        written: summed(all.iter().map(|costs| &costs.written)),
        erases: summed(all.iter().map(|costs| &costs.erases)),
        writes: summed(all.iter().map(|costs| &costs.writes)),
        p99_us: Vec::new(),
    })
}
