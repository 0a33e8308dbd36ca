//! Draws the families as horizontal bars, to the right of 1 where ours is better and to the left
//! where it is not, and on each bar a dot for every row of the family. The scale is logarithmic:
//! twice as good and half as good are bars of the same length.
//!
//! The background is left transparent and all colours are of middling brightness, so that the chart
//! can be read on light and on dark pages.

use std::fmt::Write;

const WIDTH: f64 = 760.0;
const NAMES: f64 = 200.0;
const MARGIN: f64 = 60.0;
const ROW: f64 = 24.0;
const TOP: f64 = 62.0;
const TEXT: &str = "#7d8590";
const GRID: &str = "#7d859055";
const BETTER: &str = "#2da44e";
const WORSE: &str = "#d4722a";
const DOT: &str = "#6e7bd9";

/// A family: its mean, and its rows by name.
pub(crate) struct Bar<'a> {
    pub(crate) name: &'a str,
    pub(crate) ratio: f64,
    pub(crate) rows: Vec<(&'a str, f64)>,
}

/// Draws the chart; `mean`, if given, becomes the last bar.
pub(crate) fn draw(title: &str, bars: &[Bar<'_>], mean: Option<f64>) -> String {
    let mean = mean.map(|ratio| Bar {
        name: "mean over families",
        ratio,
        rows: Vec::new(),
    });
    let bars: Vec<&Bar<'_>> = bars.iter().chain(&mean).collect();
    let dots = bars.iter().flat_map(|bar| &bar.rows);
    let ratios = bars.iter().map(|bar| bar.ratio);
    let scale = Scale::for_ratios(ratios.chain(dots.map(|(_, ratio)| *ratio)));
    let height = TOP + ROW * bars.len() as f64 + 16.0;
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{WIDTH}\" height=\"{height}\" \
         viewBox=\"0 0 {WIDTH} {height}\" font-family=\"system-ui, sans-serif\" font-size=\"13\" fill=\"{TEXT}\">\n"
    );
    text(&mut svg, 0.0, 18.0, "start", &escape(title));
    draw_grid(&mut svg, &scale, height);
    for (index, bar) in bars.iter().enumerate() {
        draw_bar(&mut svg, &scale, index, bar);
    }
    svg + "</svg>\n"
}

/// Where a ratio lies on the page.
struct Scale {
    /// How many doublings the axis reaches to either side of 1.
    doublings: i32,
}

impl Scale {
    fn for_ratios(ratios: impl Iterator<Item = f64>) -> Scale {
        let farthest = ratios.map(|ratio| ratio.log2().abs()).fold(1.0, f64::max);
        Scale {
            doublings: farthest.ceil() as i32,
        }
    }

    fn x(&self, ratio: f64) -> f64 {
        let (left, right) = (NAMES + MARGIN, WIDTH - MARGIN);
        let middle = f64::midpoint(left, right);
        middle + ratio.log2() / f64::from(self.doublings) * (right - middle)
    }
}

fn draw_grid(svg: &mut String, scale: &Scale, height: f64) {
    for power in -scale.doublings..=scale.doublings {
        let ratio = 2f64.powi(power);
        let x = scale.x(ratio);
        let (colour, width) = if power == 0 { (TEXT, 1.5) } else { (GRID, 1.0) };
        line(svg, x, TOP - 8.0, height - 12.0, colour, width);
        text(svg, x, TOP - 14.0, "middle", &format!("{ratio}"));
    }
}

fn draw_bar(svg: &mut String, scale: &Scale, index: usize, bar: &Bar<'_>) {
    let Bar { name, ratio, rows } = bar;
    let ratio = *ratio;
    let y = TOP + ROW * index as f64;
    let (one, end) = (scale.x(1.0), scale.x(ratio));
    let colour = if ratio >= 1.0 { BETTER } else { WORSE };
    let (left, width) = (one.min(end), (end - one).abs().max(1.0));
    let thickness = ROW - 8.0;
    push(
        svg,
        format_args!(
            "<rect x=\"{left:.1}\" y=\"{y:.1}\" width=\"{width:.1}\" height=\"{thickness}\" rx=\"2\" fill=\"{colour}\"/>\n"
        ),
    );
    let baseline = y + thickness - 3.0;
    text(svg, NAMES, baseline, "end", &escape(name));
    text(svg, WIDTH, baseline, "end", &format!("{ratio:.2}"));
    for (name, ratio) in rows {
        let (x, y) = (scale.x(*ratio), y + thickness / 2.0);
        let name = escape(name);
        push(
            svg,
            format_args!(
                "<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"3\" fill=\"{DOT}\" fill-opacity=\"0.7\">\
                 <title>{name}: {ratio:.2}</title></circle>\n"
            ),
        );
    }
}

fn text(svg: &mut String, x: f64, y: f64, anchor: &str, words: &str) {
    push(
        svg,
        format_args!("<text x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\">{words}</text>\n"),
    );
}

fn line(svg: &mut String, x: f64, top: f64, bottom: f64, colour: &str, width: f64) {
    push(
        svg,
        format_args!(
            "<line x1=\"{x:.1}\" y1=\"{top:.1}\" x2=\"{x:.1}\" y2=\"{bottom:.1}\" stroke=\"{colour}\" stroke-width=\"{width}\"/>\n"
        ),
    );
}

fn push(svg: &mut String, shape: std::fmt::Arguments<'_>) {
    svg.write_fmt(shape).expect("a string takes everything");
}

fn escape(words: &str) -> String {
    words
        .replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn better_goes_right_and_worse_goes_left() {
        let scale = Scale::for_ratios([0.5, 3.0].into_iter());
        assert_eq!(scale.doublings, 2);
        assert!(scale.x(0.5) < scale.x(1.0) && scale.x(1.0) < scale.x(3.0));
        let distances = (scale.x(2.0) - scale.x(1.0), scale.x(1.0) - scale.x(0.5));
        assert!((distances.0 - distances.1).abs() < 1e-9);
    }

    #[test]
    fn a_bar_for_each_family_and_the_mean_and_a_dot_for_each_row() {
        let bar = |name, ratio, rows: &[f64]| Bar {
            name,
            ratio,
            rows: rows.iter().map(|ratio| ("some <row>", *ratio)).collect(),
        };
        let bars = [bar("loop", 1.5, &[1.5]), bar("UDP", 0.8, &[0.1, 6.4])];
        let svg = draw("a < b", &bars, Some(1.1));
        assert_eq!(svg.matches("<rect").count(), 3);
        assert_eq!(svg.matches("<circle").count(), 3);
        assert!(svg.contains("a &lt; b") && svg.contains(BETTER) && svg.contains(WORSE));
        assert!(svg.contains("<title>some &lt;row&gt;: 6.40</title>"));
        // The axis reaches as far as the farthest row.
        assert!(svg.contains(">0.0625</text>") && svg.contains(">16</text>"));
    }
}
