//! `mbs run`: the page it writes, seen in a real browser; in `mistakes`, what it does where things go wrong.
//!
//! The browser is Chromium, headless: controls are clicked, pixels looked at, and everything that goes wrong in the page is an
//! error here. Where there is no browser these tests say so and pass; `MBS_BROWSER` names another one.

use crate::command::{Folder, done, mbs, shipped, text};
use serde_json::Value;
use std::io::{Read, Write};
use std::net::TcpListener;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// How long a page may take on a busy computer that draws without a graphics card.
const PATIENCE: Duration = Duration::from_secs(180);

/// A process that ends with its test.
struct Browser(Child);

impl Drop for Browser {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The browser's program, if there is one.
fn find_browser() -> Option<String> {
    let named = std::env::var("MBS_BROWSER").ok();
    let names = named.into_iter().chain(["chromium", "chromium-browser", "google-chrome"].map(String::from));
    let runs = |name: &String| {
        let tried = Command::new(name).arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status();
        tried.is_ok_and(|status| status.success())
    };
    let found = names.into_iter().find(runs);
    if found.is_none() {
        println!("skipped: no browser; install one, for example with `apt-get install chromium`");
    }
    found
}

/// Opens a page, uses it as `browser/drive.js` says, and gives what that saw.
fn drive(browser: &str, folder: &Folder, page: &str, dark: bool, width: u32) -> Value {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    listener.set_nonblocking(true).expect("a port that can be asked");
    let address = format!("http://{}", listener.local_addr().expect("an address"));
    // The page may ask for nothing, but the test may.
    let policy = ("default-src 'none'", format!("default-src 'none'; connect-src {address}"));
    let watch = format!(
        "<script>\nconst ADDRESS = \"{address}\";\n{}</script>\n<style>",
        include_str!("browser/watch.js")
    );
    let end = format!("<script>\n{}</script>\n</body>\n</html>\n", include_str!("browser/drive.js"));
    assert!(page.contains(policy.0) && page.ends_with("</body>\n</html>\n"));
    let driven = page.replacen(policy.0, &policy.1, 1).replacen("<style>", &watch, 1);
    let driven = driven.trim_end_matches("</body>\n</html>\n").to_string() + &end;
    let file = folder.file("driven.html", driven);
    let mut command = Command::new(browser);
    command.args([
        "--headless=new",
        "--no-sandbox",
        "--no-first-run",
        "--use-gl=angle",
        "--use-angle=swiftshader",
    ]);
    command.args(["--enable-unsafe-swiftshader", "--remote-debugging-port=0"]);
    command.arg(format!("--window-size={width},900"));
    command.arg(format!("--user-data-dir={}", folder.path("profile")));
    if dark {
        command.arg("--blink-settings=preferredColorScheme=0");
    }
    let child = command.arg(format!("file://{file}")).stdout(Stdio::null()).stderr(Stdio::null()).spawn();
    let _browser = Browser(child.expect("the browser"));
    let start = Instant::now();
    loop {
        match listener.accept() {
            Ok((mut stream, _)) => {
                stream.set_nonblocking(false).expect("a stream that waits");
                return body(&mut stream);
            }
            Err(_) if start.elapsed() < PATIENCE => std::thread::sleep(Duration::from_millis(50)),
            Err(_) => panic!("the page said nothing in {PATIENCE:?}"),
        }
    }
}

/// The JSON that a request carries.
fn body(stream: &mut std::net::TcpStream) -> Value {
    let mut request = Vec::new();
    let mut buffer = [0; 4096];
    loop {
        let n = stream.read(&mut buffer).expect("a request");
        request.extend_from_slice(&buffer[..n]);
        let text = String::from_utf8_lossy(&request);
        let Some((head, body)) = text.split_once("\r\n\r\n") else { continue };
        let length = head.to_lowercase();
        let length = length.split("content-length: ").nth(1).and_then(|rest| rest.lines().next());
        let length: usize = length.expect("a length").trim().parse().expect("a number");
        if body.len() >= length || n == 0 {
            let value = serde_json::from_str(body).expect("what the page saw");
            let _ = stream.write_all(b"HTTP/1.1 204 No Content\r\n\r\n");
            return value;
        }
    }
}

/// Writes the page of a shipped model and looks at it.
fn look(model: &str, dark: bool, width: u32, options: &[&str]) {
    let Some(browser) = find_browser() else { return };
    let folder = Folder::new();
    let page = folder.path("page.html");
    let file = shipped(model);
    done(&[&["run", &file, "-o", &page], options].concat());
    let seen = drive(&browser, &folder, &text(&page), dark, width);
    assert_eq!(seen["trouble"], serde_json::json!([]), "{seen}");
    assert_eq!(seen["failed"], Value::Null, "{seen}");
    assert_eq!(seen["ready"], true, "{seen}");
    assert_eq!(seen["title"], model);
    assert_eq!(seen["fits"], true, "wider than its window: {seen}");
    // Letters of an axis may touch the edge; a body that is cut off has more pixels there.
    assert!(seen["first"]["edge"].as_u64() < Some(40), "the scene is cut off: {seen}");
    // The background of the style sheet.
    assert_eq!(seen["background"], if dark { "rgb(17, 21, 27)" } else { "rgb(255, 255, 255)" });
    let charts = seen["charts"].as_array().expect("charts");
    assert!(charts.len() >= 4, "{seen}");
    assert!(charts.iter().all(|drawn| drawn.as_f64() > Some(0.01)), "a chart is blank: {seen}");
    for picture in ["first", "later"] {
        assert!(seen[picture]["colours"].as_u64() > Some(50), "the scene is blank: {seen}");
        assert!(seen[picture]["drawn"].as_f64() > Some(0.01), "the scene is blank: {seen}");
    }
    assert_ne!(seen["first"]["sum"], seen["later"]["sum"], "the mechanism moves: {seen}");
    let clock = |when: &str| -> f64 {
        let text = seen[when].as_str().expect("a clock").trim_end_matches(" s");
        text.parse().expect("seconds")
    };
    assert!(clock("playing") > 0.0 && clock("scrubbed") > 0.0, "{seen}");
    for what in ["still", "turned", "dragged", "zoomed", "chosen"] {
        assert_eq!(seen[what], true, "{what}: {seen}");
    }
    assert!(seen["hover"].as_str().is_some_and(|label| label.chars().any(|c| c.is_ascii_digit())), "{seen}");
}

#[test]
fn the_five_bar_linkage_in_the_light() {
    look("five_bar", false, 1200, &["--end", "1"]);
}

#[test]
fn andrews_mechanism_in_the_dark() {
    look("andrews", true, 1200, &[]);
}

#[test]
fn bricards_mechanism_in_the_dark() {
    look("bricard", true, 1200, &["--end", "3"]);
}

#[test]
fn a_human_who_falls_far() {
    look("human43", false, 1200, &["--end", "6", "--step", "0.01"]);
}

#[test]
fn the_buggy_in_a_narrow_window() {
    look("buggy", true, 500, &["--end", "0.3", "--no-gradient"]);
}

#[test]
fn every_shipped_model_has_a_page() {
    let folder = Folder::new();
    let models = Path::new(env!("CARGO_MANIFEST_DIR")).join("../models");
    for entry in std::fs::read_dir(models).expect("models") {
        let path = entry.expect("an entry").path();
        let model = path.to_str().expect("a path of text");
        let page = folder.path("page.html");
        // A hundredth of a second: the picture does not depend on it.
        let printed = done(&["run", model, "--end", "0.01", "--step", "1e-4", "--no-gradient", "-o", &page]);
        assert!(printed.contains(&format!("  page     {page}\n")), "{printed}");
        let html = text(&page);
        let name = path.file_stem().and_then(|name| name.to_str()).expect("a name");
        assert!(html.contains(&format!("<h1>{name}</h1>")), "{name}");
        assert!(html.contains("\"scene\":{\"bodies\":[{\"name\":\"ground\""), "{name} has no picture");
    }
}

/// The scene of a page.
fn scene(page: &str) -> Value {
    let html = text(page);
    let data = html.split("const DATA = ").nth(1).and_then(|rest| rest.split(";\n\"use strict\"").next());
    let data: Value = serde_json::from_str(data.expect("data")).expect("JSON");
    data["scene"].clone()
}

#[test]
fn shapes_are_drawn_where_the_model_has_them() {
    let folder = Folder::new();
    let page = folder.path("page.html");
    let body = |shape: &str| {
        format!(
            "mbs: 1\nname: m\nparameters: {{r: 0.25}}\nbodies: {{a: {{mass: 1, points: {{p: [2, 0, 0]}}{shape}}}}}\njoints:\n  \
             s: {{type: prismatic, parent: ground, child: a, axis: [0, 0, 1], start: {{rate: 1}}}}\nsimulation: {{end: 1, step: 0.1}}\n"
        )
    };
    let shape =
        ", shape: [{type: sphere, radius: r, at: p, colour: '#123456'}, {type: box, size: [1, 2, 3]}]";
    let model = folder.file("m.yaml", body(shape));
    done(&["run", &model, "-o", &page]);
    let seen = scene(&page);
    let parts = seen["bodies"][1]["parts"].as_array().expect("parts");
    let colours: Vec<&Value> = parts.iter().map(|part| &part["c"]).collect();
    assert_eq!(colours, [&Value::from("#123456"), &Value::Null, &Value::from("joint")]);
    let numbers = |part: &Value| -> Vec<f64> {
        part["p"].as_array().expect("corners").iter().map(|x| x.as_f64().expect("a number")).collect()
    };
    // All corners of the ball are as far from its middle as its radius.
    for corner in numbers(&parts[0]).chunks_exact(3) {
        let far = ((corner[0] - 2.0).powi(2) + corner[1].powi(2) + corner[2].powi(2)).sqrt();
        assert!((far - 0.25).abs() < 1e-5, "{far}");
    }
    for corner in numbers(&parts[1]).chunks_exact(3) {
        assert_eq!([corner[0].abs(), corner[1].abs(), corner[2].abs()], [0.5, 1.0, 1.5]);
    }
    // The view holds them, over the whole way.
    let bound = |which: &str, k: usize| seen[which][k].as_f64().expect("a bound");
    assert!(bound("high", 0) > 2.25 && bound("low", 1) < -1.0 && bound("high", 2) > 2.5, "{seen}");

    // Parameters of the run count; what has no size under them is left out.
    done(&["run", &model, "-o", &page, "--set", "r=-1"]);
    assert_eq!(scene(&page)["bodies"][1]["parts"].as_array().map(Vec::len), Some(2));
    // Without shapes, a rod to the point.
    let model = folder.file("m.yaml", body(""));
    done(&["run", &model, "-o", &page]);
    let parts = scene(&page)["bodies"][1]["parts"].clone();
    assert!(numbers(&parts[0]).chunks_exact(3).any(|corner| (corner[0] - 2.0).abs() < 1e-6), "{parts}");
}

#[test]
fn numbers_of_the_page_are_those_of_the_other_commands() {
    let folder = Folder::new();
    let page = folder.path("page.html");
    let model = shipped("five_bar");
    let printed = done(&["run", &model, "--end", "1", "-o", &page, "--json"]);
    let run: Value = serde_json::from_str(&printed).expect("JSON");
    let gradient: Value =
        serde_json::from_str(&done(&["gradient", &model, "--end", "1", "--json"])).expect("JSON");
    assert_eq!(run["report"], page.as_str());
    let html = text(&page);
    for name in ["psi1", "psi2", "psi3"] {
        assert_eq!(run["gradient"][name], gradient["objectives"][name]["gradient"]);
        let value = run["objectives"][name].as_f64().expect("a value");
        // Seven digits, cut off.
        let digits: String = value.to_string().chars().take(8).collect();
        assert!(html.contains(&digits), "{name} = {value} is not in the page");
    }
    assert_eq!(html.matches("<script").count(), 2, "the library and the page's own");
}

#[test]
fn a_run_that_fails_leaves_what_there_is() {
    let folder = Folder::new();
    let page = folder.path("page.html");
    // The spring's law has no value beyond a length.
    let model = folder.file(
        "broken.yaml",
        "mbs: 1\nname: broken\nbodies: {a: {mass: 1}}\njoints:\n  s: {type: prismatic, parent: ground, child: a, axis: [1, 0, 0], \
         start: {value: 0.5, rate: 1}}\nforces:\n  f: {type: joint_force, coordinate: s, value: sqrt(1 - s.displacement)}\n\
         simulation: {end: 5, step: 1e-3}\n",
    );
    let outcome = mbs(&["run", &model, "-o", &page]);
    assert_eq!(outcome.code, Some(1), "{outcome:?}");
    assert!(outcome.err.contains("the run failed"), "{outcome:?}");
    assert!(outcome.err.contains("shows what there is"), "{outcome:?}");
    let html = text(&page);
    assert!(html.contains("class=\"trouble\"") && html.contains("the run failed"));
}

#[test]
fn a_run_without_a_step_leaves_the_page_of_another() {
    let folder = Folder::new();
    let page = folder.file("page.html", "a good page");
    let model = |name: &str, length: f64, value: &str| {
        let text = format!(
            "mbs: 1\nname: {name}\nbodies: {{a: {{mass: 1, inertia: [1, 1, 1]}}}}\njoints:\n  s: {{type: revolute, parent: ground, \
             child: a, axis: [0, 1, 0]}}\nconstraints:\n  c: {{type: coupling, value: cos(s.angle) - {length}}}\n\
             forces:\n  f: {{type: joint_force, coordinate: s, value: {value}}}\nsimulation: {{end: 1, step: 1e-3}}\n"
        );
        folder.file(&format!("{name}.yaml"), text)
    };
    for model in [model("apart", 2.0, "0"), model("hollow", 1.0, "sqrt(-1 - t)")] {
        let outcome = mbs(&["run", &model, "-o", &page]);
        assert_eq!(outcome.code, Some(1), "{outcome:?}");
        assert!(
            outcome.err.contains("no step was made") && outcome.err.contains("left as it was"),
            "{outcome:?}"
        );
        assert_eq!(text(&page), "a good page");
        let new = folder.path("new.html");
        let outcome = mbs(&["run", &model, "-o", &new, "--json"]);
        let json: Value = serde_json::from_str(&outcome.out).expect("JSON");
        assert!(json["report"].is_null() && json["error"].is_string(), "{json}");
        assert!(!std::path::Path::new(&new).exists());
    }
}
