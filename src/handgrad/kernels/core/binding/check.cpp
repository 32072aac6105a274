// The sentences of checks that fail.
#include "core/binding/check.h"

#include <string>

#include "core/binding/lengths.h"

namespace handgrad {

namespace {

std::string shape_text(const Axes& found) {
    std::string text = "(";
    for (int i = 0; i < found.ndim; i++)
        text += std::to_string(found.shape[i]) + (i + 1 < found.ndim ? ", " : "");
    return text + (found.ndim == 1 ? ",)" : ")");
}

std::string wanted_text(const WantedAxis* wanted, int count) {
    std::string text = "(";
    for (int i = 0; i < count; i++) {
        if (wanted[i].size == nullptr) {
            text += std::to_string(wanted[i].fixed);
        } else {
            text += std::string(wanted[i].several ? "... of " : "") + wanted[i].size->name;
            if (wanted[i].size->value >= 0) text += " = " + std::to_string(wanted[i].size->value);
        }
        text += i + 1 < count ? ", " : "";
    }
    return text + (count == 1 ? ",)" : ")");
}

}  // namespace

void Check::refuse(const char* found, const char* allowed) const {
    throw nb::value_error(
        (std::string(function_) + ": " + found + "; allowed: " + allowed).c_str());
}

void Check::refuse_shape(const char* name, const Axes& found, const WantedAxis* wanted,
                         int count) const {
    refuse((std::string(name) + " has shape " + shape_text(found)).c_str(),
           wanted_text(wanted, count).c_str());
}

void Check::refuse_values(const char* name, long found, std::initializer_list<long> factors) const {
    std::string text;
    for (const long factor : factors) text += (text.empty() ? "" : " * ") + std::to_string(factor);
    refuse((std::string(name) + " has " + std::to_string(found) + " values").c_str(), text.c_str());
}

void Check::refuse_rows(const char* name) const {
    refuse((std::string("the last axis of ") + name + " does not lie in one piece").c_str(),
           "neighbours side by side");
}

void Check::refuse_product(const char* name) const {
    refuse((std::string("the sizes of ") + name + " are negative or come to 2^63 or more").c_str(),
           "sizes whose product memory can hold");
}

void Check::refuse_range(const char* name, long value, long least, long most) const {
    const std::string upper =
        most == kNoLimit ? " or more" : std::string(" to ") + std::to_string(most);
    refuse((std::string(name) + " is " + std::to_string(value)).c_str(),
           (std::to_string(least) + upper).c_str());
}

void Check::refuse_divisor(const char* name, long value, long whole) const {
    refuse((std::string(name) + " is " + std::to_string(value)).c_str(),
           ("a divisor of " + std::to_string(whole)).c_str());
}

const std::int64_t* checked_lengths(const std::optional<Indices>& lengths, long batch, long steps) {
    if (!lengths) return nullptr;
    if (lengths->size() != batch)
        throw nb::index_error(("there are " + std::to_string(lengths->size()) + " lengths for " +
                               std::to_string(batch) + " sequences")
                                  .c_str());
    for (long n = 0; n < batch; n++) {
        const std::int64_t length = lengths->data()[n];
        if (length < 0 || length > steps)
            throw nb::index_error(
                ("length " + std::to_string(length) + "; allowed: 0 to " + std::to_string(steps))
                    .c_str());
    }
    return lengths->data();
}

}  // namespace handgrad
