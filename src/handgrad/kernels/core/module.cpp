// The native module of one instruction set: every kernel file has registered its functions.
#include <vector>

#include "core/binding.h"
#include "core/simd.h"
#include "core/threads.h"

namespace handgrad {
namespace {

std::vector<void (*)(nb::module_&)>& binders() {
    static std::vector<void (*)(nb::module_&)> list;
    return list;
}

}  // namespace

Registrar::Registrar(void (*bind)(nb::module_&)) { binders().push_back(bind); }

}  // namespace handgrad

NB_MODULE(HANDGRAD_MODULE, m) {
    m.def("get_threads", &handgrad::get_threads);
    m.def("set_threads", &handgrad::set_threads, "count"_a);
    m.attr("vector_bytes") = handgrad::kVectorBytes;
    for (auto bind : handgrad::binders()) bind(m);
}
