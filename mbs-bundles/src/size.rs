//! The sizes of a model, under the names they have in the runtime's `Dims`.

/// Calls `callback!` with the sizes of a model: `dims [fields of Dims] sensitivity [fields of SensitivityDims] others [...]`.
#[macro_export]
macro_rules! for_each_size {
    ($callback:ident) => {
        $callback! {
            dims [
                nq nv nu np n_markers n_outputs n_joints n_bodies n_objectives n_holonomic n_normalisation n_nonholonomic
                n_matrix n_factors n_carried n_projected
            ]
            sensitivity [
                parameters start newton projections integrands terminals joint joint_factors joint_integrands joint_terminals
                product_columns tangent_product newton_parameters projection_parameters newton_reads projection_reads table_values
            ]
            // Sums of others, and lengths that only their places tell.
            others [
                nx rows joint_rows unknowns joint_unknowns entries regressor tau_rho n_events n_conditions n_settings event_partials
                jump_partials
            ]
        }
    };
}

macro_rules! sizes {
    (dims [$($dim:ident)*] sensitivity [$($sensitivity:ident)*] others [$($other:ident)*]) => {
        /// A size of a model.
        #[allow(non_camel_case_types, missing_docs, reason = "the names are those of fields of the runtime's `Dims`")]
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum Size { $($dim,)* $($sensitivity,)* $($other,)* }

        impl Size {
            /// Fields of `Dims`, but for the sizes of derivatives and of the workspace.
            pub const DIMS: &'static [Size] = &[$(Size::$dim),*];
            /// Fields of `SensitivityDims`.
            pub const SENSITIVITY: &'static [Size] = &[$(Size::$sensitivity),*];

            /// Its name.
            pub const fn name(self) -> &'static str {
                match self {
                    $(Size::$dim => stringify!($dim),)*
                    $(Size::$sensitivity => stringify!($sensitivity),)*
                    $(Size::$other => stringify!($other),)*
                }
            }
        }
    };
}

for_each_size!(sizes);
