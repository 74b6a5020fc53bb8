//! No text makes the import panic, hang or take memory without bound, and whatever it writes can be read.

use mbs_urdf::{Loop, Options, import, limits};
use std::path::Path;
use std::time::{Duration, Instant};

fn random(seed: &mut u64) -> usize {
    *seed ^= *seed << 13;
    *seed ^= *seed >> 7;
    *seed ^= *seed << 17;
    (*seed >> 16) as usize
}

/// Imports a text within a time no honest file comes near; gives whether there is a model.
fn survive(what: &str, text: &str, options: &Options) -> bool {
    let begin = Instant::now();
    let outcome = import("hostile.urdf", text, options);
    let printed = match &outcome {
        Ok(imported) => imported.warnings.render("hostile.urdf", text) + &imported.report.to_string(),
        Err(errors) => errors.render("hostile.urdf", text),
    };
    let time = begin.elapsed();
    if std::env::var_os("MBS_TIMES").is_some() {
        println!("{time:?} {what}");
    }
    assert!(time < Duration::from_secs(20), "{what} took {time:?}");
    assert!(printed.len() < 1 << 20, "{what} printed {} bytes", printed.len());
    let Ok(imported) = outcome else { return false };
    // The reader takes the text. Whether the equations make sense is another question.
    let (model, problems) = mbs_codegen::yaml::read("hostile.yaml", &imported.yaml);
    assert!(
        model.is_some(),
        "{what}\n{text}\n{}\n{}",
        imported.yaml,
        problems.render("hostile.yaml", &imported.yaml)
    );
    true
}

fn seeds(folder: &str) -> Vec<String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut files: Vec<_> = std::fs::read_dir(root.join(folder))
        .expect("a folder")
        .map(|entry| entry.expect("a file").path())
        .filter(|path| path.extension().is_some_and(|e| e == "urdf"))
        .collect();
    files.sort();
    files.iter().map(|path| std::fs::read_to_string(path).expect("a file")).collect()
}

/// Files with a few characters or words changed, cut or doubled.
#[test]
fn damaged_files() {
    let rounds: usize = std::env::var("MBS_FUZZ").ok().and_then(|n| n.parse().ok()).unwrap_or(100);
    let pieces = [
        "<",
        ">",
        "/>",
        "</",
        "\"",
        "'",
        "&",
        "&lt;",
        "&#0;",
        "&#xffffffff;",
        "=",
        " ",
        "\n",
        "<!--",
        "-->",
        "<![CDATA[",
        "]]>",
        "<?",
        "?>",
        "<!DOCTYPE r>",
        "\u{0}",
        "é",
        "\u{202e}",
        "\u{feff}",
        "1e308",
        "-1e308",
        "1e-320",
        "-0",
        "nan",
        "inf",
        "0",
        "-1",
        "9".repeat(400).leak(),
        "xmlns=\"a\" ",
        "a:b=\"c\" ",
        "name=\"ground\"",
        "name=\"origin\"",
        "name=\"t\"",
        "name=\"pi\"",
        "link=\"base\"",
        "type=\"fixed\"",
        "type=\"floating\"",
        "type=\"planar\"",
        "<mimic joint=\"slew\"/>",
        "<origin rpy=\"1 2 3\"/>",
        "<dynamics damping=\"1\" friction=\"2\"/>",
        "<link name=\"base\"/>",
        "<axis xyz=\"1e-300 0 0\"/>",
        "<axis xyz=\"1e300 1e300 0\"/>",
    ];
    let words = [
        "base",
        "battery",
        "mast",
        "fore-arm",
        "0.3",
        "1.57079632679",
        "revolute",
        "fixed",
        "prismatic",
        "tool",
    ];
    let mut seed = 0x9e37_79b9_7f4a_7c15;
    let (mut made, mut total) = (0, 0);
    let good = seeds("../tests/urdf").into_iter().map(|text| (text, 20 * rounds));
    for (text, rounds) in good.chain(seeds("tests/diagnostics").into_iter().map(|text| (text, rounds))) {
        for _ in 0..rounds {
            let mut chars: Vec<char> = text.chars().take(20_000).collect();
            for _ in 0..1 + random(&mut seed) % 4 {
                let at = random(&mut seed) % (chars.len() + 1);
                let end = (at + random(&mut seed) % 12).min(chars.len());
                match random(&mut seed) % 6 {
                    0 => drop(chars.drain(at..end)),
                    1 => {
                        let copy: Vec<char> = chars[at..end].to_vec();
                        chars.splice(at..at, copy);
                    }
                    2 => drop(chars.splice(at..at, pieces[random(&mut seed) % pieces.len()].chars())),
                    _ => {
                        // Another value for an attribute: the structure stays, so the damage gets further.
                        let Some(open) = (at..chars.len()).find(|&i| chars[i] == '"') else { continue };
                        let Some(close) = (open + 1..chars.len()).find(|&i| chars[i] == '"') else {
                            continue;
                        };
                        let list =
                            if random(&mut seed).is_multiple_of(2) { &words[..] } else { &pieces[23..34] };
                        drop(chars.splice(open + 1..close, list[random(&mut seed) % list.len()].chars()));
                    }
                }
            }
            let options = Options {
                floating_base: random(&mut seed).is_multiple_of(2),
                mimicry: !random(&mut seed).is_multiple_of(4),
                dissipation: random(&mut seed).is_multiple_of(2),
                ..Options::default()
            };
            total += 1;
            made += usize::from(survive("a damaged file", &chars.into_iter().collect::<String>(), &options));
        }
    }
    assert!(
        made * 40 > total,
        "only {made} of {total} damaged files were imported: the damage does not get far"
    );
}

const HEAVY: &str = "<inertial><mass value=\"1\"/><inertia ixx=\"1\" iyy=\"1\" izz=\"1\"/></inertial>";

fn robot(links: usize, link: impl Fn(usize) -> String, joint: impl Fn(usize) -> String) -> String {
    let links: String = (0..links).map(link).collect();
    let joints: String = (1..).map_while(|i| Some(joint(i)).filter(|j| !j.is_empty())).collect();
    format!("<robot name=\"r\">{links}{joints}</robot>")
}

/// Files made to hurt.
#[test]
fn files_made_to_hurt() {
    let options = Options::default();
    let no = |what: &str, text: &str| assert!(!survive(what, text, &options), "{what}");
    let yes = |what: &str, text: &str| assert!(survive(what, text, &options), "{what}");
    no("nothing", "");
    no("open tags", &"<a>".repeat(1 << 20));
    no("open brackets", &"<".repeat(4 << 20));
    no("nested elements", &format!("{}{}", "<a>".repeat(1 << 19), "</a>".repeat(1 << 19)));
    no("a huge file", &" ".repeat(limits::FILE_BYTES + 1));
    no("a huge comment", &format!("<robot><!--{}--></robot>", " ".repeat(4 << 20)));
    no(
        "many attributes",
        &format!("<robot {}/>", (0..400_000).map(|i| format!("a{i}='' ")).collect::<String>()),
    );
    no(
        "many attributes, quoted",
        &format!("<robot b='>' {}/>", (0..400_000).map(|i| format!("a{i}='' ")).collect::<String>()),
    );
    no(
        "many name spaces",
        &format!("<robot {}/>", (0..900).map(|i| format!("xmlns:a{i}='b' ")).collect::<String>()),
    );
    let nested: String = (0..60_000).map(|i| format!("<a xmlns:p{i}='u{i}'>")).collect();
    no("name spaces in each other", &(nested + &"</a>".repeat(60_000)));
    no(
        "many prefixes",
        &format!("<robot>{}</robot>", (0..9_000).map(|i| format!("<p{i}:a/>")).collect::<String>()),
    );
    no("one prefix often", &format!("<robot>{}</robot>", "<p:a/>".repeat(100_000)));
    no("many elements", &format!("<robot>{}</robot>", "<a/>".repeat(1 << 20)));
    no(
        "many kinds of elements",
        &format!("<robot>{}</robot>", (0..200_000).map(|i| format!("<a{i}/>")).collect::<String>()),
    );
    no("long names", &format!("<robot name=\"{0}\"><{0}/></robot>", "a".repeat(2 << 20)));
    no(
        "entities",
        "<!DOCTYPE r [<!ENTITY a \"aaaaaaaaaa\"><!ENTITY b \"&a;&a;&a;&a;&a;&a;\">]><robot name=\"&b;\"/>",
    );
    no("external entities", "<!DOCTYPE r SYSTEM \"file:///etc/passwd\"><robot/>");
    no("too many links", &robot(limits::LINKS + 1, |i| format!("<link name=\"l{i}\"/>"), |_| String::new()));
    no("many roots", &robot(limits::LINKS, |i| format!("<link name=\"l{i}\"/>"), |_| String::new()));
    let name = |i: usize| format!("<link name=\"l{i}\">{HEAVY}</link>");
    let join = |kind: &'static str, n: usize, parent: fn(usize) -> usize| {
        move |i: usize| {
            if i == n {
                return String::new();
            }
            format!(
                "<joint name=\"j{i}\" type=\"{kind}\"><parent link=\"l{}\"/><child link=\"l{i}\"/></joint>",
                parent(i)
            )
        }
    };
    let n = limits::LINKS;
    yes("a long chain", &robot(n, name, join("revolute", n, |i| i - 1)));
    yes("a star", &robot(n, name, join("prismatic", n, |_| 0)));
    no("a long chain that is fixed", &robot(n, name, join("fixed", n, |i| i - 1)));
    assert!(survive(
        "a star that is fixed",
        &robot(n, name, join("fixed", n, |_| 0)),
        &Options { floating_base: true, ..Options::default() }
    ));
    let ring = robot(n, name, join("revolute", n, |i| i - 1));
    no(
        "a ring",
        &ring.replace(
            "</robot>",
            &format!(
                "<joint name=\"r\" type=\"fixed\"><parent link=\"l{}\"/><child link=\"l0\"/></joint></robot>",
                n - 1
            ),
        ),
    );
    no("many duplicates", &robot(n, |_| "<link name=\"l\"/>".into(), |_| String::new()));
    no("many unknown links", &robot(1, name, join("revolute", n, |i| i + 1)));
    yes(
        "names that become the same",
        &robot(
            n,
            |i| {
                format!(
                    "<link name=\"é{}{}\">{HEAVY}</link>",
                    "ñ".repeat(i / 256),
                    char::from_u32(0x4e00 + i as u32 % 256).unwrap_or('x')
                )
            },
            |i| {
                if i == n {
                    return String::new();
                }
                let name = |i: usize| {
                    format!(
                        "é{}{}",
                        "ñ".repeat(i / 256),
                        char::from_u32(0x4e00 + i as u32 % 256).unwrap_or('x')
                    )
                };
                format!(
                    "<joint name=\"{}\" type=\"revolute\"><parent link=\"{}\"/><child link=\"{}\"/></joint>",
                    name(i),
                    name(i - 1),
                    name(i)
                )
            },
        ),
    );
    let mimics = robot(n, name, |i| {
        if i == n {
            return String::new();
        }
        let mimic =
            if i > 1 { format!("<mimic joint=\"j{}\" multiplier=\"2\"/>", i - 1) } else { String::new() };
        format!(
            "<joint name=\"j{i}\" type=\"revolute\"><parent link=\"l0\"/><child link=\"l{i}\"/>{mimic}</joint>"
        )
    });
    yes("a chain of mimics", &mimics);
    no(
        "numbers",
        &format!(
            "<robot><link name=\"a\"><inertial><mass value=\"{}\"/></inertial></link></robot>",
            "1 ".repeat(1 << 20)
        ),
    );
    no(
        "a number",
        &format!(
            "<robot><link name=\"a\"><inertial><mass value=\"{}\"/></inertial></link></robot>",
            "1".repeat(1 << 20)
        ),
    );
}

/// Names that mean something to the model, to YAML or to Rust.
#[test]
fn names_with_a_meaning() {
    let names = [
        "ground",
        "Ground",
        "t",
        "pi",
        "if",
        "in",
        "rate",
        "pos",
        "origin",
        "com",
        "mbs",
        "null",
        "true",
        "no",
        "~",
        "1",
        "-",
        "a: b",
        "#",
        "x # y",
        "{a}",
        "[a",
        "*a",
        "&amp;a",
        "!a",
        "'",
        "\\",
        "a\nb",
        "floating_base",
        "self",
        "fn",
        "é",
        "friction_angular_rate",
        "a_mimic",
        "a_damping",
        "angle",
        "x",
        "e0",
        "%",
        "@",
        "|",
        ">",
        "?",
        "--- ",
        "...",
    ];
    let escape = |name: &str| name.replace('<', "&lt;").replace('"', "&quot;");
    let links: String =
        names.iter().map(|n| format!("<link name=\"{}\">{HEAVY}</link>", escape(n))).collect();
    let joints: String = names
        .iter()
        .map(|n| {
            let n = escape(n);
            let mimic = if n == "t" { String::new() } else { "<mimic joint=\"t\" multiplier=\"0.5\"/>".into() };
            let dynamics = "<dynamics damping=\"1\" friction=\"1\"/>";
            format!("<joint name=\"{n}\" type=\"revolute\"><parent link=\"base\"/><child link=\"{n}\"/><axis xyz=\"0 1 0\"/>{dynamics}{mimic}</joint>\
                     <joint name=\"fixed {n}\" type=\"fixed\"><parent link=\"base\"/><child link=\"{n} 2\"/><origin rpy=\"1 0 0\"/></joint>")
        })
        .collect();
    let more: String = names.iter().map(|n| format!("<link name=\"{} 2\"/>", escape(n))).collect();
    let text = format!(
        "<robot name=\"a &quot; \\ b\n: #\"><link name=\"base\">{HEAVY}</link>{links}{more}{joints}</robot>"
    );
    for floating_base in [false, true] {
        let close = "ground=spherical:t:pi".parse::<Loop>().expect("a loop");
        let options = Options { floating_base, loops: vec![close], ..Options::default() };
        assert!(survive("odd names", &text, &options));
        let imported = import("odd # name\n.urdf", &text, &options).expect("a robot");
        mbs_codegen::read("odd.yaml", &imported.yaml).expect("a model whose equations make sense");
    }
}

/// Every text is a loop or a message.
#[test]
fn hostile_loops() {
    let mut seed = 0x1357_9bdf_0246_8ace;
    let pieces = [
        "a",
        "=",
        ":",
        "@",
        ",",
        "1",
        "-",
        "1e9",
        "nan",
        "revolute",
        "fixed",
        " ",
        "é",
        "0,0,1",
        "x=revolute:a:b",
    ];
    for _ in 0..20_000 {
        let text: String =
            (0..random(&mut seed) % 12).map(|_| pieces[random(&mut seed) % pieces.len()]).collect();
        if let Err(message) = text.parse::<Loop>() {
            assert!(!message.is_empty() && message.len() < 400, "{text}: {message}");
        }
    }
}
