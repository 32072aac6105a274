// Prints the best instruction set of the CPU that builds, for CMakeLists.txt.
#include <cstdio>

#include "instruction_sets.h"

int main() { std::fputs(handgrad::instruction_sets().front(), stdout); }
