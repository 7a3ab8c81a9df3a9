// ptxgen/emulator.hpp - running PTX on the CPU, with sanitizers and counters
#pragma once

#include "ptxgen/support/language.hpp"

#include "ptxgen/emulator/arguments.hpp"
#include "ptxgen/emulator/counters.hpp"
#include "ptxgen/emulator/emulator.hpp"
#include "ptxgen/emulator/groups.hpp"
#include "ptxgen/emulator/profile.hpp"
#include "ptxgen/emulator/rules.hpp"
