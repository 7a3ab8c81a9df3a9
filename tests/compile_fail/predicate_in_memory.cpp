// tests/compile_fail/predicate_in_memory.cpp - predicates are not stored
// expect: predicates have no place in memory
#include "ptxgen/builder.hpp"

using namespace ptxgen;

#ifdef WRONG
void kernel(KernelBuilder& k) { static_cast<void>(k.param<Ptr<pred>>("p")); }
#else
void kernel(KernelBuilder& k) { static_cast<void>(k.param<Ptr<u8>>("p")); }
#endif
