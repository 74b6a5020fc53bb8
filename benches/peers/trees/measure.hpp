// How long a call takes, for the C++ drivers; driver.rs beside it measures in the same way.
//
// Hot: calls go round and round through all states; a batch lasts about 0.2 ms, the median of the batches counts.
// Cold: before a call, 64 MB are written, more than all caches hold, so that code, data and address translation come from
// memory; what an empty call takes is subtracted, and the median counts.
#pragma once
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <vector>

inline double nanoseconds() {
    timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return 1e9 * t.tv_sec + t.tv_nsec;
}

inline double median(std::vector<double> values) {
    std::nth_element(values.begin(), values.begin() + values.size() / 2, values.end());
    return values[values.size() / 2];
}

inline void evict() {
    static std::vector<uint64_t> large(8 << 20);
    for (size_t i = 0; i < large.size(); i += 8) large[i]++;
    asm volatile("" : : "r"(large.data()) : "memory");
}

template <class F>
double hot(size_t states, int batches, F call) {
    size_t next = 0;
    auto batch = [&](size_t calls) {
        const double start = nanoseconds();
        for (size_t i = 0; i < calls; i++) {
            call(next);
            next = next + 1 == states ? 0 : next + 1;
        }
        return (nanoseconds() - start) / calls;
    };
    batch(2 * states);
    const size_t calls = std::max(1.0, 2e5 / batch(states));
    std::vector<double> times;
    for (int i = 0; i < batches; i++) times.push_back(batch(calls));
    return median(times);
}

template <class F>
double cold_once(size_t states, int calls, F call) {
    std::vector<double> times;
    for (int i = 0; i < calls; i++) {
        evict();
        nanoseconds();  // the clock itself is not what is cold
        const double start = nanoseconds();
        call(i % states);
        times.push_back(nanoseconds() - start);
    }
    return median(times);
}

template <class F>
double cold(size_t states, int calls, F call) {
    if (calls == 0) return 0;
    static const double empty = cold_once(states, calls, [](size_t) {});
    return cold_once(states, calls, call) - empty;
}

// Random states that all programs share: q, v, acceleration, force, one after the other.
struct States {
    size_t nq, nv, count;
    std::vector<double> numbers;

    States(const char *file, size_t nq, size_t nv) : nq(nq), nv(nv), count(0) {
        FILE *in = std::fopen(file, "rb");
        if (!in) std::exit(2);
        double x;
        while (std::fread(&x, sizeof x, 1, in) == 1) numbers.push_back(x);
        std::fclose(in);
        if (numbers.empty() || numbers.size() % (nq + 3 * nv)) std::exit(2);
        count = numbers.size() / (nq + 3 * nv);
    }
    const double *operator[](size_t i) const { return numbers.data() + i * (nq + 3 * nv); }
};
