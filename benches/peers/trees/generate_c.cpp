// Writes Pinocchio's algorithms for one robot as C, by CppADCodeGen: `generate_c MODEL FOLDER NAME…`.
//
// What enters: MODEL, the joints as peers.py writes them; names of algorithms. What leaves: sources in FOLDER, of each algorithm
// the function NAME_forward_zero, values only.
#include <iostream>

#include <pinocchio/codegen/cppadcg-algo.hpp>

#include "model.hpp"

namespace pin = pinocchio;

template <class Generator>
struct Values : Generator {
    Values(const pin::Model &model, const std::string &name) : Generator(model, name, name) {
        this->build_jacobian = false;
    }
    void save(const std::string &folder) {
        this->initLib();
        CppAD::cg::SaveFilesModelLibraryProcessor<double>::saveLibrarySourcesTo(*this->libcgen_ptr, folder);
    }
};

int main(int count, char **words) {
    if (count < 4) return 2;
    const pin::Model model = read_model(words[1]);
    const std::string folder = words[2];
    for (int i = 3; i < count; i++) {
        const std::string name = words[i];
        if (name == "rnea") Values<pin::CodeGenRNEA<double>>(model, name).save(folder + "/" + name);
        else if (name == "crba") Values<pin::CodeGenCRBA<double>>(model, name).save(folder + "/" + name);
        else if (name == "aba") Values<pin::CodeGenABA<double>>(model, name).save(folder + "/" + name);
        else if (name == "rnea_derivatives")
            Values<pin::CodeGenRNEADerivatives<double>>(model, name).save(folder + "/" + name);
        else if (name == "aba_derivatives")
            Values<pin::CodeGenABADerivatives<double>>(model, name).save(folder + "/" + name);
        else {
            std::cerr << "no algorithm is called " << name << "\n";
            return 2;
        }
    }
}
