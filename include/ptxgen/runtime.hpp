// ptxgen/runtime.hpp - devices, modules, launches, assembling, compiling
#pragma once

#include "ptxgen/support/language.hpp"

#include "ptxgen/runtime/assemble/assembler.hpp"
#include "ptxgen/runtime/assemble/disassembler.hpp"
#include "ptxgen/runtime/assemble/nvrtc.hpp"
#include "ptxgen/runtime/cache/module_cache.hpp"
#include "ptxgen/runtime/device/buffer.hpp"
#include "ptxgen/runtime/device/device.hpp"
#include "ptxgen/runtime/device/doctor.hpp"
#include "ptxgen/runtime/device/stream.hpp"
#include "ptxgen/runtime/device/view_copy.hpp"
#include "ptxgen/runtime/launch/launcher.hpp"
#include "ptxgen/runtime/launch/parity.hpp"
#include "ptxgen/runtime/launch/verify.hpp"
#include "ptxgen/runtime/module/compile.hpp"
#include "ptxgen/runtime/module/module.hpp"
