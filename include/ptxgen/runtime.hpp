// ptxgen/runtime.hpp - assembling, compiling and looking around at run time
#pragma once

#include "ptxgen/runtime/assembler.hpp"
#include "ptxgen/runtime/doctor.hpp"
#include "ptxgen/runtime/nvrtc.hpp"
