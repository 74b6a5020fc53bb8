// Runs the five-bar linkage by Pinocchio and RK4: `driver METHOD STEPS REPETITIONS FILE < NUMBERS`.
//
// What enters: METHOD, how the loop is closed (below); on standard input h, gravity, x of A, x of B, the lengths,
// masses and inertias of the four bars, their angles at the start, each to the bar before; stiffness and natural length
// of the springs from points 1 and 2 to B.
// What leaves: on standard output wall and processor seconds of each repetition, a line each; in FILE angles, rates and
// accelerations of a run of its own, start included, as doubles.
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <string>
#include <vector>

#include <pinocchio/algorithm/constrained-dynamics.hpp>
#include <pinocchio/algorithm/crba.hpp>
#include <pinocchio/algorithm/loop-constrained-aba.hpp>
#include <pinocchio/algorithm/rnea.hpp>

namespace pin = pinocchio;
using Vector4 = Eigen::Matrix<double, 4, 1>;
using Matrix4 = Eigen::Matrix<double, 4, 4>;
using Matrix24 = Eigen::Matrix<double, 2, 4>;
using Eigen::Vector2d;
using Eigen::Vector3d;

static double number() {
    double x;
    if (std::scanf("%lf", &x) != 1) std::exit(2);
    return x;
}

static Vector4 four() {
    Vector4 x;
    for (int i = 0; i < 4; i++) x[i] = number();
    return x;
}

struct Linkage {
    double h, gravity;
    Vector2d A, B;
    Vector4 length, mass, inertia, start;
    Vector2d stiffness, natural;
    pin::Model model;
    pin::Data data;
    std::vector<pin::RigidConstraintModel> loop;
    std::vector<pin::RigidConstraintData> loop_data;
    pin::ProximalSettings settings;
    Eigen::VectorXd q, v, tau;

    Linkage() {
        h = number();
        gravity = number();
        A = Vector2d(number(), 0);
        B = Vector2d(number(), 0);
        length = four();
        mass = four();
        inertia = four();
        start = four();
        for (int i = 0; i < 2; i++) {
            stiffness[i] = number();
            natural[i] = number();
        }
        model.gravity.linear(Vector3d(0, -gravity, 0));
        pin::JointIndex last = 0;
        for (int i = 0; i < 4; i++) {
            const Vector3d at(i == 0 ? A.x() : length[i - 1], 0, 0);
            const pin::SE3 placement(Eigen::Matrix3d::Identity(), at);
            last = model.addJoint(last, pin::JointModelRZ(), placement, std::to_string(i));
            const Vector3d I(0, inertia[i], inertia[i]);
            model.appendBodyToJoint(last, pin::Inertia(mass[i], Vector3d(length[i] / 2, 0, 0), I.asDiagonal()));
        }
        data = pin::Data(model);
        const pin::SE3 end(Eigen::Matrix3d::Identity(), Vector3d(length[3], 0, 0));
        const pin::SE3 ground(Eigen::Matrix3d::Identity(), Vector3d(B.x(), B.y(), 0));
        loop.emplace_back(pin::CONTACT_3D, model, last, end, pin::JointIndex(0), ground, pin::LOCAL);
        loop_data.emplace_back(loop[0]);
        pin::initConstraintDynamics(model, data, loop, loop_data);
        q = v = tau = Eigen::VectorXd::Zero(4);
    }

    // Ends of the bars as seen from their first ends, in the world.
    void bars(const Vector4 &q, int count, Vector2d *d) const {
        double angle = 0;
        for (int i = 0; i < count; i++) {
            angle += q[i];
            d[i] = length[i] * Vector2d(std::cos(angle), std::sin(angle));
        }
    }

    // tau_j = (r - r_j) x F, for the joints j before the point r that a spring pulls at.
    void springs(const Vector2d *d, Eigen::VectorXd &tau) const {
        tau.setZero();
        for (int s = 0; s < 2; s++) {
            Vector2d arm = Vector2d::Zero(), r = A;
            for (int i = 0; i <= s; i++) r += d[i];
            const Vector2d to_B = B - r;
            const double l = to_B.norm();
            const Vector2d F = to_B * (stiffness[s] * (1 - natural[s] / l));
            for (int i = s; i >= 0; i--) {
                arm += d[i];
                tau[i] += arm.x() * F.y() - arm.y() * F.x();
            }
        }
    }
};

// Pinocchio's own constrained dynamics. It knows a point in space, so one of the three rows says 0 = 0: mu keeps the
// factorisation regular, and one proximal iteration is exact for the other two but for mu.
struct Constrained : Linkage {
    Constrained() { settings = pin::ProximalSettings(1e-12, 1e-12, 1); }
    Vector4 accelerations(const Vector4 &q_, const Vector4 &v_) {
        Vector2d d[2];
        bars(q_, 2, d);
        springs(d, tau);
        q = q_;
        v = v_;
        return pin::constraintDynamics(model, data, q, v, tau, loop, loop_data, settings);
    }
};

// Articulated bodies with a closed loop: an iteration, here to 1e-10 m/s^2.
struct Articulated : Linkage {
    Articulated() {
        settings = pin::ProximalSettings(1e-10, 1e-8, 20);
        pin::computeJointMinimalOrdering(model, data, loop);
    }
    Vector4 accelerations(const Vector4 &q_, const Vector4 &v_) {
        Vector2d d[2];
        bars(q_, 2, d);
        springs(d, tau);
        q = q_;
        v = v_;
        return pin::lcaba(model, data, q, v, tau, loop, loop_data, settings);
    }
};

// Mass matrix and bias by Pinocchio; the two rows of the loop and the elimination by hand, of fixed size.
struct ByHand : Linkage {
    Vector4 accelerations(const Vector4 &q_, const Vector4 &v_) {
        Vector2d d[4];
        bars(q_, 4, d);
        springs(d, tau);
        q = q_;
        v = v_;
        pin::crba(model, data, q, pin::Convention::LOCAL);
        const Vector4 f = tau - pin::nonLinearEffects(model, data, q, v);
        Matrix4 M = data.M;
        M.triangularView<Eigen::StrictlyLower>() = M.transpose().triangularView<Eigen::StrictlyLower>();
        // J v = 0 and J vd + sum of -d_i w_i^2 = 0
        Matrix24 J;
        Vector2d arm = Vector2d::Zero(), bias = Vector2d::Zero();
        for (int i = 3; i >= 0; i--) {
            arm += d[i];
            J.col(i) = Vector2d(-arm.y(), arm.x());
        }
        double w = 0;
        for (int i = 0; i < 4; i++) {
            w += v_[i];
            bias -= d[i] * (w * w);
        }
        const Eigen::LLT<Matrix4> factor(M);
        const Eigen::Matrix<double, 4, 2> MJ = factor.solve(J.transpose());
        const Vector4 free = factor.solve(f);
        const Eigen::Matrix2d S = J * MJ;
        const Vector2d lambda = S.inverse() * (J * free + bias);
        return free - MJ * lambda;
    }
};

template <class L>
static void step(L &l, Vector4 &q, Vector4 &v) {
    const double h = l.h;
    const Vector4 a1 = l.accelerations(q, v);
    const Vector4 v2 = v + h / 2 * a1, a2 = l.accelerations(q + h / 2 * v, v2);
    const Vector4 v3 = v + h / 2 * a2, a3 = l.accelerations(q + h / 2 * v2, v3);
    const Vector4 v4 = v + h * a3, a4 = l.accelerations(q + h * v3, v4);
    q += h / 6 * (v + 2 * v2 + 2 * v3 + v4);
    v += h / 6 * (a1 + 2 * a2 + 2 * a3 + a4);
}

static double now(clockid_t clock) {
    timespec t;
    clock_gettime(clock, &t);
    return t.tv_sec + 1e-9 * t.tv_nsec;
}

template <class L>
static int run(int steps, int repetitions, const char *file) {
    L l;
    Vector4 q, v;
    for (int r = 0; r < repetitions; r++) {
        q = l.start;
        v.setZero();
        const double wall = now(CLOCK_MONOTONIC), processor = now(CLOCK_THREAD_CPUTIME_ID);
        for (int i = 0; i < steps; i++) step(l, q, v);
        std::printf("%.9g %.9g\n", now(CLOCK_MONOTONIC) - wall, now(CLOCK_THREAD_CPUTIME_ID) - processor);
    }
    FILE *states = std::fopen(file, "wb");
    if (!states) return 1;
    q = l.start;
    v.setZero();
    for (int i = 0; i <= steps; i++) {
        const Vector4 a = l.accelerations(q, v);
        for (const Vector4 &x : {q, v, a}) std::fwrite(x.data(), sizeof(double), 4, states);
        step(l, q, v);
    }
    return std::fclose(states) ? 1 : 0;
}

int main(int count, char **words) {
    if (count != 5) return 2;
    const std::string method = words[1];
    const int steps = std::atoi(words[2]), repetitions = std::atoi(words[3]);
    if (method == "constrained") return run<Constrained>(steps, repetitions, words[4]);
    if (method == "articulated") return run<Articulated>(steps, repetitions, words[4]);
    if (method == "by-hand") return run<ByHand>(steps, repetitions, words[4]);
    return 2;
}
