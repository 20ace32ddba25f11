//! The page: every experiment with its rows, what they were got with, and its plots. Invariant: it is one file that no
//! other is needed to read, and no text in it is taken for markup.

use super::{Finding, ReportError, file_name, plot};
use crate::experiment::Row;

const STYLE: &str = "body{font:15px/1.45 sans-serif;max-width:64em;margin:2em auto;padding:0 1em;color:#222}\
    table{border-collapse:collapse;margin:1em 0;width:100%}th,td{text-align:left;padding:.25em .6em;\
    border-bottom:1px solid #ddd;vertical-align:top}td.n{text-align:right;white-space:nowrap}\
    .ok{color:#00734d}.open{color:#8a5a00}.bad{color:#b00020;font-weight:bold}.with{color:#666;font-size:85%}svg{max-width:100%;height:auto}";

/// The whole page.
pub fn html(findings: &[Finding]) -> Result<String, ReportError> {
    let mut page = format!(
        "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>FlexFS: the papers' experiments</title>\
         <style>{STYLE}</style></head><body>\n<h1>FlexFS: the papers' experiments</h1>\n\
         <p>Lee, Ha, Zhang, Kim, Kim: <i>FlexFS: A Flexible Flash File System for MLC NAND Flash Memory</i>, USENIX ATC \
         2009, and (ids that begin with ftl-) Kim, Kim, Noh, Min, Cho: <i>A Space-Efficient Flash Translation Layer for \
         CompactFlash Systems</i>, 2002, beside the same experiments on this implementation and an emulated chip with the \
         papers' times. All times are the chip's and the host's as the experiment sets them; run again, they are the same.</p>\n<ul>\n"
    );
    for finding in findings {
        let verdict = match finding.is_ok() {
            true if finding.outcome.rows.iter().any(|row| row.open) => "open",
            true => "ok",
            false => "NOT OK",
        };
        let class = class(verdict);
        let (id, title) = (finding.experiment.id, escaped(finding.experiment.title));
        page.push_str(&format!("<li><a href=\"#{id}\">{title}</a>: <span class=\"{class}\">{verdict}</span></li>\n"));
    }
    page += "</ul>\n";
    for finding in findings {
        section(&mut page, finding)?;
    }
    page += "</body></html>\n";
    Ok(page)
}

fn section(page: &mut String, finding: &Finding) -> Result<(), ReportError> {
    let Finding { experiment, outcome, missing } = finding;
    let [title, about, differs] = [experiment.title, experiment.about, experiment.differs].map(escaped);
    page.push_str(&format!("<h2 id=\"{}\">{title}</h2>\n<p>{about}</p>\n", experiment.id));
    page.push_str(&format!("<p><b>What differs from the paper:</b> {differs}</p>\n"));
    if !missing.is_empty() {
        let names = escaped(&missing.join(", "));
        page.push_str(&format!("<p class=\"bad\">Without the results of these jobs, which did not run: {names}</p>\n"));
    }
    *page += "<table><tr><th></th><th>paper</th><th>ours</th><th>unit</th><th>bar</th><th></th></tr>\n";
    outcome.rows.iter().for_each(|row| line(page, row));
    *page += "</table>\n";
    for figure in &outcome.plots {
        page.push_str(&format!("<figure>{}</figure>\n", plot::svg(figure)?));
    }
    for figure in &outcome.column_plots {
        page.push_str(&format!("<figure>{}</figure>\n", plot::svg_of_columns(figure)?));
    }
    let link = |name: &str| format!("<a href=\"{name}\">{name}</a>");
    let tables: Vec<String> =
        outcome.tables.iter().map(|table| link(&file_name(experiment, &table.name, "csv"))).collect();
    if !tables.is_empty() {
        page.push_str(&format!("<p>Figures: {}</p>\n", tables.join(", ")));
    }
    Ok(())
}

fn line(page: &mut String, row: &Row) {
    let paper = row.paper.map(figure).unwrap_or_default();
    let with: Vec<String> = row.parameters.iter().map(|(name, value)| format!("{name}: {value}")).collect();
    let (class, verdict) = (class(row.verdict()), row.verdict());
    let reason = Some(escaped(row.reason)).filter(|reason| !reason.is_empty());
    let reason = reason.map(|reason| format!("<div class=\"with\">{reason}</div>")).unwrap_or_default();
    page.push_str(&format!(
        "<tr><td>{}<div class=\"with\">{}</div></td><td class=\"n\">{paper}</td><td class=\"n\">{}</td><td>{}</td>\
             <td>{}{reason}</td><td class=\"{class}\">{verdict}</td></tr>\n",
        escaped(&row.name),
        escaped(&with.join("; ")),
        figure(row.ours),
        escaped(row.unit),
        escaped(&row.bar.to_string()),
    ));
}

fn class(verdict: &str) -> &'static str {
    match verdict {
        "" => "",
        "ok" => "ok",
        "open" => "open",
        _ => "bad",
    }
}

/// A figure with as many digits as say something.
fn figure(value: f64) -> String {
    let digits = if value.abs() >= 100.0 { 1 } else { 3 };
    let text = format!("{value:.digits$}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}
