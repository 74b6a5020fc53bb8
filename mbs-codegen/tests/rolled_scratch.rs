use mbs_codegen::bundle::interpret::{Arguments, run, scratch_len};
use mbs_codegen::program::{BundleKind, Options, Pairs, Program};
use mbs_codegen::symbols::Group;
fn call(p: &Program, name: &str, a: &Arguments<'_, f64>) -> Vec<Vec<f64>> {
    let b = p.bundle(name).unwrap();
    mbs_codegen::bundle::verify::verify(b).unwrap();
    let mut out: Vec<Vec<f64>> = b.results.iter().map(|r| vec![f64::NAN; r.len as usize]).collect();
    let mut refs: Vec<&mut [f64]> = out.iter_mut().map(|v| &mut v[..]).collect();
    run(b, a, &mut vec![f64::NAN; scratch_len(b)], &mut refs).unwrap();
    out
}
#[test]
fn same() {
    for file in ["../tests/models/batch.yaml", "../models/human43.yaml", "../models/pendulum.yaml"] {
        let text = std::fs::read_to_string(file).unwrap();
        let (model, _) = mbs_codegen::read("x", &text).unwrap_or_else(|d| panic!("{}", d.render("x", &text)));
        let bundles = vec![
            BundleKind::MassMatrix,
            BundleKind::InverseDynamicsDerivatives,
            BundleKind::ForwardDynamicsDerivatives,
        ];
        let ps = [Pairs::Flat, Pairs::Rolled].map(|pairs| {
            Program::new(&model, None, &Options { bundles: bundles.clone(), pairs, ..Options::default() })
                .unwrap()
        });
        let n = ps[0].velocities.len();
        let nq = ps[0].coordinates.len();
        let z: Vec<f64> = (0..nq).map(|i| (i as f64 * 1.3 + 0.4).sin()).collect();
        let v: Vec<f64> = (0..n).map(|i| (i as f64 * 2.3 + 0.4).sin()).collect();
        let vd: Vec<f64> = (0..n).map(|i| (i as f64 * 3.3 + 0.4).sin()).collect();
        let tau: Vec<f64> = (0..n).map(|i| (i as f64 * 4.3 + 0.4).sin()).collect();
        let u = vec![0.5; ps[0].inputs.len()];
        let results = ps.each_ref().map(|p| {
            let params = p.defaults();
            let c = call(p, "prepare", &Arguments::new().with(Group::Parameters, &params)).remove(0);
            let a = Arguments::new()
                .with(Group::Time, &[0.3])
                .with(Group::Z, &z)
                .with(Group::V, &v)
                .with(Group::Vd, &vd)
                .with(Group::Tau, &tau)
                .with(Group::U, &u)
                .with(Group::Prepared, &c);
            for b in &p.bundles {
                println!("{file} {} {}", b.name, b.counts);
            }
            bundles.iter().map(|k| call(p, k.name(), &a)).collect::<Vec<_>>()
        });
        for (k, (a, b)) in results[0].iter().zip(&results[1]).enumerate() {
            for (i, (a, b)) in a.iter().zip(b).enumerate() {
                let big = a.iter().fold(0f64, |m, x| m.max(x.abs()));
                let e = a.iter().zip(b).fold(0f64, |m, (x, y)| m.max((x - y).abs()));
                println!("{} {i}: {:e} of {:e}", bundles[k].name(), e, big);
                assert!(e <= 1e-9 * big, "{:?}\n{:?}", &a[..a.len().min(40)], &b[..b.len().min(40)]);
            }
        }
    }
}
