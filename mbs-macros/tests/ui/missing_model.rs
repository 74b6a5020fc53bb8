mbs_macros::model_solver! {
    pub mod missing = "models/no_such_model.yaml";
}

fn main() {}
