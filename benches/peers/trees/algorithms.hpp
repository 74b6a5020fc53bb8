// Pinocchio's algorithms behind plain functions, so that what times them is compiled in a second and they, in minutes, but once.
#pragma once
#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <vector>

struct Algorithm {
    std::function<void(size_t)> call;                           // at a state
    std::function<void(std::vector<double> &)> append_results;  // of the last call; matrices by columns
};

struct Robot;  // a model, its data, and states

std::shared_ptr<Robot> read_robot(const char *model, size_t &nq, size_t &nv);
// q, v, acceleration, force
void add_state(Robot &robot, const double *numbers);
// Without a call if no algorithm has this name.
Algorithm algorithm(Robot &robot, const std::string &name);
