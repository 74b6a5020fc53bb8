// Times Pinocchio's algorithms: `pinocchio MODEL STATES BATCHES COLD_CALLS RESULTS NAME…`.
//
// What enters: MODEL, the joints as trees.py writes them; STATES, doubles as measure.hpp reads them; names of algorithms.
// What leaves: a line `name hot cold` for each algorithm, in nanoseconds a call; in the file RESULTS what it computes at each
// state, algorithm after algorithm, matrices by columns.
//
// The model is built here and not by the library's parser, so that everything is compiled from headers for this processor.
#include <fstream>
#include <functional>
#include <iostream>
#include <map>
#include <string>

#include <pinocchio/algorithm/aba-derivatives.hpp>
#include <pinocchio/algorithm/aba.hpp>
#include <pinocchio/algorithm/crba.hpp>
#include <pinocchio/algorithm/rnea-derivatives.hpp>
#include <pinocchio/algorithm/rnea.hpp>

#include "measure.hpp"
#include "model.hpp"

namespace pin = pinocchio;
using Eigen::MatrixXd;
using Eigen::VectorXd;

int main(int count, char **words) {
    if (count < 7) return 2;
    const pin::Model model = read_model(words[1]);
    const States states(words[2], model.nq, model.nv);
    const int batches = std::atoi(words[3]), cold_calls = std::atoi(words[4]);
    FILE *results = std::fopen(words[5], "wb");
    if (!results) return 2;
    pin::Data data(model);
    std::vector<VectorXd> q, v, a, tau;
    for (size_t i = 0; i < states.count; i++) {
        const double *x = states[i];
        q.push_back(Eigen::Map<const VectorXd>(x, model.nq));
        v.push_back(Eigen::Map<const VectorXd>(x + model.nq, model.nv));
        a.push_back(Eigen::Map<const VectorXd>(x + model.nq + model.nv, model.nv));
        tau.push_back(Eigen::Map<const VectorXd>(x + model.nq + 2 * model.nv, model.nv));
    }
    auto write = [&](const auto &matrix) { std::fwrite(matrix.data(), sizeof(double), matrix.size(), results); };
    auto run = [&](const std::string &name, auto call, auto keep) {
        const double hot_ns = hot(states.count, batches, call);
        std::printf("%s %.1f %.1f\n", name.c_str(), hot_ns, cold(states.count, cold_calls, call));
        for (size_t i = 0; i < states.count; i++) {
            call(i);
            keep();
        }
    };
    for (int k = 6; k < count; k++) {
        const std::string name = words[k];
        if (name == "rnea") {
            run(name, [&](size_t i) { pin::rnea(model, data, q[i], v[i], a[i]); }, [&] { write(data.tau); });
        } else if (name == "crba_world") {
            run(name, [&](size_t i) { pin::crba(model, data, q[i], pin::Convention::WORLD); }, [&] { write(data.M); });
        } else if (name == "crba_local") {
            run(name, [&](size_t i) { pin::crba(model, data, q[i], pin::Convention::LOCAL); }, [&] { write(data.M); });
        } else if (name == "aba_world") {
            run(name, [&](size_t i) { pin::aba(model, data, q[i], v[i], tau[i], pin::Convention::WORLD); },
                [&] { write(data.ddq); });
        } else if (name == "aba_local") {
            run(name, [&](size_t i) { pin::aba(model, data, q[i], v[i], tau[i], pin::Convention::LOCAL); },
                [&] { write(data.ddq); });
        } else if (name == "rnea_derivatives") {
            run(name, [&](size_t i) { pin::computeRNEADerivatives(model, data, q[i], v[i], a[i]); },
                [&] { write(data.dtau_dq), write(data.dtau_dv), write(data.M); });
        } else if (name == "aba_derivatives") {
            run(name, [&](size_t i) { pin::computeABADerivatives(model, data, q[i], v[i], tau[i]); },
                [&] { write(data.ddq_dq), write(data.ddq_dv), write(data.Minv); });
        } else {
            std::cerr << "no algorithm is called " << name << "\n";
            return 2;
        }
    }
    return std::fclose(results) ? 1 : 0;
}
