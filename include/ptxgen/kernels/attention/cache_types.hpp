// ptxgen/kernels/attention/cache_types.hpp - element types of a KV cache
#pragma once

#include "ptxgen/kernels/describe.hpp"

namespace ptxgen::inline v0 {

inline constexpr Word<ElementType> kCacheTypes[] = {{"f32", ElementType::f32},
                                                    {"f16", ElementType::f16},
                                                    {"bf16", ElementType::bf16},
                                                    {"q8_0", ElementType::q8_0}};

}  // namespace ptxgen::inline v0
