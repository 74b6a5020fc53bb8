//! Every shipped model reads without a problem.

use std::path::Path;

#[test]
fn every_shipped_model_reads_clean() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../models");
    let mut count = 0;
    let mut entries: Vec<_> = std::fs::read_dir(folder)
        .unwrap()
        .map(|e| e.unwrap().path())
        .collect();
    entries.sort();
    for path in entries
        .into_iter()
        .filter(|p| p.extension().is_some_and(|e| e == "yaml"))
    {
        let text = std::fs::read_to_string(&path).unwrap();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        let (model, warnings) = mbs_codegen::read(&name, &text)
            .unwrap_or_else(|errors| panic!("{}", errors.render(&name, &text)));
        assert!(warnings.is_empty(), "{}", warnings.render(&name, &text));
        assert_eq!(format!("{}.yaml", model.name), name);
        count += 1;
    }
    assert!(count >= 8);
}
