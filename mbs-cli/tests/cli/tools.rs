//! `mbs plot`, `new`, `schema`, `completions`, `man`.

use crate::command::{Folder, command, done, fails, shipped, text};
use std::process::{Command, Stdio};

/// The results of a short run.
fn results(folder: &Folder, options: &[&str]) -> String {
    let file = folder.path("results.csv");
    let model = shipped("five_bar");
    let run = ["simulate", &model, "--end", "0.5", "--out", &file];
    done(&[&run, options].concat());
    file
}

#[test]
fn columns_have_units_where_they_are_wanted() {
    let folder = Folder::new();
    let bare = text(&results(&folder, &[]));
    let named = text(&results(&folder, &["--units"]));
    let [bare, named] = [&bare, &named].map(|text| text.lines().next().expect("a head").to_string());
    let heads = [
        "t [s]",
        "A.angle [rad]",
        "A.angle_rate [rad/s]",
        "point_2.x [m]",
        "energy.power [W]",
        "lambda.P2.x",
    ];
    for head in heads {
        assert!(named.split(',').any(|own| own == head), "{head} in {named}");
        assert!(
            bare.split(',').any(|own| own == head.split(' ').next().expect("a name")),
            "{head} in {bare}"
        );
    }
}

#[test]
fn results_are_drawn() {
    let folder = Folder::new();
    let file = results(&folder, &["--units"]);
    let printed = done(&["plot", &file, "--columns", "A.angle,energy.*"]);
    assert!(printed.contains("A.angle [rad]  ") && printed.contains("energy.kinetic [J]"), "{printed}");
    assert!(printed.contains('⠤') && printed.trim_end().ends_with("0.5"), "{printed}");

    let svg = folder.path("picture.svg");
    done(&["plot", &file, "--columns", "A.angle,B.angle", "-o", &svg]);
    let drawn = text(&svg);
    assert!(drawn.starts_with("<svg ") && drawn.ends_with("</svg>\n"));
    assert!(drawn.contains(">A.angle [rad]</text>") && drawn.contains("height=\"480\""), "two frames");
    assert_eq!(drawn.matches("class=\"s").count(), 2, "two curves");

    let png = folder.path("picture.png");
    done(&[
        "plot",
        &file,
        "--columns",
        "A.angle,B.angle",
        "--together",
        "--width",
        "400",
        "--height",
        "300",
        "-o",
        &png,
    ]);
    let decoder = png::Decoder::new(std::io::BufReader::new(std::fs::File::open(&png).expect("a picture")));
    let mut reader = decoder.read_info().expect("a head");
    let mut pixels = vec![0; reader.output_buffer_size().expect("a size")];
    let info = reader.next_frame(&mut pixels).expect("pixels");
    assert_eq!((info.width, info.height), (400, 300));
    // Both curves in their colours, letters, and much white.
    let count = |colour: [u8; 3]| pixels.chunks_exact(3).filter(|pixel| **pixel == colour).count();
    assert!(count([31, 111, 235]) > 100 && count([217, 72, 15]) > 100);
    assert!(count([255, 255, 255]) > 80_000 && count([29, 36, 48]) > 20);
}

#[test]
fn results_that_cannot_be_drawn() {
    let folder = Folder::new();
    let file = results(&folder, &[]);
    fails(2, &["there is no column `A.angel`; did you mean `A.angle`?"], &["plot", &file, "-c", "A.angel"]);
    fails(2, &["there is no column `nope`; there are: "], &["plot", &file, "-c", "nope"]);
    fails(2, &["`t` is the horizontal axis"], &["plot", &file, "-c", "t"]);
    let units = results(&folder, &["--units"]);
    fails(2, &["`t` is the horizontal axis"], &["plot", &units, "-c", "t"]);
    fails(1, &["it is a directory; name a file"], &["plot", &folder.path("")]);
    fails(2, &["end its name with .svg or .png"], &["plot", &file, "-o", "picture.jpg"]);
    fails(1, &["did you mean"], &["plot", &folder.path("result.csv")]);
    let bad = folder.file("bad.csv", "t,a\n0,1\n1,x\n");
    fails(1, &["line 3: `x` is not a number"], &["plot", &bad]);
    let short = folder.file("short.csv", "t,a\n0\n");
    fails(1, &["line 2: 1 value under 2 columns"], &["plot", &short]);
    fails(1, &["it is empty"], &["plot", &folder.file("empty.csv", "")]);
    fails(1, &["nothing to draw"], &["plot", &folder.file("head.csv", "t,a\n")]);
    if std::path::Path::new("/dev/full").exists() {
        let full = folder.path("full.svg");
        let linked = Command::new("ln").args(["-s", "/dev/full", &full]).status();
        if linked.is_ok_and(|status| status.success()) {
            fails(1, &["no space left on device"], &["plot", &file, "-o", &full]);
        }
    }
}

#[test]
fn a_new_crate_has_a_model_that_runs() {
    let folder = Folder::new();
    let path = folder.path("my-robot");
    let printed = done(&["new", &path]);
    assert!(printed.contains("cargo test"), "{printed}");
    let model = format!("{path}/models/my_robot.yaml");
    let printed = done(&["simulate", &model, "--end", "1"]);
    assert!(printed.starts_with("my_robot: t = 0 to 1 s"), "{printed}");
    done(&["gradient", &model, "--end", "1"]);
    for (file, part) in [
        ("Cargo.toml", "name = \"my-robot\""),
        ("src/main.rs", "pub mod my_robot = \"models/my_robot.yaml\""),
    ] {
        assert!(text(&format!("{path}/{file}")).contains(part), "{file}");
    }
    fails(1, &["is there already"], &["new", &path]);
    fails(2, &["cannot name a crate"], &["new", &folder.path("My Robot")]);
    fails(1, &["say where the source of mbs is"], &["new", &folder.path("a"), "--crates", &path]);
    for name in ["fn", "self", "core", "test", "mbs-runtime"] {
        fails(2, &["cannot name a crate", &format!("`my_{name}`")], &["new", &folder.path(name)]);
    }
    // It builds and passes; minutes, since it shares nothing with this build.
    if std::env::var_os("MBS_LONG").is_some() {
        let tested = Command::new("cargo")
            .args(["test", "--offline"])
            .current_dir(&path)
            .stdin(Stdio::null())
            .status();
        assert!(tested.expect("cargo").success());
    } else {
        println!(
            "skipped: building the new crate; MBS_LONG=1 does it. tests/tests/template.rs compiles its program"
        );
    }
}

#[test]
fn shells_editors_and_manuals() {
    let schema = text(&format!("{}/../schema/mbs-1.schema.json", env!("CARGO_MANIFEST_DIR")));
    assert_eq!(done(&["schema"]), schema);
    for shell in ["bash", "zsh", "fish", "powershell", "elvish"] {
        assert!(done(&["completions", shell]).contains("simulate"), "{shell}");
    }
    assert!(done(&["man"]).contains(".TH mbs 1"));
    let folder = Folder::new();
    let pages = folder.path("man1");
    done(&["man", "-o", &pages]);
    let page = text(&format!("{pages}/mbs-run.1"));
    assert!(page.contains("Exit codes:") && page.contains("mbs run models/five_bar.yaml"), "{page}");
}

#[test]
fn every_command_has_help_with_examples() {
    let help = done(&["--help"]);
    let commands =
        help.lines().skip_while(|line| *line != "Commands:").skip(1).take_while(|line| !line.is_empty());
    let names: Vec<&str> = commands.filter_map(|line| line.trim().split(' ').next()).collect();
    assert!(names.len() >= 12 && help.contains("130  interrupted"), "{help}");
    for name in names.into_iter().filter(|name| *name != "help") {
        let help = done(&[name, "--help"]);
        assert!(help.contains(&format!("mbs {name} ")), "{name}: {help}");
    }
    let wrong = command(&["nothing"]).output().expect("the command");
    assert_eq!(wrong.status.code(), Some(2));
}

/// Whether Python has a module.
fn python_has(module: &str) -> bool {
    let tried =
        Command::new("python3").args(["-c", &format!("import {module}")]).stderr(Stdio::null()).status();
    let has = tried.is_ok_and(|status| status.success());
    if !has {
        println!("skipped: Python has no {module}");
    }
    has
}

/// Reads a file by a line of Python; must print rows, columns and the last angle as the file has it.
fn python_reads(module: &str, read: &str, rows: usize, columns: usize, angle: &str) {
    if !python_has(module) {
        return;
    }
    let code = format!(
        "import {module} as m; t = {read}; print(len(t), len(t.columns), repr(float(list(t['A.angle'])[-1])))"
    );
    let output = Command::new("python3").args(["-c", &code]).output().expect("Python");
    let error = String::from_utf8_lossy(&output.stderr);
    let expected = format!("{rows} {columns} {angle}\n");
    assert_eq!(String::from_utf8_lossy(&output.stdout), expected, "{module}: {error}");
}

#[test]
fn python_reads_the_results() {
    let folder = Folder::new();
    let file = results(&folder, &[]);
    let written = text(&file);
    let last: Vec<&str> = written.lines().last().expect("a row").split(',').collect();
    for module in ["pandas", "polars"] {
        let (rows, columns) = (written.lines().count() - 1, last.len());
        python_reads(module, &format!("m.read_csv('{file}')"), rows, columns, last[1]);
    }
}

#[cfg(not(feature = "parquet"))]
#[test]
fn parquet_is_a_feature() {
    let folder = Folder::new();
    let file = folder.path("results.parquet");
    fails(1, &["--features parquet", ".csv"], &["simulate", &shipped("pendulum"), "--out", &file]);
    assert_eq!(folder.names(), [""; 0]);
}

#[cfg(feature = "parquet")]
#[test]
fn parquet_has_the_same_numbers() {
    use parquet::file::reader::{FileReader, SerializedFileReader};
    use parquet::record::RowAccessor;

    let folder = Folder::new();
    let written = text(&results(&folder, &[]));
    let file = folder.path("results.parquet");
    done(&["simulate", &shipped("five_bar"), "--end", "0.5", "--out", &file]);
    let reader = SerializedFileReader::new(std::fs::File::open(&file).expect("a file")).expect("a table");
    let meta = reader.metadata().file_metadata();
    let names: Vec<&str> = meta.schema().get_fields().iter().map(|field| field.name()).collect();
    let mut lines = written.lines();
    assert_eq!(names.join(","), lines.next().expect("a head"));
    let units = meta.key_value_metadata().and_then(|all| all.iter().find(|one| one.key == "units"));
    let units: serde_json::Value =
        serde_json::from_str(units.and_then(|units| units.value.as_deref()).expect("units")).expect("JSON");
    assert_eq!(units["A.angle"], "rad");
    for row in reader.get_row_iter(None).expect("rows") {
        let row = row.expect("a row");
        let cells: Vec<String> =
            (0..names.len()).map(|i| format!("{:?}", row.get_double(i).expect("a number"))).collect();
        assert_eq!(cells.join(","), lines.next().expect("as many rows"));
    }
    assert_eq!(lines.next(), None);
    if python_has("pyarrow") {
        let last = written.lines().last().expect("a row").split(',').nth(1).expect("an angle").to_string();
        let rows = written.lines().count() - 1;
        python_reads("pandas", &format!("m.read_parquet('{file}')"), rows, names.len(), &last);
    }
    let last = written.lines().last().expect("a row").split(',').nth(1).expect("an angle");
    python_reads(
        "polars",
        &format!("m.read_parquet('{file}')"),
        written.lines().count() - 1,
        names.len(),
        last,
    );
}
