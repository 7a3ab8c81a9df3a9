// ptxgen/runtime.hpp - devices, modules, launches, assembling, compiling
#pragma once

#include "ptxgen/support/language.hpp"

#include "ptxgen/runtime/assembler.hpp"
#include "ptxgen/runtime/buffer.hpp"
#include "ptxgen/runtime/compile.hpp"
#include "ptxgen/runtime/device.hpp"
#include "ptxgen/runtime/doctor.hpp"
#include "ptxgen/runtime/gemv_operands.hpp"
#include "ptxgen/runtime/launcher.hpp"
#include "ptxgen/runtime/module.hpp"
#include "ptxgen/runtime/module_cache.hpp"
#include "ptxgen/runtime/nvrtc.hpp"
#include "ptxgen/runtime/stream.hpp"
