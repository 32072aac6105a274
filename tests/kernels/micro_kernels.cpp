// Micro-kernels and packings, called directly: every number of rows, both widths, sums of no, few
// and many terms, each against the same sum in double precision, in memory that ends where the
// operands end. To be run under AddressSanitizer.
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <limits>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "core/conv/convolution_micro_kernels.h"
#include "core/gemm/strided_micro_kernel.h"

using namespace handgrad;

namespace {

std::mt19937 random_bits(17);
constexpr long kTerms[] = {0, 1, 2, 7, 8, 9, 31, 64, 257};

[[noreturn]] void fail(const std::string& what) {
    std::printf("micro-kernels: %s\n", what.c_str());
    std::abort();
}

// Operands on a cache line, of exactly this size.
template <class Element>
class Values {
  public:
    explicit Values(long count)
        : count_(count), data_(static_cast<Element*>(std::aligned_alloc(64, bytes(count)))) {
        std::uniform_real_distribution<float> uniform(-1, 1);
        for (long i = 0; i < count; i++) {
            if constexpr (std::is_floating_point_v<Element>)
                data_.get()[i] = uniform(random_bits);
            else if constexpr (std::is_same_v<Element, Bf16>)
                data_.get()[i] = static_cast<Bf16>(bits(uniform(random_bits)) >> 16);
            else
                data_.get()[i] = static_cast<Element>((bits(uniform(random_bits)) & 0xffff0000u) |
                                                      bits(uniform(random_bits)) >> 16);
        }
    }
    Element* data() const { return data_.get(); }
    Element* begin() const { return data_.get(); }
    Element* end() const { return data_.get() + count_; }
    Element& operator[](long i) const {
        if (i < 0 || i >= count_) fail("the test reads beyond its operand");
        return data_.get()[i];
    }

  private:
    static std::uint32_t bits(float value) {
        std::uint32_t b;
        std::memcpy(&b, &value, sizeof b);
        return b;
    }
    static std::size_t bytes(long count) {
        return (static_cast<std::size_t>(count) * sizeof(Element) + 63) / 64 * 64;
    }
    struct Free {
        void operator()(Element* p) const { std::free(p); }
    };
    long count_;
    std::unique_ptr<Element, Free> data_;
};

double value_of(std::uint32_t bits) {
    float value;
    std::memcpy(&value, &bits, sizeof value);
    return value;
}

// The product of two elements: of Bf16x2 both of their terms.
template <class Element>
double product(Element a, Element b) {
    if constexpr (std::is_floating_point_v<Element>) {
        return double(a) * double(b);
    } else {
        const auto x = static_cast<std::uint32_t>(a), y = static_cast<std::uint32_t>(b);
        return value_of(x << 16) * value_of(y << 16) +
               value_of(x & 0xffff0000u) * value_of(y & 0xffff0000u);
    }
}

// Sums of `terms` products of values up to 1 differ by rounding alone.
template <class T>
void expect_near(T found, double expected, long terms, const std::string& what) {
    const double bound = 4 * double(terms + 1) * double(std::numeric_limits<T>::epsilon());
    if (!(std::abs(double(found) - expected) <= bound))
        fail(what + ": " + std::to_string(double(found)) + " instead of " +
             std::to_string(expected));
}

std::string name(const char* what, int rows, int width, long k) {
    return std::string(what) + ", " + std::to_string(rows) + " rows, " + std::to_string(width) +
           " lanes, " + std::to_string(k) + " terms";
}

// Calls test(rows, vectors of columns, terms) for each of them.
template <class Test>
void for_each_size(const Test& test) {
    for (int rows = 1; rows <= kMR; rows++)
        for (int vectors = 1; vectors <= kNRVectors; vectors++)
            for (const long k : kTerms) test(rows, vectors, k);
}

// A micro-kernel that adds to its tile or begins with 0: run(tile, accumulate), and left(i, p) and
// right(p, lane), its operands.
template <class Element, class Run, class Left, class Right>
void expect_product(const char* what, int rows, int width, long pitch, long k, const Run& run,
                    const Left& left, const Right& right) {
    using T = SumOf<Element>;
    for (const bool accumulate : {false, true}) {
        const Values<T> tile(rows * pitch);
        std::vector<double> sums(tile.begin(), tile.end());
        run(tile.data(), accumulate);
        for (int i = 0; i < rows; i++)
            for (int l = 0; l < pitch; l++) {
                double& sum = sums[static_cast<std::size_t>(i * pitch + l)];
                if (l < width && !accumulate) sum = 0;
                for (long p = 0; l < width && p < k; p++) sum += product(left(i, p), right(p, l));
                expect_near(tile[i * pitch + l], sum, 2 * k, name(what, rows, width, k));
            }
    }
}

template <class Element, int Pitch>
void panels(const char* what) {
    using T = SumOf<Element>;
    for_each_size([&](int rows, int vectors, long k) {
        const int width = vectors * kLanes<T>;
        const long pitch = Pitch == 0 ? rows : Pitch == kAnyPitch ? k + 3 : Pitch;
        if (Pitch > 0 && k > kRowKC) return;
        const Values<Element> a(Pitch == 0 ? k * rows : (rows - 1) * pitch + k), b(k * width);
        // The tile before, which has fewer rows than can be stored on the way, or more.
        const int others = rows % 2 ? 2 : kMR;
        const Values<T> other(others * width), target(others * width);
        DeferredStore<T> deferred;
        deferred.defer(other.data(), others, width, target.data(), width);
        expect_product<Element>(
            what, rows, width, width, k,
            [&](T* tile, bool accumulate) {
                micro_kernel<Pitch>(rows, width, k, a.data(), b.data(), tile, accumulate, pitch,
                                    Pitch == kAnyPitch ? rows * pitch : 0, &deferred);
            },
            [&](int i, long p) { return Pitch == 0 ? a[p * rows + i] : a[i * pitch + p]; },
            [&](long p, int l) { return b[p * width + l]; });
        deferred.store_all();
        if (!std::equal(other.begin(), other.end(), target.begin()))
            fail(name("a deferred tile", rows, width, k));
    });
}

template <class T>
void strided() {
    for_each_size([](int rows, int vectors, long k) {
        constexpr int kRowStep = 5;
        const int width = vectors * kLanes<T>;
        const long a_step = 2, b_step = width + 1, pitch = width + 3;
        const Values<T> a((rows - 1) * kRowStep + std::max(k - 1, 0L) * a_step + 1),
            b(std::max(k - 1, 0L) * b_step + width);
        expect_product<T>(
            "strided", rows, width, pitch, k,
            [&](T* c, bool accumulate) {
                strided_micro_kernel<T, kRowStep>(rows, vectors, k, a.data(), a_step, b.data(),
                                                  b_step, c, pitch, accumulate);
            },
            [&](int i, long p) { return a[i * kRowStep + p * a_step]; },
            [&](long p, int l) { return b[p * b_step + l]; });
    });
}

template <class Element>
void gathered() {
    using T = SumOf<Element>;
    for_each_size([](int rows, int vectors, long k) {
        const int width = vectors * kLanes<T>;
        const Values<Element> image(100 + rows), panel(k * width);
        std::vector<long> offsets;
        for (long t = 0; t < k; t++) offsets.push_back(static_cast<long>(random_bits() % 101));
        const Values<T> tile(rows * width);
        gather_micro_kernel(rows, width, k, image.data(), offsets.data(), panel.data(),
                            tile.data());
        for (int i = 0; i < rows; i++)
            for (int l = 0; l < width; l++) {
                double sum = 0;
                for (long t = 0; t < k; t++)
                    sum += product(image[offsets[static_cast<std::size_t>(t)] + i],
                                   panel[t * width + l]);
                expect_near(tile[i * width + l], sum, 2 * k, name("gather", rows, width, k));
            }
    });
}

template <class Element>
void correlated() {
    using T = SumOf<Element>;
    using Position = PositionOf<Element>;
    constexpr long kAtOnce = sizeof(Element) / sizeof(Position);
    for_each_size([](int rows, int vectors, long columns) {
        const int width = vectors * kLanes<T>;
        const Positions positions{3, columns, columns + 2};
        const long elements = (columns + kAtOnce - 1) / kAtOnce;
        const Values<Position> image(2 * positions.row_step + columns + 21);
        Values<Element> panel(3 * elements * width);
        std::vector<long> offsets;
        for (int i = 0; i < rows; i++) offsets.push_back(static_cast<long>(random_bits() % 21));
        const Values<T> tile(rows * width);
        std::vector<double> sums(tile.begin(), tile.end());
        correlate_micro_kernel<Element>(rows, width, positions, image.data(), offsets.data(),
                                        panel.data(), tile.data());
        const auto at = [&](long p, int i) -> Element {
            const auto offset = offsets[static_cast<std::size_t>(i)];
            const long first = p / elements * positions.row_step + p % elements * kAtOnce + offset;
            if constexpr (kAtOnce == 1)
                return image[first];
            else
                return static_cast<Element>(
                    static_cast<std::uint32_t>(image[first]) |
                    (p % elements * 2 + 1 < columns
                         ? static_cast<std::uint32_t>(image[first + 1]) << 16
                         : 0));
        };
        for (int i = 0; i < rows; i++)
            for (int l = 0; l < width; l++) {
                double& sum = sums[static_cast<std::size_t>(i * width + l)];
                for (long p = 0; p < 3 * elements; p++)
                    sum += product(at(p, i), panel[p * width + l]);
                expect_near(tile[i * width + l], sum, 6 * columns,
                            name("correlate", rows, width, columns));
            }
    });
}

// Every way in which a matrix may lie, and micro-panels that it does not fill.
template <class T>
void packings() {
    constexpr int n = kLanes<T>;
    for (const int width : {1, 3, n, n + 1, 2 * n, kMR})
        for (int lanes = 1; lanes <= width; lanes++)
            for (const long k : {0, 1, 2, 5, 17, 40})
                for (const auto& [lane_stride, k_stride] :
                     {std::pair{1L, long(width) + 2}, {1L, long(lanes)}, {k + 1, 1L}, {3L, 100L}}) {
                    const Values<T> source((lanes - 1) * lane_stride +
                                           std::max(k - 1, 0L) * k_stride + 1);
                    const Values<T> panel(k * width);
                    StridedPack<T>{source.data(), lane_stride, k_stride}(panel.data(), width, 0,
                                                                         lanes, 0, k);
                    for (long p = 0; p < k; p++)
                        for (int l = 0; l < width; l++)
                            if (panel[p * width + l] !=
                                (l < lanes ? source[l * lane_stride + p * k_stride] : T(0)))
                                fail(name("pack", lanes, width, k));
                }
}

template <class Element>
void micro_kernels() {
    panels<Element, 0>("packed");
    panels<Element, kRowPitch>("rows at a compile-time pitch");
    gathered<Element>();
    correlated<Element>();
}

template <class T>
void numbers() {
    micro_kernels<T>();
    panels<T, kAnyPitch>("rows at any pitch");
    strided<T>();
    packings<T>();
}

}  // namespace

int main() {
    numbers<float>();
    numbers<double>();
    const char* bf16 = "none, no dots here";
#if defined(__AVX512F__)
    if (__builtin_cpu_supports("avx512bf16")) {
        micro_kernels<Bf16x2>();
        bf16 = "dots";
    }
#endif
    std::printf("micro-kernels: %d x %d lanes of float are right; bfloat16: %s\n", kMR, kNR<float>,
                bf16);
}
