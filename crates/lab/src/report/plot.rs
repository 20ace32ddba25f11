//! Plots as SVG, in the paper's manner: lines over a plain grid, a legend in their middle. Invariant: no font of this machine
//! is looked at, so that the same figures are drawn the same everywhere.

use plotters::coord::Shift;
use plotters::prelude::*;

use super::ReportError;
use crate::experiment::{Plot, Series};

const SIZE: (u32, u32) = (760, 420);

const TEXT: (&str, u32) = ("sans-serif", 16);

/// Told apart by people who see colours otherwise, too (Okabe and Ito's).
const COLOURS: [RGBColor; 6] = [
    RGBColor(0, 114, 178),
    RGBColor(213, 94, 0),
    RGBColor(0, 158, 115),
    RGBColor(204, 121, 167),
    RGBColor(90, 90, 90),
    RGBColor(86, 180, 233),
];

/// A plot as the text of an SVG file.
pub fn svg(plot: &Plot) -> Result<String, ReportError> {
    let mut text = String::new();
    let drawn = draw(plot, &SVGBackend::with_string(&mut text, SIZE).into_drawing_area());
    drawn.map_err(|error| ReportError::Plot { name: plot.name.clone(), why: error.to_string() })?;
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
