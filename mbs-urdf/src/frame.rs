//! Frames: a rotation and an origin, as URDF's `<origin xyz rpy>` gives them.

use std::f64::consts::FRAC_PI_2;

/// A vector.
pub(crate) type Vec3 = [f64; 3];
/// A matrix by rows.
pub(crate) type Mat3 = [[f64; 3]; 3];

/// The unit matrix.
pub(crate) const IDENTITY: Mat3 = [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]];

/// A frame relative to another: x_outer = origin + rotation · x_inner.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Frame {
    pub(crate) rotation: Mat3,
    pub(crate) origin: Vec3,
}

impl Frame {
    /// The identity.
    pub(crate) const IDENTITY: Frame = Frame { rotation: IDENTITY, origin: [0.0; 3] };

    /// The frame of a link's origin and its roll, pitch and yaw about fixed axes:
    /// R = R_z(yaw) R_y(pitch) R_x(roll)
    pub(crate) fn new(xyz: Vec3, rpy: Vec3, angles: &mut Angles) -> Frame {
        let [(sr, cr), (sp, cp), (sy, cy)] = rpy.map(|angle| angles.sin_cos(angle));
        let x = [[1.0, 0.0, 0.0], [0.0, cr, -sr], [0.0, sr, cr]];
        let y = [[cp, 0.0, sp], [0.0, 1.0, 0.0], [-sp, 0.0, cp]];
        let z = [[cy, -sy, 0.0], [sy, cy, 0.0], [0.0, 0.0, 1.0]];
        Frame { rotation: product(&product(&z, &y), &x), origin: xyz }
    }

    /// A frame given in this one, in the outer frame.
    pub(crate) fn compose(&self, inner: &Frame) -> Frame {
        Frame { rotation: product(&self.rotation, &inner.rotation), origin: self.point(inner.origin) }
    }

    /// A point given in this frame, in the outer frame.
    pub(crate) fn point(&self, p: Vec3) -> Vec3 {
        let turned = self.direction(p);
        std::array::from_fn(|i| self.origin[i] + turned[i])
    }

    /// A direction given in this frame, in the outer frame.
    pub(crate) fn direction(&self, v: Vec3) -> Vec3 {
        self.rotation.map(|row| dot(row, v))
    }

    /// Whether its axes differ from those of the outer frame.
    pub(crate) fn is_rotated(&self) -> bool {
        self.rotation != IDENTITY
    }

    /// Whether all its numbers are finite.
    pub(crate) fn is_finite(&self) -> bool {
        self.rotation.iter().flatten().chain(&self.origin).all(|x| x.is_finite())
    }
}

/// A change of an angle that does not count, rad: the rounding of a double at 2π.
const ROUNDING: f64 = 1e-15;

/// Sine and cosine, exact at multiples of π/2 as files write them: 1.57079632679 means π/2.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Angles {
    /// Angles within this distance are rounded, rad.
    pub(crate) tolerance: f64,
    /// Largest change of an angle so far, rad, and the number of changed angles.
    pub(crate) largest: f64,
    pub(crate) count: usize,
}

impl Angles {
    pub(crate) fn new(tolerance: f64) -> Angles {
        Angles { tolerance, largest: 0.0, count: 0 }
    }

    fn sin_cos(&mut self, angle: f64) -> (f64, f64) {
        let quarters = (angle / FRAC_PI_2).round();
        let change = (angle - quarters * FRAC_PI_2).abs();
        // Larger values have no precision left as angles.
        if change > self.tolerance.max(ROUNDING) || quarters.abs() > 1e6 {
            return angle.sin_cos();
        }
        if change > ROUNDING {
            self.largest = self.largest.max(change);
            self.count += 1;
        }
        match quarters.rem_euclid(4.0) as u8 {
            0 => (0.0, 1.0),
            1 => (1.0, 0.0),
            2 => (0.0, -1.0),
            _ => (-1.0, 0.0),
        }
    }
}

pub(crate) fn dot(a: Vec3, b: Vec3) -> f64 {
    a[0] * b[0] + a[1] * b[1] + a[2] * b[2]
}

pub(crate) fn product(a: &Mat3, b: &Mat3) -> Mat3 {
    std::array::from_fn(|i| std::array::from_fn(|j| (0..3).map(|k| a[i][k] * b[k][j]).sum()))
}

pub(crate) fn transposed(a: &Mat3) -> Mat3 {
    std::array::from_fn(|i| std::array::from_fn(|j| a[j][i]))
}

/// A direction normal to an axis: the coordinate axis that follows the one nearest to it, x → y → z → x.
pub(crate) fn across(axis: Vec3) -> Vec3 {
    let mut nearest = 2;
    for i in [0, 1] {
        if axis[i].abs() > axis[nearest].abs() {
            nearest = i;
        }
    }
    let mut direction = [0.0; 3];
    direction[(nearest + 1) % 3] = 1.0;
    direction
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn roll_is_first_and_yaw_last() {
        let mut angles = Angles::new(1e-11);
        let frame = Frame::new([1.0, 2.0, 3.0], [FRAC_PI_2, 0.0, FRAC_PI_2], &mut angles);
        // y rolls into z, which yaw leaves; z rolls into −y, which yaw turns into x.
        assert_eq!(frame.direction([0.0, 1.0, 0.0]), [0.0, 0.0, 1.0]);
        assert_eq!(frame.direction([0.0, 0.0, 1.0]), [1.0, 0.0, 0.0]);
        assert_eq!(frame.point([0.0, 0.0, 1.0]), [2.0, 2.0, 3.0]);
        assert_eq!(angles.count, 0);
        let other = Frame::new([0.5, 0.0, 0.0], [0.3, -0.4, 1.9], &mut angles);
        let both = frame.compose(&other);
        let p = [0.3, -0.7, 0.2];
        for (a, b) in both.point(p).iter().zip(frame.point(other.point(p))) {
            assert!((a - b).abs() < 1e-15);
        }
    }

    #[test]
    fn angles_near_a_quarter_turn_are_quarter_turns() {
        // As files write them.
        let [right, straight, rough]: [f64; 3] =
            ["1.57079632679", "-3.14159265359", "1.5708"].map(|text| text.parse().expect("a number"));
        let mut angles = Angles::new(1e-11);
        assert_eq!(angles.sin_cos(right), (1.0, 0.0));
        assert_eq!(angles.sin_cos(straight), (0.0, -1.0));
        assert_eq!((angles.count, angles.largest < 1e-11), (2, true));
        assert_eq!(angles.sin_cos(rough), rough.sin_cos());
        let mut exact = Angles::new(0.0);
        assert_eq!(exact.sin_cos(right), right.sin_cos());
        assert_eq!(exact.sin_cos(std::f64::consts::PI), (0.0, -1.0));
        assert_eq!(exact.sin_cos(1e300), 1e300f64.sin_cos());
    }

    #[test]
    fn a_direction_across_is_never_parallel() {
        assert_eq!(across([0.0, 0.0, 1.0]), [1.0, 0.0, 0.0]);
        assert_eq!(across([-2.0, 1.0, 1.0]), [0.0, 1.0, 0.0]);
        assert_eq!(across([0.0, -3.0, 1.0]), [0.0, 0.0, 1.0]);
        assert_eq!(across([1.0, 1.0, 1.0]), [1.0, 0.0, 0.0]);
    }
}
