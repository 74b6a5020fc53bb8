//! The page: header, tables, and the data of the drawings as text, which `assets/report.js` draws.

use crate::scene::{Link, Paint, Scene};
use crate::shapes::{Mesh, P};
use crate::text::{escape, list, numbers, string};
use crate::{Chart, Kind, Report, Table};

const STYLE: &str = include_str!("assets/report.css");
const SCRIPT: &str = include_str!("assets/report.js");

/// The page makes no network requests, and this policy makes the browser enforce it.
const POLICY: &str = "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; \
                      img-src data: blob:; font-src data:; worker-src blob:";

/// The drawing library as a script element, without the one for formulas that the crate adds.
fn library() -> String {
    let mut scripts = plotly::Plot::offline_js_sources();
    const END: &str = "</script>";
    if let Some(at) = scripts.find(END) {
        scripts.truncate(at + END.len());
    }
    scripts
}

/// The whole page.
pub(crate) fn html(report: &Report) -> String {
    let title = escape(&report.title);
    let paragraph = |class: &str, text: &str| match text.trim() {
        "" => String::new(),
        text => format!("<p class=\"{class}\">{}</p>\n", escape(text)),
    };
    let mut out = String::from("<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n");
    out.push_str("<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n");
    out.push_str("<meta name=\"color-scheme\" content=\"light dark\">\n");
    out.push_str(&format!("<meta http-equiv=\"Content-Security-Policy\" content=\"{POLICY}\">\n"));
    out.push_str(&format!("<title>{title}</title>\n<style>\n{STYLE}</style>\n</head>\n<body>\n<header>\n"));
    out.push_str(&format!("<h1>{title}</h1>\n"));
    out.push_str(&paragraph("description", &report.description));
    out.push_str(&paragraph("run", &report.run));
    out.push_str("</header>\n");
    if let Some(trouble) = &report.trouble {
        out.push_str(&format!("<p class=\"trouble\" role=\"alert\">{}</p>\n", escape(trouble)));
    }
    if report.scene.is_some() {
        out.push_str(PLAYER);
    }
    out.push_str("<main>\n");
    for i in 0..report.charts.len() {
        out.push_str(&chart_frame(i, &report.charts[i]));
    }
    out.push_str("</main>\n<section class=\"tables\">\n");
    report.tables.iter().for_each(|shown| out.push_str(&table(shown)));
    out.push_str("</section>\n<footer>drawn with plotly.js</footer>\n");
    out.push_str(&library());
    out.push_str(&format!(
        "\n<script>\nconst DATA = {};\n{SCRIPT}</script>\n</body>\n</html>\n",
        data(report)
    ));
    out
}

/// The animation and its controls.
const PLAYER: &str = r#"<section id="player">
<div id="scene" role="img" aria-label="the mechanism in motion"></div>
<div id="controls">
<button id="play" type="button" title="play or pause (space)">▶</button>
<input id="scrub" type="range" min="0" max="1000" value="0" step="1" aria-label="time">
<output id="clock">0 s</output>
<label>speed <select id="speed"></select></label>
<span id="views"></span>
<label><input id="shows-paths" type="checkbox" checked> paths</label>
</div>
</section>
"#;

fn chart_frame(i: usize, chart: &Chart) -> String {
    let choice = match chart.sets.as_slice() {
        [] | [_] => String::new(),
        sets => {
            let options = sets
                .iter()
                .enumerate()
                .map(|(k, (name, _))| format!("<option value=\"{k}\">{}</option>", escape(name)));
            format!(" <select data-chart=\"{i}\">{}</select>", options.collect::<String>())
        }
    };
    format!(
        "<figure><figcaption>{}{choice}</figcaption><div class=\"chart\" id=\"chart{i}\"></div></figure>\n",
        escape(&chart.title)
    )
}

fn table(table: &Table) -> String {
    let right = |c: usize| table.heads.get(c).is_some_and(|head| head.starts_with('>'));
    let cell = |tag: &str, c: usize, text: &str| {
        let class = if right(c) { " class=\"number\"" } else { "" };
        format!("<{tag}{class}>{}</{tag}>", escape(text))
    };
    let mut out = format!("<div class=\"table\"><h2>{}</h2>\n<table>\n", escape(&table.title));
    if table.heads.iter().any(|head| !head.trim_start_matches('>').is_empty()) {
        let heads =
            table.heads.iter().enumerate().map(|(c, head)| cell("th", c, head.trim_start_matches('>')));
        out.push_str(&format!("<thead><tr>{}</tr></thead>\n", heads.collect::<String>()));
    }
    out.push_str("<tbody>\n");
    for row in &table.rows {
        let cells = row.iter().enumerate().map(|(c, text)| cell("td", c, text));
        out.push_str(&format!("<tr>{}</tr>\n", cells.collect::<String>()));
    }
    out.push_str("</tbody>\n</table></div>\n");
    out
}

/// The data of all drawings, as JSON.
fn data(report: &Report) -> String {
    let times = list(report.times.iter().map(|times| numbers(times)));
    let charts = list(report.charts.iter().map(|chart| {
        let sets = list(chart.sets.iter().map(|(_, curves)| {
            let one = |curve: &crate::Curve| {
                format!("{{\"name\":{},\"y\":{}}}", string(&curve.name), numbers(&curve.values))
            };
            list(curves.iter().map(one))
        }));
        let (kind, names) = match &chart.kind {
            Kind::Lines => ("lines", &[][..]),
            Kind::Points => ("points", &[][..]),
            Kind::Bars(names) => ("bars", names.as_slice()),
            Kind::Parallel(names) => ("parallel", names.as_slice()),
            Kind::Paths => ("paths", &[][..]),
        };
        format!(
            "{{\"kind\":{},\"names\":{},\"axis\":{},\"over\":{},\"log\":{},\"times\":{},\"sets\":{sets}}}",
            string(kind),
            list(names.iter().map(|name| string(name))),
            string(&chart.axis),
            chart.abscissa.as_deref().map_or("null".into(), string),
            chart.logarithmic,
            chart.times
        )
    }));
    let scene = report.scene.as_ref().map_or("null".into(), scene);
    format!("{{\"times\":{times},\n\"charts\":{charts},\n\"scene\":{scene}}}")
}

fn scene(scene: &Scene) -> String {
    let bodies = list(scene.bodies.iter().map(|body| {
        let parts = list(body.parts().filter(|(_, mesh)| !mesh.triangles.is_empty()).map(part));
        format!("{{\"name\":{},\"parts\":{parts}}}", string(&body.name))
    }));
    let end = |(body, p): &(usize, P)| format!("[{body},{}]", numbers(p));
    let link = |link: &Link| {
        format!("{{\"name\":{},\"ends\":{}}}", string(&link.name), list(link.ends.iter().map(end)))
    };
    let links = |links: &[Link]| list(links.iter().map(link));
    let paths = list(
        scene
            .paths
            .iter()
            .map(|(name, body, p)| format!("{{\"name\":{},\"end\":{}}}", string(name), end(&(*body, *p)))),
    );
    // Rounded to a millionth of the mechanism's size: less than a pixel at any magnification.
    let [low, high] = scene.bounds;
    let size = (0..3).map(|k| high[k] - low[k]).fold(0.0, f64::max);
    let unit = if size > 0.0 { 10_f64.powf((size * 1e-6).log10().floor()) } else { 1e-6 };
    let poses: Vec<f64> = scene
        .poses
        .iter()
        .flat_map(|pose| {
            let round = |(k, x): (usize, &f64)| {
                let unit = if k < 3 { unit } else { 1e-6 };
                (x / unit).round() * unit
            };
            pose.iter().enumerate().map(round).collect::<Vec<_>>()
        })
        .collect();
    let centres = scene.centres.as_ref().map_or("null".into(), |centres| numbers(&centres.concat()));
    format!(
        "{{\"bodies\":{bodies},\"springs\":{},\"links\":{},\"paths\":{paths},\"t\":{},\"poses\":{},\"centres\":{},\"low\":{},\"high\":{},\
         \"up\":{},\"eye\":{},\"radius\":{}}}",
        links(&scene.springs),
        links(&scene.links),
        numbers(&scene.times),
        numbers(&poses),
        centres,
        numbers(&low),
        numbers(&high),
        numbers(&scene.up),
        numbers(&scene.eye),
        scene.radius as f32
    )
}

/// Vertices, triangles and colour; without a colour the page chooses one.
fn part((paint, mesh): (Paint, &Mesh)) -> String {
    let corners: Vec<f64> = mesh.corners.iter().flatten().copied().collect();
    let triangles = mesh.triangles.iter().flatten().map(usize::to_string);
    let paint = match paint {
        Paint::Body => "null".into(),
        Paint::Joint => "\"joint\"".into(),
        Paint::Colour([red, green, blue]) => format!("\"#{red:02x}{green:02x}{blue:02x}\""),
    };
    format!("{{\"p\":{},\"f\":{},\"c\":{paint}}}", numbers(&corners), list(triangles))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Curve;

    #[test]
    fn a_page_stands_alone_and_names_are_harmless() {
        let report = Report {
            title: "</title><script>alert(1)</script>".into(),
            times: vec![vec![0.0, 1.0]],
            charts: vec![Chart {
                title: "<b>".into(),
                sets: vec![(
                    "one".into(),
                    vec![Curve { name: "</script>".into(), values: vec![1.0, f64::NAN] }],
                )],
                ..Chart::default()
            }],
            tables: vec![Table {
                title: "numbers".into(),
                heads: vec!["name".into(), ">value".into()],
                rows: vec![vec!["<i>".into(), "1".into()]],
            }],
            ..Report::default()
        };
        let page = report.html();
        let own = page.replace(&library(), "");
        for hostile in ["<script>alert", "<b>", "<i>", "http://", "https://", "src="] {
            assert!(!own.contains(hostile), "{hostile}");
        }
        assert_eq!(own.matches("</script>").count(), 1);
        assert!(library().len() > 1_000_000 && !library().contains("MathJax.loader"));
        assert!(own.contains(r#""sets":[[{"name":"\u003c/script\u003e","y":[1,null]}]]"#), "{own}");
    }
}
