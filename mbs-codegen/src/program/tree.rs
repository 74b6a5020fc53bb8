//! Which expressions the bundles want that identification, control and optimisation ask for.

use super::equations::{Equations, MOTION, Parts, wanted};
use crate::dynamics::{inertial_parameters, regressor};

impl Equations<'_, '_, '_> {
    pub(super) fn inertial_parameters(&mut self) -> Parts {
        let all = inertial_parameters(self.g, self.mechanism);
        let doc = "m, m c, xx, yy, zz, xy, xz, yz about the frame's origin, body by body";
        ("Inertial parameters of the bodies.", Vec::new(), vec![wanted("pi", doc, all)])
    }

    pub(super) fn regressor(&mut self) -> Parts {
        let y = regressor(self.g, self.mechanism);
        self.structure.regressor = y.places;
        let doc = "derivatives of tau by inertial parameters, ten for each velocity and body it moves";
        ("Inverse dynamics as a linear function of inertial parameters.", MOTION.to_vec(), {
            vec![wanted("values", doc, y.entries)]
        })
    }
}
