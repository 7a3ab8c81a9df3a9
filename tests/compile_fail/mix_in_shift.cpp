// tests/compile_fail/mix_in_shift.cpp - a shift count is a u32
// expect: shift_count_is_u32_use_convert
#include "ptxgen/builder.hpp"

using namespace ptxgen;

void kernel(Var<f32>& sum, Var<u64>& v, Ptr<f32> p, Value<u32> b, Value<f32> c, Value<u64> w,
            Value<s32> d) {
#ifdef WRONG
  static_cast<void>(w << d);
#else
  static_cast<void>(w << b);
#endif
  static_cast<void>(sum);
  static_cast<void>(v);
  static_cast<void>(p);
  static_cast<void>(b);
  static_cast<void>(c);
  static_cast<void>(w);
  static_cast<void>(d);
}
