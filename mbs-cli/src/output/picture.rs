//! Curves as a picture: frames with axes, as SVG text or as the pixels of a PNG file.
//!
//! Input: curves in frames. Output: the file. Both kinds are the same list of marks, which [`marks`] places; an SVG follows the reader's
//! choice of light or dark, a PNG is light.

use super::number::significant;
use noto_sans_mono_bitmap::{FontWeight, RasterHeight, get_raster, get_raster_width};
use std::fmt::Write;

/// Points across which a curve is one.
pub(crate) struct Curve {
    pub(crate) name: String,
    pub(crate) points: Vec<[f64; 2]>,
}

/// Curves over the same axes.
pub(crate) struct Frame {
    pub(crate) curves: Vec<Curve>,
}

/// Colours that are distinct on white; an SVG on black uses other shades.
const COLOURS: [[u8; 3]; 8] = [
    [31, 111, 235],
    [217, 72, 15],
    [43, 138, 62],
    [156, 54, 181],
    [194, 37, 92],
    [11, 114, 133],
    [161, 92, 0],
    [95, 61, 196],
];
const TEXT: [u8; 3] = [29, 36, 48];
const GRID: [u8; 3] = [217, 221, 227];

/// Room around a frame: left, right, above, below.
const ROOM: [f64; 4] = [84.0, 18.0, 30.0, 34.0];
/// Size of letters.
const LETTER: f64 = 13.0;

/// What is drawn.
enum Mark {
    Line { points: Vec<[f64; 2]>, colour: Colour, width: f64 },
    Text { at: [f64; 2], text: String, anchor: Anchor, colour: Colour },
}

#[derive(Clone, Copy)]
enum Colour {
    Text,
    Grid,
    Curve(usize),
}

#[derive(Clone, Copy)]
enum Anchor {
    Start,
    Middle,
    End,
}

/// Steps of 1, 2 or 5 times a power of ten that cut a range into about `n` parts: the multiples within it.
fn ticks(low: f64, high: f64, n: f64) -> Vec<f64> {
    let rough = (high - low) / n;
    let power = 10_f64.powf(rough.log10().floor());
    let step = [1.0, 2.0, 5.0, 10.0].into_iter().map(|m| m * power).find(|&s| s >= rough).unwrap_or(rough);
    if !(step.is_finite() && step > 0.0) {
        return vec![low];
    }
    let first = (low / step).ceil();
    let count = ((high / step).floor() - first) as usize;
    (0..=count.min(50)).map(|k| (first + k as f64) * step).collect()
}

/// The range of some values; never empty.
fn range(values: impl Iterator<Item = f64>) -> [f64; 2] {
    let (low, high) = values
        .filter(|x| x.is_finite())
        .fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), x| (low.min(x), high.max(x)));
    match (low, high) {
        _ if low > high => [0.0, 1.0],
        _ if high - low <= 1e-12 * low.abs().max(high.abs()) => {
            let half = if low == 0.0 { 1.0 } else { 0.1 * low.abs() };
            [low - half, high + half]
        }
        _ => [low, high],
    }
}

/// Everything in its place; the height of the picture.
fn marks(frames: &[Frame], across: &str, (width, height): (u32, u32)) -> (Vec<Mark>, f64) {
    let (width, height) = (f64::from(width), f64::from(height));
    let [left, right, above, below] = ROOM;
    let times =
        range(frames.iter().flat_map(|frame| &frame.curves).flat_map(|c| c.points.iter().map(|p| p[0])));
    let mut marks = Vec::new();
    for (f, frame) in frames.iter().enumerate() {
        let top = f as f64 * height + above;
        let bottom = (f + 1) as f64 * height - below;
        let [low, high] = range(frame.curves.iter().flat_map(|c| c.points.iter().map(|p| p[1])));
        let margin = 0.05 * (high - low);
        let [low, high] = [low - margin, high + margin];
        let x = |t: f64| left + (t - times[0]) / (times[1] - times[0]) * (width - left - right);
        let y = |v: f64| bottom - (v - low) / (high - low) * (bottom - top);
        let mut line =
            |from, to, colour| marks.push(Mark::Line { points: vec![from, to], colour, width: 1.0 });
        for t in ticks(times[0], times[1], (width / 120.0).max(2.0)) {
            line([x(t), top], [x(t), bottom], Colour::Grid);
        }
        for v in ticks(low, high, ((bottom - top) / 45.0).max(2.0)) {
            line([left, y(v)], [width - right, y(v)], Colour::Grid);
        }
        let mut text = |at, text: String, anchor, colour| marks.push(Mark::Text { at, text, anchor, colour });
        for t in ticks(times[0], times[1], (width / 120.0).max(2.0)) {
            text([x(t), bottom + 17.0], significant(t, 6), Anchor::Middle, Colour::Text);
        }
        for v in ticks(low, high, ((bottom - top) / 45.0).max(2.0)) {
            text([left - 8.0, y(v) + 4.5], significant(v, 5), Anchor::End, Colour::Text);
        }
        let label = if across.contains('[') { across.into() } else { format!("{across} [s]") };
        if f + 1 == frames.len() {
            text([width - right, bottom + 31.0], label, Anchor::End, Colour::Text);
        }
        let mut at = left;
        for (k, curve) in frame.curves.iter().enumerate() {
            let colour = Colour::Curve(if frame.curves.len() == 1 { f } else { k });
            text([at, top - 10.0], curve.name.clone(), Anchor::Start, colour);
            at += 0.62 * LETTER * (curve.name.chars().count() + 3) as f64;
        }
        for (k, curve) in frame.curves.iter().enumerate() {
            let colour = Colour::Curve(if frame.curves.len() == 1 { f } else { k });
            for points in runs(curve, (width - left - right) as usize) {
                let points = points.iter().map(|p| [x(p[0]), y(p[1])]).collect();
                marks.push(Mark::Line { points, colour, width: 1.6 });
            }
        }
    }
    (marks, frames.len() as f64 * height)
}

/// The parts of a curve between values that are not finite, each with no more points than a reader can see: of the points within a
/// pixel, the first, the lowest and the highest, in their order.
fn runs(curve: &Curve, pixels: usize) -> Vec<Vec<[f64; 2]>> {
    let parts = curve.points.split(|p| !p.iter().all(|x| x.is_finite())).filter(|part| !part.is_empty());
    let bunch = curve.points.len().div_ceil(pixels.max(1)).max(1);
    let thin = |part: &[[f64; 2]]| {
        let mut kept = Vec::new();
        for points in part.chunks(bunch) {
            let by = |wanted: fn(&f64, &f64) -> std::cmp::Ordering| {
                (0..points.len()).max_by(|&i, &j| wanted(&points[i][1], &points[j][1])).unwrap_or(0)
            };
            let mut places = [0, by(|a, b| a.total_cmp(b)), by(|a, b| b.total_cmp(a))];
            places.sort_unstable();
            for (k, &i) in places.iter().enumerate() {
                if k == 0 || places[k - 1] != i {
                    kept.push(points[i]);
                }
            }
        }
        kept.extend(part.last());
        kept
    };
    parts.map(thin).collect()
}

/// The picture as SVG.
pub(crate) fn svg(frames: &[Frame], across: &str, size: (u32, u32)) -> String {
    let (marks, height) = marks(frames, across, size);
    let rgb = |[r, g, b]: [u8; 3]| format!("#{r:02x}{g:02x}{b:02x}");
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0}\" height=\"{height}\" viewBox=\"0 0 {0} {height}\" \
         font-family=\"sans-serif\" font-size=\"{LETTER}\">\n<style>\n.b{{fill:#ffffff}} .t{{fill:{1}}} .g{{stroke:{2}}} path{{fill:none}}\n",
        size.0,
        rgb(TEXT),
        rgb(GRID)
    );
    let mut dark = String::from(".b{fill:#11151b} .t{fill:#e6e9ee} .g{stroke:#303948}");
    for (k, &colour) in COLOURS.iter().enumerate() {
        let _ = writeln!(out, ".s{k}{{stroke:{0}}} .f{k}{{fill:{0}}}", rgb(colour));
        // Half way to white.
        let light = rgb(colour.map(|c| ((u16::from(c) + 255) / 2) as u8));
        let _ = write!(dark, " .s{k}{{stroke:{light}}} .f{k}{{fill:{light}}}");
    }
    let _ = writeln!(out, "@media (prefers-color-scheme: dark) {{ {dark} }}\n</style>");
    let _ = writeln!(out, "<rect class=\"b\" width=\"100%\" height=\"100%\"/>");
    for mark in marks {
        match mark {
            Mark::Line { points, colour, width } => {
                let class = match colour {
                    Colour::Grid => "g".into(),
                    Colour::Curve(k) => format!("s{}", k % COLOURS.len()),
                    Colour::Text => "t".into(),
                };
                let path: Vec<String> = points.iter().map(|[x, y]| format!("{x:.2},{y:.2}")).collect();
                let _ = writeln!(
                    out,
                    "<path class=\"{class}\" stroke-width=\"{width}\" stroke-linejoin=\"round\" d=\"M{}\"/>",
                    path.join("L")
                );
            }
            Mark::Text { at: [x, y], text, anchor, colour } => {
                let class = match colour {
                    Colour::Curve(k) => format!("f{}", k % COLOURS.len()),
                    _ => "t".into(),
                };
                let anchor = match anchor {
                    Anchor::Start => "start",
                    Anchor::Middle => "middle",
                    Anchor::End => "end",
                };
                let text = text.replace('&', "&amp;").replace('<', "&lt;");
                let _ = writeln!(
                    out,
                    "<text class=\"{class}\" x=\"{x:.2}\" y=\"{y:.2}\" text-anchor=\"{anchor}\">{text}</text>"
                );
            }
        }
    }
    out.push_str("</svg>\n");
    out
}

/// Pixels under construction, white at first.
struct Pixels {
    width: usize,
    height: usize,
    rgb: Vec<u8>,
}

impl Pixels {
    /// Covers a pixel in part.
    fn blend(&mut self, x: usize, y: usize, colour: [u8; 3], cover: f64) {
        if x >= self.width || y >= self.height || cover <= 0.0 {
            return;
        }
        let at = 3 * (y * self.width + x);
        for (old, new) in self.rgb[at..at + 3].iter_mut().zip(colour) {
            *old = (f64::from(*old) + cover.min(1.0) * (f64::from(new) - f64::from(*old))).round() as u8;
        }
    }

    /// A line of some width, its edges smooth: a pixel is covered by what its distance from the line leaves.
    fn line(&mut self, points: &[[f64; 2]], colour: [u8; 3], width: f64) {
        let mut cover = std::collections::BTreeMap::new();
        let reach = 0.5 * width + 1.0;
        let single = [points[0], points[0]];
        let segments: Vec<[[f64; 2]; 2]> = match points.len() {
            1 => vec![single],
            _ => points.windows(2).map(|w| [w[0], w[1]]).collect(),
        };
        for [[ax, ay], [bx, by]] in segments {
            let (dx, dy) = (bx - ax, by - ay);
            let square = dx * dx + dy * dy;
            let span = |a: f64, b: f64, most: usize| {
                let low = (a.min(b) - reach).max(0.0) as usize;
                low..((a.max(b) + reach).max(0.0) as usize + 1).min(most)
            };
            for y in span(ay, by, self.height) {
                for x in span(ax, bx, self.width) {
                    let (px, py) = (x as f64 + 0.5 - ax, y as f64 + 0.5 - ay);
                    let s = if square > 0.0 { ((px * dx + py * dy) / square).clamp(0.0, 1.0) } else { 0.0 };
                    let distance = (px - s * dx).hypot(py - s * dy);
                    let covered: f64 = (0.5 * width + 0.5 - distance).clamp(0.0, 1.0);
                    if covered > 0.0 {
                        let most = cover.entry((y, x)).or_insert(0.0_f64);
                        *most = most.max(covered);
                    }
                }
            }
        }
        for ((y, x), covered) in cover {
            self.blend(x, y, colour, covered);
        }
    }

    fn text(&mut self, [x, y]: [f64; 2], text: &str, anchor: Anchor, colour: [u8; 3]) {
        let (weight, size) = (FontWeight::Regular, RasterHeight::Size16);
        let wide = get_raster_width(weight, size);
        let length = (wide * text.chars().count()) as f64;
        let left = match anchor {
            Anchor::Start => x,
            Anchor::Middle => x - 0.5 * length,
            Anchor::End => x - length,
        };
        // The base line lies this far below the top of a letter's box.
        let top = (y - 12.0).max(0.0) as usize;
        for (k, c) in text.chars().enumerate() {
            let Some(letter) = get_raster(c, weight, size).or_else(|| get_raster('?', weight, size)) else {
                continue;
            };
            let begin = left.max(0.0) as usize + k * wide;
            for (row, line) in letter.rows().enumerate() {
                for (column, &cover) in line.iter().enumerate() {
                    self.blend(begin + column, top + row, colour, f64::from(cover) / 255.0);
                }
            }
        }
    }
}

/// The picture as a PNG file.
pub(crate) fn png(frames: &[Frame], across: &str, size: (u32, u32)) -> Result<Vec<u8>, png::EncodingError> {
    let (marks, height) = marks(frames, across, size);
    let (width, height) = (size.0 as usize, height as usize);
    let mut pixels = Pixels { width, height, rgb: vec![255; 3 * width * height] };
    let rgb = |colour| match colour {
        Colour::Text => TEXT,
        Colour::Grid => GRID,
        Colour::Curve(k) => COLOURS[k % COLOURS.len()],
    };
    for mark in marks {
        match mark {
            Mark::Line { points, colour, width } => pixels.line(&points, rgb(colour), width),
            Mark::Text { at, text, anchor, colour } => pixels.text(at, &text, anchor, rgb(colour)),
        }
    }
    let mut file = Vec::new();
    let mut encoder = png::Encoder::new(&mut file, width as u32, height as u32);
    encoder.set_color(png::ColorType::Rgb);
    encoder.set_depth(png::BitDepth::Eight);
    let written = encoder.write_header().and_then(|mut writer| writer.write_image_data(&pixels.rgb));
    written?;
    Ok(file)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_round_and_within() {
        assert_eq!(ticks(0.0, 10.0, 5.0), [0.0, 2.0, 4.0, 6.0, 8.0, 10.0]);
        assert_eq!(ticks(-0.13, 0.12, 3.0), [-0.1, 0.0, 0.1]);
        assert_eq!(ticks(1.0, 1.0, 4.0), [1.0]);
    }

    #[test]
    fn thinning_keeps_every_peak() {
        let mut points: Vec<[f64; 2]> = (0..100_000).map(|i| [f64::from(i), 0.0]).collect();
        points[33_333][1] = 7.0;
        points[66_666][1] = -7.0;
        points[50_000][1] = f64::NAN;
        let curve = Curve { name: String::new(), points };
        let parts = runs(&curve, 100);
        assert_eq!(parts.len(), 2, "a gap where there is no value");
        assert!(parts.iter().map(Vec::len).sum::<usize>() < 350);
        assert!(parts[0].contains(&[33_333.0, 7.0]) && parts[1].contains(&[66_666.0, -7.0]));
        assert_eq!(parts[1].last(), Some(&[99_999.0, 0.0]));
    }
}
