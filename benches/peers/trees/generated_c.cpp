// Times C that generate_c wrote: `generated_c FOLDER NQ NV STATES BATCHES COLD_CALLS RESULTS NAME…`.
//
// What enters: FOLDER with a library NAME.so of each algorithm; STATES, doubles as measure.hpp reads them. What leaves: a line
// `name hot cold` for each, in nanoseconds a call; in the file RESULTS what it writes at each state, algorithm after algorithm. The
// functions are called directly, without the library around them.
#include <dlfcn.h>

#include <string>

#include "measure.hpp"

// As in the generated sources.
struct LangCAtomicFun {
    void *model;
    int (*forward)(void *, int, int, int, const void *, void *);
    int (*reverse)(void *, int, int, const void *, void *, void *, const void *);
};
using Function = void (*)(const double *const *, double *const *, LangCAtomicFun);

int main(int count, char **words) {
    if (count < 9) return 2;
    const size_t nq = std::atoi(words[2]), nv = std::atoi(words[3]);
    const States states(words[4], nq, nv);
    const int batches = std::atoi(words[5]), cold_calls = std::atoi(words[6]);
    FILE *results = std::fopen(words[7], "wb");
    if (!results) return 2;
    for (int k = 8; k < count; k++) {
        const std::string name = words[k];
        void *library = dlopen((std::string(words[1]) + "/" + name + ".so").c_str(), RTLD_NOW);
        if (!library) {
            std::fprintf(stderr, "%s\n", dlerror());
            return 2;
        }
        const auto function = reinterpret_cast<Function>(dlsym(library, (name + "_forward_zero").c_str()));
        if (!function) return 2;
        const bool derivatives = name.find("derivatives") != std::string::npos, forward = name.rfind("aba", 0) == 0;
        const size_t size = derivatives ? 3 * nv * nv : name == "crba" ? nv * (nv + 1) / 2 : nv;
        // x = (q, v, acceleration or force); the mass matrix reads q alone.
        std::vector<double> x;
        for (size_t i = 0; i < states.count; i++) {
            x.insert(x.end(), states[i], states[i] + nq + nv);
            const double *last = states[i] + nq + nv + (forward ? nv : 0);
            x.insert(x.end(), last, last + nv);
        }
        std::vector<double> out(size);
        auto call = [&](size_t i) {
            const double *in[] = {x.data() + i * (nq + 2 * nv)};
            double *to[] = {out.data()};
            function(in, to, LangCAtomicFun{});
        };
        const double hot_ns = hot(states.count, batches, call);
        std::printf("%s %.1f %.1f\n", name.c_str(), hot_ns, cold(states.count, cold_calls, call));
        for (size_t i = 0; i < states.count; i++) {
            call(i);
            std::fwrite(out.data(), sizeof(double), size, results);
        }
    }
    return std::fclose(results) ? 1 : 0;
}
