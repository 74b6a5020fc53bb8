// Times Pinocchio's algorithms: `pinocchio MODEL STATES BATCHES COLD_CALLS RESULTS NAME…`.
//
// What enters: MODEL, the joints as peers.py writes them; STATES, doubles as measure.hpp reads them; names of algorithms.
// What leaves: a line `name hot cold` for each algorithm, in nanoseconds a call; in the file RESULTS what it computes at each
// state, algorithm after algorithm.
#include "algorithms.hpp"
#include "measure.hpp"

int main(int count, char **words) {
    if (count < 7) return 2;
    size_t nq, nv;
    const auto robot = read_robot(words[1], nq, nv);
    const States states(words[2], nq, nv);
    for (size_t i = 0; i < states.count; i++) add_state(*robot, states[i]);
    const int batches = std::atoi(words[3]), cold_calls = std::atoi(words[4]);
    std::vector<double> results;
    for (int k = 6; k < count; k++) {
        const Algorithm one = algorithm(*robot, words[k]);
        if (!one.call) {
            std::fprintf(stderr, "no algorithm is called %s\n", words[k]);
            return 2;
        }
        const double hot_ns = hot(states.count, batches, one.call);
        std::printf("%s %.1f %.1f\n", words[k], hot_ns, cold(states.count, cold_calls, one.call));
        for (size_t i = 0; i < states.count; i++) {
            one.call(i);
            one.append_results(results);
        }
    }
    FILE *out = std::fopen(words[5], "wb");
    if (!out) return 2;
    const bool whole = std::fwrite(results.data(), sizeof(double), results.size(), out) == results.size();
    return std::fclose(out) || !whole ? 1 : 0;
}
