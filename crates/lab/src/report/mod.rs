//! What experiments found, as files for people: a page with everything, a table for spreadsheets and a plot for each
//! figure. Invariant: the same findings give the same bytes, and the page needs nothing but itself.

mod page;
mod plot;

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use crate::experiment::{Experiment, Outcome, Table};

/// What an experiment found.
pub struct Finding {
    pub experiment: Experiment,
    pub outcome: Outcome,
    /// Jobs without a result.
    pub missing: Vec<String>,
}

impl Finding {
    /// Whether every row is there and meets its bar, or is told as open.
    pub fn is_ok(&self) -> bool {
        self.missing.is_empty() && self.outcome.rows.iter().all(|row| row.ok || row.open)
    }
}

/// Why there is no report.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReportError {
    #[error("{}: {source}", path.display())]
    Write { path: PathBuf, source: io::Error },
    #[error("the plot {name} cannot be drawn: {why}")]
    Plot { name: String, why: String },
    #[error("the table {name} cannot be written: {source}")]
    Table { name: String, source: csv::Error },
}

/// Writes `index.html` into a directory, and the tables and plots beside it.
pub fn write(dir: &Path, findings: &[Finding]) -> Result<(), ReportError> {
    let put = |name: &str, content: &str| {
        let path = dir.join(name);
        fs::write(&path, content).map_err(|source| ReportError::Write { path, source })
    };
    fs::create_dir_all(dir).map_err(|source| ReportError::Write { path: dir.to_owned(), source })?;
    for Finding { experiment, outcome, .. } in findings {
        for table in &outcome.tables {
            put(&file_name(experiment, &table.name, "csv"), &csv(table)?)?;
        }
        for figure in &outcome.plots {
            put(&file_name(experiment, &figure.name, "svg"), &plot::svg(figure)?)?;
        }
        for figure in &outcome.column_plots {
            put(&file_name(experiment, &figure.name, "svg"), &plot::svg_of_columns(figure)?)?;
        }
    }
    put("index.html", &page::html(findings)?)
}

fn file_name(experiment: &Experiment, name: &str, ending: &str) -> String {
    format!("{}-{name}.{ending}", experiment.id)
}

fn csv(table: &Table) -> Result<String, ReportError> {
    let failed = |source| ReportError::Table { name: table.name.clone(), source };
    let mut writer = csv::Writer::from_writer(Vec::new());
    writer.write_record(&table.header).map_err(failed)?;
    for row in &table.rows {
        writer.write_record(row).map_err(failed)?;
    }
    let bytes = writer.into_inner().map_err(|error| failed(error.into_error().into()))?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::{Axis, Bar, ColumnPlot, ColumnSeries, Parameters, Plot, Row, Series, named};

    fn findings() -> Vec<Finding> {
        let parameters = Parameters::default().with("chip", "a & b");
        let good = Row::shown("speed <fast>", 12.5, "MB/s", &parameters).paper(13.0).bar(Bar::AtLeast(12.0));
        let bad = Row::shown("delay", 3.0, "µs", &parameters).bar(Bar::AtMost(2.0));
        let table = Table { name: "t".into(), header: vec!["a", "b"], rows: vec![vec!["1,5".into(), "2".into()]] };
        let axis = |label| Axis { label, from: 0.0, to: 10.0 };
        let series = |name: &str, marked| Series { name: name.into(), points: vec![(0.0, 1.0), (9.0, 8.0)], marked };
        let figure = Plot {
            name: "p".into(),
            title: "A title".into(),
            x: axis("time (s)"),
            y: axis("rate"),
            series: vec![series("one", true), series("two", false)],
        };
        let open = Row::shown("erases", 5.0, "", &parameters).bar(Bar::AtMost(4.0)).open("no trace < yet");
        let columns = |name: &str| ColumnSeries { name: name.into(), heights: vec![3.0, -1.0] };
        let column_plots = vec![ColumnPlot {
            name: "c".into(),
            title: "Columns".into(),
            groups: vec!["left", "right"],
            y: Axis { label: "gain", from: -2.0, to: 4.0 },
            series: vec![columns("three"), columns("four")],
        }];
        let outcome = Outcome { rows: vec![good, bad, open], tables: vec![table], plots: vec![figure], column_plots };
        vec![Finding { experiment: named("fig10").unwrap(), outcome, missing: vec!["fig10.x.y".into()] }]
    }

    #[test]
    fn a_report_shows_every_row_and_plot_and_says_what_is_missing() {
        let dir = tempfile::tempdir().unwrap();
        let out = dir.path().join("deep/er");
        write(&out, &findings()).unwrap();
        let read = |name: &str| fs::read_to_string(out.join(name)).unwrap();
        assert_eq!(read("fig10-t.csv"), "a,b\n\"1,5\",2\n");
        let svg = read("fig10-p.svg");
        assert!(["A title", "time (s)", "one", "two"].iter().all(|text| svg.contains(text)), "{svg}");
        let svg = read("fig10-c.svg");
        assert!(["Columns", "gain", "three", "four", "left", "right"].iter().all(|text| svg.contains(text)), "{svg}");
        let page = read("index.html");
        for text in [
            "speed &lt;fast&gt;",
            "a &amp; b",
            "12.5",
            "≥ 12",
            "≤ 2",
            "no trace &lt; yet",
            ">open<",
            ">NOT OK<",
            "fig10.x.y",
            "<svg",
            "fig10-t.csv",
            "Figure 10",
            "differs",
        ] {
            assert!(page.contains(text), "{text}");
        }
        assert!(!page.contains("src=\"http") && !page.contains("<script"));
        assert!(!findings()[0].is_ok());
        let Finding { experiment, mut outcome, .. } = findings().remove(0);
        outcome.rows.remove(1);
        assert!(Finding { experiment, outcome, missing: Vec::new() }.is_ok(), "an open bar is told, and is no failure");
    }

    #[test]
    fn the_same_findings_give_the_same_bytes() {
        assert_eq!(page::html(&findings()).unwrap(), page::html(&findings()).unwrap());
    }

    #[test]
    fn a_directory_that_cannot_be_made_is_named() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let refused = write(file.path(), &findings()).unwrap_err().to_string();
        assert!(refused.contains(&file.path().display().to_string()), "{refused}");
    }
}
