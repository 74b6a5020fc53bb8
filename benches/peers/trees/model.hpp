// Reads a model as peers.py writes it: gravity; the number of joints; for each its type, axis, parent, place in the parent
// (rotation by rows, translation), and the inertia it carries (mass, centre of mass, rotation about it by rows).
#pragma once
#include <cstdlib>
#include <fstream>
#include <string>

#include <pinocchio/multibody.hpp>

inline pinocchio::Model read_model(const char *file) {
    namespace pin = pinocchio;
    using Vector3 = Eigen::Vector3d;
    using Matrix3 = Eigen::Matrix3d;
    std::ifstream in(file);
    auto vector = [&] {
        Vector3 x;
        for (int i = 0; i < 3; i++) in >> x[i];
        return x;
    };
    auto matrix = [&] {
        Matrix3 x;
        for (int i = 0; i < 9; i++) in >> x(i / 3, i % 3);
        return x;
    };
    pin::Model model;
    model.gravity.linear(vector());
    int joints = 0;
    in >> joints;
    for (int i = 0; i < joints; i++) {
        std::string type;
        in >> type;
        const Vector3 axis = vector();
        pin::JointIndex parent;
        in >> parent;
        const Matrix3 turned = matrix();
        const pin::SE3 place(turned, vector());
        double mass;
        in >> mass;
        const Vector3 centre = vector();
        const pin::Inertia inertia(mass, centre, pin::Symmetric3(matrix()));
        auto add = [&](const auto &joint) {
            const auto index = model.addJoint(parent, joint, place, std::to_string(i));
            model.appendBodyToJoint(index, inertia);
        };
        if (type == "JointModelRX") add(pin::JointModelRX());
        else if (type == "JointModelRY") add(pin::JointModelRY());
        else if (type == "JointModelRZ") add(pin::JointModelRZ());
        else if (type == "JointModelRUBX") add(pin::JointModelRUBX());
        else if (type == "JointModelRUBY") add(pin::JointModelRUBY());
        else if (type == "JointModelRUBZ") add(pin::JointModelRUBZ());
        else if (type == "JointModelPX") add(pin::JointModelPX());
        else if (type == "JointModelPY") add(pin::JointModelPY());
        else if (type == "JointModelPZ") add(pin::JointModelPZ());
        else if (type == "JointModelRevoluteUnaligned") add(pin::JointModelRevoluteUnaligned(axis));
        else if (type == "JointModelPrismaticUnaligned") add(pin::JointModelPrismaticUnaligned(axis));
        else if (type == "JointModelFreeFlyer") add(pin::JointModelFreeFlyer());
        else in.setstate(std::ios::failbit);
    }
    if (!in) {
        std::fprintf(stderr, "%s cannot be read\n", file);
        std::exit(2);
    }
    return model;
}
