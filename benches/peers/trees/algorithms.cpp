// What algorithms.hpp promises. The model is built here and not by the library's parser, so that everything is compiled from
// headers for this processor.
#include "algorithms.hpp"

#include <pinocchio/algorithm/aba-derivatives.hpp>
#include <pinocchio/algorithm/aba.hpp>
#include <pinocchio/algorithm/crba.hpp>
#include <pinocchio/algorithm/rnea-derivatives.hpp>
#include <pinocchio/algorithm/rnea.hpp>

#include "model.hpp"

namespace pin = pinocchio;
using Eigen::VectorXd;

struct Robot {
    pin::Model model;
    pin::Data data;
    std::vector<VectorXd> q, v, a, tau;
    explicit Robot(const char *file) : model(read_model(file)), data(model) {}
};

std::shared_ptr<Robot> read_robot(const char *model, size_t &nq, size_t &nv) {
    auto robot = std::make_shared<Robot>(model);
    nq = robot->model.nq;
    nv = robot->model.nv;
    return robot;
}

void add_state(Robot &r, const double *x) {
    const int nq = r.model.nq, nv = r.model.nv;
    r.q.push_back(Eigen::Map<const VectorXd>(x, nq));
    r.v.push_back(Eigen::Map<const VectorXd>(x + nq, nv));
    r.a.push_back(Eigen::Map<const VectorXd>(x + nq + nv, nv));
    r.tau.push_back(Eigen::Map<const VectorXd>(x + nq + 2 * nv, nv));
}

Algorithm algorithm(Robot &r, const std::string &name) {
    using Results = std::vector<double> &;
    auto append = [](Results to, const auto &matrix) { to.insert(to.end(), matrix.data(), matrix.data() + matrix.size()); };
    const auto convention = name.find("_local") != std::string::npos ? pin::Convention::LOCAL : pin::Convention::WORLD;
    if (name == "rnea")
        return {[&r](size_t i) { pin::rnea(r.model, r.data, r.q[i], r.v[i], r.a[i]); },
                [&r, append](Results to) { append(to, r.data.tau); }};
    if (name == "crba_world" || name == "crba_local")
        return {[&r, convention](size_t i) { pin::crba(r.model, r.data, r.q[i], convention); },
                [&r, append](Results to) { append(to, r.data.M); }};
    if (name == "aba_world" || name == "aba_local")
        return {[&r, convention](size_t i) { pin::aba(r.model, r.data, r.q[i], r.v[i], r.tau[i], convention); },
                [&r, append](Results to) { append(to, r.data.ddq); }};
    if (name == "rnea_derivatives")
        return {[&r](size_t i) { pin::computeRNEADerivatives(r.model, r.data, r.q[i], r.v[i], r.a[i]); },
                [&r, append](Results to) { append(to, r.data.dtau_dq), append(to, r.data.dtau_dv), append(to, r.data.M); }};
    if (name == "aba_derivatives")
        return {[&r](size_t i) { pin::computeABADerivatives(r.model, r.data, r.q[i], r.v[i], r.tau[i]); },
                [&r, append](Results to) { append(to, r.data.ddq_dq), append(to, r.data.ddq_dv), append(to, r.data.Minv); }};
    return {};
}
