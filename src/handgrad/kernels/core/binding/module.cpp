// The native module of one instruction set: every kernel file has registered its functions.
#include <vector>

#include "core/binding/kernel.h"
#include "core/runtime/memory.h"
#include "core/runtime/threads.h"
#include "core/simd/simd.h"

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
    handgrad::handle_forks_of_memory();
    handgrad::handle_forks_of_threads();
    m.attr("vector_bytes") = handgrad::kVectorBytes;
#if defined(__clang__)
    m.attr("compiler") = __VERSION__;
#else
    m.attr("compiler") = "GCC " __VERSION__;
#endif
    for (auto bind : handgrad::binders()) bind(m);
    handgrad::bind_kernels(m);
}
