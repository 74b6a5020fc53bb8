mbs_macros::model_solver! {
    mod misspelt = "models/pendulum.yaml" { frieze }
}

fn main() {}
