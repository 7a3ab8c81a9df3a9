// tests/compile_fail/compare_predicates.cpp - predicates are not compared
// expect: operator<
#include "ptxgen/builder.hpp"

using namespace ptxgen;

#ifdef WRONG
void kernel(Pred p, Pred q) { static_cast<void>(p < q); }
#else
void kernel(Pred p, Pred q) { static_cast<void>(p ^ q); }
#endif
