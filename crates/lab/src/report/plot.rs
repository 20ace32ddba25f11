//! Plots as SVG, in the paper's manner: lines over a plain grid, a legend in their middle. Invariant: no font of this machine
//! is looked at, so that the same figures are drawn the same everywhere.

use plotters::coord::Shift;
use plotters::prelude::*;

use super::ReportError;
use crate::experiment::{ColumnPlot, ColumnSeries, Plot, Series};

const SIZE: (u32, u32) = (760, 420);

const TEXT: (&str, u32) = ("sans-serif", 16);

/// Told apart by people who see colours otherwise, too (Okabe and Ito's).
const COLOURS: [RGBColor; 8] = [
    RGBColor(0, 114, 178),
    RGBColor(213, 94, 0),
    RGBColor(0, 158, 115),
    RGBColor(204, 121, 167),
    RGBColor(90, 90, 90),
    RGBColor(86, 180, 233),
    RGBColor(230, 159, 0),
    RGBColor(240, 228, 66),
];

/// A plot as the text of an SVG file.
pub fn svg(plot: &Plot) -> Result<String, ReportError> {
    text_of(&plot.name, |area| draw(plot, area))
}

/// Columns as the text of an SVG file.
pub fn svg_of_columns(plot: &ColumnPlot) -> Result<String, ReportError> {
    text_of(&plot.name, |area| draw_columns(plot, area))
}

fn text_of(name: &str, draw: impl for<'a> FnOnce(&Area<'a>) -> Drawn<'a>) -> Result<String, ReportError> {
    let mut text = String::new();
    let drawn = draw(&SVGBackend::with_string(&mut text, SIZE).into_drawing_area());
    drawn.map_err(|error| ReportError::Plot { name: name.into(), why: error.to_string() })?;
    Ok(text)
}

type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;
type Drawn<'a> = Result<(), DrawingAreaErrorKind<<SVGBackend<'a> as DrawingBackend>::ErrorType>>;

fn draw<'a>(plot: &Plot, area: &Area<'a>) -> Drawn<'a> {
    area.fill(&WHITE)?;
    let mut chart = ChartBuilder::on(area)
        .caption(&plot.title, ("sans-serif", 20))
        .margin(12)
        .margin_right(30)
        .x_label_area_size(40)
        .y_label_area_size(56)
        .build_cartesian_2d(plot.x.from..plot.x.to, plot.y.from..plot.y.to)?;
    let mut mesh = chart.configure_mesh();
    mesh.x_desc(plot.x.label).y_desc(plot.y.label).light_line_style(TRANSPARENT).label_style(TEXT).draw()?;
    for (Series { name, points, marked }, colour) in plot.series.iter().zip(COLOURS.into_iter().cycle()) {
        let line = chart.draw_series(LineSeries::new(points.iter().copied(), colour.stroke_width(2)))?;
        line.label(name).legend(move |(x, y)| PathElement::new([(x, y), (x + 18, y)], colour.stroke_width(2)));
        if *marked {
            chart.draw_series(points.iter().map(|&point| Circle::new(point, 3, colour.filled())))?;
        }
    }
    let mut legend = chart.configure_series_labels();
    legend
        .label_font(TEXT)
        .position(SeriesLabelPosition::MiddleLeft)
        .background_style(WHITE)
        .border_style(BLACK.mix(0.3))
        .draw()?;
    area.present()
}

/// Of the place of a group, so much stays free beside its columns.
const GAP: f64 = 0.2;

fn draw_columns<'a>(plot: &ColumnPlot, area: &Area<'a>) -> Drawn<'a> {
    area.fill(&WHITE)?;
    let groups = plot.groups.len();
    let mut chart = ChartBuilder::on(area)
        .caption(&plot.title, ("sans-serif", 20))
        .margin(12)
        .x_label_area_size(30)
        .y_label_area_size(56)
        .build_cartesian_2d(0.0..groups as f64, plot.y.from..plot.y.to)?;
    // The name of a group stands under its middle, and nothing between.
    let name = |x: &f64| match x.fract() {
        0.5 => plot.groups.get(*x as usize).copied().unwrap_or_default().to_owned(),
        _ => String::new(),
    };
    let mut mesh = chart.configure_mesh();
    mesh.disable_x_mesh().x_labels(2 * groups + 1).x_label_formatter(&name).y_desc(plot.y.label);
    mesh.light_line_style(TRANSPARENT).label_style(TEXT).draw()?;
    let width = (1.0 - GAP) / plot.series.len().max(1) as f64;
    for ((at, ColumnSeries { name, heights }), colour) in
        plot.series.iter().enumerate().zip(COLOURS.into_iter().cycle())
    {
        let column = |(group, &height): (usize, &f64)| {
            let left = group as f64 + GAP / 2.0 + at as f64 * width;
            Rectangle::new([(left, 0.0), (left + width, height)], colour.filled())
        };
        let columns = chart.draw_series(heights.iter().enumerate().map(column))?;
        columns.label(name).legend(move |(x, y)| Rectangle::new([(x, y - 5), (x + 12, y + 5)], colour.filled()));
    }
    let mut legend = chart.configure_series_labels();
    legend
        .label_font(TEXT)
        .position(SeriesLabelPosition::UpperRight)
        .background_style(WHITE)
        .border_style(BLACK.mix(0.3))
        .draw()?;
    area.present()
}
